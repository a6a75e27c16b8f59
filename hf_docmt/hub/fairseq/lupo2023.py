"""The models of Lupo et al. (2022, 2023), `lorelupo/focused-concat`, fairseq 0.9.

Names of parameters and defaults of settings are those of the public repository. A sequence is `s1 </s> ... sK <END>` on
both sides, and the decoder starts with `<END>`. What it has and this package has not is refused: shifts by the average
length of the example's own sentences, several encodings of sentences at once, and learned position-segment embeddings,
whose checkpoint has not the table that the model computed with (see examples/recipes/README.md).
"""

from hf_docmt.hub.fairseq.transformer import FairseqTransformer

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
                self.checkpoint.require(name, (False,), False, f"beside use_segment_emb it has no counterpart; {TRAIN}")
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
