"""P-CXMI: what context adds to the log-probability of each token, and word, of reference translations."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hf_docmt.evaluation.conditions import condition_label, with_context
from hf_docmt.evaluation.details import DetailsFile
from hf_docmt.evaluation.suites import SuiteItem, labels_of
from hf_docmt.evaluation.systems import System
from hf_docmt.evaluation.systems.log_probabilities import normalized
from hf_docmt.evaluation.systems.token_texts import word_spans


@dataclass(frozen=True)
class PointwiseCXMI:
    """What context adds to the log-probability of each token of a reference translation, in nats."""

    item_id: str
    tokens: tuple[str, ...]  # of the current sentence, its end token last
    with_context: tuple[float, ...]
    without_context: tuple[float, ...]
    group: str | None = None
    labels: dict = field(default_factory=dict)

    @property
    def gains(self) -> tuple[float, ...]:
        """P-CXMI of every token (Fernandes et al. 2023): log q(y_t | x, C) - log q(y_t | x)."""
        return tuple(given - alone for given, alone in zip(self.with_context, self.without_context))

    def gain(self, normalization: str = "sum") -> float:
        """P-CXMI of the sentence: the sum of its tokens' (or their `mean`)."""
        return normalized(self.gains, normalization)


def pointwise_cxmi(
    system: System,
    items: Sequence[SuiteItem],
    condition: str = "true",
    seed: int = 0,
    details: DetailsFile | None = None,
) -> list[PointwiseCXMI]:
    """The right candidate of every item, forced with its context (gold target context) and with none.

    `condition` is the context that is given, see `with_context`; the released code of Fernandes et al. (2021) knows the
    `true` one and a random one, whose source and target sentences it draws independently, from any document, and as
    many at the start of a document as elsewhere. Meant for one model that was trained with and without context; with
    others the difference also holds how foreign a missing context is to the model. `details` gets the tokens and words
    of every sentence. ValueError names an item with scores that are not finite.
    """
    given = [replace(item, candidates=(item.candidates[item.correct],), correct=0) for item in items]
    given, label = with_context(given, condition, seed), condition_label(condition, seed)
    records = (details or DetailsFile()).records(
        given,
        lambda part: [_record(item, one, label) for item, one in zip(part, _pointwise(system, part))],
        lambda: (
            {"model": system.fingerprint(), "past": system.context.past, "future": system.context.future}
            | {"context": label, "without": "empty"}
        ),
    )
    return [
        PointwiseCXMI(
            item.item_id,
            tuple(record["tokens"]),
            tuple(record["with_context"]),
            tuple(record["without_context"]),
            item.group,
            labels_of(item),
        )
        for item, record in zip(given, records)
    ]


def sentence_words(one: PointwiseCXMI) -> list[tuple[str, float]]:
    """(word, P-CXMI) of the words of a sentence, of its runs of punctuation and of its end token.

    The gain of a word is the sum over its tokens; a token counts for the word in which it begins, one that adds no text
    for the word before it.
    """
    *tokens, end = (token.replace("\ufffd", "") for token in one.tokens)
    text = "".join(tokens)
    words = word_spans(text)
    sums, position, number = [0.0] * len(words), 0, 0
    for token, gain in zip(tokens, one.gains):
        begin = position + len(token) - len(token.lstrip())
        while token.strip() and number + 1 < len(words) and words[number + 1][0] <= begin:
            number += 1
        position += len(token)
        if words:
            sums[number] += gain
    return [*((text[start:stop], gain) for (start, stop), gain in zip(words, sums)), (end, one.gains[-1])]


def word_gains(found: Sequence[PointwiseCXMI], least: int = 5) -> list[tuple[str, float, int]]:
    """(word, mean P-CXMI, how often) of words seen at least so often, those that profit most first."""
    gains: dict[str, list[float]] = defaultdict(list)
    for one in found:
        for word, gain in sentence_words(one):
            gains[word].append(gain)
    means = [(word, math.fsum(some) / len(some), len(some)) for word, some in gains.items() if len(some) >= least]
    return sorted(means, key=lambda row: (-row[1], row[0]))


def _pointwise(system: System, items: Sequence[SuiteItem]) -> list[tuple[list[float], list[float], list[str]]]:
    """Log-probabilities with and without context, and the text, of the tokens of every item."""
    with_it = system.token_log_probabilities(items)
    without, texts = system.token_log_probabilities(with_context(items, "empty")), system.token_texts(items)
    found = []
    for item, (full,), (alone,), (tokens,) in zip(items, with_it, without, texts):
        if len(full) != len(alone) or not all(map(math.isfinite, [*full, *alone])):
            raise ValueError(
                f"{item.where}: log-probabilities {full} with context and {alone} without; expected as many, all "
                "finite: check the model's weights and separator"
            )
        found.append((full, alone, tokens))
    return found


def _record(item: SuiteItem, scores: tuple[list[float], list[float], list[str]], context: str) -> dict:
    """What details files have of a sentence."""
    full, alone, tokens = scores
    one = PointwiseCXMI(item.item_id, tuple(tokens), tuple(full), tuple(alone))
    return {
        "context": context,
        "document": item.group,
        "source": list(item.source),
        "target_context": list(item.target_context),
        "reference": item.candidates[0],
        "tokens": list(tokens),
        "with_context": list(full),
        "without_context": list(alone),
        "words": [list(pair) for pair in sentence_words(one)],
    }
