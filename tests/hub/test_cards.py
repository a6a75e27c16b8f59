"""Model cards: facts of the report and nothing else."""

import copy
import re

import pytest
import yaml
from huggingface_hub import ModelCard

from hf_docmt.hub.cards import make_card
from hf_docmt.loading import registry
from hf_docmt.reports.report import Report

FACTS = {
    "format": 1,
    "package": "hf-docmt",
    "version": "0.1.0",
    "commit": None,
    "model": {"name": "concat-4", "architecture": "concat", "parameters": 1234567},
    "data": {"train": {"documents": 3, "files": ["a.jsonl", "b.jsonl"]}},
    "training": {"learning_rate": 0.0005, "best_step": 700, "bf16": True, "losses": [[100, 4.5], [200, 4.25]]},
    "results": [
        {
            "task": "translation",
            "dataset": "Small Docs",
            "split": "test",
            "metric": "s-BLEU",
            "value": 27.123456789,
            "signature": "nrefs:1|case:mixed|tok:13a",
            "n": 100,
            "strategy": "sliding",
            "beams": 4,
            "breakdown": {},
            "details": {},
        },
        {
            "task": "contrastive",
            "dataset": "ContraPro",
            "split": "test",
            "metric": "accuracy",
            "value": 62.5,
            "signature": "score:mean|ties:wrong",
            "n": 8,
            "strategy": None,
            "beams": None,
            "breakdown": {"distance 1": {"value": 75.0, "n": 4}, "er | sie": {"value": 50.0, "n": 4}},
            "details": {},
        },
    ],
}
REPORT = Report.from_dict(FACTS)

HEADER_KEYS = {"language", "license", "library_name", "pipeline_tag", "tags", "datasets", "metrics", "model-index"}
HEADER_KEYS |= {"widget"}


def config(architecture="concat", **fields):
    return registry.get(architecture).config_class(**{"source_lang": "en", "target_lang": "de", **fields})


def header(card):
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", str(card), re.DOTALL).group(1))


def rows(card):
    """Table rows of the card as lists of cells."""
    lines = [line for line in str(card).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_header_as_the_hub_reads_it():
    found = header(make_card(REPORT, config=config(), license="apache-2.0", datasets=["org/talks"]))
    assert set(found) == HEADER_KEYS
    assert found["language"] == ["en", "de"]
    assert (found["license"], found["library_name"], found["pipeline_tag"]) == (
        "apache-2.0",
        "transformers",
        "translation",
    )
    assert "docmt-concat" in found["tags"]
    assert found["metrics"] == ["accuracy", "bleu"] and found["datasets"] == ["org/talks"]
    assert found["widget"] == [{"text": "The cat is hungry. It wants its dinner."}]


def test_results_come_back_from_the_header():
    data = ModelCard(str(make_card(REPORT, config=config()))).data
    assert data.model_name == "concat-4"
    assert len(data.eval_results) == len(FACTS["results"])
    for found, result in zip(data.eval_results, FACTS["results"]):
        assert found.metric_value == round(result["value"], 2)
        assert found.metric_args["signature"] == result["signature"]
        assert (found.dataset_name, found.dataset_split) == (result["dataset"], result["split"])


def test_every_number_of_the_text_is_the_reports():
    card = make_card(REPORT, config=config())
    table = rows(card)
    assert ["Small Docs, test", "s-BLEU", "27.12", "100"] in table
    assert ["ContraPro, test", "accuracy", "62.50", "8"] in table
    assert not [row for row in table if row[0] == ""], "parts of scores stay in the report"
    assert "- s-BLEU on Small Docs, test; strategy sliding; beams 4: `nrefs" in str(card)
    assert ["parameters", "1234567"] in table
    assert ["train documents", "3"] in table and ["train files", "a.jsonl, b.jsonl"] in table
    assert ["learning rate", "0.0005"] in table and ["bf16", "yes"] in table
    assert not [row for row in table if row[0] == "losses"]
    for result in FACTS["results"]:
        assert f"`{result['signature']}`" in str(card)


def test_baseline_and_limits():
    """Scores of another model that were measured in the same way; a dash for the others, no column without any."""
    other = copy.deepcopy(FACTS) | {"model": {"name": "alone | 1"}}
    other["results"][0] |= {"value": 20.0, "strategy": "sentence"}
    other["results"][1]["signature"] = "score:sum|ties:wrong"
    limits = ["It knows <b>little</b>."]
    card = make_card(REPORT, config=config(), baseline=Report.from_dict(other), limits=limits)
    table = rows(card)
    assert ["data", "metric", "this model", r"alone \| 1", "n"] in table
    assert ["Small Docs, test", "s-BLEU", "27.12", "20.00", "100"] in table
    assert ["ContraPro, test", "accuracy", "62.50", "–", "8"] in table
    assert "- It knows" in str(card) and "<b>" not in str(card)
    other["results"] = other["results"][1:]
    assert rows(make_card(REPORT, config=config(), baseline=Report.from_dict(other))) == rows(
        make_card(REPORT, config=config())
    )


def test_missing_facts_are_omitted():
    """Rows, sections and languages; nothing stands for them."""
    card = make_card(None, config=config(source_lang=None, target_lang=None))
    found = header(card)
    assert found["license"] == "unknown"
    assert not {"language", "datasets", "metrics", "model-index", "widget", "base_model"} & set(found)
    assert not re.search("^## (Data|Training|Scores)|Signatures", str(card), re.MULTILINE)
    names = [row[0] for row in rows(card)]
    assert names == ["fact", "---", "architecture", "layers of encoder and decoder", "model dimension", "vocabulary"]
    text = str(card).partition("---\n\n")[2]
    assert not re.search("not recorded|None|Undefined|unknown|language: ", text)
    assert "\nA document-level translation model. It translates" in text
    assert "(target language: de)" in str(make_card(None, config=config(source_lang=None)))


def test_architecture_without_a_text_is_rejected():
    other = config()
    other.model_type = "docmt-unheard"
    with pytest.raises(ValueError, match="unheard"):
        make_card(REPORT, config=other)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ["the sentence-level baseline"]),
        ({"past_context": 3}, ["3 sentences before it", "in source and target"]),
        ({"past_context": 1, "context_sides": "source"}, ["in the source only"]),
        ({"view": "chunk", "chunk_tokens": 777}, ["at most 777 target tokens"]),
        (
            {"past_context": 3, "segment_encoding": "learned", "persistent": True, "pse_dim": 4},
            ["learned segment embeddings", "before every block", "last 4 dimensions"],
        ),
        ({"past_context": 3, "segment_encoding": "shift"}, ["segment-shifted positions"]),
        ({"architecture": "gtransformer"}, ["the top 2 layers", "without context and translates sentences alone"]),
        ({"architecture": "gtransformer", "past_context": 3}, ["3 sentences before it", "in source and target"]),
        (
            {"architecture": "han"},
            ["previous source sentences (3 sentences before the current one). A word", "D18-1325"],
        ),
        (
            {"architecture": "han", "hierarchical_attention": "decoder"},
            ["previous translations (3 sentences", "pass both to plain"],
        ),
        (
            {"architecture": "han", "context_sides": "both", "future_context": 1},
            ["translations (3 sentences before the current one; of the source also 1 sentence after it"],
        ),
        ({"architecture": "lst"}, ["long-short term attention", "without context, where both are the same"]),
        ({"architecture": "lst", "past_context": 3}, ["3 sentences before it", "in source and target"]),
        ({"architecture": "lst", "view": "chunk", "chunk_tokens": 777}, ["at most 777 target tokens"]),
        ({"architecture": "routing"}, ["from the sentence before and the sentence after the current one. The gate"]),
        (
            {"architecture": "routing", "past_context": 0},
            ["what it takes from the sentence after the current one. The"],
        ),
        ({"architecture": "routing"}, ["weighs what attention reads", "(`selection_weighs`). ## Use"]),
        ({"architecture": "routing", "selection_weighs": "states"}, ["as in the equation of the paper. ## Use"]),
        ({"architecture": "memory"}, ["added to its states", "no residual (`memory_residual`)"]),
        ({"architecture": "memory", "memory_residual": "none"}, ["replaces its states, as in the equation"]),
        (
            {"architecture": "routing", "past_context": 3, "future_context": 0},
            ["from the 3 sentences before the current"],
        ),
    ],
)
def test_text_describes_the_architecture(fields, words):
    text = " ".join(str(make_card(None, config=config(**fields))).split())
    for word in words:
        assert word in text
    assert "{{" not in text and "{%" not in text


def test_usage_is_python_with_the_repositorys_name():
    card = str(make_card(REPORT, config=config(), repo_id="someone/concat-4"))
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL).group(1)
    compile(code, "card", "exec")
    assert 'name = "someone/concat-4"' in code
    assert "trust_remote_code=True" in code and "model.translate_documents([document], tokenizer)" in code


def test_example_of_the_models_domain():
    card = make_card(REPORT, config=config(), example=["I have a hat.", "It is old."])
    assert header(card)["widget"] == [{"text": "I have a hat. It is old."}]
    assert 'document = ["I have a hat.", "It is old."]' in str(card) and "The cat" not in str(card)


HOSTILE = (
    "\n\n# Heading\n\n| a | row |\n---\nlicense: mit\n```\n[link](https://evil.example) <b onclick=x>&lt;b></b> "
    "![i](http://evil.example/i.png) `code` {{ 7 * 7 }} {% raw %} www.evil.example \u2028# More\r# And more"
)


def structure(card):
    """Lines of the text that begin a heading, a row or a list, with the number of cells; and what else is syntax."""
    text = str(card).split("\n---\n", 1)[1]
    lines = text.splitlines()
    begins = [line[0] for line in lines if line[:1] in "#|-`>" and line]
    cells = [len(re.split(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")]
    prose = re.sub(r"(?ms)^```.*?^```$", "", text).replace("\\`", "")
    prose = re.sub(r"(?s)(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", prose)
    links = re.findall(r"(?<!\\)\]\(|(?<!\\)<|(?<!\\):(?=//evil)|www\.", prose)
    return begins, cells, links


def hostile(value):
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, list):
        return [hostile(one) for one in value]
    if isinstance(value, dict):
        return {(f"{name}{HOSTILE}" if name == "learning_rate" else name): hostile(one) for name, one in value.items()}
    return value


@pytest.mark.parametrize("architecture", ["concat", "caching", "memory"])
def test_no_field_is_markdown(architecture):
    """Names of data sets, systems, metrics, languages, licenses and facts stay text on their line."""
    facts = copy.deepcopy(FACTS)
    changed = {name: hostile(facts[name]) for name in ("model", "data", "training", "package", "version")}
    results = [
        {name: value if name in ("task", "strategy", "details") else hostile(value) for name, value in result.items()}
        for result in facts["results"]
    ]
    languages = {"source_lang": "en" + HOSTILE, "target_lang": "de" + HOSTILE}
    arguments = {"license": "mit" + HOSTILE, "datasets": ["org/talks" + HOSTILE], "repo_id": "a/b" + HOSTILE}
    card = make_card(
        Report.from_dict(facts | changed | {"results": results}), config=config(architecture, **languages), **arguments
    )
    plain = make_card(REPORT, config=config(architecture), license="mit", datasets=["org/talks"], repo_id="a/b")
    assert structure(card) == structure(plain)
    found = header(card)
    no_languages = {"language", "widget"}  # these are no codes
    assert set(found) == HEADER_KEYS - no_languages and found["license"] == arguments["license"]
    assert found["datasets"] == arguments["datasets"]
    assert "49" not in str(card).replace("1249", "")
