"""The translation among several that agrees most with the others."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

METRICS = ("chrf", "bleu")


class MinimumBayesRisk:
    """Chooses the candidate with the greatest mean utility against all (Kumar and Byrne 2004; Eikema and Aziz 2020).

        y* = argmax_h 1/N sum_n u(h, y_n)

    over the N beams of a search, which count alike whatever their probability; the first of equal ones, which is the
    most probable. `metric` is the utility u of a hypothesis and a reference: sentence-level `chrf` or `bleu` of
    sacrebleu, or a function of two texts. An argument of `translate_documents`, with as many `num_beams` as there are
    to be candidates; what a search writes at once, a sentence or a segment, is chosen at once, before the next one is
    translated behind it. ValueError: another metric.

        model.translate_documents(documents, tokenizer, num_beams=8, rerank=MinimumBayesRisk(tokenizer, "chrf"))
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, metric: str | Callable[[str, str], float] = "chrf"):
        self.tokenizer = tokenizer
        self.metric = metric if isinstance(metric, str) else getattr(metric, "__name__", "custom")
        self.utility = utility_of(metric) if isinstance(metric, str) else metric

    def __call__(self, candidates: Sequence[list[int]]) -> int:
        """Which of some candidates, lists of ids, most probable first."""
        texts = self.tokenizer.batch_decode(list(candidates), skip_special_tokens=True)
        return best_by_risk(texts, self.utility)


def best_by_risk(texts: Sequence[str], utility: Callable[[str, str], float]) -> int:
    """The index of the text with the greatest sum of utilities against all; equal texts are compared once."""
    counts = Counter(texts)
    if len(counts) == 1:
        return 0
    sums = sums_of_utilities(counts, counts, utility)
    return texts.index(max(sums, key=sums.__getitem__))  # of equal ones the first, as dictionaries keep their order


def sums_of_utilities(
    texts: Iterable[str], counts: Mapping[str, int], utility: Callable[[str, str], float]
) -> dict[str, float]:
    """Of each of these texts the sum of its utilities against others, each as often as it counts."""
    return {text: sum(count * utility(text, other) for other, count in counts.items()) for text in texts}


def utility_of(metric: str) -> Callable[[str, str], float]:
    """A sentence-level score of a hypothesis and a reference, by name."""
    if metric not in METRICS:
        raise ValueError(f"the utility of minimum Bayes risk is {metric!r}, expected {' or '.join(METRICS)}")
    from sacrebleu.metrics import BLEU, CHRF

    scorer = CHRF() if metric == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: scorer.sentence_score(hypothesis, [reference]).score


def with_rerank(arguments: dict[str, Any], tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Arguments of `translate_documents` in which `mbr`, a metric, has become a `rerank`; ValueError for others."""
    others = {name: value for name, value in arguments.items() if name != "mbr"}
    metric = arguments.get("mbr")
    return others if metric is None else others | {"rerank": MinimumBayesRisk(tokenizer, metric)}
