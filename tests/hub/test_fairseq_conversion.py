"""Checkpoints in the layout of the published fairseq models: the same logits, ids and translations."""

import json
import re
from functools import partial

import numpy as np
import pytest
import torch
from support.fairseq_cases import (
    CACHING,
    LATENT,
    LUPO,
    LUPO_CASES,
    MAKA,
    MAKA_CASES,
    SYMBOLS,
    TEXTS,
    converted,
    rows_of,
)
from support.fairseq_models import Released
from support.fairseq_weights import BASE, EOS, lupo_weights, maka_weights, save_checkpoint, transformer_weights
from support.reader_checks import DATA

from hf_docmt.hub.fairseq_conversion import convert_fairseq_checkpoint
from hf_docmt.loading import model_folders


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


def test_baseline_of_maka(files, tmp_path):
    """The single-encoder model without context: a lone `</s>` before the sentence, on both sides."""
    settings = MAKA | {"arch": "contextual_transformer_iwslt", "multi_encoder": False, "source_context_size": 0}
    weights = transformer_weights(settings, rows_of(files))
    model, tokenizer = converted(files, tmp_path / "model.pt", settings, weights)
    released, format = Released(settings, weights), model.config.sequence_format()
    source, target = format.source([5, 6]), [format.start, *format.target_before, 7, 8]
    assert (source, target) == ([EOS, 5, 6, EOS], [EOS, EOS, 7, 8])
    expected = released.decode(target, released.encode(source))
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
    torch.testing.assert_close(logits[:, : expected.shape[1]], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", ["plain", "baseline", "tokens", "multi_encoder"])
def test_search_of_fairseq(case, files, tmp_path):
    """Five beams where ends are likely, at the first token, too: `beam_search` with the logits of the model."""
    baseline = MAKA | {"arch": "contextual_transformer_iwslt", "multi_encoder": False, "source_context_size": 0}
    plain = BASE | {"task": "translation", "arch": "transformer_iwslt_de_en"}
    settings = {"plain": plain, "baseline": baseline, **MAKA_CASES}[case]
    weights = (maka_weights if case in MAKA_CASES else transformer_weights)(settings, rows_of(files))
    model, tokenizer = converted(files, tmp_path / "model.pt", settings, weights)
    model.final_logits_bias[0, EOS] += 4
    format, texts = model.config.sequence_format(), ["the lamp", "it is old .", "a house", "she sees", "the street"]

    def scores(source, ids):
        target = [format.start, *format.target_before, *ids]
        inputs = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([target])}
        with torch.no_grad():
            return model(**inputs).logits[0, -1].log_softmax(-1).tolist()

    sources = [format.source(tokenizer(text)["input_ids"][:-1]) for text in texts]
    expected = [tokenizer.decode(beam_search(partial(scores, source), beams=5)) for source in sources]
    found = model.translate_documents([[text] for text in texts], tokenizer)
    assert found == [[text] for text in expected] and "" not in expected
    if case == "baseline":
        assert model.translate_documents([[text] for text in texts], tokenizer, min_new_tokens=0) != found


def beam_search(scores, beams: int) -> list[int]:
    """The ids that fairseq finds by its defaults, without the end, by `scores` of what comes behind ids, (V,)."""
    running, finished = [(0.0, [])], []
    while len(finished) < beams:
        found = []
        for total, ids in running:
            found += [(total + score, [*ids, id]) for id, score in enumerate(scores(ids)) if ids or id != EOS]
        found.sort(reverse=True)
        finished += [(total / len(ids), ids) for total, ids in found[:beams] if ids[-1] == EOS]
        running = [(total, ids) for total, ids in found if ids[-1] != EOS][:beams]
    return max(finished)[1][:-1]


@pytest.mark.parametrize("case", ["tokens", "multi_encoder"])
def test_fast_path_of_fairseq(case, files, tmp_path):
    """The eight further parameters of each encoder layer, which fairseq 0.12 saves and its training never changes."""
    settings = MAKA_CASES[case]
    weights = maka_weights(settings, rows_of(files))
    expected, _ = converted(files, tmp_path / "plain.pt", settings, weights)
    layers = {name.partition(".fc1.")[0] for name in weights if ".fc1." in name and name.startswith("encoder")}
    assert len(layers) == (4 if case == "multi_encoder" else 2)
    names = [f"{part}_{kind}" for part in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias")]
    weights |= {f"{layer}.{name}": torch.ones(2) for layer in layers for name in names}
    model, _ = converted(files, tmp_path / "fast.pt", settings, weights)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in expected.state_dict().items())


REAL = DATA / "fairseq_real"


@pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL.name}")
@pytest.mark.parametrize("name", ["tokens2", "multi2", "sent0"])
def test_checkpoints_of_a_real_training(name):
    """Ids and logits of the published model for 24 sentences and their contexts."""
    subwords, path = [REAL / "data" / f"spm.{lang}.model" for lang in ("en", "de")], REAL / name / "checkpoint_best.pt"
    model, tokenizer = convert_fairseq_checkpoint(path, data=REAL / "data", subwords=subwords)
    arrays, format = np.load(REAL / name / f"{name}.npz"), model.config.sequence_format()
    for item in json.loads((REAL / name / f"{name}.json").read_text()):
        ids = tokenizer(item["source"])["input_ids"]
        target = [format.start, *format.target_before, *item["prev_output_tokens"][1:]]
        inputs = {"input_ids": [format.source(ids[:-1])], "decoder_input_ids": [target]}
        if contexts := [tokenizer(sentence)["input_ids"] for sentence in item["context"]]:
            width = max(map(len, contexts))
            inputs |= {"context_input_ids": [[padded(context, width) for context in contexts]]}
            inputs |= {"context_offsets": [list(range(-len(contexts), 0))]}
        inputs = {key: torch.tensor(value) for key, value in inputs.items()}
        if contexts:
            inputs["context_attention_mask"] = (inputs["context_input_ids"] != 1).long()
        with torch.no_grad():
            logits = model(**inputs).logits[0, len(format.target_before) :]
        expected = torch.from_numpy(arrays[f"logits_{item['index']}"])
        assert ids == item["source_ids"]
        torch.testing.assert_close(logits[:, : expected.shape[1]], expected[-len(logits) :], atol=1e-5, rtol=1e-5)


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


def test_command_writes_a_folder_that_translates(files, tmp_path, run):
    settings = LATENT | {"source_context_size": 2}
    save_checkpoint(tmp_path / "model.pt", settings, maka_weights(settings, rows_of(files)))
    subwords = ("--subwords", files / "en.model", "--subwords", files / "de.model")
    code, out, err = run("convert", tmp_path / "model.pt", tmp_path / "folder", "--data", files, *subwords)
    assert (code, out.strip()) == (0, str(tmp_path / "folder")), err
    model, tokenizer = model_folders.load_model(tmp_path / "folder")
    assert model.generation_config.num_beams == 5
    document = ["the lamp is old .", "she sees it", "a house"]
    assert len(model.translate_documents([document], tokenizer, max_new_tokens=8)[0]) == 3
    sentencepiece = pytest.importorskip("sentencepiece")
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
    model, tokenizer = model_folders.load_model(tmp_path / "folder")
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
    found, _ = model_folders.load_model(tmp_path / "folder")
    assert (found.generation_config.num_beams, found.generation_config.length_penalty) == (4, 0.6)
    assert len(found.translate_documents([["the lamp", "old lamp"]], tokenizer, max_new_tokens=8)[0]) == 2
