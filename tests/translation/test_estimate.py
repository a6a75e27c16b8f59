"""Estimates of jobs: the true time lies in the range, the sample over the lengths, what is counted exactly."""

import random

import pytest
from support.tiny_models import word_tokenizer

from hf_docmt.translation import estimate
from hf_docmt.translation.estimate import Stratum, estimate_job, parts_of, read_strata, total_seconds, units_of
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
def test_the_true_time_lies_in_the_range(clock, seed):
    draw = random.Random(seed)
    sizes = [draw.randrange(1, 30) if draw.random() < 0.8 else draw.randrange(61, 200) for _ in range(4000)]
    found = estimate_job(TranslationSettings("folder"), documents(sizes), processes=2, seconds=10)
    true = sum(map(Clock.cost, document_groups(documents(sizes))))
    middle, low, high = found.seconds[1]
    assert low < true < high and abs(middle - true) < 0.15 * true
    assert found.seconds[2] == pytest.approx([value / 2 for value in found.seconds[1]], rel=0.15)
    assert (found.documents, found.sentences) == (len(sizes), sum(sizes))
    assert found.tokens == pytest.approx(3 * sum(sizes))  # two words and the end
    assert found.sampled_sentences < 0.6 * sum(sizes)


def test_a_small_job_is_translated_whole(clock):
    found = estimate_job(TranslationSettings("folder"), documents([3, 4, 5]), seconds=10)
    true = sum(map(Clock.cost, document_groups(documents([3, 4, 5]))))
    assert found.sampled_sentences == 12 and found.seconds[1][0] == pytest.approx(true, rel=0.15)
    assert found.seconds[1][1] < true < found.seconds[1][2] * 1.1
    assert "3 documents, 12 sentences, about 36 source tokens\n" in found.text()
    assert "1 process: 0 s (" in found.text() and "GiB at most" in found.text()


def test_strata_and_parts():
    groups = [*document_groups(documents([5] * 40 + [100] * 30), max_sentences=100)]
    strata, counts = read_strata(groups)
    assert counts == (70, 3200) and {key: one.groups for key, one in strata.items()} == {3: 2, 7: 30}
    assert len(strata[7].sample) == estimate.KEPT and strata[7].characters == 30 * 100 * 5
    parts = parts_of(groups[0], 12)
    assert [part.sentences for part in parts] == [10] * 10
    assert sorted(row["doc_id"] for part in parts for row in part.rows) == sorted(str(n) for n in range(20))
    assert [part.number for part in units_of(strata[3], 50)] in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_the_range_shrinks_with_the_sample():
    """By hand: two units of 10 and 12 s for 100 characters each, of 1000; Student's t of one degree of freedom."""
    few = Stratum(groups=9, characters=1000, times=[(100, 10.0), (100, 12.0)])
    total, low, high = total_seconds([few])
    deviation = (2 * 0.01**2) ** 0.5
    half = ((12.7 * 1000 * deviation * (0.8 / 2) ** 0.5) ** 2 + (0.05 * 110) ** 2) ** 0.5
    assert total == pytest.approx(110) and high - total == pytest.approx(half) and low == max(total - half, 0)
    many = Stratum(groups=9, characters=1000, times=[(100, 10.0), (100, 12.0)] * 3)
    assert total_seconds([many])[2] < high
