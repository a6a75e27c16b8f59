"""Checkpoints in the layout of the published fairseq models, small and random.

Names of parameters and settings are those of the public repositories Pawel-M/shortening-context-mt and
lorelupo/focused-concat.
"""

from argparse import Namespace

import torch

DIM, FFN, HEADS, LAYERS = 8, 12, 2, 2
PAD, EOS = 1, 2
BASE = {
    "encoder_embed_dim": DIM,
    "decoder_embed_dim": DIM,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_embed_dim": FFN,
    "decoder_ffn_embed_dim": FFN,
    "max_source_positions": 64,
    "max_target_positions": 64,
    "dropout": 0.3,
    "source_lang": "en",
    "target_lang": "de",
}


class RandomWeights(dict):
    """Parameters by name, random where the training starts with zeros or ones, too."""

    def table(self, name, rows, dim=DIM):
        self[name] = torch.randn(rows, dim) * 0.5

    def linear(self, name, inputs, outputs):
        self[f"{name}.weight"], self[f"{name}.bias"] = torch.randn(outputs, inputs) * 0.3, torch.randn(outputs) * 0.1

    def norm(self, name):
        self[f"{name}.weight"], self[f"{name}.bias"] = 1 + torch.randn(DIM) * 0.1, torch.randn(DIM) * 0.1

    def attention(self, name):
        for part in ("q", "k", "v", "out"):
            self.linear(f"{name}.{part}_proj", DIM, DIM)

    def layer(self, name, is_decoder=False):
        self.attention(f"{name}.self_attn")
        self.norm(f"{name}.self_attn_layer_norm")
        if is_decoder:
            self.attention(f"{name}.encoder_attn")
            self.norm(f"{name}.encoder_attn_layer_norm")
        self.linear(f"{name}.fc1", DIM, FFN)
        self.linear(f"{name}.fc2", FFN, DIM)
        self.norm(f"{name}.final_layer_norm")


def transformer_weights(settings: dict, rows: tuple[int, int]) -> RandomWeights:
    """The parameters of fairseq's Transformer, with dictionaries of so many symbols."""
    torch.manual_seed(0)
    weights = RandomWeights()
    for side, count in zip(("encoder", "decoder"), rows):
        weights.table(f"{side}.embed_tokens.weight", count)
        weights[f"{side}.embed_tokens.weight"][PAD] = 0
        weights[f"{side}.version"] = torch.Tensor([3])
        if settings.get("encoder_learned_pos"):
            weights.table(f"{side}.embed_positions.weight", 64 + PAD + 1)
        else:
            weights[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
        for number in range(LAYERS):
            weights.layer(f"{side}.layers.{number}", side == "decoder")
        if settings.get("encoder_normalize_before"):
            weights.norm(f"{side}.layer_norm")
    if settings.get("share_all_embeddings"):
        weights["decoder.embed_tokens.weight"] = weights["encoder.embed_tokens.weight"]
    if settings.get("share_all_embeddings") or settings.get("share_decoder_input_output_embed"):
        weights["decoder.output_projection.weight"] = weights["decoder.embed_tokens.weight"]
    else:
        weights.table("decoder.output_projection.weight", rows[1])
    return weights


def maka_weights(settings: dict, rows: tuple[int, int]) -> RandomWeights:
    """With context attention, segment embeddings, shortening or a second encoder, as `arch` says."""
    weights, arch = transformer_weights(settings, rows), settings["arch"]
    if arch.startswith(("multienc", "contextual")):
        for number in range(LAYERS):
            weights.layer(f"encoder.context_layers.{number}")
        if arch.startswith("multienc") and settings.get("encoder_normalize_before"):
            weights.norm("encoder.context_layer_norm")
    if arch.startswith("contextual"):
        return weights
    if not settings.get("context_concatenate_context"):
        for number in range(LAYERS):
            name = f"decoder.layers.{number}"
            weights.attention(f"{name}.context_attn")
            weights.norm(f"{name}.context_attn_layer_norm")
            if settings.get("context_use_gated_context_attention"):
                weights.linear(f"{name}.context_gate.0", DIM, 1)
    if settings.get("context_sentence_learned_pos") and not settings.get("context_no_sentence_positional_embeddings"):
        weights.table("decoder.sentence_positions.weight", 64 + 1)
    if arch.startswith("shortening"):
        shortening_weights(settings, weights)
    return weights


def shortening_weights(settings: dict, weights: RandomWeights) -> None:
    size, pools = settings["shortening_groups"], settings.get("shortening_use_pooling")
    weights.attention("encoder.shortening_attn")
    weights.norm("encoder.shortening_layer_norm")
    if pools and settings.get("shortening_pooling_type") == "linear":
        weights.linear("encoder.linear_pooler", DIM * size, DIM)
    if not pools:
        weights.linear("encoder.shortening_cat.0", DIM, settings["shortening_ffn_hidden"])
        weights.linear("encoder.shortening_cat.2", settings["shortening_ffn_hidden"], size)
    if settings.get("shortening_no_group_positional_embeddings"):
        return
    if settings.get("shortening_group_learned_pos"):
        weights.table("encoder.group_positions.weight", (64 if pools else size) + 1)
    else:
        weights["encoder.group_positions._float_tensor"] = torch.zeros(1)


def lupo_weights(settings: dict, rows: tuple[int, int]) -> RandomWeights:
    weights = transformer_weights(settings, rows)
    pse = settings.get("pse_segment_dim", 0)
    if settings.get("lrn_segment_emb") and not pse:
        weights.table("encoder.embed_segments.weight", settings["num_sent"] + 1)
        weights["decoder.embed_segments.weight"] = weights["encoder.embed_segments.weight"]
    elif settings.get("use_segment_emb"):
        for side in ("encoder", "decoder"):
            for part in (".pe", ".se", "") if pse else ("",):
                module = "embed_pse" if pse else "embed_segments"
                weights[f"{side}.{module}{part}._float_tensor"] = torch.zeros(1)
    return weights


def save_checkpoint(path, settings: dict, weights: dict, version: str = "0.12") -> None:
    """As fairseq writes it: settings under `args` (0.9), or as those of task and model under `cfg`."""
    content = {"args": Namespace(**settings), "model": dict(weights), "extra_state": {"epoch": 1}}
    if version == "0.12":
        content |= {"args": None, "cfg": {"_name": None, "model": content["args"], "task": content["args"]}}
    torch.save(content, path)
