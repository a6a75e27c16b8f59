"""Which context sentence decided a translation: what the sentence reads without each of them (leave-one-out)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.current_sentence import CurrentSentenceRun, Retranslation, check_sentence

HALF = log(2)
REACH = 16  # context sentences that are left out in turn, the nearest ones


@dataclass(frozen=True)
class LeftOutSentence:
    """A context sentence that was left out, number from 1, and how the current sentence then reads.

    `loss` is how much less probable the translation with all context becomes without it, in nats. `is_usable` is false
    where the window came out in another number of sentences without it, so that no context was read at all.
    """

    number: int
    source: str
    translation: str
    loss: float
    is_usable: bool = True

    @property
    def remaining(self) -> float:
        """How probable the translation with all context still is without it, as a fraction of before."""
        return exp(-self.loss)


@dataclass(frozen=True)
class DecisiveContext:
    """A sentence of a document (number from 1) by one strategy: with its context, alone, and without each of it.

    `left_out` are the context sentences in the order of the document, empty where none was read: `alone_because` says
    why. `is_cut` says that there is more context than was left out.
    """

    number: int
    source: str
    translation: str
    alone: str
    strategy: str
    left_out: tuple[LeftOutSentence, ...] = ()
    alone_because: str | None = None
    is_cut: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether context changed the translation."""
        return self.translation != self.alone

    @property
    def changing(self) -> tuple[LeftOutSentence, ...]:
        """The sentences without which it reads differently, the one that costs the translation most first."""
        changing = [one for one in self.left_out if one.is_usable and one.translation != self.translation]
        return tuple(sorted(changing, key=lambda one: -one.loss))

    @property
    def decisive(self) -> LeftOutSentence | None:
        """The sentence that decided; None where leaving out any one of them changes nothing."""
        return next(iter(self.changing), None)

    @property
    def strongest(self) -> LeftOutSentence | None:
        """The sentence without which the translation is least probable, at most half as much; None without such."""
        usable = [one for one in self.left_out if one.is_usable and one.loss >= HALF]
        return max(usable, key=lambda one: one.loss, default=None)

    @property
    def verdict(self) -> str:
        """What decided, in one sentence."""
        if self.alone_because:
            return f"No context was read: {self.alone_because}."
        if self.decisive:
            same = "" if self.is_changed else " Alone, without all of them, it reads the same, too."
            return f"Sentence {self.decisive.number} decided.{same}"
        if not self.is_changed:
            return "Context changed nothing: alone, the sentence reads the same."
        if not (one := self.strongest):
            return "No single sentence decided: leaving out any one of them changes nothing."
        percent = f"{100 * one.remaining:.0f}" if one.remaining >= 0.005 else "less than 1"
        return (
            f"No single sentence decided. Sentence {one.number} matters most: without it this translation is "
            f"{percent} % as probable."
        )

    def to_dict(self) -> dict:
        """What JSON holds of it."""
        decisive, strongest = self.decisive, self.strongest
        fields = ("number", "source", "translation", "alone", "strategy", "alone_because")
        return {
            **{name: getattr(self, name) for name in fields},
            "decisive": decisive and decisive.number,
            "strongest": strongest and strongest.number,
            "left_out": [vars(one) for one in self.left_out],
            "more_context": self.is_cut,
        }


def decisive_context(
    model: PreTrainedModel,
    source: Sequence[str],
    translation: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    sentence: int,
    strategy: str | None = None,
    **search,
) -> DecisiveContext:
    """Which context decided how sentence number `sentence` (from 1) of a translated document reads.

    The sentence is translated again by the strategy (None: the model's own) and `search`, further arguments of
    `translate_documents`, with all that it read, without each context sentence, source and translation, and alone:
    reach + 2 short translations in batches, of up to 16 context sentences. Translations before it, which
    `sequential`, `full`, `chunk_sequential` and `stream` read, are those given; `sliding` writes them anew in each
    window. What decided is, of the sentences without which the translation changes, the one without which it is least
    probable. ValueError: lists of different lengths, a number outside the document, a blank sentence, and what
    `translate_documents` refuses.
    """
    check_sentence(source, translation, sentence)
    strategy = strategy or model.default_strategy()
    run = CurrentSentenceRun(model, tokenizer, source, translation, sentence - 1, search)
    everything, (alone,) = run.translate([source], strategy)[0], run.translate([source], "sentence")
    found = DecisiveContext(sentence, source[sentence - 1], everything.translation, alone.translation, strategy)
    if everything.is_alone or not everything.read:
        return replace(found, alone_because=reason_alone(model, strategy, everything))
    nearest = sorted(everything.read, key=lambda other: abs(other - run.index))[:REACH]
    numbers = sorted(nearest)
    kept = set(everything.read) | {run.index}
    variants = [without(source, other, kept) for other in numbers]
    left_out = []
    for other, one in zip(numbers, run.translate(variants, strategy), strict=True):
        loss = everything.log_probability - one.log_probability
        left_out.append(LeftOutSentence(other + 1, source[other], one.translation, loss, is_usable=not one.is_alone))
    return replace(found, left_out=tuple(left_out), is_cut=len(nearest) < len(everything.read))


def without(source: Sequence[str], left_out: int, kept: set[int]) -> list[str]:
    """The document with blanks in place of one sentence, and of all that are not kept."""
    return [text if number in kept and number != left_out else "" for number, text in enumerate(source)]


def reason_alone(model: PreTrainedModel, strategy: str, found: Retranslation) -> str:
    """Why a sentence was translated without context."""
    if found.is_alone:
        return "its window came out in another number of sentences than it has, so it was translated again alone"
    if strategy == "sentence":
        return "strategy 'sentence' translates every sentence alone"
    reach = model.config.context_reach()
    return f"strategy {strategy!r} reads no other sentence for it, or those around are too long (context: {reach})"
