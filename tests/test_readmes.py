"""Every block of the documents, run in order in a fresh folder; what is not run has its reason here."""

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import yaml
from support.marian_files import OPTIONS, TEXT, parameters, spm_file, write_bin, write_npz
from support.processes import InThisProcess
from support.reader_checks import jsonl
from support.readme_blocks import Block, blocks_of, run_blocks
from support.tiny_run import SIZES, write_corpus_files
from transformers import MarianConfig, MarianMTModel

from hf_docmt.data.synthetic.corpus import write_corpus
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.engine.shortlist import LexicalShortlist
from hf_docmt.evaluation.translation_scores import evaluate_files
from hf_docmt.hub import demo
from hf_docmt.hub.export import convert_sentence_model, export_model
from hf_docmt.loading import registry

ROOT = Path(__file__).resolve().parent.parent
TABLE = re.compile(r"^\| .*\? \| `(docmt .+)` \|$", re.MULTILINE)
INSTALLS = "installs packages; tests/test_wheel.py installs the wheel"
LARGE_ENOUGH = {"encoder_ffn_dim": 4096}  # for int8
SHORT = "training.max_steps=2 training.eval_steps=2 training.log_steps=1 training.warmup_steps=1"
TINY = " ".join([SHORT, *(f"model.{name}={value}" for name, value in SIZES.items())])
DOCUMENT = {"doc_id": "a", "translation": [{"en": "I see the hat.", "de": "Ich sehe den Hut."}] * 2}


@pytest.fixture
def folder(tmp_path):
    """The scripts, a small corpus and a small sentence-level model."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    write_corpus_files(tmp_path)
    shutil.copy(tmp_path / "validation.jsonl", tmp_path / "dev.jsonl")
    tokenizer = train_tokenizer((tmp_path / "train.jsonl").read_text().splitlines(), vocab_size=300)
    torch.manual_seed(0)
    ids = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0}
    marian = MarianMTModel(MarianConfig(**SIZES | LARGE_ENOUGH, vocab_size=len(tokenizer), **ids))
    no_words = [id for token, id in tokenizer.get_vocab().items() if id != 3 and not re.fullmatch("Ġ?[a-z]+", token)]
    marian.final_logits_bias[:, no_words] = -99  # random bytes are no text
    for name in ("Helsinki-NLP/opus-mt-en-de", "opus-mt-en-de"):
        marian.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    return tmp_path


def run_document(name: str, text: str, folder: Path, *reasons, more: str = "", **options) -> None:
    """Prints how many of its blocks were run; `more` are further commands."""
    blocks = [*blocks_of(text), *([Block("sh", more)] if more else [])]
    counts = run_blocks(blocks, folder, *reasons, **options)
    print(f"{name}: {counts.run} of {counts.blocks} blocks run, {counts.printed} outputs; not run: {counts.not_run}")


def test_readme(folder, monkeypatch):
    """Its blocks, then the commands of its table; tests/cli/test_demo.py compares what trained models print."""
    text = (ROOT / "README.md").read_text("utf-8")
    commands = TABLE.findall(text)
    assert len(commands) == 15 and len(text.splitlines()) < 130
    monkeypatch.setattr(demo, "ProcessPoolExecutor", InThisProcess)
    sizes = {"train": 20, "validation": 2, "test": 2, "suite_items": 2}
    demo.run_demo(folder / "runs" / "demo", documents=sizes, overrides=tuple(TINY.split()))
    (folder / "runs" / "real").mkdir()
    (folder / "runs" / "real" / "en-pt").symlink_to(folder / "runs" / "demo" / "models" / "concat")
    (folder / "film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nShe sleeps.\n")
    (folder / "terms.tsv").write_text("camera\tKamera\n")
    not_run = {
        "python3 -m venv": INSTALLS,
        "make real": "fetches a package",
        "make demo": "five minutes; tests/cli/test_demo.py runs the demo",
        "docmt evaluate wmt24.de.txt": "fetches a test set",
    }
    if find_spec("simplemma") is None:
        not_run["--glossary"] = "needs simplemma, which is not installed"
    smaller = {" output_dir=runs/mine": f" output_dir=runs/mine {TINY}"}
    run_document("README.md", text, folder, not_run, smaller, more="\n".join(commands), outputs=False)


def test_contributing(folder):
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (folder / "opus-mt-en-de").rename(folder / "MODEL")
    (folder / "talks.headed").write_text("# talk\nI see the hat. ||| Ich sehe den Hut.\n")
    (folder / "talk.notes").write_text("Speaker\n> I see the hat.\n")
    targets = re.findall(r"^(make [\w-]+)", text, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert len(targets) == 8 and all(f"\n{target.split()[1]}:" in makefile for target in targets)
    not_run = dict.fromkeys(targets, "takes minutes, and is what runs this test; the target is there")
    not_run |= {".venv/bin/python -m pytest": "tests in a test", "modeling/ ": "folders"}
    run_document("CONTRIBUTING.md", text, folder, not_run)


@pytest.mark.slow
def test_modeling(tmp_path, monkeypatch):
    """In a copy of the checkout, which gets the toy; all tests of its battery."""
    text = (ROOT / "modeling" / "README.md").read_text("utf-8")
    shutil.copytree(ROOT, tmp_path, ignore=shutil.ignore_patterns(".*", "build", "runs", "frozen"), dirs_exist_ok=True)
    for name, source in {"modeling": "modeling", "hub_cards": "hub_cards", "recipes": "examples/recipes"}.items():
        (tmp_path / "hf_docmt" / name).symlink_to(tmp_path / source)
    (tmp_path / "runs" / "demo" / "corpus").mkdir(parents=True)
    write_corpus_files(tmp_path / "runs" / "demo" / "corpus")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    not_run = {
        "input_ids, attention_mask": "a drawing",
        "Attention(config": "an expression of a class",
        "class Toy": "parts of the files that docmt new writes; tests/loading/test_new_architecture.py compares them",
    }
    run_document("modeling/README.md", text, tmp_path, not_run, forked=False)


def test_evaluation(folder):
    text = (ROOT / "hf_docmt" / "evaluation" / "README.md").read_text("utf-8")
    (folder / "opus-mt-en-de").rename(folder / "MODEL")
    (folder / "mine.tabs").write_text("The hat.\tDer Hut.\tIt is old.\tEr ist alt.\tEs ist alt.\n" * 2)
    (folder / "test.jsonl").write_text(jsonl([DOCUMENT]))
    (folder / "translations.jsonl").write_text(jsonl([{"doc_id": "a", "translation": ["Ich sehe den Hut."] * 2}]))
    texts = folder / "translations.jsonl", folder / "test.jsonl"
    evaluate_files(*texts, source_lang="en", target_lang="de", name="other").write(folder / "other.json")
    run_document("hf_docmt/evaluation/README.md", text, folder)


def test_examples(folder):
    text = (ROOT / "examples" / "README.md").read_text("utf-8")
    shown = next(block.text for block in blocks_of(text) if "row 's4to4'" in block.text)
    recipe = ROOT / "examples" / "recipes" / "lupo2023_ende_s4to4.yaml"
    assert yaml.safe_load(shown) == yaml.safe_load(recipe.read_text("utf-8"))
    write_npz(folder / "model.npz", OPTIONS, parameters(OPTIONS, (60, 60)))
    apart = OPTIONS | {"tied-embeddings-all": False, "tied-embeddings": True}
    write_bin(folder / "model.intgemm.alphas.bin", apart, parameters(apart, (60, 60)), int8=0x4101)
    for name in ("vocab", "source", "target"):
        spm_file(folder, name)
    LexicalShortlist(torch.zeros(62, dtype=torch.long), torch.empty(0, dtype=torch.long), 61).write(
        folder / "lex.50.50.enpt.s2t.bin"
    )
    (folder / "site").mkdir()
    for name in ("page.md", "site/page.md"):
        (folder / name).write_text(f"# {TEXT[0]}\n")
    tmx = '<tu><tuv lang="en"><seg>A new one.</seg></tuv><tuv lang="pt"><seg>Um novo.</seg></tuv></tu>'
    texts = {"old.md": "# The lamp\n\nIt is old.\n", "old.pt.md": "# O candeeiro\n\nÉ velho.\n", "talk.txt": "Hello.\n"}
    texts["book.txt"] = "Alice is here.\nIt is old.\n"
    texts |= {"old.tmx": f"<tmx><body>{tmx}</body></tmx>", "app.po": 'msgid "It is old."\nmsgstr "É velha."\n'}
    for name, text_of_file in (texts | {"new.md": f"{texts['old.md']}\nA new one.\n"}).items():
        (folder / name).write_text(text_of_file)
    (folder / "page.html").write_text("<p>The lamp <b>is</b> old.</p>")
    (folder / "systems").mkdir()
    rows = [{"doc_id": name, "src_lang": "en", "tgt_lang": "de", "src_text": "A hat.\nIt is old."} for name in "ab"]
    refs = [{"refs": {"a": "Ein Hut.\nEr ist alt."}}, {"refs": {}}]
    (folder / "wmt26.jsonl").write_text(jsonl([row | own for row, own in zip(rows, refs)]))
    for name, text_of_system in {"one": "Ein Hut. Er ist alt.", "two": "Ein Hut.\nEs ist alt."}.items():
        outputs = [{"doc_id": row["doc_id"], "hypothesis": text_of_system} for row in rows]
        (folder / "systems" / f"{name}.jsonl").write_text(jsonl(outputs))
    pair = {"en": "The old hat.", "de": "Der alte Hut."}
    (folder / "terms.jsonl").write_text(jsonl([pair | {"proper": {"hat": "Hut"}}]))
    (folder / "terms.system.jsonl").write_text(jsonl([pair]))
    term = {"source": "hat", "target": "Hut", "targets": ["Hut"]}
    paragraph = {"source": pair["en"], "reference": pair["de"], "segments": [{"terms": [term]}]}
    documents = [{"document_id": "a", "paragraphs": [paragraph]}]
    marked = {"source_lang": "en", "target_lang": "de", "paragraph_delimiter": "\n\n", "documents": documents}
    (folder / "marked.json").write_text(json.dumps(marked))
    (folder / "texts.json").write_text(json.dumps([pair["de"]]))
    (folder / "terms.tsv").write_text("hat\tHut\n")
    for name, languages in {"real/sentence": "en pt", "real/en-pt": "en pt", "concat": "en de"}.items():
        source, target = languages.split()
        options = {"source_lang": source, "target_lang": target, "past_context": 3}
        convert_sentence_model(str(folder / "opus-mt-en-de"), folder / "runs" / name, **options)
    portuguese = {"doc_id": "a", "translation": [{"pt": sentence, "en": sentence} for sentence in TEXT]}
    dialogues = [DOCUMENT | {"doc_id": f"d{number}"} for number in range(3)]
    for part in ("train", "validation", "test"):
        for name, rows in {"enpt_docs": [portuguese], "ende_docs": dialogues}.items():
            (folder / "data" / name).mkdir(parents=True, exist_ok=True)
            (folder / "data" / name / f"{part}.jsonl").write_text(jsonl(rows))
    (folder / "talk.jsonl").write_text(jsonl([DOCUMENT]))
    for number in (1, 2, 3):
        rows = [{"doc_id": "a", "translation": [f"Satz {number}.", "Hut."]}]
        (folder / f"seed{number}.jsonl").write_text(jsonl(rows))
        (folder / f"seed{number}.scores").write_text("0.5\n0.6\n")
    not_run = {
        "pip install": INSTALLS,
        "python examples/agreement_corpus.py": "translates 9,000 sentences; tests/test_example_scripts.py tests it",
        "python examples/corpora/ende_docs.py": "fetches the corpora; tests/test_example_scripts.py builds small ones",
        "docmt train ende_docs_elided": "seven million parameters; tests/test_example_scripts.py makes its data",
        "# Lupo et al. (2023)": "compared with the file above",
        "docmt translate http://": "no server there; tests/systems/test_endpoint.py has one",
    }
    if find_spec("simplemma") is None:
        not_run |= dict.fromkeys(["--glossary", "--consistent"], "needs simplemma, which is not installed")
    smaller = {
        "docmt train enpt_docs_windows": f"docmt train enpt_docs_windows {SHORT}",
        "docmt train maka2024_iwslt17_ende_sentence": "docmt info maka2024_iwslt17_ende_sentence",  # TED talks
        "training.max_steps=1000": TINY,
        "docmt train mine.yaml": f"docmt train mine.yaml training.epochs=null {TINY}",
        "path: runs/demo/corpus/": "path: ",  # a smaller corpus
        "curl localhost": "curl -sS --fail-with-body localhost",  # fails where the server does
    }
    run_document("examples/README.md", text, folder, not_run, smaller)
    assert not (folder / "runs" / "lora" / "base").exists(), "init_from is the base"


@pytest.mark.parametrize("form", [*registry.ARCHITECTURES, "ctranslate2"])
def test_card_of_a_model(form, folder):
    """tests/hub/test_stock.py has that of transformers' own classes."""
    model, name = folder / "opus-mt-en-de", folder / "ORGANISATION" / "MODEL"
    own = {"memory": {}, "gtransformer": {"past_context": 1, "global_layers": 1}}
    fields = {"source_lang": "en", "target_lang": "de", **own.get(form, {"past_context": 1})}
    architecture = "concat" if form == "ctranslate2" else form
    model, tokenizer = convert_sentence_model(str(model), architecture=architecture, **fields)
    model.generation_config.max_new_tokens = 9
    export_model(model, tokenizer, name, form="ctranslate2" if form == "ctranslate2" else "document")
    (folder / "documents.jsonl").write_text(jsonl([DOCUMENT]))
    not_run = {"pip install": INSTALLS} if form == "ctranslate2" else {}
    run_document(form, (name / "README.md").read_text("utf-8"), folder, not_run)


def test_card_of_the_corpus(folder):
    corpus = write_corpus(folder / "ORGANISATION" / "CORPUS", train=3, validation=2, test=0, suite_items=1)
    for suite in corpus.glob("*.json*"):
        (folder / suite.name).unlink(missing_ok=True)
        (folder / suite.name).symlink_to(suite)
    (folder / "opus-mt-en-de").rename(folder / "MODEL")
    run_document("corpus", (corpus / "README.md").read_text("utf-8"), folder)
