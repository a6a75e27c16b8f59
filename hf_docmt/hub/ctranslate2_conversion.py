"""Concatenation models without sentence encodings in the format of CTranslate2 (extra `ctranslate2`)."""

import copy
from pathlib import Path

import torch
from ctranslate2.converters.transformers import BartLoader
from ctranslate2.specs.common_spec import Activation
from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from transformers import PreTrainedConfig, PreTrainedModel

from hf_docmt.hub.stock import check_not_quantized, stock_class
from hf_docmt.modeling.fingerprints import write_fingerprints
from hf_docmt.modeling.segments import sinusoid

ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_new": Activation.GELUTanh,
    "silu": Activation.SWISH,
    "swish": Activation.SWISH,
}
LEAST_POSITIONS = 4096  # rows of a table of sines, which takes no training
FOLDER = "ctranslate2"  # of the library's files, inside that of the model


@torch.no_grad()
def write_ctranslate2_folder(model: PreTrainedModel, tokens: list[str], folder: Path, quantization: str) -> None:
    """Write configuration and generation settings into a folder, and the files for `ctranslate2.Translator` inside it.

    `tokens` are the names of all ids, `quantization` is the type of the weights. The translator reads sources with
    their end token, and prefixes with the start token. The configuration has the number of positions of the weights.
    Raises ValueError as `stock_class`, for int8 weights, and for an activation function that CTranslate2 does not have.
    """
    config = model.config
    stock_class(config)
    check_not_quantized(model)
    if config.activation_function not in ACTIVATIONS:
        names = ", ".join(ACTIVATIONS)
        raise ValueError(f"activation_function: got {config.activation_function!r}, CTranslate2 computes {names}")
    spec = BackboneLoader().get_model_spec(copy.deepcopy(model))  # quantization is in place
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    eos, start = config.eos_token_id, config.decoder_start_token_id
    spec.config.eos_token = tokens[eos[0] if isinstance(eos, list) else eos]
    spec.config.bos_token, spec.config.decoder_start_token = tokens[start], None
    spec.config.unk_token = tokens[config.pad_token_id if config.unk_token_id is None else config.unk_token_id]
    spec.validate()
    spec.optimize(quantization=quantization)
    (folder / FOLDER).mkdir()
    spec.save(str(folder / FOLDER))
    fields = {**config.to_diff_dict(), "max_position_embeddings": position_rows(config)}
    type(config)(**fields).to_json_file(folder / "config.json")
    model.generation_config.save_pretrained(folder)
    write_fingerprints(folder, type(config))


def position_rows(config: PreTrainedConfig) -> int:
    """Positions of the written model: all learned ones, or enough sines for documents."""
    learned = config.position_type == "learned"
    return config.max_position_embeddings if learned else max(config.max_position_embeddings, LEAST_POSITIONS)


class BackboneLoader(BartLoader):
    """CTranslate2's loader for BART, whose names of layers the backbone has.

    Encoder and decoder have their own numbers of heads here, and positions are those of the backbone. (The library's
    loader for Marian drops the last token of the vocabulary, which is the padding in Marian's own models only.)
    """

    def get_model_spec(self, model: PreTrainedModel) -> TransformerSpec:
        """Sizes and weights, without a vocabulary."""
        config = model.config
        layout = {"pre_norm": config.normalize_before, "layernorm_embedding": config.layernorm_embedding}
        layout |= {"activation": ACTIVATIONS[config.activation_function]}
        encoder = TransformerEncoderSpec(config.encoder_layers, config.encoder_attention_heads, **layout)
        decoder = TransformerDecoderSpec(config.decoder_layers, config.decoder_attention_heads, **layout)
        self.set_encoder(encoder, model.get_encoder())
        self.set_decoder(decoder, model.get_decoder())
        self.set_linear(decoder.projection, model.lm_head)
        if model.final_logits_bias.any():
            decoder.projection.bias = model.final_logits_bias[0]
        return TransformerSpec(encoder, decoder)

    def set_common_layers(self, spec: TransformerEncoderSpec | TransformerDecoderSpec, module: PreTrainedModel) -> None:
        """Parts of encoder and decoder outside their layers: embeddings, positions and norms."""
        spec.scale_embeddings = module.embed_scale
        spec.position_encodings.encodings = position_encodings(module)
        tables = spec.embeddings if isinstance(spec.embeddings, list) else [spec.embeddings]
        self.set_embeddings(tables[0], module.embed_tokens)
        if module.config.normalize_before:
            self.set_layer_norm(spec.layer_norm, module.layer_norm)
        if module.config.layernorm_embedding:
            self.set_layer_norm(spec.layernorm_embedding, module.layernorm_embedding)


def position_encodings(stack: PreTrainedModel) -> torch.Tensor:
    """The encodings of all positions of an encoder or decoder, the first token's first, (rows, D)."""
    offset, rows = stack.config.position_offset, position_rows(stack.config)
    if stack.config.position_type == "learned":
        return stack.embed_positions.weight[offset : offset + rows]
    return sinusoid(torch.arange(rows) + offset, stack.config.d_model, stack.config.position_type)
