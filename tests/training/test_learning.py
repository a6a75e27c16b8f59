"""It learns: architectures trained small on built-in documents solve what their context reaches (slow)."""

import json
import random

import pytest
from sacrebleu import corpus_bleu

from hf_docmt.analysis.decisive_context import decisive_context
from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import write_corpus
from hf_docmt.data.synthetic.scene import Scene
from hf_docmt.evaluation.contrast import contrast_report
from hf_docmt.loading import model_folders
from hf_docmt.systems import DocMTSystem
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

RECIPE = "examples/recipes/demo_concat4.yaml"


def accuracies(folder, suite, context=None) -> dict[str, float]:
    """In percent, by distance."""
    system = DocMTSystem(*model_folders.load_model(folder), past_context=context)
    (result,) = (result for result in contrast_report(system, [suite]).results if result.metric == "accuracy")
    return {name: part.value for name, part in result.breakdown.items() if name.startswith("distance")}


def addresses(seed: str, sentences: int = 8) -> dict:
    """A document whose sentences address, most of them, the person that the first one greets."""
    scene = Scene(random.Random(seed))
    scene.greet(scene.draw_noun())
    while len(scene.sentences) < sentences:
        scene.rng.choice((scene.address, scene.address, scene.name_term, scene.act))()
    return scene.row(seed)


@pytest.mark.slow
def test_memory_learns_the_register(tmp_path):
    """Two stages, the gradient through two sentences: right far beyond them, where the sentence level guesses."""
    corpus = write_corpus(tmp_path / "corpus", seed=1, train=0, validation=0, test=0)
    for part, size in (("train", 3000), ("validation", 40)):
        write_documents([addresses(f"{part}-{number}") for number in range(size)], corpus / f"{part}.jsonl")
    files = [f"data.{part}.path={corpus}/{part}.jsonl" for part in ("train", "validation", "test")]
    first = [f"output_dir={tmp_path}/sentence", "model.past_context=0", "training.max_steps=800"]
    sentence = train(load_recipe(RECIPE, [*files, *first]))
    second = [f"output_dir={tmp_path}/memory", f"init_from={sentence}", "architecture=memory", "model={}"]
    second += ["tokenizer=null", "training.stream={documents: 16, window: 8}", "training.max_steps=800"]
    second += ["training.learning_rate=1.5e-3", "training.new_learning_rate=3e-3", "training.warmup_steps=50"]
    memory = train(load_recipe(RECIPE, [*files, *second]))
    guessed, learned = (accuracies(folder, corpus / "register.json") for folder in (sentence, memory))
    assert all(value == pytest.approx(50, abs=5) for value in guessed.values())
    assert {"distance=1", "distance=2", "distance=3", "distance=>3"} == learned.keys() and min(learned.values()) >= 90


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("built-in") / "corpus", seed=1)


def trained(corpus, folder, architecture: str, *overrides: str):
    files = [f"data.{part}.path={corpus}/{part}.jsonl" for part in ("train", "validation", "test")]
    return train(load_recipe(RECIPE, [*files, f"output_dir={folder}", f"architecture={architecture}", *overrides]))


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["gtransformer", "lst", "window", "caching"])
def test_learns_the_pronouns_in_reach(tmp_path, corpus, architecture):
    """Antecedents one to three sentences back with a context of three, and chance beyond."""
    fields = ["model.global_layers=1"] if architecture == "gtransformer" else []  # of two, as 2 of 6 in the paper
    learned = accuracies(trained(corpus, tmp_path / "model", architecture, *fields), corpus / "pronoun.json")
    assert min(learned[f"distance={distance}"] for distance in (1, 2, 3)) >= 95, learned
    assert learned["distance=>3"] == pytest.approx(100 / 3, abs=1)


def named_and_deciding(folder, documents, most: int = 40) -> tuple[int, int]:
    """Of up to so many sentences that context changed, and that change without the one that decides: those named."""
    model, tokenizer = model_folders.load_model(folder)
    strategy, named, deciding = model.default_strategy(), 0, 0
    for row in map(json.loads, documents.read_text().splitlines()):
        source = [pair["en"] for pair in row["translation"]]
        (made,), (alone,) = (
            model.translate_documents([source], tokenizer, name, num_beams=1) for name in (strategy, "sentence")
        )
        for number, phenomenon in enumerate(row["phenomena"], 1):
            digits = (phenomenon or "").rpartition("-")[2]
            distance = int(digits) if digits.isdigit() else 0
            if not distance or made[number - 1] == alone[number - 1] or deciding == most:
                continue
            found = decisive_context(model, source, made, tokenizer, number, strategy, num_beams=1)
            if number - distance in [one.number for one in found.changing]:
                deciding += 1
                named += found.decisive.number == number - distance
    return named, deciding


@pytest.mark.slow
def test_decisive_sentence_is_named(tmp_path, corpus):
    """At least nine of ten times, at distances 1 to 3; always the one before would be right about half the time."""
    named, deciding = named_and_deciding(trained(corpus, tmp_path / "model", "caching"), corpus / "test.jsonl")
    assert deciding == 40 and named >= 36


@pytest.mark.slow
def test_all_resolutions_are_translated(tmp_path, corpus):
    """Lone sentences, on which a model of whole documents fails, and whole documents, after the same updates."""
    documents = list(map(json.loads, (corpus / "test.jsonl").read_text().splitlines()))[:20]
    sources = [[pair["en"] for pair in row["translation"]] for row in documents]
    references = [pair["de"] for row in documents for pair in row["translation"]]
    chunks, scores = ["model.view=chunk", "model.past_context=0", "training.max_steps=300"], {}
    for name, override in (("all", "training.resolutions=[1, 2, 4, document]"), ("chunk", "training.resolutions=null")):
        model, tokenizer = model_folders.load_model(trained(corpus, tmp_path / name, "concat", *chunks, override))
        for strategy in ("sentence", "full"):
            translated = model.translate_documents(sources, tokenizer, strategy, num_beams=1)
            scores[name, strategy] = corpus_bleu([line for lines in translated for line in lines], [references]).score
    assert scores["chunk", "sentence"] < 25 and scores["all", "sentence"] > 75, scores
    assert scores["all", "full"] > max(40, scores["chunk", "full"]), scores


@pytest.mark.slow
def test_routing_learns_from_the_next_sentence(tmp_path):
    """Offline it knows the noun that follows its pronoun, online it guesses."""
    corpus = write_corpus(tmp_path / "corpus", seed=1, cataphora=0.2)
    for future, least, most in ((1, 95, 100), (0, 32, 35)):
        sides = ["model.past_context=1", f"model.future_context={future}", "training.max_tokens=3000"]
        (value,) = accuracies(
            trained(corpus, tmp_path / f"{future}", "routing", *sides), corpus / "cataphora.json"
        ).values()
        assert least <= value <= most
