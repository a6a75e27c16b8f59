"""It learns: every architecture, trained small on the built-in corpus, solves what its context reaches (slow)."""

import pytest

from hf_docmt import registry
from hf_docmt.data.discourse import write_corpus
from hf_docmt.evaluation.suite_files import contrast
from hf_docmt.evaluation.systems import DocMTSystem
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

CHUNK = ("model.view=chunk", "model.past_context=0")
SYSTEMS = {  # overrides of the demo's recipe; how many sentences of context a suite gives
    "lst": (("architecture=lst", *CHUNK), 3),
    "window": (("architecture=window", *CHUNK), 3),
    "memory": (("architecture=memory", "model.past_context=0", "training.stream.documents=32"), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_it_learns_what_its_context_reaches(name, tmp_path):
    """Pronouns and register are solved where the clue is one or two sentences back; guessing gives 33 and 50 %."""
    overrides, context = SYSTEMS[name]
    corpus = write_corpus(tmp_path / "corpus", seed=1, train=4000, validation=50, test=1)
    files = [f"data.{part}.path={corpus}/{part}.jsonl" for part in ("train", "validation", "test")]
    recipe = load_recipe("examples/recipes/demo_concat4.yaml", [*files, f"output_dir={tmp_path}/model", *overrides])
    system = DocMTSystem(*registry.load_model(train(recipe)), past_context=context)
    for result in contrast(system, [corpus / "pronoun.json", corpus / "deixis.json"]):
        if result["metric"] == "accuracy":
            for distance in ("distance=1", "distance=2"):
                assert result["breakdown"][distance]["value"] >= 95, (result["dataset"], distance, result["breakdown"])
