"""The Transformer of fairseq: settings to a configuration, parameters by name; base class of the published models."""

import re

import torch

from hf_docmt.hub.fairseq.checkpoint import FairseqCheckpoint

BOS, PAD, EOS, UNK = range(4)  # the first ids of every dictionary
PLAIN = {  # settings that the backbone has no switch for, with what they have to be
    "no_cross_attention": False,
    "cross_self_attention": False,
    "no_token_positional_embeddings": False,
    "adaptive_softmax_cutoff": None,
    "adaptive_input": False,
    "no_decoder_final_norm": False,
}


class FairseqTransformer:
    """A sentence-level Transformer, `--arch transformer...`.

    Names of parameters are those of fairseq, behind `model.`; `renames` are regular expressions with what they become.
    `end`, `separator`: the symbols that end a sequence and separate sentences; `<sep>` is no symbol of fairseq, its
    row is a copy of that of `separator_row`.
    """

    architecture = "concat"
    renames: tuple[tuple[str, str], ...] = ()
    end, separator = "</s>", "<sep>"
    separator_row = "</s>"
    task_symbols: tuple[str, ...] = ()  # what the task adds to both dictionaries
    search: dict[str, float] = {}  # of the paper: the default of the folder

    def __init__(self, checkpoint: FairseqCheckpoint):
        self.checkpoint = checkpoint
        for name, value in PLAIN.items():
            checkpoint.require(name, (value, None), value, "this package has no model of that kind")
        for name in ("embed_dim", "normalize_before", "learned_pos"):
            default = False if name != "embed_dim" else checkpoint.get("encoder_embed_dim")
            expected = checkpoint.get(f"encoder_{name}", default)
            checkpoint.require(f"decoder_{name}", (expected,), default, "both sides have to agree")

    def fields(self) -> dict:
        """The fields of the configuration, without vocabulary and special tokens."""
        get, flag, sides = self.checkpoint.get, self.checkpoint.flag, ("encoder", "decoder")
        shared = flag("share_all_embeddings")
        source, target = (get(f"max_{side}_positions", None) or 1024 for side in ("source", "target"))
        if source != target and flag("encoder_learned_pos"):
            raise ValueError(
                f"{self.checkpoint.path}: learned positions for {source} source and {target} target tokens, expected "
                "one number; this package has no model of that kind"
            )
        return {
            "d_model": get("encoder_embed_dim"),
            **{f"{side}_{name}": get(f"{side}_{name}") for side in sides for name in ("layers", "attention_heads")},
            **{f"{side}_ffn_dim": get(f"{side}_ffn_embed_dim") for side in sides},
            "dropout": get("dropout", 0.1),
            "attention_dropout": get("attention_dropout", 0.0),
            "activation_dropout": get("activation_dropout", None) or get("relu_dropout", 0.0) or 0.0,
            "activation_function": get("activation_fn", "relu"),
            "normalize_before": flag("encoder_normalize_before"),
            "layernorm_embedding": flag("layernorm_embedding"),
            "scale_embedding": not flag("no_scale_embedding"),
            "position_type": "learned" if flag("encoder_learned_pos") else "sinusoidal_t2t",
            "position_offset": PAD + 1,
            "max_position_embeddings": max(source, target),
            "share_encoder_decoder_embeddings": shared,
            "tie_word_embeddings": shared or flag("share_decoder_input_output_embed"),
        }

    def named_weights(self, config) -> dict[str, torch.Tensor]:
        """The parameters by the names of this package, embeddings of tokens as they are.

        Two names of one tied table are both there.
        """
        weights = {}
        for name, weight in self.checkpoint.weights.items():
            for pattern, replacement in self.renames:
                name = re.sub(f"^{pattern}", replacement, name)
            weights[f"model.{name}"] = weight
        for old in ("model.decoder.output_projection.weight", "model.decoder.embed_out"):
            if old in weights:
                weights["lm_head.weight"] = weights.pop(old)
        if config.tie_word_embeddings:
            weights["lm_head.weight"] = weights["model.decoder.embed_tokens.weight"]
        if config.has_shared_table:
            weights["model.shared.weight"] = weights["model.encoder.embed_tokens.weight"]
        return weights

    def rows_of(self, side: str) -> int:
        """Rows of the embedding table of a side, `encoder` or `decoder`."""
        name = f"{side}.embed_tokens.weight"
        if name not in self.checkpoint.weights:
            raise ValueError(f"{self.checkpoint.path}: the weights have no {name}, expected those of a Transformer")
        return len(self.checkpoint.weights[name])
