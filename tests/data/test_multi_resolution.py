"""Segments of several lengths side by side, against all of them listed slowly, and a model trained on them."""

import pytest
from support.tiny_models import documents_of, random_text, word_tokenizer

from hf_docmt.data.examples import MultiResolutionExamples
from hf_docmt.files import DataError
from hf_docmt.loading.registry import get
from hf_docmt.modeling.sequence_format import chunk_cuts

SIZES = (7, 1, 2, 10, 3)
LENGTHS = [[(number + place) % 6 for place in range(size)] for number, size in enumerate(SIZES)]
TEXTS = [(random_text(sizes, seed=1), random_text(sizes[::-1], seed=2)) for sizes in LENGTHS]
LANGUAGES = {"source_lang": "en", "target_lang": "de"}


def examples_of(resolutions, **settings):
    return MultiResolutionExamples(
        documents_of(*TEXTS), word_tokenizer(), resolutions=resolutions, **LANGUAGES, **settings
    )


def segments_of(size: int, resolution) -> list[range]:
    """As few segments as leave none with more sentences, the first ones shorter by one where they cannot be equal."""
    parts = 1
    while resolution != "document" and size > parts * resolution:
        parts += 1
    borders = [size * part // parts for part in range(parts + 1)]
    return [range(*ends) for ends in zip(borders, borders[1:])]


def listed(resolutions, limit: int) -> list[dict]:
    """All examples, in order."""
    rows = []
    for number, sides in enumerate(TEXTS):
        source, target = ([[int(word[1:]) for word in text.split()] for text in side] for side in sides)
        ranges = set()
        for segment in [one for resolution in resolutions for one in segments_of(len(source), resolution)]:
            cuts = chunk_cuts([len(target[index]) + 1 for index in segment], limit)
            ranges |= {(segment[0] + first, segment[0] + end) for first, end in zip(cuts, cuts[1:])}
        for first, end in sorted(ranges):
            row = {"doc_id": f"d{number}", "index": first, "source": source[first:end], "target": target[first:end]}
            rows.append(row | {"current": None, "document_start": first == 0})
    return rows


@pytest.mark.parametrize("resolutions", [[1], ["document"], [1, 2, 4, 8, "document"], [3, 5], [100, 2]])
@pytest.mark.parametrize("limit", [1000, 12])
def test_all_segments(resolutions, limit):
    examples = examples_of(resolutions, max_target_tokens=limit)
    expected = listed(resolutions, limit)
    assert list(examples) == expected
    assert examples.document.tolist() == [int(row["doc_id"][1:]) for row in expected]
    for sides, row in zip(examples.side_lengths.tolist(), expected, strict=True):
        assert sides == [sum(len(sentence) + 1 for sentence in row[side]) for side in ("source", "target")]
    assert examples.side_lengths[:, 1].max() <= limit


def test_example_of_the_paper():
    """A document of eight sentences gives fifteen sequences (Sun et al. 2022, section 3.1)."""
    document = documents_of((["w7"] * 8, ["w8"] * 8))
    examples = MultiResolutionExamples(document, word_tokenizer(), resolutions=[1, 2, 4, "document"], **LANGUAGES)
    assert sorted(len(row["source"]) for row in examples) == [1] * 8 + [2] * 4 + [4] * 2 + [8]


def test_fingerprint():
    choices = [[1], [1, 2], [2], [2, "document"]]
    assert len({examples_of(resolutions).fingerprint for resolutions in choices}) == len(choices)
    assert examples_of([1, 2]).fingerprint == examples_of([1, 2]).fingerprint
    assert examples_of([1, 2]).fingerprint != examples_of([1, 2], max_target_tokens=20).fingerprint


@pytest.mark.parametrize("architecture", ["concat", "lst", "window"])
def test_of_an_architecture(architecture):
    config = get(architecture).config_class(**LANGUAGES, view="chunk", chunk_tokens=12)
    examples = get(architecture).examples(documents_of(*TEXTS), word_tokenizer(), config, resolutions=[1, 4])
    assert list(examples) == listed([1, 4], 12)


def test_a_sentence_beyond_the_limit():
    with pytest.raises(DataError, match="document 'd0': sentence 2 has 6 target tokens .* max_target_tokens=5"):
        examples_of([1, "document"], max_target_tokens=5)
