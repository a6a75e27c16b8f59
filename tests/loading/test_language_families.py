"""Converted families with their real tokenizers: translations and batches as their own classes have them."""

import json

import pytest
import torch
from support.language_models import FAMILIES, TEXT, sentence_model
from transformers.models.bart import modeling_bart
from transformers.models.mbart import modeling_mbart

from hf_docmt.hub.export import convert_sentence_model
from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.pretrained import from_sentence_model

torch.set_num_threads(1)
SHIFTS = {  # decoder inputs from labels, as each class makes them
    "mbart": lambda labels, config: modeling_mbart.shift_tokens_right(labels, config.pad_token_id),
    **dict.fromkeys(
        ("marian", "bart", "m2m_100"),
        lambda labels, config: modeling_bart.shift_tokens_right(
            labels, config.pad_token_id, config.decoder_start_token_id
        ),
    ),
}
OTHER = {"marian_multilingual": "deu", "mbart": "de_DE", "mbart50": "de_DE", "m2m_100": "fr", "nllb": "fra_Latn"}


@pytest.fixture
def family(request, tmp_path):
    """A sentence-level model with its tokenizer and languages, and the document model made of it, without languages."""
    found = sentence_model(request.param, tmp_path)
    return found, *from_sentence_model(found.model, tokenizer=found.tokenizer, past_context=2)


def languages_of(model, source_lang, target_lang):
    return model.config.language_codes(source_lang, target_lang)


def written(family, texts, target_lang):
    """Texts as the family's tokenizer takes them."""
    return [f">>{target_lang}<< {text}" for text in texts] if family == "marian_multilingual" else texts


@pytest.mark.parametrize("family", FAMILIES, indirect=True)
def test_sentences_as_the_family_translates_them(family, request):
    """With beams, and to another target language than the model's default."""
    found, model, tokenizer = family
    name = request.node.callspec.params["family"]
    target_lang = OTHER.get(name)
    form = model.config.sequence_format(found.source_lang, target_lang)
    first = len(form.target_before)
    model.final_logits_bias[:, found.model.config.vocab_size :] = -100  # new tokens take no share of the probability
    own = {"decoder_start_token_id": form.start} | ({"forced_bos_token_id": form.target_before[0]} if first else {})
    unwanted = {model.config.sep_token_id, model.config.bod_token_id, *(model.config.language_ids or {}).values()}
    # nothing is repeated, so that translations end at some length
    search = {"num_beams": 3, "no_repeat_ngram_size": 2, "suppress_tokens": sorted(unwanted - {*form.target_before})}
    texts = [*TEXT, *(" ".join(line.split()[::-1][:size]) for size, line in enumerate(TEXT * 2, 1))]
    batch = found.tokenizer(written(name, texts, target_lang), return_tensors="pt", padding=True)
    suppressed = [one for one in search["suppress_tokens"] if one < found.model.config.vocab_size]
    rows = found.model.generate(**batch, **search | {"suppress_tokens": suppressed}, max_new_tokens=30 + first, **own)
    expected = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    languages = languages_of(model, found.source_lang, target_lang)
    documents = [[text] for text in texts]
    ours = model.translate_documents(documents, tokenizer, "sentence", **search, max_new_tokens=30, **languages)
    assert [line for document in ours for line in document] == expected
    assert len(set(map(len, expected))) > 2


@pytest.mark.parametrize("family", FAMILIES, indirect=True)
def test_batches_as_the_family_reads_them(family, request):
    found, model, tokenizer = family
    name = request.node.callspec.params["family"]
    source_lang, target_lang = found.source_lang, OTHER.get(name)
    languages = languages_of(model, source_lang, target_lang)
    codes = tuple(languages.get(side) for side in ("source_lang", "target_lang"))
    collate = registry.get("concat").collator(model.config, tokenizer, languages=codes)
    source, target = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXT[:2])
    row = {"source": [source], "target": [target], "current": 0, "index": 0, "document_start": True, "doc_id": "d"}
    batch = collate([row])
    text = written(name, TEXT[:1], target_lang)[0]
    assert batch["input_ids"].tolist() == [found.tokenizer(text)["input_ids"]]
    if hasattr(found.tokenizer, "tgt_lang"):
        found.tokenizer.tgt_lang = target_lang
    labels = torch.tensor([found.tokenizer(text_target=TEXT[1])["input_ids"]])
    theirs = SHIFTS[found.model.config.model_type](labels, found.model.config)
    if name == "mbart":  # its own labels end in the code, with which its decoder starts
        labels, theirs = labels[:, :-1], theirs[:, :-1]
    assert torch.equal(batch["decoder_input_ids"], theirs)
    given = len(model.config.sequence_format(source_lang, target_lang).target_before)
    assert batch["labels"][:, :given].tolist() == [[-100] * given]
    assert torch.equal(batch["labels"][:, given:], labels[:, given:])


@pytest.mark.parametrize("family", ["nllb"], indirect=True)
def test_commands(family, tmp_path, run):
    """Codes from flags; documents whose languages are spelled otherwise; what is missing or unknown is refused."""
    _, model, tokenizer = family
    folder, documents, output = tmp_path / "model", tmp_path / "documents.jsonl", tmp_path / "out.jsonl"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    pairs = [{"en": source, "de": target} for source, target in zip(TEXT, TEXT[1:] + TEXT[:1])]
    documents.write_text(json.dumps({"doc_id": "a", "translation": pairs}) + "\n")
    source, target = ("--source-lang", "eng_Latn"), ("--target-lang", "deu_Latn")

    search = ("--strategy", "sequential", "--max-new-tokens", 4)
    code, _, err = run("translate", folder, documents, "-o", output, *search, *source, *target)
    assert code == ("got an empty translation" in err), err  # a random model may write special tokens alone
    (row,) = map(json.loads, output.read_text().splitlines())
    expected = model.translate_documents(
        [TEXT], tokenizer, "sequential", max_new_tokens=4, source_lang="eng_Latn", target_lang="deu_Latn"
    )
    assert [row["translation"]] == expected
    assert (row["search"]["source_lang"], row["search"]["target_lang"]) == ("eng_Latn", "deu_Latn")
    code, out, err = run("cxmi", folder, documents, *source, *target, "--json")
    assert code == 0 and json.loads(out)["results"], err
    for languages, message in (
        (target, "source_lang is missing"),
        ((*source, "--target-lang", "de"), "did you mean 'deu_Latn'"),
    ):
        code, _, err = run("translate", folder, documents, *languages)
        assert code == 1 and message in err


# From a saved folder and back from disk

ARCHITECTURES = dict(zip(FAMILIES, ("concat", "memory", "caching", "multiencoder", "routing", "doct", "lst")))


@pytest.fixture
def source(request, tmp_path):
    """The folder of a sentence-level model with its tokenizer, both, and its languages."""
    (tmp_path / "files").mkdir()
    found = sentence_model(request.param, tmp_path / "files")
    found.model.save_pretrained(tmp_path / "sentence")
    found.tokenizer.save_pretrained(tmp_path / "sentence")
    return request.param, tmp_path / "sentence", found


def languages(found):
    return {name: getattr(found, name) for name in ("source_lang", "target_lang") if getattr(found, name)}


@pytest.mark.parametrize("source", FAMILIES, indirect=True)
def test_plain_generate_after_saving(source, tmp_path):
    """The five lines of a user give what the source model gives, language codes included."""
    family, folder, found = source
    output = tmp_path / "document"
    convert_sentence_model(folder, output, architecture=ARCHITECTURES[family], **languages(found))
    model, tokenizer = model_folders.load_model(output)
    texts = [">>fra<< " + line for line in TEXT] if family == "marian_multilingual" else TEXT
    search = {"num_beams": 3, "max_new_tokens": 8}
    read = [one(texts, padding=True, return_tensors="pt") for one in (tokenizer, found.tokenizer)]
    for name in ("input_ids", "attention_mask"):
        assert torch.equal(read[0][name], read[1][name]), name
    new = [[model.config.sep_token_id], [model.config.bod_token_id]]
    ours = model.generate(**read[0], **search, bad_words_ids=new)
    assert torch.equal(ours, found.model.generate(**read[1], **search))


@pytest.mark.parametrize("source", ["bart"], indirect=True)
def test_a_first_token_that_only_the_tokenizer_names(source):
    found = source[2]
    found.model.config.bos_token_id = None
    model, tokenizer = from_sentence_model(found.model, tokenizer=found.tokenizer)
    assert model.config.bos_token_id == tokenizer.bos_token_id is not None
    assert len(model.translate_documents([["Hello."]], tokenizer, max_new_tokens=3)[0]) == 1


@pytest.mark.parametrize("source", ["nllb", "mbart"], indirect=True)
def test_unknown_language(source):
    _, folder, found = source
    with pytest.raises(ValueError, match="source_lang='eng' is not one of the .* did you mean"):
        convert_sentence_model(folder, source_lang="eng", target_lang=found.target_lang)


def test_languages_without_a_tokenizer(tmp_path):
    """Not taken for names of languages, by which no code would stand in any sequence."""
    model = sentence_model("nllb", tmp_path).model
    with pytest.raises(ValueError, match="target_lang: got 'deu_Latn', .* give tokenizer= as well"):
        from_sentence_model(model, target_lang="deu_Latn")


@pytest.mark.parametrize("source", ["nllb"], indirect=True)
def test_languages_may_stay_open(source):
    _, folder, found = source
    model, tokenizer = convert_sentence_model(folder)
    assert model.config.target_lang is None
    assert model.generation_config.forced_bos_token_id == found.model.generation_config.forced_bos_token_id
    with pytest.raises(ValueError, match="source_lang is missing"):
        model.config.sequence_format()
