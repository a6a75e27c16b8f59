"""Configuration shared by every document translation architecture."""

import math
from inspect import get_annotations
from types import UnionType
from typing import Union, get_args, get_origin

from transformers import PreTrainedConfig
from transformers.activations import ACT2FN

from .sequence_format import check_format, language_codes, sequence_format

TASK = "document-translation"  # name of the pipeline
TOKEN_IDS = tuple(f"{name}_token_id" for name in ("pad", "unk", "bos", "eos", "sep", "bod", "decoder_start"))
SIDES = {"both": "source and target", "source": "source", "target": "target"}


class DocMTConfig(PreTrainedConfig):
    """Sizes and switches of the encoder-decoder Transformer that all architectures share.

    The switches are those in which published sentence-level models differ, so that Marian, BART, mBART and M2M-100
    (NLLB) checkpoints load by name: `normalize_before` (pre-norm, with a final layer norm on both stacks),
    `layernorm_embedding`, `layer_norm_eps` (added to variances), `scale_embedding` (times sqrt(d_model)),
    `position_type`, `position_offset` (index of the first token's position), `share_encoder_decoder_embeddings` (one
    table for both sides) and `tie_word_embeddings` (that of the target for the logits, too; False ties no weights at
    all, as transformers has it).

    `decoder_autoregression` is what the decoder reads earlier target tokens by: `self_attention`, or `ssru`, the
    recurrent unit of Kim et al. (2019), whose state is one vector a layer; not for mechanisms in self-attention of the
    decoder.

    `position_type` is `sinusoidal` (Vaswani et al. 2017, sines in the first half, cosines in the second, as
    MarianMT has it), `sinusoidal_t2t` (the tensor2tensor frequencies of fairseq, M2M-100 and Marian itself) or
    `learned`.
    `label_smoothing` is applied in training mode only. `use_bod` puts `<bod>` in front of a segment that starts a
    document; it belongs to the first sentence, without a separator. (In Herold and Ney 2023, section 3.1, it stands for
    a sentence 0, with a separator after it, and counts as one of the sentences of context.) `init` is how weights are
    drawn before training: `normal`, N(0, `init_std`^2) and biases 0; `fairseq`, what fairseq draws from version 0.10
    on; or `fairseq_0.9`. `strategy` is how documents are translated by default; None = the one that fits the
    architecture. `decoding_past_context` is k, how many sentences before the current one `sliding` and `sequential`
    read by default; None = as many as in training. `base_model` is the Hub name of the model that the weights come
    from.

    `source_format` and `target_format` are how a sequence is written around its sentences X, in tokens `<s>`, `</s>`,
    `<start>` (`decoder_start_token_id`), `[source_lang]` and `[target_lang]`: `[source_lang] X </s>` and
    `<start> [target_lang] X </s>` in M2M-100, NLLB-200 and mBART-50, `X </s> [source_lang]` and `[target_lang] X </s>`
    in mBART, `[target_lang] X </s>` in the source of a multilingual Marian, `<s> X </s>` in BART. `language_ids` are
    the ids of language codes, in the family's own spelling; `source_lang` and `target_lang` the defaults. Raises
    `ValueError` for a value outside its range.
    """

    keys_to_ignore_at_inference = ["past_key_values", "cache"]
    attribute_map = {"num_attention_heads": "encoder_attention_heads", "num_hidden_layers": "encoder_layers"}
    attribute_map |= {"hidden_size": "d_model"}
    # what reports say of a model, as far as its configuration has it
    reported_fields = ("d_model", "encoder_layers", "decoder_layers", "view", "context_sides")
    selects_by_word = False  # whether every word selects among the context sentences, in modules called `selection`
    is_in_decoder_self_attention = False  # whether the mechanism is there
    groups_tokens = False  # whether a module called `shortener` assigns tokens of a context sentence to groups
    neutral_fields = {}  # values with which it can start as the backbone, where the defaults are others
    dependent_fields = {}  # {field: fields that are not taken over from a configuration with another value of it}
    sequence_format, language_codes = sequence_format, language_codes  # of two languages, by default its own
    # what `validate` allows, here and in subclasses, by field: the values, and the lowest whole number
    choices = {
        "is_encoder_decoder": (True,),
        "strategy": (None, "sentence", "sliding", "sequential", "chunk_sequential", "full", "stream"),
        "activation_function": tuple(ACT2FN),
        "init": ("normal", "fairseq", "fairseq_0.9"),
        "position_type": ("sinusoidal", "sinusoidal_t2t", "learned"),
        "decoder_autoregression": ("self_attention", "ssru"),
    }
    least = dict.fromkeys(("vocab_size", "d_model", "max_position_embeddings", "encoder_layers", "decoder_layers"), 1)
    least |= {"encoder_ffn_dim": 1, "decoder_ffn_dim": 1, "position_offset": 0, "decoding_past_context": 0}

    vocab_size: int = 32000
    d_model: int = 512
    encoder_layers: int = 6
    encoder_attention_heads: int = 8
    encoder_ffn_dim: int = 2048
    decoder_layers: int = 6
    decoder_attention_heads: int = 8
    decoder_ffn_dim: int = 2048
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation_function: str = "relu"
    max_position_embeddings: int = 1024
    position_type: str = "sinusoidal"
    position_offset: int = 0
    decoder_autoregression: str = "self_attention"
    scale_embedding: bool = True
    normalize_before: bool = False
    layernorm_embedding: bool = False
    layer_norm_eps: float = 1e-5
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    init: str = "normal"
    init_std: float = 0.02
    label_smoothing: float = 0.0
    use_cache: bool = True
    is_encoder_decoder: bool = True
    pad_token_id: int | None = 0
    unk_token_id: int | None = 1
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 3
    sep_token_id: int | None = 4
    bod_token_id: int | None = 5
    decoder_start_token_id: int | None = 2
    use_bod: bool = False
    strategy: str | None = None
    decoding_past_context: int | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    source_format: str = "X </s>"
    target_format: str = "<start> X </s>"
    language_ids: dict[str, int] | None = None
    base_model: str | None = None

    def __post_init__(self, **kwargs):
        for name in ("custom_pipelines", "fingerprints"):  # of config.json
            kwargs.pop(name, None)
        super().__post_init__(**kwargs)
        self.validate()
        if self.target_lang is not None and self.target_format.startswith("[target_lang]"):
            self.decoder_start_token_id = self.language_ids[self.target_lang]

    def validate(self) -> None:
        """Raise `ValueError` for a value outside its range; when a configuration is made, and before it is saved."""
        classes = type(self).__mro__[: type(self).__mro__.index(PreTrainedConfig)]
        for name, annotation in [item for cls in classes for item in get_annotations(cls, eval_str=True).items()]:
            self._check_type(name, annotation)
        choices, least = {}, {}
        for cls in reversed(classes):
            choices |= vars(cls).get("choices", {})
            least |= vars(cls).get("least", {})
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}, got {getattr(self, name)!r}.")
        for name, lowest in least.items():
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise ValueError(f"{name} must be a whole number >= {lowest}, got {value!r}.")
        for name in TOKEN_IDS:
            value = getattr(self, name)
            ids = value if isinstance(value, list) else [value]  # several end tokens
            is_absent = value is None and name not in ("pad_token_id", "eos_token_id")
            if not is_absent and not (ids and all(type(id) is int and 0 <= id < self.vocab_size for id in ids)):
                raise ValueError(f"{name} must be an id from 0 to {self.vocab_size - 1}, got {value!r}.")
        self._check_positions()
        if self.is_in_decoder_self_attention and self.decoder_autoregression != "self_attention":
            raise ValueError(
                f"decoder_autoregression={self.decoder_autoregression!r} leaves no self-attention in the decoder, of "
                f"which the mechanism of {self.model_type!r} is a part: use 'self_attention', or another architecture."
            )
        if self.init_std < 0:
            raise ValueError(f"init_std must be >= 0, got {self.init_std!r}.")
        for side in ("encoder", "decoder"):
            heads = getattr(self, f"{side}_attention_heads")
            if heads < 1 or self.d_model % heads:
                raise ValueError(
                    f"{side}_attention_heads must divide d_model={self.d_model}, got {heads}: "
                    f"choose a divisor of {self.d_model}."
                )
        for name in ("dropout", "attention_dropout", "activation_dropout", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)!r}.")
        check_format(self)
        super().validate()

    def _check_type(self, name: str, annotation) -> None:
        """ValueError for a value of another type or not finite; a whole number is a `float`, a bool is not a number."""
        members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
        types, value = tuple(get_origin(member) or member for member in members), getattr(self, name)
        if not all(isinstance(kind, type) for kind in types):
            return  # Literal and similar types
        fits = isinstance(value, types) or (float in types and isinstance(value, int))
        if not fits or (isinstance(value, bool) and bool not in types):
            names = " or ".join(sorted("null" if kind is type(None) else kind.__name__ for kind in types))
            raise ValueError(f"{name} must be of type {names}, got {value!r}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value!r}.")

    @property
    def has_shared_table(self) -> bool:
        """Whether both sides have one table of embeddings; where nothing is tied they have not, as in Marian."""
        return self.share_encoder_decoder_embeddings and self.tie_word_embeddings

    @property
    def longest_translation(self) -> int:
        """Target tokens after which `generate` stops where it is not told otherwise (transformers: 20)."""
        return self.max_position_embeddings

    @property
    def custom_pipelines(self) -> dict[str, dict]:
        """The place of a model's pipelines: its folder, or a repository of code (`owner/name`)."""
        code_repo, dashes, _ = (getattr(self, "auto_map", None) or {}).get("AutoConfig", "").rpartition("--")
        pipeline = f"{code_repo}{dashes}pipeline_docmt.DocumentTranslationPipeline"
        return {TASK: {"impl": pipeline, "pt": ["AutoModelForSeq2SeqLM"]}}

    def to_dict(self) -> dict:
        """As in transformers, with `custom_pipelines`."""
        return super().to_dict() | {"custom_pipelines": self.custom_pipelines}

    def _check_positions(self) -> None:
        """ValueError for states that are not pairs of sine and cosine, where these are added."""
        if self.d_model % 2 and self.position_type != "learned":
            raise ValueError(
                f"position_type={self.position_type!r} needs an even d_model, got {self.d_model}: choose an even one, "
                "or position_type='learned'."
            )

    def context_reach(self) -> str:
        """The context of a model of this configuration in words."""
        return "none: sentence level"

    def sentence_reach(self) -> str:
        """`context_reach` in sentences: `past_context`, `future_context` of `context_sides`."""
        if not self.past_context and not self.future_context:
            return DocMTConfig.context_reach(self)
        return f"{self.past_context} past and {self.future_context} future sentences, {SIDES[self.context_sides]}"


class SegmentConfig(DocMTConfig):
    """The format of one sequence, on both sides `s1 <sep> s2 ... <sep> sK </s>`.

    `view` is `window` (the current sentence with `past_context` sentences before and `future_context` after it, sKtoK
    with K = past_context + 1; no context = one sentence) or `chunk` (a part of a document of at most `chunk_tokens`
    target tokens, Herold and Ney 2023, section 3.1). `context_sides` is `both`, or `source` for a target that holds
    the current sentence alone.
    """

    view: str = "window"
    past_context: int = 0
    future_context: int = 0
    chunk_tokens: int = 1000
    context_sides: str = "both"
    choices = {"view": ("window", "chunk"), "context_sides": ("both", "source")}
    least = {"past_context": 0, "future_context": 0, "chunk_tokens": 1}

    def validate(self):
        super().validate()
        if self.view == "chunk" and (self.past_context or self.future_context):
            raise ValueError(
                f"view='chunk' takes its context from the chunk; got past_context={self.past_context}, "
                f"future_context={self.future_context}: set both to 0 or use view='window'."
            )
        if self.view == "chunk" and self.context_sides == "source":
            raise ValueError("view='chunk' translates all its sentences; use context_sides='both'.")

    def context_reach(self):
        if self.view == "chunk":
            return f"chunks of up to {self.chunk_tokens} target tokens, source and target"
        return self.sentence_reach()

    @property
    def longest_translation(self) -> int:
        """As in the base class; twice the tokens of a chunk if positions are unlimited."""
        is_endless = self.view == "chunk" and self.position_type != "learned"
        return max(self.max_position_embeddings, 2 * self.chunk_tokens if is_endless else 0)

    @property
    def window_size(self) -> int:
        """K, the largest number of sentences of one window."""
        return self.past_context + 1 + self.future_context


__all__ = ["DocMTConfig", "SegmentConfig"]
