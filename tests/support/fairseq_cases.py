"""Settings of published fairseq models, small vocabularies, and the conversion of a checkpoint with them."""

from hf_docmt.hub.fairseq_conversion import convert_fairseq_checkpoint
from support.fairseq_weights import BASE, save_checkpoint

MAKA = BASE | {
    "task": "document_translation",
    "share_decoder_input_output_embed": True,
    "separate_context_sentences": True,
    "target_context_size": 0,
    "context_sentence_learned_pos": True,
    "source_context_size": 1,
}
CACHING = MAKA | {"arch": "caching_contextual_transformer"}
SHORTENING = MAKA | {"arch": "shortening_contextual_transformer", "shortening_group_learned_pos": True}
POOLING = SHORTENING | {"shortening_use_pooling": True, "shortening_groups": 2}
LATENT = SHORTENING | {
    "shortening_groups": 3,
    "shortening_ffn_hidden": 5,
    "shortening_use_sparsemax": True,
    "shortening_propagate_context_encoder_gradient": True,
    "shortening_propagate_context_size_gradient": 2,
}
MULTIENC = MAKA | {"arch": "multienc_contextual_transformer"}
GATED = {"context_use_parallel_cross_attention": True, "context_use_gated_context_attention": True}
SENTENCE = {"caching_aggregate_sentence": True, "caching_use_current_context": True}
MAKA_CASES = {
    "tokens": CACHING,
    "tokens_3": CACHING | {"source_context_size": 3},
    "tokens_sinusoidal": CACHING | {"source_context_size": 2, "context_sentence_learned_pos": False},
    "tokens_without_positions": CACHING | {"context_no_sentence_positional_embeddings": True},
    "tokens_norm_before": CACHING | {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "tokens_learned_positions": CACHING | {"encoder_learned_pos": True, "decoder_learned_pos": True},
    "concatenate": CACHING | {"context_concatenate_context": True, "source_context_size": 2},
    "untied": CACHING | {"share_decoder_input_output_embed": False},
    "sentence": CACHING | GATED | SENTENCE | {"source_context_size": 2},
    "mean": POOLING | {"shortening_pooling_type": "mean"},
    "mean_3": POOLING | {"shortening_pooling_type": "mean", "shortening_groups": 3, "source_context_size": 3},
    "max": POOLING | {"shortening_pooling_type": "max", "shortening_no_current_context": True},
    "linear": POOLING | {"shortening_pooling_type": "linear", "shortening_group_learned_pos": False},
    "grouping": LATENT,
    "grouping_3": LATENT | {"source_context_size": 3},
    "grouping_softmax": LATENT | {"shortening_use_sparsemax": False, "shortening_no_group_positional_embeddings": True},
    "grouping_gelu": LATENT | {"activation_fn": "gelu"},
    "selecting": LATENT | {"shortening_selecting_groups": True},
    "selecting_parallel": LATENT | GATED | {"shortening_selecting_groups": True, "source_context_size": 2},
    "multi_encoder": MAKA | {"arch": "contextual_transformer", "multi_encoder": True, "source_context_size": 2},
    "multi_encoder_norm_before": MAKA
    | {"arch": "contextual_transformer", "multi_encoder": True}
    | {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "multienc": MULTIENC | {"source_context_size": 2},
    "multienc_gate": MULTIENC | GATED,
    "multienc_concatenate": MULTIENC
    | {"context_concatenate_context": True, "encoder_normalize_before": True, "decoder_normalize_before": True},
}
LUPO = BASE | {
    "task": "doc2doc_translation",
    "arch": "concat_vaswani_wmt_en_fr",
    "mode": "slide_n2n",
    "num_sent": 3,
    "share_all_embeddings": True,
    "pse_segment_dim": 0,
    "position_shift": 0,
}
SEGMENTS = LUPO | {"use_segment_emb": True, "need_seg_label": "True"}
SHIFT = LUPO | {"segment_shifted_positions": True, "position_shift": 5}
LUPO_CASES = {
    "s4to4": LUPO | {"arch": "transformer_vaswani_wmt_en_fr"},
    "none": LUPO,
    "source": LUPO | {"mode": "slide_n2one"},
    "norm_before": LUPO | {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "shift": SHIFT,
    "shift_persistent": SHIFT | {"persistent_positions": True},
    "persistent_positions": LUPO | {"persistent_positions": True},
    "sinusoidal": SEGMENTS,
    "sinusoidal_persistent": SEGMENTS | {"persistent_segment_emb": True},
    "onehot": SEGMENTS | {"onehot_segment_emb": True},
    "learned": SEGMENTS | {"lrn_segment_emb": True},
    "learned_persistent": SEGMENTS | {"lrn_segment_emb": True, "persistent_segment_emb": True},
    "pse": SEGMENTS | {"pse_segment_dim": 4},
    "pse_persistent": SEGMENTS | {"pse_segment_dim": 4, "persistent_pse": True},
    "pse_onehot": SEGMENTS | {"pse_segment_dim": 4, "onehot_segment_emb": True, "persistent_pse": True},
}
TEXTS = {
    "en": ["the lamp is old .", "she sees the old house", "it is in the street", "a house and a lamp"] * 3,
    "de": ["die lampe ist alt .", "sie sieht das alte haus", "es ist in der strasse", "ein haus und eine lampe"] * 3,
}
CODES = "#version: 0.2\nt h\nth e</w>\nl a\nla m\nlam p</w>\no l\nol d</w>\n"
SYMBOLS = ["the", "lamp", "old", "l@@", "a@@", "m@@", "p", "a", "t@@", "h@@", "e", "o@@", "d", "is", "i@@", "s"]


def write_vocabularies(sentencepiece, folder):
    """SentencePiece models and dictionaries of two languages, and BPE codes with one dictionary for both."""
    for lang, texts in TEXTS.items():
        (folder / f"{lang}.txt").write_text("\n".join(texts))
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / f"{lang}.txt"),
            model_prefix=str(folder / lang),
            vocab_size=36 + 4 * (lang == "de"),
            model_type="bpe",
            user_defined_symbols=["<brk>"],
            minloglevel=2,
        )
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{lang}.model"))
        pieces = [model.id_to_piece(id) for id in range(3, model.get_piece_size())]
        (folder / f"dict.{lang}.txt").write_text("".join(f"{piece} 1\n" for piece in pieces))
    (folder / "codes").write_text(CODES)
    (folder / "joint").mkdir()
    for lang in TEXTS:
        (folder / "joint" / f"dict.{lang}.txt").write_text("".join(f"{symbol} 1\n" for symbol in SYMBOLS))


def rows_of(folder, extra: int = 0) -> tuple[int, int]:
    return tuple(4 + len((folder / f"dict.{lang}.txt").read_text().split("\n")) - 1 + extra for lang in ("en", "de"))


def converted(files, path, settings: dict, weights: dict, version: str = "0.12", output=None):
    """With SentencePiece, or for one dictionary with BPE codes."""
    save_checkpoint(path, settings, weights, version)
    if settings["task"] == "doc2doc_translation":
        return convert_fairseq_checkpoint(path, output, data=files / "joint", subwords=[files / "codes"])
    subwords = [files / "en.model", files / "de.model"]
    return convert_fairseq_checkpoint(path, output, data=files, subwords=subwords)
