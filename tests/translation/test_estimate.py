"""Estimates of jobs: the true time lies in the range, the sample over the lengths, what is counted exactly."""

import random
import re

import pytest
from support.tiny_models import word_tokenizer

from hf_docmt.translation import estimate
from hf_docmt.translation.estimate import Sample, estimate_job, read_sample, total_seconds
from hf_docmt.translation.group_translation import TranslationSettings
from hf_docmt.translation.job_input import document_groups


def documents(sizes):
    return [{"doc_id": str(n), "translation": [{"en": "w7 w8"}] * size} for n, size in enumerate(sizes)]


class Clock:
    """A translator whose time is known: for each document some, and for each sentence, more in long documents."""

    source_lang, now, translated = "en", 0.0, 0

    def __init__(self, settings):
        self.tokenizer = word_tokenizer()

    def __call__(self, group):
        random.seed(group.sentences)
        Clock.now += self.cost(group) * random.uniform(0.9, 1.1)
        Clock.translated += group.sentences

    @staticmethod
    def cost(group):
        sizes = [len(row["translation"]) for row in group.rows]
        return sum(0.01 + 0.001 * size * (4 if size > 60 else 1) for size in sizes)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(estimate, "GroupTranslator", Clock)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: Clock.now)
    Clock.now, Clock.translated = 0.0, 0


@pytest.mark.parametrize("seed", range(3))
def test_range_contains_the_true_time(clock, seed):
    draw = random.Random(seed)
    sizes = [draw.randrange(1, 30) if draw.random() < 0.8 else draw.randrange(61, 200) for _ in range(4000)]
    estimated = estimate_job(TranslationSettings("folder"), documents(sizes), processes=2, seconds=10)
    true = sum(map(Clock.cost, document_groups(documents(sizes))))
    middle, low, high = estimated.seconds[1]
    assert low < true < high and abs(middle - true) < 0.15 * true
    assert estimated.seconds[2] == pytest.approx([value / 2 for value in estimated.seconds[1]], rel=0.15)
    assert (estimated.documents, estimated.sentences) == (len(sizes), sum(sizes))
    assert estimated.tokens == pytest.approx(3 * sum(sizes))  # two words and the end
    assert estimated.sampled_sentences < 0.6 * sum(sizes)


def test_a_small_job_is_translated_whole(clock):
    estimated = estimate_job(TranslationSettings("folder"), documents([3, 4, 5]), seconds=10)
    true = sum(map(Clock.cost, document_groups(documents([3, 4, 5]))))
    assert estimated.sampled_sentences == 12 and estimated.seconds[1][0] == pytest.approx(true, rel=0.15)
    assert estimated.seconds[1][1] < true < estimated.seconds[1][2] * 1.1
    assert "3 documents, 12 sentences, about 36 source tokens\n" in estimated.text()
    slowest, fastest = re.search(r"sentences/s \[(\S+) to (\S+)\]", estimated.text()).groups()
    assert float(slowest) < float(fastest)
    assert "1 process: 0 s (" in estimated.text() and f"{estimated.memory / 2**30:.2g} GiB at most" in estimated.text()


def test_nothing_to_translate():
    with pytest.raises(ValueError, match="nothing to translate, so there is no time"):
        estimate_job(TranslationSettings("model"), documents([0]))


def test_sample_and_parts():
    groups = [*document_groups(documents([5] * 4000 + [100] * 300), max_sentences=100)]
    sample = read_sample(groups)
    assert (sample.documents, sample.sentences, sample.characters) == (4300, 50_000, 250_000)
    assert len(sample.groups) == estimate.KEPT
    first = [len(part.rows[0]["translation"]) for part, _ in zip(sample.parts(12), range(10))]
    assert 4 <= first.count(100) <= 8  # of 500 groups 300
    parts = [*Sample(groups[:1]).parts(12)]
    assert [part.sentences for part in parts] == [10] * 10
    assert sorted(row["doc_id"] for part in parts for row in part.rows) == sorted(str(n) for n in range(20))
    assert [part.number for part in Sample(groups[:2]).parts(50)] in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_the_range_shrinks_with_the_sample():
    """By hand: two parts of 10 and 12 s for 100 characters each, of 1000; Student's t of one degree of freedom."""
    total, low, high = total_seconds([(100, 10.0), (100, 12.0)], 1000)
    half = ((12.7062 * 10 * 2**0.5 * (0.8 / 2) ** 0.5) ** 2 + (0.05 * 110) ** 2) ** 0.5
    assert (total, high - total) == pytest.approx((110, half), rel=1e-4) and low == max(2 * total - high, 0)
    assert total_seconds([(100, 10.0), (100, 12.0)] * 3, 1000)[2] < high
