"""The encoder-decoder Transformer that all architectures share: encoder, decoder, model, language model head.

Parameter names are those of the Bart family. An architecture overrides blocks of the layers (layers.py) and the seams
of encoder, decoder and model. A batch passes through a stack (encoder or decoder) by `layer_inputs` (tensors of the
mechanism, computed once), `embed`, `attention_mask`, the layers, `build_output`.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, EncoderDecoderCache, GenerationMixin, PreTrainedModel, initialization as init
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.utils.generic import ModelOutput, can_return_tuple, merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .configuration_docmt import DocMTConfig
from .decoding import Translator
from .fingerprints import check_fingerprints, write_fingerprints
from .generation_docmt import DocumentTranslation
from .generation_mixin import DocMTGenerationMixin
from .layers import (
    CACHE_NAME,
    Attention,
    DecoderLayer,
    EncoderLayer,
    OutputProjection,
    cache_by_either_name,
    cached_length,
    dropout,
    is_static,
)
from .pipeline_docmt import DocumentTranslationPipeline
from .segments import is_right_padded, sinusoid, token_positions
from .translation_jobs import BaseTranslator


class DocMTPreTrainedModel(PreTrainedModel):
    """Loading, saving and initialisation shared by all models of this family."""

    config_class = DocMTConfig
    engine = None  # what may run encoders, `generate` and the loss in other ways, see README.md
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _skip_keys_device_placement = ["past_key_values", "cache"]  # a layer's keys stay where the layer is
    _can_compile_fullgraph = True
    _supports_flash_attn = True
    _supports_sdpa = True
    _supports_flex_attn = True

    def __init__(self, config: DocMTConfig, *inputs, **kwargs):
        """ValueError for int8 weights without an engine that knows them."""
        quantization = getattr(config, "quantization_config", None) or {}
        method = quantization.get("quant_method") if isinstance(quantization, dict) else quantization.quant_method
        if method == "docmt-int8" and self.engine is None:
            raise ValueError(
                f"int8 weights ({method}) are read by the package hf_docmt, which this code runs without: pip install "
                "hf-docmt, and load the folder by hf_docmt.load_model."
            )
        super().__init__(config, *inputs, **kwargs)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        """As in transformers; ValueError for a folder that has changed since it was saved."""
        loaded = super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        if pretrained_model_name_or_path is not None and not {"state_dict", "gguf_file"} & kwargs.keys():
            model = loaded[0] if isinstance(loaded, tuple) else loaded
            fingerprint = check_fingerprints(pretrained_model_name_or_path, cls.config_class, **kwargs)
            model.tokenizer_fingerprint = fingerprint
        return loaded

    def save_pretrained(self, save_directory, *args, **kwargs) -> None:
        """As in transformers, with fingerprints of the saved files."""
        super().save_pretrained(save_directory, *args, **kwargs)
        if kwargs.get("is_main_process", True) and not kwargs.get("variant"):
            write_fingerprints(save_directory, self.config_class)

    def _upload_modified_files(self, working_dir, *args, **kwargs):
        """As in transformers, with fingerprints of the pushed files."""
        write_fingerprints(working_dir, self.config_class)
        return super()._upload_modified_files(working_dir, *args, **kwargs)

    def _set_gradient_checkpointing(self, enable=True, gradient_checkpointing_func=checkpoint, **kwargs):
        """ValueError for reentrant checkpointing, in which the context and memory of layers lose gradients."""
        if enable and getattr(gradient_checkpointing_func, "keywords", {}).get("use_reentrant"):
            raise ValueError(
                "gradient checkpointing: use_reentrant=True follows the first input of a layer only, not the context "
                "or memory that it reads; use use_reentrant=False, the default."
            )
        super()._set_gradient_checkpointing(enable, gradient_checkpointing_func, **kwargs)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if self.config.init != "normal" and isinstance(module, (nn.Linear, nn.Embedding)):
            init_as_fairseq(module, self.config)
        elif isinstance(module, DocMTForConditionalGeneration):
            init.zeros_(module.final_logits_bias)
        else:
            super()._init_weights(module)


def init_as_fairseq(module: nn.Module, config: DocMTConfig) -> None:
    """Draw the weights of a linear layer or an embedding, D = `d_model`, by its `init_role` where it has one.

    Embeddings and output layer (`logits`) N(0, 1/D), zeros for padding; of sentences (`segments`, Lupo et al.) N(0, 1).
    In attention Xavier-uniform: `projection` (Q, K, V) with the factor 1/sqrt(2) and biases U(-1/sqrt(D), 1/sqrt(D)),
    `attention_output` with bias 0. Other linear layers, of the feed-forward network and of mechanisms, with
    `fairseq_0.9` Xavier-uniform and bias 0, otherwise (from fairseq 0.10) weights and biases U(-1/sqrt(n), 1/sqrt(n))
    for n inputs.
    """
    role = getattr(module, "init_role", None)
    if isinstance(module, nn.Embedding) or role == "logits":
        init.normal_(module.weight, std=1.0 if role == "segments" else config.d_model**-0.5)
        if getattr(module, "padding_idx", None) is not None:
            init.zeros_(module.weight[module.padding_idx])
        return
    bound = module.in_features**-0.5  # torch's own for linear layers
    if role is None and config.init != "fairseq_0.9":
        init.uniform_(module.weight, -bound, bound)
    else:
        init.xavier_uniform_(module.weight, gain=2**-0.5 if role == "projection" else 1.0)
    if module.bias is not None:
        if role == "projection" or (role is None and config.init != "fairseq_0.9"):
            init.uniform_(module.bias, -bound, bound)
        else:
            init.zeros_(module.bias)


@dataclass
class StackOutput(BaseModelOutputWithPastAndCrossAttentions):
    """Output of the layers: the last states, normalised, and what each layer returned in addition to its states."""

    layer_outputs: dict[int, tuple] | None = None


class Stack(DocMTPreTrainedModel):
    """Base of encoder and decoder: embeddings of tokens and positions, the run through the layers, the last norm."""

    side: str  # "encoder" or "decoder"
    layer_class: type[nn.Module]
    output_class: type[ModelOutput]

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.embed_scale = config.d_model**0.5 if config.scale_embedding else 1.0
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)
        if config.position_type == "learned":
            self.embed_positions = nn.Embedding(config.max_position_embeddings + config.position_offset, config.d_model)
        if config.layernorm_embedding:
            self.layernorm_embedding = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        if config.normalize_before:
            self.layer_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        layers = getattr(config, f"{self.side}_layers")
        self.layers = nn.ModuleList([self.layer_class(config, number) for number in range(layers)])
        self.gradient_checkpointing = False
        self.post_init()

    def post_init(self) -> None:
        """Layers, context layers among them, are what FSDP shards and `device_map` does not split."""
        layers = (module for module in self.modules() if isinstance(module, GradientCheckpointingLayer))
        self._no_split_modules = sorted({type(layer).__name__ for layer in layers})
        super().post_init()

    # Seams

    def layer_inputs(
        self, input_ids: torch.Tensor, positions: torch.Tensor, attention_mask: torch.Tensor | None = None, **kwargs
    ) -> dict[str, torch.Tensor]:
        """The tensors of the mechanism, by name: `embed` and every layer get all of them as keyword arguments.

        Ids (B, T), positions (B or 1, T); `kwargs` are the other arguments of `forward`.
        """
        return {}

    def embed(self, input_ids: torch.Tensor, positions: torch.Tensor, **layer_inputs) -> torch.Tensor:
        """Ids (B, T), or their embeddings (B, T, D), and positions (B or 1, T) -> states (B, T, D)."""
        return self.embed_with(input_ids, self.position_encoding(positions))

    def build_output(self, outputs: StackOutput, layer_inputs, input_ids, attention_mask=None, **kwargs) -> ModelOutput:
        """The output of `forward`; `kwargs` are its other arguments."""
        return self.output_class(**{name: value for name, value in outputs.items() if name != "layer_outputs"})

    # Helpers of the seams

    def embed_with(self, input_ids: torch.Tensor, encoding: torch.Tensor) -> torch.Tensor:
        """Scaled embeddings of ids (B, T), or these (B, T, D), plus encodings (B or 1, T, D or 1) -> (B, T, D)."""
        tokens = input_ids if input_ids.is_floating_point() else self.embed_tokens(input_ids)
        tokens = tokens * self.embed_scale
        hidden_states = tokens + encoding.to(tokens.dtype)
        if self.config.layernorm_embedding:
            hidden_states = self.layernorm_embedding(hidden_states)
        return dropout(hidden_states, self.config.dropout, self.training)

    def positions(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, past_length: int = 0
    ) -> torch.Tensor:
        """Positions of ids (B, T), (B or 1, T); ValueError where the table of learned ones has no row for them."""
        positions = token_positions(input_ids.shape, input_ids.device, attention_mask, past_length)
        limit = self.config.max_position_embeddings
        is_static = torch.is_tensor(past_length)  # of a static cache, whose size `generate` checks
        if self.config.position_type == "learned" and not is_static and past_length + input_ids.shape[1] > limit:
            length = int(positions.max()) + 1  # without padding on the left
            if length > limit:
                raise ValueError(
                    f"sequence of {length} tokens, but the model has learned positions for {limit}: give shorter "
                    "segments or a lower max_new_tokens."
                )
        return positions

    def position_encoding(self, positions: torch.Tensor) -> torch.Tensor:
        """Positions (B or 1, T) from 0 -> their encodings, (B or 1, T, D)."""
        positions = positions + self.config.position_offset
        if self.config.position_type == "learned":
            return self.embed_positions(positions)
        return sinusoid(positions, self.config.d_model, self.config.position_type)

    def empty_states(self, batch: int, length: int, device: torch.device) -> torch.Tensor:
        """(batch, length, 0) of the weights' type: all that transformers' masks take from the states of queries."""
        return torch.empty(batch, length, 0, dtype=self.dtype, device=device)

    @capture_outputs
    def run_layers(
        self, hidden_states: torch.Tensor, *arguments, layer_inputs: dict, cache=None, **kwargs
    ) -> StackOutput:
        """States (B, T, D) through all layers and the last norm; hidden states and attentions are recorded in here.

        Every layer gets `arguments` and `layer_inputs`. It may return a tuple, states first, see `layer_outputs`.
        Raises `ValueError` for a cache in a training step with checkpointing.
        """
        if cache is not None and self.training and any(layer.gradient_checkpointing for layer in self.layers):
            raise ValueError(
                "gradient checkpointing computes a layer twice and cannot fill a cache, got one in training mode: "
                "call it without the cache, or under torch.no_grad()."
            )
        if cache is not None:
            layer_inputs = {**layer_inputs, "cache": cache}
        if kwargs.get("output_attentions"):
            layer_inputs = {**layer_inputs, "output_attentions": True}
        layer_outputs = {}
        for layer in self.layers:
            hidden_states = layer(hidden_states, *arguments, **layer_inputs)
            if isinstance(hidden_states, tuple):
                hidden_states, *layer_outputs[layer.layer_idx] = hidden_states
        if self.config.normalize_before:
            hidden_states = self.layer_norm(hidden_states)
        return StackOutput(last_hidden_state=hidden_states, layer_outputs=layer_outputs, **{CACHE_NAME: cache})


RECORDED = ("output_attentions", "output_hidden_states")


def recording(kwargs: dict) -> dict:
    """The arguments of `forward` for `run_layers`: the outputs to record."""
    return {name: value for name, value in kwargs.items() if name.startswith("output_")} | {"return_dict": True}


class Encoder(Stack):
    """Source ids to states."""

    finds_sentences = False  # whether the mechanism tells sentences apart, by the separators among the ids
    side, layer_class, output_class = "encoder", EncoderLayer, BaseModelOutput
    _can_record_outputs = {
        "hidden_states": EncoderLayer,
        "attentions": OutputRecorder(Attention, index=1, layer_name="self_attn"),
    }

    @can_return_tuple
    @merge_with_config_defaults
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs,
    ) -> BaseModelOutput:
        """`input_ids` or `inputs_embeds` (see `ids_of`), `attention_mask` (B, S) -> `last_hidden_state` (B, S, D).

        `kwargs` are the inputs of the mechanism, which the seams take, and `output_attentions`, `output_hidden_states`.
        """
        input_ids = self.ids_of(input_ids, inputs_embeds)
        padded_left = attention_mask is not None and not is_right_padded(attention_mask)
        positions = self.positions(input_ids, attention_mask if padded_left else None)
        layer_inputs = self.layer_inputs(input_ids, positions, attention_mask, **kwargs)
        hidden_states = self.embed(input_ids if inputs_embeds is None else inputs_embeds, positions, **layer_inputs)
        recorded = [kwargs.get(name, getattr(self.config, name)) for name in RECORDED]
        states, norm = None, getattr(self, "layer_norm", None)
        if self.engine is not None and not any(recorded):
            states = self.engine.encode(self, hidden_states, attention_mask, self.layers, norm, input_ids)
        if states is not None:
            outputs = StackOutput(last_hidden_state=states, layer_outputs={})
        else:
            mask = self.attention_mask(hidden_states, attention_mask)
            outputs = self.run_layers(hidden_states, mask, layer_inputs=layer_inputs, **recording(kwargs))
        return self.build_output(outputs, layer_inputs, input_ids, attention_mask, **kwargs)

    def ids_of(self, input_ids: torch.Tensor | None, inputs_embeds: torch.Tensor | None) -> torch.Tensor:
        """Ids (B, S), padding ids instead of embeddings (B, S, D) as `get_input_embeddings` gives them.

        Raises `ValueError` for both or neither, and for embeddings where sentences are found by their ids.
        """
        if (input_ids is None) == (inputs_embeds is None):
            got = "none" if input_ids is None else "both"
            raise ValueError(f"expected either input_ids (B, S) or inputs_embeds (B, S, D), got {got} of them.")
        if inputs_embeds is None:
            return input_ids
        if self.finds_sentences:
            raise ValueError("inputs_embeds do not tell where sentences end, as separators do: give input_ids.")
        return torch.full_like(inputs_embeds[..., 0], self.config.pad_token_id, dtype=torch.long)

    def run_plain(self, hidden_states, attention_mask, layers, norm: nn.LayerNorm | None = None) -> torch.Tensor:
        """States (B, S, D), mask (B, S) through layers that get no inputs of a mechanism, and a norm."""
        states = None if self.engine is None else self.engine.encode(self, hidden_states, attention_mask, layers, norm)
        if states is not None:
            return states
        mask = self.attention_mask(hidden_states, attention_mask)
        for layer in layers:
            hidden_states = layer(hidden_states, mask)
        return hidden_states if norm is None else norm(hidden_states)

    # Seams, in addition to `layer_inputs` and `embed`

    def attention_mask(
        self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """Mask of self-attention among states (B, S, D), as attention takes it, from a mask (B, S), 1 = token."""
        return create_bidirectional_mask(config=self.config, inputs_embeds=hidden_states, attention_mask=attention_mask)


class Decoder(Stack):
    """Target ids and source states to states."""

    side, layer_class, output_class = "decoder", DecoderLayer, BaseModelOutputWithPastAndCrossAttentions
    _can_record_outputs = {
        "hidden_states": DecoderLayer,
        "attentions": OutputRecorder(Attention, index=1, layer_name="self_attn"),
        "cross_attentions": OutputRecorder(Attention, index=1, layer_name="encoder_attn"),
    }

    @cache_by_either_name
    @can_return_tuple
    @merge_with_config_defaults
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        cache=None,
        use_cache: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """`input_ids` (B, T): with a cache the new tokens; `attention_mask` (B, cached + T), 1 = token.

        `encoder_hidden_states` (B or fewer, S, D) and `encoder_attention_mask` (the same, S). `kwargs` are what
        `DocMTModel.decoder_inputs` gives, and `output_attentions`, `output_hidden_states`.
        """
        if input_ids is None or encoder_hidden_states is None:
            missing = "input_ids (B, T)" if input_ids is None else "encoder_hidden_states (B, S, D)"
            raise ValueError(f"the decoder reads {missing}, got none: give them.")
        encoder_hidden_states, encoder_attention_mask = self.source(
            encoder_hidden_states, encoder_attention_mask, **kwargs
        )
        arguments = {"attention_mask": attention_mask, "encoder_hidden_states": encoder_hidden_states, "cache": cache}
        past_length = cached_length(cache)
        attention_mask = self.padding_to_mask(attention_mask, past_length)
        positions = self.positions(input_ids, attention_mask, past_length)
        layer_inputs = self.layer_inputs(input_ids, positions, **arguments, **kwargs)
        if use_cache and cache is None:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        hidden_states = self.embed(input_ids, positions, **layer_inputs)
        mask = self.attention_mask(hidden_states, attention_mask, cache)
        source_mask = self.source_mask(encoder_hidden_states, encoder_attention_mask, input_ids.shape)
        inputs = {"layer_inputs": layer_inputs, "cache": cache, **recording(kwargs)}
        outputs = self.run_layers(hidden_states, mask, encoder_hidden_states, source_mask, **inputs)
        return self.build_output(outputs, layer_inputs, input_ids, **arguments, **kwargs)

    # Seams, in addition to `layer_inputs` and `embed`

    def source(
        self, states: torch.Tensor, mask: torch.Tensor | None, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The states (B or fewer, S, D) that attention to the source reads, and their mask (the same, S), 1 = is seen.

        From those of the encoder; `kwargs` are the other arguments of `forward`.
        """
        return states, mask

    def attention_mask(
        self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None = None, cache=None
    ) -> torch.Tensor | None:
        """Mask of self-attention of new states (B, T, D), from a mask (B, cached + T); None = all that came before.

        In a recurrent decoder only the part (B, T) of the new states.
        """
        if self.config.decoder_autoregression == "ssru":
            return None if attention_mask is None else attention_mask[:, -hidden_states.shape[1] :]
        if hidden_states.shape[1] == 1 and attention_mask is None and not is_static(cache):
            return None  # one new token sees all that came before it
        return create_causal_mask(
            config=self.config,
            inputs_embeds=hidden_states,
            attention_mask=attention_mask,
            **{CACHE_NAME: cache.self_attention_cache if cache is not None else None},
        )

    def source_mask(
        self, source: torch.Tensor, source_mask: torch.Tensor | None, shape: tuple[int, ...]
    ) -> torch.Tensor | None:
        """Mask of attention of target states (B, T, ...), by their shape, to a source (B or fewer, S, D), None = all.

        From a mask (B or fewer, S), 1 = is seen.
        """
        if source_mask is None:
            return None
        sources, (batch, length) = source.shape[0], shape[:2]
        return create_bidirectional_mask(
            config=self.config,
            inputs_embeds=self.empty_states(sources, batch // sources * length, source.device),
            attention_mask=source_mask,
            encoder_hidden_states=source,
        )

    def padding_to_mask(self, attention_mask: torch.Tensor | None, past_length: int) -> torch.Tensor | None:
        """A mask (B, cached + T), or None where causality hides all of its padding from every token before it."""
        is_prompt = not torch.is_tensor(past_length) and not past_length  # in a static cache the length is a tensor
        return None if attention_mask is not None and is_prompt and is_right_padded(attention_mask) else attention_mask


class DocMTModel(DocMTPreTrainedModel):
    """Encoder and decoder over shared token embeddings."""

    encoder_class = Encoder
    decoder_class = Decoder
    encoder_input_names: tuple[str, ...] = ()  # arguments of `forward` for the encoder, other than ids and mask
    decoder_input_names: tuple[str, ...] = ()  # arguments of `forward` that `decoder_inputs` takes
    _keys_to_ignore_on_load_unexpected = ["^final_logits_bias$", r"^lm_head\.weight$"]  # of a model with a head
    _tied_weights_keys = {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
    }

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        if config.has_shared_table:
            self.shared = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)
        else:
            self._tied_weights_keys = None
        self.encoder = self.encoder_class(config)
        self.decoder = self.decoder_class(config)
        self.post_init()

    @cache_by_either_name
    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        cache=None,
        use_cache: bool | None = None,
        inputs_embeds: torch.Tensor | None = None,
        decoder_inputs_embeds: torch.Tensor | None = None,
        **kwargs,
    ) -> Seq2SeqModelOutput:
        """Shapes as in `DocMTForConditionalGeneration.forward`; `kwargs` have the inputs of the mechanism."""
        if decoder_inputs_embeds is not None:
            raise ValueError("decoder_inputs_embeds are not read: give decoder_input_ids (B, T), or labels.")
        encoder_inputs = {name: kwargs[name] for name in self.encoder_input_names if name in kwargs}
        decoder_inputs = {name: kwargs[name] for name in self.decoder_input_names if name in kwargs}
        kwargs = {name: kwargs[name] for name in kwargs if name not in encoder_inputs | decoder_inputs}
        kwargs["return_dict"] = True
        if encoder_outputs is None:
            source = {"input_ids": input_ids, "attention_mask": attention_mask, "inputs_embeds": inputs_embeds}
            encoder_outputs = self.encoder(**source, **encoder_inputs, **kwargs)
        elif not isinstance(encoder_outputs, BaseModelOutput):
            if len(encoder_outputs) > 1:
                raise ValueError("encoder_outputs is a tuple, which names no fields: give it with return_dict=True.")
            encoder_outputs = BaseModelOutput(*encoder_outputs)
        target = {"input_ids": decoder_input_ids, "attention_mask": decoder_attention_mask}
        decoder_inputs = self.decoder_inputs(*target.values(), encoder_outputs, cache, **decoder_inputs)
        source = {"encoder_hidden_states": encoder_outputs.last_hidden_state, "encoder_attention_mask": attention_mask}
        caching = {"cache": cache, "use_cache": use_cache}
        decoder_outputs = self.decoder(**target, **source, **caching, **decoder_inputs, **kwargs)
        return self.build_output(encoder_outputs, decoder_outputs)

    # Seams

    def decoder_inputs(
        self, decoder_input_ids, decoder_attention_mask, encoder_outputs: BaseModelOutput, cache=None
    ) -> dict[str, torch.Tensor | None]:
        """Arguments of the decoder's `forward` other than ids (B, T) and source states, from the encoder's output."""
        return {}

    def build_output(self, encoder_outputs, decoder_outputs) -> Seq2SeqModelOutput:
        """The output of `forward`."""
        return Seq2SeqModelOutput(
            last_hidden_state=decoder_outputs.last_hidden_state,
            **{CACHE_NAME: decoder_outputs.get(CACHE_NAME)},
            decoder_hidden_states=decoder_outputs.hidden_states,
            decoder_attentions=decoder_outputs.attentions,
            cross_attentions=decoder_outputs.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )

    # Embeddings, as transformers asks for them

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.encoder.embed_tokens = value
        if self.config.has_shared_table:
            self.shared = self.decoder.embed_tokens = value


def encoder_field(encoder_outputs, name: str):
    """A field of the outputs of a model's own encoder; ValueError for those of another one."""
    value = getattr(encoder_outputs, name, None)
    if value is None:
        raise ValueError(f"encoder_outputs must come from this model's encoder: {name} is missing.")
    return value


class DocMTForConditionalGeneration(DocMTPreTrainedModel, DocumentTranslation, DocMTGenerationMixin, GenerationMixin):
    """The backbone with a language modelling head; base class of every architecture."""

    model_class = DocMTModel
    translator_class: type[BaseTranslator] = Translator
    output_class = Seq2SeqLMOutput
    pipeline_class = DocumentTranslationPipeline  # its file goes with this one to a model's folder
    _tied_weights_keys = {"lm_head.weight": "model.decoder.embed_tokens.weight"}
    _keys_to_ignore_on_load_missing = ["final_logits_bias"]

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.model = self.model_class(config)
        if config.has_shared_table:
            names = ("lm_head.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight")
            self._tied_weights_keys = dict.fromkeys(names, "model.shared.weight")
        self.register_buffer("final_logits_bias", torch.zeros(1, config.vocab_size))
        self.lm_head = OutputProjection(config.d_model, config.vocab_size, bias=False)
        self.lm_head.init_role = "logits"
        self.generation_config.max_length = config.longest_translation
        self.post_init()

    @cache_by_either_name
    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        cache=None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        logits_to_keep: int = 0,
        skip_logits: bool | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> Seq2SeqLMOutput:
        """Logits (B, T, V), and the loss where labels are given; in training mode with labels the loss alone.

        `input_ids`, `attention_mask` (B, S); `decoder_input_ids`, `decoder_attention_mask` (B, T), the latter with
        the cached tokens in front; `labels` (B, T), -100 = not scored; among the further arguments `label_weights`
        (B, T). Masks: 1 = token. `inputs_embeds` (B, S, D), not scaled, may replace `input_ids`, unless the
        model finds sentences by their separators. `encoder_outputs` may hold fewer rows than the decoder's batch, see
        `Attention`. Without `decoder_input_ids` the labels are shifted to the right. Without labels, `logits_to_keep` >
        0 gives logits of this number of last tokens only.

        With `skip_logits` the loss is computed without logits of all tokens in memory, and the output's logits are
        None. None = in training mode with labels; False = the logits of a training step, too.
        """
        if skip_logits and labels is None:
            raise ValueError("skip_logits=True needs labels: give labels, or omit it.")
        label_weights = kwargs.pop("label_weights", None)
        if self.training and label_weights is not None and labels is None:
            raise ValueError(
                "label_weights are for the loss of labels, got none: give labels. `label_smoothing_factor` of "
                "transformers' Trainer takes them away; set it to 0, and label_smoothing in the model's config."
            )
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        recorded = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        kwargs |= {name: value for name, value in recorded.items() if value is not None}  # else the configuration's
        source = {"input_ids": input_ids, "attention_mask": attention_mask, "inputs_embeds": inputs_embeds}
        target = {"decoder_input_ids": decoder_input_ids, "decoder_attention_mask": decoder_attention_mask}
        kwargs |= {"encoder_outputs": encoder_outputs, "cache": cache, "use_cache": use_cache}
        outputs = self.model(**source, **target, **kwargs, return_dict=True)
        hidden_states = outputs.last_hidden_state  # (B, T, D)
        if labels is None:
            loss, logits = None, self.logits_of(hidden_states[:, -logits_to_keep:])
        else:
            skip_logits = self.training if skip_logits is None else skip_logits
            scored = (labels, label_weights, self.config.label_smoothing if self.training else 0.0)
            loss, logits = self.loss(hidden_states, *scored, num_items_in_batch, skip_logits)
        states = {name: value for name, value in outputs.items() if name != "last_hidden_state"}
        return self.output_class(loss=loss, logits=logits, **states)

    def logits_of(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Logits (..., V) of states (..., D)."""
        bias = self.final_logits_bias[0]
        if getattr(self.lm_head, "takes_bias", False):
            return self.lm_head(hidden_states, bias)
        return self.lm_head(hidden_states) + bias  # an adapter around it would lose one

    def logits_at(self, positions: torch.Tensor, **inputs) -> torch.Tensor:
        """Logits (N, V) of N target positions alone, true in (B, T) bool; `inputs` as in `forward`, without labels."""
        hidden_states = self.model(**inputs, return_dict=True).last_hidden_state  # (B, T, D)
        return self.logits_of(hidden_states[positions])

    def loss(self, hidden_states, labels, label_weights, label_smoothing: float, num_items_in_batch, skip_logits: bool):
        """The loss of states (B, T, D), see `weighted_cross_entropy`, and logits (B, T, V), or None to skip them."""
        scored = (labels, label_weights, label_smoothing, num_items_in_batch)
        if skip_logits and self.engine is not None:
            loss = self.engine.loss(self, hidden_states, *scored)
            if loss is not None:
                return loss, None
        logits = self.logits_of(hidden_states)
        loss = weighted_cross_entropy(logits, *scored, self.final_logits_bias[0])
        return loss, None if skip_logits else logits

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Labels (B, T) shifted to the right: the decoder's start token in front, the last label dropped."""
        start = labels.new_full((labels.shape[0], 1), self.config.decoder_start_token_id)
        return torch.cat([start, labels[:, :-1].masked_fill(labels[:, :-1] == -100, self.config.pad_token_id)], dim=1)

    def train(self, mode: bool = True):
        """As in torch; ValueError for training mode with int8 weights."""
        if mode and getattr(self, "is_quantized", False):
            raise ValueError("int8 weights cannot be trained: load the model again without quantizing it")
        if mode:
            self.tokenizer_fingerprint = None  # a model in training may have a new tokenizer
        if mode and self.engine is not None:
            self.engine.forget(self)
        return super().train(mode)

    def save_pretrained(self, save_directory, *args, **kwargs) -> None:
        """As in transformers; `AutoModel` loads the model without the head from the folder."""
        base = self.model_class
        if base.is_remote_code():  # `register_for_auto_class` was called
            own = {"AutoModel": f"{base.__module__.rpartition('.')[2]}.{base.__name__}"}
            self.config.auto_map = (getattr(self.config, "auto_map", None) or {}) | own
        super().save_pretrained(save_directory, *args, **kwargs)
        if kwargs.get("is_main_process", True) and not kwargs.get("push_to_hub"):
            self.write_card(save_directory)

    def _upload_modified_files(self, working_dir, repo_id, *args, **kwargs):
        """As in transformers, with our card instead of the template."""
        self.write_card(working_dir, repo_id)
        return super()._upload_modified_files(working_dir, repo_id, *args, **kwargs)

    def write_card(self, folder, name: str | None = None) -> None:
        """Write README.md next to the weights; the package hf_docmt sets the function that does it."""

    # Other weights and vocabularies

    def adapt_state_dict(self, state_dict: dict[str, torch.Tensor], source_config) -> tuple[dict, set[str]]:
        """The weights of a trained model of another configuration, as this one loads them, and which are new here.

        The second value names this model's parameters that the result does not determine: those that `state_dict` has
        not, and tables with rows that it has not. Names and shapes that do not fit are left for the caller to refuse.
        """
        names = {name for name, _ in self.named_parameters()}
        return dict(state_dict), names - state_dict.keys()

    def set_output_embeddings(self, value: nn.Linear) -> None:
        """Take over the weights; the layer stays one that can add a bias."""
        self.lm_head = OutputProjection(value.in_features, value.out_features, bias=False, device="meta")
        self.lm_head.weight, self.lm_head.init_role = value.weight, "logits"
        self.lm_head._is_hf_initialized = True  # `init_weights` draws no new ones

    def resize_token_embeddings(self, new_num_tokens=None, pad_to_multiple_of=None, mean_resizing=True) -> nn.Embedding:
        """As in transformers, for the tables of both sides; the logits' bias grows with zeros.

        ValueError for int8 weights.
        """
        if getattr(self, "is_quantized", False):
            raise ValueError("int8 weights cannot be resized: resize the embeddings before you quantize the model")
        self.tokenizer_fingerprint = None
        embeddings = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        decoder, size = self.model.decoder, embeddings.num_embeddings
        if decoder.embed_tokens.num_embeddings != size:
            decoder.embed_tokens = self._get_resized_embeddings(decoder.embed_tokens, size, mean_resizing=mean_resizing)
            if self.config.tie_word_embeddings:
                self.lm_head.weight = decoder.embed_tokens.weight
        added = embeddings.num_embeddings - self.final_logits_bias.shape[1]
        self.final_logits_bias = nn.functional.pad(self.final_logits_bias, (0, added))  # added < 0 cuts
        return embeddings


# Further functions for training


RULED_OUT = -50.0  # a bias in the logits below which no token is written


def weighted_cross_entropy(
    logits: torch.Tensor,
    labels: torch.Tensor,
    label_weights: torch.Tensor | None = None,
    label_smoothing: float = 0.0,
    num_items_in_batch: torch.Tensor | int | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sum of weighted, label-smoothed token losses divided by the number of target tokens.

    Lupo et al. (2023), appendix A, equation 1: with weight CD on context tokens and 1 on those of the current
    sentence this is the context-discounted loss. The denominator counts every token once, whatever its weight, as in
    the released code; `num_items_in_batch` replaces it where a batch is part of a larger one (gradient accumulation,
    several processes).

    `logits` (B, T, V); `labels` (B, T), -100 = not scored; `label_weights` (B, T) or None = 1; `bias` (V,) of the
    logits, by which `smoothing_target` knows tokens that are never written.
    """
    scores, targets = logits.flatten(0, 1).float(), labels.flatten()  # (B*T, V), (B*T,)
    smoothed = smoothing_target(bias) if label_smoothing and bias is not None else None  # (V,)
    uniform = label_smoothing if smoothed is None else 0.0
    settings = {"ignore_index": -100, "reduction": "none", "label_smoothing": uniform}
    token_loss = nn.functional.cross_entropy(scores, targets, **settings)  # (B*T,), 0 where ignored
    if smoothed is not None:
        smooth_loss = -(scores.log_softmax(dim=1) * smoothed).sum(dim=1) * (targets != -100)  # fp32 in autocast
        token_loss = (1 - label_smoothing) * token_loss + label_smoothing * smooth_loss
    if label_weights is not None:
        token_loss = token_loss * label_weights.flatten().to(token_loss.dtype)
    return token_loss.sum() / target_count(labels, num_items_in_batch)


def smoothing_target(bias: torch.Tensor) -> torch.Tensor | None:
    """The distribution that label smoothing mixes into the target, (V,): uniform over tokens that can be written.

    The bias (V,) of the logits rules out the others: the rest of a source vocabulary that the target does
    not share, separators of a model that writes none. None if a look on the CPU finds none of them.
    """
    written = bias > RULED_OUT
    if not torch.compiler.is_compiling() and written.is_cpu and bool(written.all()):
        return None
    return written.float() / written.sum()


def target_count(labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None) -> torch.Tensor | int:
    """Divisor of the sum of losses: the number of target tokens of these labels (B, T), or of the whole large batch."""
    return (labels != -100).sum() if num_items_in_batch is None else num_items_in_batch


# Neutral start


@torch.no_grad()
def start_neutral(model: nn.Module) -> None:
    """Call `start_neutral` of all parts of a model that have one, outer parts before those inside them."""
    for module in model.modules():
        if hasattr(module, "start_neutral"):
            module.start_neutral()
