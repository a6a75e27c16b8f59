"""It learns: architectures trained small on built-in documents solve what their context reaches (slow)."""

import random

import pytest

from hf_docmt import registry
from hf_docmt.data.discourse import write_corpus
from hf_docmt.data.discourse_scene import Scene
from hf_docmt.data.documents import write_documents
from hf_docmt.evaluation.suite_files import contrast
from hf_docmt.evaluation.systems import DocMTSystem
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

RECIPE = "examples/recipes/demo_concat4.yaml"


def accuracies(folder, suite, context=None) -> dict[str, float]:
    """In percent, by distance."""
    system = DocMTSystem(*registry.load_model(folder), past_context=context)
    (result,) = (result for result in contrast(system, [suite]) if result["metric"] == "accuracy")
    return {name: part["value"] for name, part in result["breakdown"].items() if name.startswith("distance")}


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
    guessed, found = (accuracies(folder, corpus / "register.json") for folder in (sentence, memory))
    assert all(value == pytest.approx(50, abs=5) for value in guessed.values())
    assert {"distance=1", "distance=2", "distance=3", "distance=>3"} == found.keys() and min(found.values()) >= 90


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("built-in") / "corpus", seed=1, cataphora=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "fields", "ahead"),
    [
        ("concat", ["model.past_context=0"], 100 / 3),
        ("lst", [], 100 / 3),
        ("window", [], 100 / 3),
        ("caching", [], 100 / 3),
        ("routing", ["model.past_context=1", "model.future_context=1", "training.max_tokens=3000"], 95),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_learns_the_pronouns_in_reach(tmp_path, corpus, architecture, fields, ahead):
    """Antecedents before the pronoun where the context holds them, else chance; and those in the next sentence."""
    files = [f"data.{part}.path={corpus}/{part}.jsonl" for part in ("train", "validation", "test")]
    recipe = load_recipe(RECIPE, [*files, f"output_dir={tmp_path}/model", f"architecture={architecture}", *fields])
    folder = train(recipe)
    reach = recipe.model["past_context"]
    found = accuracies(folder, corpus / "pronoun.json")
    for distance in (1, 2, 3):
        least, most = (95, 100) if distance <= reach else (32, 35)
        assert least <= found[f"distance={distance}"] <= most, found
    (value,) = accuracies(folder, corpus / "cataphora.json").values()
    assert value == pytest.approx(ahead, abs=2) if ahead < 50 else value >= ahead
