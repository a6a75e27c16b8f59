"""The models of Lupo et al. (2022, 2023) and Maka et al. (2024), as published with fairseq.

Names of parameters and defaults of settings are those of the public repositories. `lorelupo/focused-concat` (fairseq
0.9): a sequence is `s1 </s> ... sK <END>` on both sides, and the decoder starts with `<END>`. Features without a
counterpart here are refused: shifts by the average length of the example's own sentences, several encodings of
sentences at once, and learned position-segment embeddings, whose checkpoint has not the table that the model computed
with (see examples/recipes/README.md). For `Pawel-M/shortening-context-mt` (fairseq 0.12.2) these are refused: the gate
over two branches, the gate in sequential integration (there over the sum, here as in equation 5), pooling by minimum,
groups without a hidden layer, the current sentence's tokens as context of Caching Tokens.
"""

import torch

from hf_docmt.hub.fairseq_checkpoint import FairseqTransformer
from hf_docmt.modeling.segments import sinusoid

ENCODINGS = {"lrn_segment_emb": "learned", "onehot_segment_emb": "onehot"}
SIDES = {"slide_n2n": "both", "slide_n2one": "source"}
TRAIN = "train such a model with a recipe of this package"


class ConcatTransformer(FairseqTransformer):
    """Concatenation, `--task doc2doc_translation` with `--arch concat_...` or `transformer...`."""

    renames = ((r"(encoder|decoder)\.embed_segments\.weight", r"\1.segment_encoding.embedding.weight"),)
    end, separator = "<END>", "</s>"
    task_symbols = ("<END>",)
    search = {"num_beams": 4, "length_penalty": 0.6, "early_stopping": True, "min_new_tokens": 1}

    def fields(self):
        checkpoint = self.checkpoint
        checkpoint.require("mode", tuple(SIDES), None, "this package converts sliding windows alone")
        checkpoint.require("add_doc_markup", (False,), False, TRAIN)
        fields = super().fields() | {
            "past_context": checkpoint.get("num_sent") - 1,
            "context_sides": SIDES[str(checkpoint.get("mode"))],
            "start_sentence": "current",
        }
        if not str(checkpoint.get("arch", "")).startswith("concat"):
            return fields
        return fields | self._encoding()

    def named_weights(self, config):
        """Row 0 of the segment embeddings is for padding."""
        weights = super().named_weights(config)
        for side in ("encoder", "decoder"):
            name = f"model.{side}.segment_encoding.embedding.weight"
            if name in weights:
                weights[name] = weights[name][1:]
        return weights

    def _encoding(self) -> dict:
        get, flag = self.checkpoint.get, self.checkpoint.flag
        shifted, persistent_positions = flag("segment_shifted_positions"), flag("persistent_positions")
        if pse_dim := get("pse_segment_dim", 0):
            remedy = "the table of learned position-segment embeddings is not in a checkpoint; " + TRAIN
            self.checkpoint.require("lrn_segment_emb", (False,), False, remedy)
            kind = "onehot" if flag("onehot_segment_emb") else "sinusoidal"
            return {"segment_encoding": kind, "pse_dim": pse_dim, "persistent": flag("persistent_pse")}
        if flag("use_segment_emb"):
            for name in ("segment_shifted_positions", "persistent_positions"):
                self.checkpoint.require(name, (False,), False, f"use_segment_emb with it has no counterpart; {TRAIN}")
            kind = next((kind for name, kind in ENCODINGS.items() if flag(name)), "sinusoidal")
            return {"segment_encoding": kind, "persistent": flag("persistent_segment_emb")}
        if not shifted and not persistent_positions:
            return {"segment_encoding": "none"}
        shift = get("position_shift", 0) if shifted else 0
        if shift < 0:
            raise ValueError(
                f"{self.checkpoint.path}: position_shift is {shift}, the average length of each example's sentences, "
                f"expected a number of positions; {TRAIN}"
            )
        return {"segment_encoding": "shift", "segment_shift": shift, "persistent": persistent_positions}


INTEGRATION = (
    (r"decoder\.layers\.(\d+)\.context_attn_layer_norm\.", r"decoder.layers.\1.context.layer_norm."),
    (r"decoder\.layers\.(\d+)\.context_attn\.", r"decoder.layers.\1.context.attn."),
    (r"decoder\.layers\.(\d+)\.context_gate\.0\.", r"decoder.layers.\1.context.gate."),
)
SHORTENING = (
    (r"encoder\.shortening_attn\.", "encoder.shortener.attn."),
    (r"encoder\.shortening_layer_norm\.", "encoder.shortener.layer_norm."),
    (r"encoder\.shortening_cat\.0\.", "encoder.shortener.fc1."),
    (r"encoder\.shortening_cat\.2\.", "encoder.shortener.fc2."),
    (r"encoder\.linear_pooler\.", "encoder.shortener.pooling."),
)
POOLINGS = {"mean": "avg", "max": "max", "linear": "linear"}


class ContextTransformer(FairseqTransformer):
    """Shared by the models: previous source sentences as separate inputs."""

    renames: tuple[tuple[str, str], ...] = INTEGRATION
    separator_row = "<brk>"

    def fields(self):
        self.checkpoint.require("target_context_size", (0,), 0, "the decoder of this package reads no target context")
        if not (past_context := self.checkpoint.get("source_context_size", 0)):
            raise ValueError(f"{self.checkpoint.path}: source_context_size is 0, expected a model that reads context")
        return super().fields() | {"past_context": past_context, "missing_context": "eos"}

    def integration(self) -> dict:
        """How the decoder reads the context."""
        flag, require = self.checkpoint.flag, self.checkpoint.require
        if self.context_flag("concatenate_context"):
            return {"integration": "concatenate", "context_gate": False}
        require("context_use_gated_attentions", (False,), False, TRAIN)
        if flag("context_use_parallel_cross_attention"):
            remedy = "with the norm before, parallel integration is another one there; " + TRAIN
            require("encoder_normalize_before", (False,), False, remedy)
            return {"integration": "parallel", "context_gate": flag("context_use_gated_context_attention")}
        require("context_use_gated_context_attention", (False,), False, TRAIN)
        return {"integration": "sequential", "context_gate": False}

    def context_flag(self, name: str) -> bool:
        """A setting of the context, which older checkpoints of shortening have under another name."""
        return bool(self.checkpoint.get(f"context_{name}", self.checkpoint.flag(f"shortening_{name}")))

    def sentence_positions(self, weights: dict, count: int, dim: int) -> torch.Tensor:
        """The segment embeddings of the first `count` context sentences, (count, dim), taken out of `weights`."""
        kind = "learned" if self.context_flag("sentence_learned_pos") else "sinusoidal"
        kind = "none" if self.context_flag("no_sentence_positional_embeddings") else kind
        return self.table(weights, "model.decoder.sentence_positions.weight", kind, count, dim)

    def table(self, weights: dict, name: str, kind: str, count: int, dim: int) -> torch.Tensor:
        """Rows 1 to `count` of a table of fairseq, whose row 0 is for padding: learned, sinusoidal or none."""
        if kind == "none":
            return torch.zeros(count, dim)
        if kind == "sinusoidal":
            return sinusoid(torch.arange(1, count + 1), dim, "sinusoidal_t2t")
        if name not in weights or len(weights[name]) <= count:
            raise ValueError(f"{self.checkpoint.path}: expected {count + 1} rows or more in {name}")
        return weights.pop(name)[1 : count + 1]


class CachingTransformer(ContextTransformer):
    """Caching Tokens and Caching Sentence, `--arch caching_contextual_transformer`."""

    architecture = "caching"

    def fields(self):
        checkpoint = self.checkpoint
        checkpoint.require("separate_context_sentences", (True,), False, "context joined to one sequence has no cache")
        aggregates = checkpoint.flag("caching_aggregate_sentence")
        if not aggregates:
            checkpoint.require("caching_use_current_context", (False,), False, TRAIN)
        return {
            **super().fields(),
            **self.integration(),
            "shortening": "sentence" if aggregates else "none",
            "include_current": checkpoint.flag("caching_use_current_context"),
            "encoder_gradient": checkpoint.flag("caching_propagate_context_encoder_gradient"),
        }

    def named_weights(self, config):
        weights = super().named_weights(config)
        rows = self.sentence_positions(weights, config.past_context + 1, config.d_model)
        return weights | {"model.encoder.segment_embedding.weight": rows}


class ShorteningTransformer(CachingTransformer):
    """Pooling, latent grouping and latent selecting, `--arch shortening_contextual_transformer`."""

    renames = INTEGRATION + SHORTENING

    def fields(self):
        get, flag, checkpoint = self.checkpoint.get, self.checkpoint.flag, self.checkpoint
        gradient = get("shortening_propagate_context_size_gradient", None)
        fields = super().fields() | {
            "shortening_size": get("shortening_groups", 10),
            "include_current": not flag("shortening_no_current_context"),
            "encoder_gradient": flag("shortening_propagate_context_encoder_gradient"),
            "shortening_gradient": get("source_context_size", 0) if gradient is None else gradient,
        }
        if flag("shortening_use_pooling"):
            checkpoint.require("shortening_pooling_type", tuple(POOLINGS), "mean", TRAIN)
            kind = POOLINGS[str(get("shortening_pooling_type", "mean"))]
            return fields | {"shortening": kind, "pooling_padding": "zeros"}
        if get("shortening_ffn_hidden", None) is None:
            raise ValueError(f"{checkpoint.path}: shortening_ffn_hidden is None, expected a number of units; {TRAIN}")
        checkpoint.require("activation_fn", ("relu", "gelu"), "relu", TRAIN)
        return fields | {
            "shortening": "selecting" if flag("shortening_selecting_groups") else "grouping",
            "categorizer": "sparsemax" if flag("shortening_use_sparsemax") else "softmax",
            "categorizer_dim": get("shortening_ffn_hidden"),
        }

    def named_weights(self, config):
        weights, name = super().named_weights(config), "model.encoder.shortener.embed_positions.weight"
        is_latent = config.shortening in ("grouping", "selecting")
        count = config.shortening_size if is_latent else -(-config.max_position_embeddings // config.shortening_size)
        kind = "learned" if self.checkpoint.flag("shortening_group_learned_pos") else "sinusoidal"
        kind = "none" if self.checkpoint.flag("shortening_no_group_positional_embeddings") else kind
        rows = self.table(weights, "model.encoder.group_positions.weight", kind, count, config.d_model)
        return weights | {name: rows}


class SentenceTransformer(FairseqTransformer):
    """The sentence-level baseline, `--arch contextual_transformer` without context.

    A lone `</s>` precedes the sentence on both sides, in the place of the single-encoder model's context.
    """

    def fields(self):
        self.checkpoint.require("multi_encoder", (False,), False, TRAIN)
        self.checkpoint.require("target_context_size", (0,), 0, TRAIN)
        return super().fields() | {"source_format": "</s> X </s>", "target_format": "<start> </s> X </s>"}


class MultiEncoderTransformer(ContextTransformer):
    """Multi-encoder, `--arch contextual_transformer --multi-encoder`: [context; source] as one memory."""

    architecture = "multiencoder"

    def fields(self):
        remedy = (
            "the single-encoder model reads a second start token in the decoder and two kinds of separators, for which "
            f"this package has no switch; {TRAIN}"
        )
        self.checkpoint.require("multi_encoder", (True,), False, remedy)
        return super().fields() | self.integration() | {"context_layers": self.checkpoint.get("encoder_layers")}

    def integration(self):
        return {"integration": "concatenate", "context_gate": False}

    def named_weights(self, config):
        """With the norm before, one last norm serves both encoders."""
        weights = super().named_weights(config)
        for kind in ("weight", "bias") if config.normalize_before else ():
            weights[f"model.encoder.context_layer_norm.{kind}"] = weights[f"model.encoder.layer_norm.{kind}"].clone()
        return weights


class ContextAttentionTransformer(ContextTransformer):
    """Multi-encoder with attention to the context, `--arch multienc_contextual_transformer`."""

    architecture = "multiencoder"

    def fields(self):
        return super().fields() | self.integration() | {"context_layers": self.checkpoint.get("encoder_layers")}

    def named_weights(self, config):
        """The one segment embedding, which all context vectors get, is added to the bias of the norm before it."""
        weights = super().named_weights(config)
        row = self.sentence_positions(weights, 1, config.d_model)[0]
        last = f"context_layers.{config.context_layers - 1}.final_layer_norm"
        norm = f"model.encoder.{'context_layer_norm' if config.normalize_before else last}.bias"
        return weights | {norm: weights[norm] + row}
