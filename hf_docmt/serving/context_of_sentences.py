"""The context that the served model reads, in words, and the reason why a sentence reads as it does."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hf_docmt.analysis.decisive_context import DecisiveContext, decisive_context
from hf_docmt.messages import counted
from hf_docmt.modeling.translation_jobs import STRATEGIES
from hf_docmt.reports.side_by_side import changed_words
from hf_docmt.serving.batches import Query
from hf_docmt.serving.served_model import ServedModel
from hf_docmt.systems import DocMTSystem
from hf_docmt.systems.ctranslate2_model import CTranslate2Model

NEAR = 50  # sentences before and after the current one in which its context is searched
ABOUT_STRATEGIES = {  # of each strategy its name on the page, and what it does
    "sentence": ("Every sentence alone", "Each sentence is translated without the others."),
    "sliding": ("With neighbours", "Each sentence is translated with the sentences around it."),
    "sequential": ("One by one", "Each sentence is translated after the translations before it."),
    "chunk_sequential": ("One by one in parts", "The same, inside parts of the text."),
    "full": ("Whole parts", "All sentences of a part of the text are translated together."),
    "stream": ("With a memory", "Each sentence is translated with a memory of all before it."),
}


def strategies(model: ServedModel) -> list[str]:
    """The strategies of the model, its own first, without those that do the same as another one."""
    system = model.system
    own = system.decoding["strategy"]
    if not isinstance(system, DocMTSystem) or own is None:
        return []
    config = system.model.config
    if system.carries_state or system.separate_context or config.context_sides == "source":
        others: Sequence[str] = ("sentence",)
    elif system.reads_chunks:
        others = ("sentence", "sequential", "chunk_sequential", "full")
    else:
        others = STRATEGIES if config.past_context or config.future_context else ("sentence",)
    return [own, *(name for name in STRATEGIES if name in others and name != own and system.has_strategy(name))]


def abilities(model: ServedModel) -> dict[str, Any]:
    """The facts of the model for the page, and the actions that it can offer."""
    names, system = strategies(model), model.system
    reads = system.reads_context
    has_torch = not isinstance(getattr(system, "model", None), CTranslate2Model)
    return {
        "model": str(system.name).rstrip("/").split("/")[-1],
        "about": about_context(model),
        "strategies": [dict(zip(("name", "title", "about"), (name, *ABOUT_STRATEGIES[name]))) for name in names],
        "readsContext": reads,
        "explains": reads and has_torch and isinstance(system, DocMTSystem),
        "compares": reads and "sentence" in names,
        "takesTerms": has_torch and "glossary" in system.options(),
    }


def about_context(model: ServedModel) -> str:
    """The context of the model for people who have read no paper."""
    system = model.system
    past, future = system.context.past, system.context.future
    if system.reads_chunks:
        return "It translates longer parts of the text at once, so that sentences fit together."
    if getattr(system, "carries_state", False):
        return "It translates sentence by sentence, and remembers what came before."
    if not past and not future:
        return "It translates each sentence alone."
    sides = [(past, "before"), (future, "after")]
    read = " and ".join(f"the {counted(count, 'sentence')} {side}" for count, side in sides if count)
    return f"It reads {read.replace('the 1 sentence', 'the sentence')} each one, so that pronouns and names fit."


def explanation(
    model: ServedModel, search: Query, source: Sequence[str], translation: Sequence[str], number: int
) -> dict[str, Any]:
    """The context that decided sentence `number` (from 0), sentences by their numbers in the document, from 0.

    ValueError: a blank sentence, and what `decisive_context` refuses.
    """
    system: Any = model.system_for(search)
    first, last = max(0, number - NEAR), number + NEAR + 1
    texts, written = source[first:last], translation[first:last]
    options = system.codes | system.generate_kwargs
    place, strategy = number - first + 1, system.decoding["strategy"]
    found = decisive_context(system.model, texts, written, system.tokenizer, place, strategy, **options)
    shown = list(found.changing) or [one for one in (found.strongest,) if one and found.is_changed]
    return {
        "verdict": _verdict(found, first),
        "translation": found.translation,
        "alone": None if found.alone_because else changed_words(found.translation, found.alone),
        "isChanged": found.is_changed,
        "without": [
            {
                "sentence": first + one.number - 1,
                "source": one.source,
                "pieces": changed_words(found.translation, one.translation),
                "remaining": one.remaining if one.translation == found.translation else None,
            }
            for one in shown
        ],
    }


def _verdict(found: DecisiveContext, first: int) -> str:
    """The result in one sentence, with the numbers that the page shows."""
    moved = tuple(replace(one, number=one.number + first) for one in found.left_out)
    return replace(found, number=found.number + first, left_out=moved).verdict
