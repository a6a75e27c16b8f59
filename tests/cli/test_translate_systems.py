"""`docmt translate` with models of other packages: Marian, NLLB, language models; jobs, options, bad input."""

import json
import shutil

import pytest
import torch
from support.chat_models import TEMPLATES, byte_tokenizer, causal_model
from support.language_models import sentence_model
from support.pretrained_models import saved
from support.suite_files import CONTRAPRO, write_json_suite

from hf_docmt.systems import load_system

LANGUAGES = ("--source-lang", "en", "--target-lang", "de")


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    return saved(folder / "model", *sentence_model("marian", folder)[:2])


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    """One that writes letters."""
    folder = tmp_path_factory.mktemp("nllb")
    return saved(folder / "model", *sentence_model("nllb", folder, seed=3)[:2])


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    """A random Llama with a chat template in the manner of Gemma."""
    return saved(tmp_path_factory.mktemp("chat"), causal_model("llama"), byte_tokenizer(TEMPLATES["gemma"]))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("plain"), causal_model("gpt2"), byte_tokenizer())


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_marian_translates_as_by_hand(run, marian, documents, tmp_path):
    """Sentence by sentence with `generate`; the report of the lines names the search."""
    output = tmp_path / "out.jsonl"
    code, out, err = run("translate", marian, documents, "-o", output, "--max-new-tokens", 9, "--beams", 2)
    assert (code, out) == (0, "") and "2 documents, 3 sentences" in err, err
    system = load_system(marian)
    for row in rows_of(output):
        expected = []
        for sentence in row["source"]:
            inputs = system.tokenizer([sentence], return_tensors="pt")
            with torch.no_grad():
                ids = system.model.generate(**inputs, max_new_tokens=9, num_beams=2)[0]
            text = system.tokenizer.decode(ids, skip_special_tokens=True).strip() if sentence.strip() else ""
            expected.append(text)
        assert row["translation"] == expected and any(expected)
        assert row["search"] == {"beams": 2, "context_sides": "source"}
    code, out, _ = run("evaluate", output, documents, *LANGUAGES, "--json")
    report = json.loads(out)
    assert code == 0 and report["model"]["config"] == {"context_sides": "source"}
    assert report["results"][0]["beams"] == 2


@pytest.mark.parametrize(
    "file, key, value, message",
    [
        ("generation_config.json", "eos_token_id", float("nan"), "eos_token_id of generation_config.json is nan"),
        ("tokenizer_config.json", "eos_token", "no word", "tokenizer and model do not fit: index out of range"),
    ],
)
def test_damaged_folders_of_marian(run, marian, documents, tmp_path, file, key, value, message):
    folder = shutil.copytree(marian, tmp_path / "damaged")
    (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | {key: value}))
    code, out, err = run("translate", folder, documents)
    assert code == 1 and out == "" and message in err and "Traceback" not in err


def test_nllb_takes_its_codes(run, nllb, documents, tmp_path):
    """As languages of the command or as options; documents are read in their own spelling."""
    outputs = []
    for number, options in enumerate((
        ("--source-lang", "eng_Latn", "--target-lang", "fra_Latn"),
        ("--source-lang", "en", "--option", "src_lang=eng_Latn", "--option", "tgt_lang=fra_Latn"),
        ("--option", "src_lang=eng_Latn", "--option", "tgt_lang=fra_Latn"),
    )):  # fmt: skip
        output = tmp_path / f"{number}.jsonl"
        code, _, err = run("translate", nllb, documents, "-o", output, "--max-new-tokens", 12, *options)
        assert code == 0, err
        outputs.append(rows_of(output))
    assert outputs[0] == outputs[1] == outputs[2] and outputs[0][0]["search"]["tgt_lang"] == "fra_Latn"
    system = load_system(nllb, src_lang="eng_Latn", tgt_lang="fra_Latn", max_new_tokens=12)
    assert system.translate_with_repairs([row["source"] for row in outputs[0]])[0] == [
        row["translation"] for row in outputs[0]
    ]
    code, _, err = run("translate", nllb, documents)
    assert code == 1 and "has language codes, but src_lang is not given" in err


def test_ctranslate2_folders(run, marian, documents, tmp_path):
    """Without a word about the engine; a folder whose weights changed is another model for --resume."""
    pytest.importorskip("ctranslate2")
    from ctranslate2.converters import TransformersConverter

    from hf_docmt.translation.job import model_checksums

    names = ["source.spm", "target.spm", "vocab.json", "tokenizer_config.json"]
    folder, output = tmp_path / "converted", tmp_path / "out.jsonl"
    TransformersConverter(str(marian), copy_files=names).convert(str(folder))
    code, _, err = run("translate", folder, documents, "-o", output, "--max-new-tokens", 9)
    assert code == 0, err
    rows = rows_of(output)
    system = load_system(folder, max_new_tokens=9)
    assert [row["translation"] for row in rows] == system.translate_with_repairs([row["source"] for row in rows])[0]
    assert rows[0]["search"]["engine"].startswith("ctranslate2 ")
    assert {"model.bin", "shared_vocabulary.json", "source.spm"} <= model_checksums(str(folder)).keys()
    code, _, err = run("translate", folder, documents, "--prompt", output)
    assert code == 1 and "--prompt is for causal language models, got a model of kind ctranslate2" in err


def test_language_models_translate(run, chat, plain, documents, tmp_path):
    """With a chat template and without: what the system translates in Python, with the same settings."""
    for folder, format in ((chat, "turns"), (plain, "plain")):
        output = tmp_path / f"{format}.jsonl"
        code, out, err = run(
            "translate", folder, documents, "-o", output, *LANGUAGES, "--past-context", 1, "--max-new-tokens", 8,
            "--chunk-sentences", 2, "--processes", 1,
        )  # fmt: skip
        assert (code, out) == (0, "") and "repairs: " in err, err
        rows = rows_of(output)
        options = {"source_lang": "en", "target_lang": "de", "past_context": 1, "max_new_tokens": 8}
        system = load_system(folder, format="auto", chunk_sentences=2, **options)
        expected = system.translate_with_repairs([row["source"] for row in rows])
        assert ([row["translation"] for row in rows], [row["repairs"] for row in rows]) == expected
        assert rows[0]["search"] == system.search and system.search["format"] == format
        assert system.search["prompt"].count("{source}") == 1


def test_whole_documents_are_aligned_afterwards(run, chat, documents, tmp_path, monkeypatch):
    """As they were written, with any number of lines, which `evaluate --align` cuts where the references end."""
    answers = {"documents": 0}

    def generate(system, jobs, sentences):
        answers["documents"] += len(jobs)
        return [("Die Lampe ist alt. Ich sehe\nsie.", True)] * len(jobs)

    monkeypatch.setattr("hf_docmt.systems.CausalSystem.generate", generate)
    output = tmp_path / "out.jsonl"
    whole = ("--chunk-sentences", 0, "--repairs", "none")
    code, _, err = run("translate", chat, documents, "-o", output, *LANGUAGES, *whole)
    assert code == 0 and answers == {"documents": 2}, err
    assert "2 documents, 3 sentences, 4 lines as written, repairs: 2 misaligned" in err
    assert [row["translation"] for row in rows_of(output)] == [["Die Lampe ist alt. Ich sehe", "sie."]] * 2
    pytest.importorskip("mweralign")
    code, out, err = run("evaluate", output, documents, *LANGUAGES, "--align", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["model"]["config"]["repairs"] == "none"
    assert "mweralign" in json.dumps(report["results"][0]["signature"])


def test_plain_lines_with_prompt_and_glossary(run, plain, tmp_path):
    """Lines are translated as they come, the terms of the glossary in their prompts."""
    (tmp_path / "prompt.txt").write_text("{glossary}{source_language}: {source}\n{target_language}:\n")
    (tmp_path / "terms.tsv").write_text("lamp\tLeuchte\n")
    options = ("--prompt", tmp_path / "prompt.txt", "--glossary", tmp_path / "terms.tsv", "--max-new-tokens", 4)
    code, out, err = run("translate", plain, "-", *LANGUAGES, *options, stdin="The lamp is old.\n\nNew.\n")
    assert code == 0 and out.count("\n") == 3 and out.split("\n")[1] == "" and "3 documents, 3 sentences" in err, err
    assert (
        "1 document, 3 sentences"
        in run(
            "translate", plain, "-", *LANGUAGES, "--max-new-tokens", 4, "--past-context", 1, stdin="The lamp.\n\nNew.\n"
        )[2]
    )
    settings = {"source_lang": "en", "target_lang": "de", "glossary": [("lamp", "Leuchte")], "max_new_tokens": 4}
    system = load_system(
        plain, format="auto", prompt="{glossary}{source_language}: {source}\n{target_language}:", **settings
    )
    assert out.split("\n")[:3] == system.translate([["The lamp is old.", "", "New."]])[0]


def test_contrast_takes_the_same_formats(run, chat, tmp_path):
    """Formats and prompts are options of the system there; those of translation alone are refused."""
    suite = write_json_suite(tmp_path, CONTRAPRO)
    scores = []
    for context, *options in ((1, "format=turns"), (1, "format=auto"), (0, "format=chat", "prompt={source}")):
        pairs = [part for pair in options for part in ("--option", pair)]
        code, out, err = run("contrast", chat, suite, *LANGUAGES, "--context", context, *pairs, "--json")
        assert code == 0, err
        scores.append(json.loads(out)["model"]["config"])
    assert scores[0] == scores[1] and scores[0]["format"] == "turns"
    assert scores[2]["prompt"]["template"] == "{source}"
    code, _, err = run("contrast", chat, suite, *LANGUAGES, "--option", "chunk_sentences=2")
    assert code == 1 and "unknown option 'chunk_sentences' of a causal system" in err


def test_too_long_documents_fail_alone(run, chat, tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    texts = ["Yes.", "No. " * 400, "Maybe."]
    rows = [{"doc_id": str(n), "translation": [{"en": text}]} for n, text in enumerate(texts)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = run("translate", chat, source, "-o", output, *LANGUAGES, "--max-new-tokens", 4)
    assert code == 1 and "1: document 0, sentence 0: " in err and "the model has positions for 1024" in err
    assert ["error" in row for row in rows_of(output)] == [False, True, False]
    assert rows_of(output)[1]["search"] == rows_of(output)[0]["search"]


BAD = [
    ("chat", (), "the prompt names {source_lang}, but it is not given"),
    ("chat", ("--source-lang", "en"), "the prompt names {target_lang}, but it is not given"),
    ("chat", (*LANGUAGES, "--prompt", "EMPTY"), "the file is empty"),
    ("chat", (*LANGUAGES, "--prompt", "NONE"), "{source} is missing"),
    ("chat", (*LANGUAGES, "--prompt", "FIELD"), "unknown field 'sauce', expected context, glossary, source"),
    ("chat", (*LANGUAGES, "--prompt", "no.txt"), "no.txt"),
    ("chat", (*LANGUAGES, "--strategy", "sentence"), "--strategy sentence is for models of this package"),
    ("chat", (*LANGUAGES, "--alignment", "linear"), "--alignment is for models of this package"),
    ("chat", (*LANGUAGES, "--engine", "ctranslate2"), "--engine ctranslate2 is for models of this package"),
    ("chat", (*LANGUAGES, "--repairs", "none"), "repairs='none' is for chunks without context"),
    ("chat", (*LANGUAGES, "--dtype", "int8"), "dtype int8 is for models of this package"),
    ("chat", (*LANGUAGES, "--option", "format=poem"), "format is 'poem', expected plain, chat, turns or auto"),
    ("chat", (*LANGUAGES, "--option", "prompt={source}"), "unknown option 'prompt' of a causal system"),
    ("plain", (*LANGUAGES, "--option", "format=chat"), "has no chat template; use format='plain'"),
    ("plain", (*LANGUAGES, "--prompt", "GOOD", "--past-context", "1"), "the prompt has no {context}"),
    ("marian", ("--prompt", "GOOD"), "--prompt is for causal language models, got a model of kind seq2seq"),
    ("marian", ("--chunk-sentences", "2"), "--chunk-sentences is for causal language models"),
    ("marian", ("--consistent",), "--consistent is for models of this package, got a model of kind seq2seq"),
    ("marian", ("--repairs", "none"), "--repairs is for models of this package and causal language models"),
    ("marian", ("--source-lang", "fr"), "--source-lang is 'fr', but"),
    ("model", ("--prompt", "GOOD"), "--prompt is for models of other packages"),
    ("model", ("--option", "tgt_lang=de"), "--option is for models of other packages"),
]


@pytest.mark.parametrize(("kind", "options", "message"), BAD)
def test_bad_input(run, request, kind, options, message, documents, tmp_path):
    files = {"EMPTY": "", "NONE": "Translate!", "FIELD": "{sauce} {source}", "GOOD": "{source}"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    options = [tmp_path / option if option in files else option for option in options]
    code, out, err = run("translate", request.getfixturevalue(kind), documents, *options)
    assert (code, out) == (1, "") and message in err and err.startswith("docmt: "), err


def test_models_that_do_not_translate(run, tmp_path, documents):
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    code, _, err = run("translate", tmp_path, documents)
    assert code == 1 and "a model of type 'bert' with BertModel, expected an encoder-decoder or a causal" in err
