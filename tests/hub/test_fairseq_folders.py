"""Folders of converted fairseq checkpoints load and translate, with the ids that fairseq gives to a text."""

import pytest
import torch
from support.fairseq_cases import CACHING, LATENT, LUPO, SYMBOLS, TEXTS, converted, rows_of
from support.fairseq_models import Released
from support.fairseq_weights import EOS, lupo_weights, maka_weights, save_checkpoint

from hf_docmt import registry
from hf_docmt.hub.conversion import convert_fairseq_checkpoint

sentencepiece = pytest.importorskip("sentencepiece")


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


def test_one_sentencepiece_model_for_both_languages(files, tmp_path):
    """One dictionary, one table of embeddings."""
    for lang in TEXTS:
        (tmp_path / f"dict.{lang}.txt").write_text((files / "dict.en.txt").read_text())
    settings = CACHING | {"share_all_embeddings": True}
    weights = maka_weights(settings, rows_of(tmp_path))
    save_checkpoint(tmp_path / "model.pt", settings, weights)
    convert_fairseq_checkpoint(tmp_path / "model.pt", tmp_path / "folder", data=tmp_path, subwords=[files / "en.model"])
    model, tokenizer = registry.load_model(tmp_path / "folder")
    assert model.get_decoder().embed_tokens.weight is model.get_input_embeddings().weight
    text = "the old lamp"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer(text_target=text)["input_ids"] == ids and tokenizer.decode(ids[:-1]) == text
    expected = Released(settings, weights).maka(ids, [[5, EOS]], [EOS, *ids[:-1]])
    context = torch.tensor([[[5, EOS]]])
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([ids]),
            decoder_input_ids=torch.tensor([[EOS, *ids[:-1]]]),
            context_input_ids=context,
            context_attention_mask=torch.ones_like(context),
            context_offsets=torch.tensor([[-1]]),
        ).logits[0]
    torch.testing.assert_close(logits[:, : expected.shape[1]], expected, atol=1e-5, rtol=1e-5)


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
