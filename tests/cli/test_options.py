"""Models of others in the command: language codes, prompts, and what else `--option` tells a system."""

import json

import pytest
from support.pretrained_models import saved
from support.tiny_models import WORDS
from transformers import LlamaConfig, LlamaForCausalLM

from hf_docmt.cli.loading import NOT_FOR_ATTENTION, system_of_command
from hf_docmt.data.tokenizers import train_tokenizer

ITEM = {"src": "a b _eos c de", "dst": ["b _eos ab", "b _eos c"], "true_ind": 0}
CODES = ("--option", "src_lang=eng_Latn", "--option", "tgt_lang=fra_Latn")
LANGUAGES = ("--source-lang", "en", "--target-lang", "fr")
NAMES = ("--option", "source_lang=English", "--option", "target_lang=French")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    tokenizer = train_tokenizer([" ".join(WORDS), "English French Translate from to : \n"] * 3, vocab_size=300)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    model = LlamaForCausalLM(LlamaConfig(**sizes, **ends, vocab_size=len(tokenizer)))
    return saved(tmp_path_factory.mktemp("llama"), model, tokenizer)


@pytest.fixture
def suite(write):
    return write("suite.json", json.dumps([ITEM, ITEM | {"true_ind": 1}]))


@pytest.fixture
def documents(write):
    row = {"doc_id": "d", "translation": [{"en": "a b", "fr": "b"}, {"en": "c de", "fr": "ab"}]}
    return write("documents.jsonl", json.dumps(row) + "\n")


def test_language_codes_reach_the_model(run, nllb, suite, documents):
    code, out, _ = run("contrast", nllb, suite, *CODES, "--json")
    report = json.loads(out)
    assert code == 0 and report["model"]["config"]["tgt_lang"] == "fra_Latn"
    code, _, err = run("cxmi", nllb, documents, *CODES[:2], "--option", "tgt_lang=ita_Latn", *LANGUAGES)
    assert code == 1 and "the target language is 'fr', the model's 'ita_Latn'" in err
    code, _, err = run("contrast", nllb, suite)
    assert code == 1 and "src_lang is not given" in err and "--option tgt_lang=" in err
    code, _, err = run("contrast", nllb, suite, *CODES[:2])
    assert code == 1 and "tgt_lang is not given" in err


def test_context_of_a_model_of_others(run, nllb, suite):
    options = ("--context", 1, "--option", "context_sides=both", "--option", "separator=</s>")
    code, out, _ = run("contrast", nllb, suite, *CODES, *options, "--json")
    report = json.loads(out)
    assert code == 0 and report["model"]["config"]["context_sides"] == "both"
    assert "past:1" in report["results"][0]["signature"]
    code, _, err = run("contrast", nllb, suite, *CODES, "--option", "separator=</s>")
    assert code == 1 and "--option separator has no effect without context" in err


@pytest.mark.filterwarnings("ignore:.*did not end before")
def test_ctxpro_of_a_model_of_others(run, nllb, tmp_path):
    for folder in ("evalsets", "inputs"):
        (tmp_path / folder).mkdir()
    item = {"expected": "b", "rule": "R", "src segment": "c de", "ref segment": "b", "document id": "a"}
    (tmp_path / "evalsets" / "formality.en-fr.json").write_text(json.dumps([item]))
    (tmp_path / "inputs" / "formality.en-fr").write_text("a b<eos> c de\n")
    options = (*CODES, "--option", "max_new_tokens=3", "--option", "future_context=0", "--json")
    code, out, _ = run("ctxpro", nllb, tmp_path / "evalsets" / "formality.en-fr.json", *options)
    assert code == 0 and json.loads(out)["model"]["config"]["tgt_lang"] == "fra_Latn"


def test_languages_of_a_prompt(run, llama, suite, documents):
    code, out, _ = run("contrast", llama, suite, *NAMES, "--context", 1, "--json")
    assert code == 0 and json.loads(out)["model"]["config"]["target_lang"] == "French"
    code, _, err = run("contrast", llama, suite)
    assert code == 1 and "the prompt names {source_lang}" in err and "--option source_lang=English" in err
    languages = (*LANGUAGES, "--json")
    code, out, _ = run("cxmi", llama, documents, *languages, "--context", 1)
    assert code == 0 and json.loads(out)["model"]["config"]["target_lang"] == "fr"
    code, out, _ = run("cxmi", llama, documents, *languages, "--context", 1, *NAMES)
    report = json.loads(out)
    assert code == 0 and report["model"]["config"]["target_lang"] == "French"
    assert report["data"]["target_lang"] == "fr"
    code, _, err = run("analyze", "rationales", llama, documents.parent, *languages)
    assert code == 1 and "highlighted.train.context.en" in err  # and not that the prompt lacks languages


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("tgt_lng=fra_Latn", ("unknown option 'tgt_lng' of a seq2seq system", "did you mean 'tgt_lang'")),
        ("prompt=Hello", ("unknown option 'prompt'", "expected future_context, context_sides, separator")),
        ("past_context=2", ("unknown option 'past_context'",)),  # --context
        ("max_new_tokens=2", ("unknown option 'max_new_tokens'",)),  # no part in scores
        ("batch_tokens=many", ("'batch_tokens=many', expected a number",)),
        ("src_lang", ("'src_lang', expected KEY=VALUE",)),
        ("src_lang=deu_Latn", ("'src_lang=deu_Latn', expected KEY=VALUE, every key once",)),
    ],
)
def test_bad_options(run, nllb, suite, option, words):
    code, out, err = run("contrast", nllb, suite, *CODES, "--option", option)
    assert code == 1 and out == "" and len(err.splitlines()) == 1
    for word in words:
        assert word in err


def test_attention_takes_context_as_an_option(nllb):
    system = system_of_command(str(nllb), option_pairs=[*CODES[1::2], "past_context=1"], excluded=NOT_FOR_ATTENTION)
    assert system.past_context == 1


def test_name_of_the_folder_one_stands_in(run, nllb, suite, monkeypatch):
    monkeypatch.chdir(nllb)
    code, out, _ = run("contrast", ".", suite, *CODES, "--json")
    assert code == 0 and json.loads(out)["model"]["name"] == nllb.name


def test_languages_of_the_model(model, nllb):
    """--source-lang and --target-lang of what scores or translates: the model's own, or refused."""
    own = system_of_command(str(model), model_languages=("en", None))
    assert own.document_languages == ("en", "de")
    with pytest.raises(ValueError, match="--target-lang: got 'fr', but the model .* is for 'de'; remove it"):
        system_of_command(str(model), model_languages=("en", "fr"))
    with pytest.raises(ValueError, match="for this model use --option src_lang=CODE"):
        system_of_command(str(nllb), option_pairs=list(CODES[1::2]), model_languages=("en", None))
