"""Checkpoints in the layout of the published fairseq models give the same logits as models of this package."""

import argparse
import re

import pytest
import torch
from support.fairseq_models import BASE, EOS, Released, lupo_weights, maka_weights, save_checkpoint, transformer_weights

from hf_docmt import registry
from hf_docmt.hub.conversion import convert_fairseq_checkpoint

sentencepiece = pytest.importorskip("sentencepiece")

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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """SentencePiece models and dictionaries of two languages, and BPE codes with one dictionary for both."""
    folder = tmp_path_factory.mktemp("fairseq")
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
    return folder


def rows_of(folder, extra: int = 0) -> tuple[int, int]:
    return tuple(4 + len((folder / f"dict.{lang}.txt").read_text().split("\n")) - 1 + extra for lang in ("en", "de"))


def converted(files, path, settings: dict, weights: dict, version: str = "0.12", output=None):
    """With SentencePiece, or for one dictionary with BPE codes."""
    save_checkpoint(path, settings, weights, version)
    if settings["task"] == "doc2doc_translation":
        return convert_fairseq_checkpoint(path, output, data=files / "joint", subwords=[files / "codes"])
    subwords = [files / "en.model", files / "de.model"]
    return convert_fairseq_checkpoint(path, output, data=files, subwords=subwords)


# Logits


@pytest.mark.parametrize("case", MAKA_CASES)
def test_models_of_maka(case, files, tmp_path):
    """Two rows, the shorter one padded, each against the published forward alone."""
    settings = MAKA_CASES[case]
    weights = maka_weights(settings, rows_of(files))
    model, tokenizer = converted(files, tmp_path / "checkpoint_best.pt", settings, weights)
    count = settings["source_context_size"]
    sources, targets = [[5, 8, 9, 12, EOS], [6, 7, EOS]], [[EOS, 7, 11, 36], [EOS, 8, 9, 10]]
    contexts = [
        [[9, 8, 7, 5, 6, EOS], [5, EOS], [11, 12, 13, EOS]][:count],
        [[4, 6, EOS], [9, 9, 8, EOS], [EOS]][:count],
    ]
    width = max(len(sentence) for row in contexts for sentence in row)
    context = torch.tensor([[padded(sentence, width) for sentence in row] for row in contexts])
    with torch.no_grad():
        logits = model(
            input_ids=(source := torch.tensor([padded(row, 5) for row in sources])),
            attention_mask=(source != 1).long(),
            decoder_input_ids=torch.tensor(targets),
            context_input_ids=context,
            context_attention_mask=(context != 1).long(),
            context_offsets=torch.arange(-count, 0).expand(2, -1),
        ).logits
    released = Released(settings, weights)
    separator = 4  # <brk>
    for row in range(2):
        expected = released.maka(sources[row], contexts[row], targets[row], separator)
        torch.testing.assert_close(logits[row, :, : expected.shape[1]], expected, atol=1e-5, rtol=1e-5)
        assert (logits[row, :, expected.shape[1] :] < -900).all()


@pytest.mark.parametrize("case", ["tokens", "sentence", "grouping_3", "concatenate", "multi_encoder", "multienc_gate"])
def test_missing_context(case, files, tmp_path):
    """The first two sentences of a document: there a lone `</s>` for a sentence missing, here none is given."""
    settings = MAKA_CASES[case]
    weights = maka_weights(settings, rows_of(files))
    model, _ = converted(files, tmp_path / "checkpoint_best.pt", settings, weights)
    count, joins = settings["source_context_size"], model.config.model_type == "docmt-multiencoder"
    inputs = {"input_ids": torch.tensor([[5, 8, 9, EOS]]), "decoder_input_ids": torch.tensor([[EOS, 7, 11]])}
    released, nearest = Released(settings, weights), [9, 8, EOS]
    for there in ([], [nearest]):
        contexts = there if joins else [[EOS]] * (count - len(there)) + there
        expected = released.maka([5, 8, 9, EOS], contexts, [EOS, 7, 11], 4)
        if there:
            context = torch.tensor([there])
            inputs |= {"context_input_ids": context, "context_attention_mask": torch.ones_like(context)}
            inputs["context_offsets"] = torch.tensor([[-1]])
        with torch.no_grad():
            logits = model(**inputs).logits[0, :, : expected.shape[1]]
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", LUPO_CASES)
def test_models_of_lupo(case, files, tmp_path):
    """Windows of one to three sentences."""
    settings = LUPO_CASES[case]
    rows = rows_of(files / "joint", extra=1)  # <END>
    weights = lupo_weights(settings, rows)
    model, tokenizer = converted(files, tmp_path / "checkpoint_best.pt", settings, weights, version="0.9")
    end = rows[0] - 1
    assert (model.config.eos_token_id, model.config.sep_token_id, tokenizer.eos_token) == (end, EOS, "<END>")
    released = Released(settings, weights)
    for source, target in (
        ([5, 6, EOS, 8, 9, 10, EOS, 7, end], [end, 6, 7, EOS, 5, EOS, 9, 9]),
        ([5, 6, 7, EOS, 11, end], [end, EOS, 8]),
        ([4, end], [end, 8, 9]),
    ):
        if settings["mode"] == "slide_n2one":
            target = [id for id in target if id != EOS]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
        expected = released.lupo(source, target)
        torch.testing.assert_close(logits[:, : expected.shape[1]], expected, atol=1e-5, rtol=1e-5)


def padded(ids: list[int], width: int) -> list[int]:
    return ids + [1] * (width - len(ids))


def test_sentence_level(files, tmp_path):
    settings = BASE | {"task": "translation", "arch": "transformer_iwslt_de_en"}
    weights = transformer_weights(settings, rows_of(files))
    model, _ = converted(files, tmp_path / "model.pt", settings, weights, version="0.9")
    released = Released(settings, weights)
    expected = released.decode([EOS, 7, 8], released.encode([5, 6, EOS]))
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[5, 6, EOS]]), decoder_input_ids=torch.tensor([[EOS, 7, 8]])).logits[0]
    torch.testing.assert_close(logits[:, : expected.shape[1]], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", ["tokens_3", "sentence", "max", "selecting_parallel", "multi_encoder"])
def test_documents_are_translated_in_the_order_of_training(case, files, tmp_path):
    """Greedy, sentence by sentence: context as the published training has it, `</s>` where a sentence is missing."""
    settings = MAKA_CASES[case] | {"share_decoder_input_output_embed": False}
    weights = maka_weights(settings, rows_of(files))
    for name in weights:
        if re.search("(context|encoder)_attn.(v|out)_proj.weight", name):
            weights[name] *= 3  # words depend on what is read
    model, tokenizer = converted(files, tmp_path / "checkpoint_best.pt", settings, weights)
    released, count, length = Released(settings, weights), settings["source_context_size"], 4
    document = ["the lamp", "it is old .", "a house", "she sees", "the street"]
    sources = [tokenizer(sentence)["input_ids"] for sentence in document]
    expected = []
    for index, source in enumerate(sources):
        context = sources[max(0, index - count) : index]
        if case != "multi_encoder":
            context = [[EOS]] * (count - len(context)) + context
        ids = [EOS]
        while len(ids) <= length and (len(ids) == 1 or ids[-1] != EOS):
            ids.append(int(released.maka(source, context, ids, 4)[-1].argmax()))
        expected.append(tokenizer.decode(ids, skip_special_tokens=True))
    found = model.translate_documents([document], tokenizer, num_beams=1, max_new_tokens=length)
    assert found == [expected] and len(set(expected)) > 1


# The folder


def test_command_writes_a_folder_that_translates(files, tmp_path, run):
    settings = LATENT | {"source_context_size": 2}
    save_checkpoint(tmp_path / "model.pt", settings, maka_weights(settings, rows_of(files)))
    subwords = ("--subwords", files / "en.model", "--subwords", files / "de.model")
    code, out, err = run("convert", tmp_path / "model.pt", tmp_path / "folder", "--data", files, *subwords)
    assert (code, out.strip()) == (0, str(tmp_path / "folder")), err
    model, tokenizer = registry.load_model(tmp_path / "folder")
    assert model.generation_config.num_beams == 5
    document = ["the lamp is old .", "she sees it", "a house"]
    assert len(model.translate_documents([document], tokenizer, max_new_tokens=8)[0]) == 3
    source = sentencepiece.SentencePieceProcessor(model_file=str(files / "en.model"))
    target = sentencepiece.SentencePieceProcessor(model_file=str(files / "de.model"))
    symbols = [[*("<s>", "<pad>", "</s>", "<unk>")], [*("<s>", "<pad>", "</s>", "<unk>")]]
    for side, lang in zip(symbols, TEXTS):
        side += [line.rsplit(" ", 1)[0] for line in (files / f"dict.{lang}.txt").read_text().splitlines()]
    english, german = "the lamp is ö old", "das alte haus"
    ids = [symbols[0].index(piece) if piece in symbols[0] else 3 for piece in source.encode(english, out_type=str)]
    assert tokenizer(english)["input_ids"] == [*ids, EOS] and 3 in ids
    ids = [symbols[1].index(piece) for piece in target.encode(german, out_type=str)]
    assert tokenizer(text_target=german)["input_ids"] == [*ids, EOS]
    assert tokenizer.decode(ids) == german


def test_codes_segment_as_subword_nmt(files, tmp_path):
    """By hand: `lam` is on the way to `lamp`, no symbol of the dictionary, and so unknown, as in fairseq."""
    weights = lupo_weights(LUPO, rows_of(files / "joint", extra=1))
    model, tokenizer = converted(files, tmp_path / "model.pt", LUPO, weights, "0.9", tmp_path / "folder")
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *SYMBOLS, "<END>"]
    ids = tokenizer("the lamp lamp old ta</s> lams", add_special_tokens=False)["input_ids"]
    first = [symbols.index(piece) for piece in ("the", "lamp", "lamp", "old", "t@@")]
    assert ids[:5] == first
    table = model.get_input_embeddings().weight
    assert ids[-2] >= len(symbols) and torch.equal(table[ids[-2]], table[3])  # lam@@
    assert ids[-1] == symbols.index("s")
    assert tokenizer.decode(ids[:5]) == "the lamp lamp old t"
    found, _ = registry.load_model(tmp_path / "folder")
    assert (found.generation_config.num_beams, found.generation_config.length_penalty) == (4, 0.6)
    assert len(found.translate_documents([["the lamp", "old lamp"]], tokenizer, max_new_tokens=8)[0]) == 2


# What is refused


class Planted:
    """Unpickled by plain pickle, it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_no_code_of_a_pickle_runs(files, tmp_path):
    settings = CACHING
    content = {"args": argparse.Namespace(**settings), "model": {}, "extra_state": Planted(tmp_path / "planted")}
    torch.save(content, tmp_path / "model.pt")
    message = r"model.pt: holds \S*open, expected tensors, plain values and argparse.Namespace alone;.* with torch.save"
    with pytest.raises(ValueError, match=message):
        convert_fairseq_checkpoint(tmp_path / "model.pt", data=files, subwords=[files / "en.model"])
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no checkpoint", "cannot be read|can be read safely"),
        ({"weights": {}}, "with its weights under 'model'"),
        ({"model": {"a": 1}}, "with its weights under 'model'"),
        ({"model": {}}, "the settings of the training under 'args' or 'cfg', found none"),
        ({"model": {}, "args": argparse.Namespace(arch="lstm")}, "arch is 'lstm', expected one of caching_contextual"),
        ({"model": {}, "args": argparse.Namespace(arch="transformer")}, "its settings have no 'encoder_embed_dim'"),
        ({"model": {}, "args": argparse.Namespace(arch="transformer", encoder_embed_dim=8)}, "names no languages"),
        ({"model": {}, "args": argparse.Namespace(**CACHING)}, "have no encoder.embed_tokens.weight"),
    ],
)
def test_bad_checkpoint(files, tmp_path, content, message):
    path = tmp_path / "model.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    with pytest.raises(ValueError, match=message):
        convert_fairseq_checkpoint(path, data=files, subwords=[files / "en.model"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (CACHING | {"source_context_size": 0}, "source_context_size is 0, expected a model that reads context"),
        (CACHING | {"target_context_size": 1}, "target_context_size is 1, expected 0"),
        (CACHING | {"separate_context_sentences": False}, "separate_context_sentences is False, expected True"),
        (CACHING | {"caching_use_current_context": True}, "caching_use_current_context is True, expected False"),
        (CACHING | {"context_use_gated_context_attention": True}, "context_use_gated_context_attention is True"),
        (CACHING | {"context_use_gated_attentions": True}, "context_use_gated_attentions is True, expected False"),
        (CACHING | {"decoder_embed_dim": 6}, "decoder_embed_dim is 6, expected 8; both sides have to agree"),
        (CACHING | {"encoder_learned_pos": True}, "decoder_learned_pos is False, expected True"),
        (CACHING | {"no_token_positional_embeddings": True}, "no_token_positional_embeddings is True"),
        (
            CACHING | GATED | {"encoder_normalize_before": True, "decoder_normalize_before": True},
            "encoder_normalize_before is True, expected False; with the norm before, parallel",
        ),
        (POOLING | {"shortening_pooling_type": "min"}, "shortening_pooling_type is 'min', expected 'mean' or 'max'"),
        (LATENT | {"shortening_ffn_hidden": None}, "shortening_ffn_hidden is None, expected a number of units"),
        (MAKA | {"arch": "contextual_transformer"}, "the single-encoder model reads a second start token"),
        (LUPO | {"mode": "block"}, "mode is 'block', expected 'slide_n2n' or 'slide_n2one'"),
        (LUPO | {"add_doc_markup": True}, "add_doc_markup is True, expected False"),
        (SHIFT | {"position_shift": -1}, "position_shift is -1, the average length of each example's sentences"),
        (SEGMENTS | {"segment_shifted_positions": True}, "beside use_segment_emb it has no counterpart"),
        (SEGMENTS | {"pse_segment_dim": 4, "lrn_segment_emb": True}, "embeddings is not in a checkpoint; train"),
    ],
)
def test_models_that_this_package_has_not(files, tmp_path, settings, message):
    is_lupo = settings["task"] == "doc2doc_translation"
    rows = rows_of(files / "joint", extra=1) if is_lupo else rows_of(files)
    weights = transformer_weights(settings, rows)
    with pytest.raises(ValueError, match=re.escape(message)):
        converted(files, tmp_path / "model.pt", settings, weights)


def test_unknown_parameters_are_listed(files, tmp_path):
    weights = maka_weights(CACHING, rows_of(files))
    weights["decoder.layers.0.attentions_gate.0.weight"] = torch.zeros(1, 16)
    del weights["encoder.layers.1.fc1.bias"]
    message = (
        "parameters that a caching model does not have: model.decoder.layers.0.attentions_gate.0.weight; "
        "that it has not: model.encoder.layers.1.fc1.bias"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        converted(files, tmp_path / "model.pt", CACHING, weights)


def test_parameters_of_other_sizes(files, tmp_path):
    weights = maka_weights(CACHING, rows_of(files))
    weights["encoder.layers.0.fc1.weight"] = torch.zeros(5, 8)
    with pytest.raises(ValueError, match=r"fc1.weight is \(5, 8\), expected \(12, 8\); settings and weights"):
        converted(files, tmp_path / "model.pt", CACHING, weights)


@pytest.mark.parametrize(
    ("dictionary", "codes", "message"),
    [
        (None, None, "dict.en.txt: 20 symbols with the special ones, but the encoder of"),
        ("the\n", None, "dict.en.txt, line 1: got 'the', expected 'symbol count' of a dictionary"),
        ("the 1\nthe 2\n", None, "dict.en.txt, line 2: 'the' is there twice"),
        ("SYMBOLS", "#version: 0.1\nt h\n", "BPE codes of 'version: 0.1', expected version 0.2"),
        ("SYMBOLS", "#version: 0.2\nth\n", "codes, line 2: got 'th', expected two pieces"),
    ],
)
def test_bad_dictionaries_and_codes(tmp_path, dictionary, codes, message):
    symbols = SYMBOLS[:-1] if dictionary is None else SYMBOLS
    text = dictionary if dictionary not in (None, "SYMBOLS") else "".join(f"{symbol} 1\n" for symbol in symbols)
    for lang in TEXTS:
        (tmp_path / f"dict.{lang}.txt").write_text(text)
    (tmp_path / "codes").write_text(codes or CODES)
    save_checkpoint(tmp_path / "model.pt", LUPO, lupo_weights(LUPO, (21, 21)))
    with pytest.raises(ValueError, match=re.escape(message)):
        convert_fairseq_checkpoint(tmp_path / "model.pt", data=tmp_path, subwords=[tmp_path / "codes"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "subwords: got 0 files, expected one for both languages or one for each"),
        (["en.model", "no.model"], "no.model: the file of subwords is not there"),
        (["en.model", "codes"], "got a SentencePiece model beside BPE codes"),
        (["codes"], "got BPE codes for two dictionaries"),
    ],
)
def test_bad_subwords(files, tmp_path, names, message):
    save_checkpoint(tmp_path / "model.pt", CACHING, maka_weights(CACHING, rows_of(files)))
    with pytest.raises(ValueError, match=re.escape(message)):
        convert_fairseq_checkpoint(tmp_path / "model.pt", data=files, subwords=[files / name for name in names])
