"""Tests of transformers that say nothing about a model outside its source tree, or of another design.

By name of the test, each with the reason for which it is skipped. Marian is skipped only where all are.
"""

from dataclasses import dataclass

from mixins import FOLDER, has_generation
from model_testers import ARCHITECTURES


@dataclass(frozen=True)
class Artefact:
    """`models` are the names of the testers that it is one of."""

    reason: str
    models: tuple[str, ...]


def with_and_without(*architectures: str) -> tuple[str, ...]:
    return architectures + tuple(f"{name} with context" for name in architectures)


OURS = with_and_without(*ARCHITECTURES)
TARGET_EMBEDDINGS = (
    "gives decoder_inputs_embeds, which are refused; contract.py tests the refusal, and source embeddings"
)
TWO_PASSES = "counts a checkpoint a pass; the encoder reads context without gradients, which needs none"
ARTEFACTS = {
    "test_model_weights_reload_no_missing_tied_weights": Artefact(
        "writes other weights into a saved folder, which are refused (tests/cli/test_changed_models.py)", OURS
    ),
    "test_attention_outputs": Artefact(
        "counts the fields of an output, which has a memory, or the keys of attention, which reads context, too",
        (*with_and_without("memory"), "multiencoder with context"),
    ),
    "test_inputs_embeds": Artefact(TARGET_EMBEDDINGS, OURS),
    "test_inputs_embeds_matches_input_ids": Artefact(TARGET_EMBEDDINGS, OURS),
    "test_training_gradient_checkpointing": Artefact(TWO_PASSES, ("caching with context",)),
    "test_training_gradient_checkpointing_use_reentrant_false": Artefact(TWO_PASSES, ("caching with context",)),
    "test_training_gradient_checkpointing_use_reentrant_true": Artefact(
        "reentrant checkpointing loses gradients of context; contract.py tests that it is refused", OURS
    ),
}
for assistant in ("0_random", "1_same"):
    ARTEFACTS[f"test_assisted_decoding_matches_greedy_search_{assistant}"] = Artefact(
        "counts the keys of attention after the translations are equal; those outside of the window are none",
        with_and_without("window"),
    )
if not has_generation(FOLDER):
    ARTEFACTS["test_generation_tester_mixin_inheritance"] = Artefact(
        "asks for the tests of `generate`, which a source distribution has not", ("marian", *OURS)
    )


def reason(test: str, model: str) -> str | None:
    """Why a test is skipped for a model; None = it runs."""
    artefact = ARTEFACTS.get(test)
    return artefact.reason if artefact and model in artefact.models else None
