"""Training examples of several lengths side by side: sentences, short and long segments, whole documents."""

import json
from collections.abc import Sequence

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.examples import Examples, in_document_order
from hf_docmt.journal import text_digest

DOCUMENT = "document"


class MultiResolutionExamples(Examples):
    """The segments of every resolution of every document, all of whose sentences are current (Sun et al. 2022).

    A resolution k cuts each document in as few segments of about equal numbers of sentences as leave none with more
    than k; `document` is all of it. A segment with more than `max_target_tokens` is cut as a chunk is (see `Examples`).
    What several resolutions give is there once: of a document of two sentences 2, 4 and `document` are the same.
    They come in the order of the documents.

    Departure from the paper (section 3.1), which cuts a document in 1, 2, 4, 8, ... parts: here documents of different
    length have segments of the same lengths.

    ValueError: `resolutions` that `check_resolutions` refuses.

        MultiResolutionExamples(documents, tokenizer, resolutions=[1, "document"], source_lang="en", target_lang="de")
    """

    def __init__(
        self,
        documents: Dataset,
        tokenizer: PreTrainedTokenizerBase,
        *,
        resolutions: Sequence[int | str],
        **options,
    ):
        check_resolutions(resolutions)
        self.resolutions = list(resolutions)
        super().__init__(documents, tokenizer, view="chunk", **options)

    @property
    def fingerprint(self) -> str:
        return text_digest(json.dumps([super().fingerprint, self.resolutions]))

    def _segments(self) -> np.ndarray:
        starts = np.asarray(self.corpus.document_starts)
        segments = [split_evenly(starts, resolution) for resolution in self.resolutions]
        return in_document_order(self._cut_to_fit(np.concatenate(segments)))


def check_resolutions(resolutions: Sequence[int | str]) -> None:
    """ValueError for an empty list, numbers below 1, texts other than `document`, and what is named twice."""
    wrong = [one for one in resolutions if one != DOCUMENT and (type(one) is not int or one < 1)]
    if wrong or not resolutions:
        raise ValueError(f"expected numbers of sentences from 1, and {DOCUMENT}, got {wrong[0] if wrong else 'none'!r}")
    if len(set(resolutions)) < len(resolutions):
        raise ValueError(f"expected each once, got {list(resolutions)}")


def split_evenly(starts: np.ndarray, resolution: int | str) -> np.ndarray:
    """Segments (N, 2) of at most `resolution` sentences; `starts` (documents + 1,) are the borders of documents."""
    sizes = np.diff(starts)  # sentences of each document
    parts = np.minimum(sizes, 1) if resolution == DOCUMENT else -(-sizes // resolution)
    document = np.repeat(np.arange(len(sizes)), parts)
    part = np.arange(len(document)) - (np.cumsum(parts) - parts)[document]  # its number in the document
    share = np.stack([part, part + 1], axis=1) * sizes[document, None] // parts[document, None]  # (N, 2)
    return starts[document, None] + share
