"""Training examples cut from documents, by the view:

`sentence` is one sentence, `window` the current sentence with the ones around it (sliding, sKtoK), `chunk` a document,
a long one in parts of about equal length. `ContextExamples` are windows whose context is
an input of its own, `MultiResolutionExamples` segments of several lengths side by side.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.documents import check_documents
from hf_docmt.files import DataError
from hf_docmt.journal import text_digest
from hf_docmt.messages import check_known
from hf_docmt.modeling.sequence_format import chunk_cuts

if TYPE_CHECKING:  # takes longer to import than one sentence to translate
    from datasets import Dataset

VIEWS = ("sentence", "window", "chunk")
CONTEXT_SIDES = ("both", "source")
DOCUMENT = "document"  # a resolution
EXAMPLES_AT_A_TIME = 2**18  # lengths counted at a time


class Example(dict):
    """An example with the extra key `input_ids`, all source tokens, which samplers of transformers count."""

    def __contains__(self, key: object) -> bool:
        return key == "input_ids" or super().__contains__(key)

    def __missing__(self, key: str) -> list[int]:
        if key != "input_ids":
            raise KeyError(key)
        return [token for sentence in self["source"] for token in sentence]


class Examples(TorchDataset):
    """Training examples of a set of documents, as lists of token ids per sentence, without special tokens.

    `examples[i]` is a dict of
        doc_id, index    the document, and the number (from 0) of the first current sentence in it
        source, target   token ids of each sentence, two lists of the same number of sentences
        current          which of them is current; None where all are (chunk)
        document_start   whether the lists begin at the document's first sentence

    A window has up to `past_context` past sentences and exactly `future_context` future ones;
    the ones after the document's end are empty lists, so the current one always has number len - 1 - future_context.
    A chunk has at most `max_target_tokens` target tokens, separators included (Herold and Ney 2023 cut near 1000).

    `documents` are tokenized into memory, or, where they are files of a cache (`cached_documents`), by `num_proc`
    processes into files of the cache: then examples take little memory, and are there at once when they are made again.
    Examples are cut when they are asked for.

    `examples.side_lengths` (examples, 2) int32 is the number of source and target tokens of each, with a separator or
    end mark after every sentence and, with `use_bod`, the `<bod>` that opens a document; with `context_sides="source"`
    the target side counts the current sentence only, as the collator then takes it. `examples.lengths` (examples,)
    int64 is their sum.

    Every sentence is tokenized once. Text that looks like a special token is read as plain text. `DataError` for
    languages that the documents do not have and a sentence longer than `max_target_tokens`, `ValueError` for unknown
    choices. That the view has room for the context is checked by configurations.

        examples = Examples(documents, tokenizer, source_lang="en", target_lang="de", view="window", past_context=3)
        examples[0]["source"]
    """

    drop_blank = False  # whether pairs with a blank source are dropped

    def __init__(
        self,
        documents: "Dataset",
        tokenizer: PreTrainedTokenizerBase,
        *,
        source_lang: str,
        target_lang: str,
        view: str = "window",
        past_context: int = 0,
        future_context: int = 0,
        max_target_tokens: int = 1000,
        context_sides: str = "both",
        use_bod: bool = False,
        num_proc: int | None = 1,
    ):
        check_known(view, VIEWS, "view", "expected one of")
        check_known(context_sides, CONTEXT_SIDES, "context_sides", "expected one of")
        _check_languages(documents, source_lang, target_lang)
        from hf_docmt.data.tokenized_documents import tokenized_documents  # with datasets, which training alone reads

        self.corpus = tokenized_documents(documents, tokenizer, (source_lang, target_lang), self.drop_blank, num_proc)
        if not len(self.corpus):
            raise DataError("all source sentences are blank; check the documents and their languages")
        self.view, self.past_context, self.future_context = view, past_context, future_context
        self.max_target_tokens, self.context_sides, self.use_bod = max_target_tokens, context_sides, use_bod
        self.special_ids = _special_ids(tokenizer)
        self.segments = self._segments()  # (examples, 2), sentences of the corpus from and to; None: see `spans`

    def __len__(self) -> int:
        return int(self.corpus.document_starts[-1]) if self.segments is None else len(self.segments)

    def __getitem__(self, item: int) -> Example:
        if not 0 <= item < len(self):
            raise IndexError(f"example {item} of {len(self)}")
        document, start, stop, current = (int(array[0]) for array in self.spans(item, item + 1))
        first, end = self.corpus.document_starts[document : document + 2].tolist()
        missing = max(0, stop - end)  # number of future sentences after the document's end
        source, target = (
            side.lists(start, stop - missing) + [[] for _ in range(missing)] for side in self.corpus.sides
        )
        return Example(
            doc_id=self.corpus.doc_id(document),
            index=start - first + max(current, 0),
            source=source,
            target=target,
            current=None if current < 0 else current,
            document_start=start == first,
        )

    def __getstate__(self) -> dict:
        """Without lengths: processes that load examples do not need them."""
        return {name: value for name, value in self.__dict__.items() if name != "side_lengths"}

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the tokens, of how examples are cut, and of the special tokens; not of document ids.

        Examples with the same fingerprint are the same in every process and version.
        """
        options = [type(self).__name__, self.view, self.past_context, self.future_context, self.max_target_tokens]
        options += [self.context_sides, self.use_bod, self.special_ids]
        return text_digest(json.dumps([self.corpus.digest, *options], sort_keys=True))

    @cached_property
    def side_lengths(self) -> np.ndarray:
        """(examples, 2) int32, see above; another number of columns where the model reads further inputs."""
        return self._counted(self._token_counts)

    @property
    def side_lengths_with_context(self) -> np.ndarray:
        """(examples, 2) int32: source and target tokens of each example, those of its context included."""
        return self.side_lengths

    @property
    def lengths(self) -> np.ndarray:
        return self.side_lengths.sum(axis=1)

    @property
    def document(self) -> np.ndarray:
        """(examples,) int32, the number of the document of each example."""
        starts = self.corpus.document_starts
        counts = np.diff(starts if self.segments is None else np.searchsorted(self.segments[:, 0], starts))
        return np.repeat(np.arange(len(self.corpus), dtype=np.int32), counts)

    @property
    def mean_source_length(self) -> float:
        """Average number of tokens of a source sentence in the corpus, its separator included."""
        starts = self.corpus.sides[0].starts
        return float(starts[-1] / (len(starts) - 1)) + 1

    @property
    def mean_length_ratio(self) -> float:
        """Average over the examples of source tokens per target token, separators included."""
        return float((self.side_lengths[:, 0] / self.side_lengths[:, 1]).mean())

    def spans(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Document, start, stop and current of the examples begin to end - 1, int64 each.

        `start` and `stop` are sentences of the corpus; `stop` may pass the document's end; `current` is the place after
        `start`, -1 where all sentences are current.
        """
        starts = self.corpus.document_starts
        if self.segments is not None:
            start, stop = self.segments[begin:end].T
            return np.searchsorted(starts, start, side="right") - 1, start, stop, np.full(len(start), -1)
        sentence = np.arange(begin, end)  # each of the corpus in turn
        document = np.searchsorted(starts, sentence, side="right") - 1
        start = np.maximum(sentence - self.past_context, starts[document])
        return document, start, sentence + 1 + self.future_context, sentence - start

    def _counted(self, counts: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """The result of `counts` for all examples, computed in parts, as int32."""
        starts = range(0, len(self), EXAMPLES_AT_A_TIME)
        parts = [counts(start, min(start + EXAMPLES_AT_A_TIME, len(self))).astype(np.int32) for start in starts]
        return np.concatenate(parts)

    def _token_counts(self, begin: int, end: int) -> np.ndarray:
        """Rows begin to end - 1 of `side_lengths`."""
        document, start, stop, current = self.spans(begin, end)
        first, last = self.corpus.document_starts[document], self.corpus.document_starts[document + 1]
        there = np.minimum(stop, last)
        source, target = (side.starts[there] - side.starts[start] + stop - start for side in self.corpus.sides)
        alone = self.context_sides == "source" and self.segments is None
        if alone:
            borders = self.corpus.sides[1].starts
            target = borders[start + current + 1] - borders[start + current] + 1
        if self.use_bod:
            source = source + (start == first)
            target = target + (start + current * alone == first)
        return np.stack([source, target], axis=1)

    def _segments(self) -> np.ndarray | None:
        """Chunks, (examples, 2) int64: first sentence of the corpus, and the one after the last.

        None where each sentence is an example.
        """
        if self.view in ("sentence", "window"):
            return None
        starts = np.asarray(self.corpus.document_starts)
        return self._cut_to_fit(np.stack([starts[:-1], starts[1:]], axis=1))

    def _cut_to_fit(self, segments: np.ndarray) -> np.ndarray:
        """Segments (N, 2), those with more than `max_target_tokens` as chunks of about equal length."""
        start, stop = segments.T
        tokens = self.corpus.sides[1].starts
        is_long = tokens[stop] - tokens[start] + stop - start > self.max_target_tokens  # separators included
        chunks = [self._chunks(*segment) for segment in segments[is_long].tolist()]
        return in_document_order(np.concatenate([segments[~is_long], *chunks])) if chunks else segments

    def _chunks(self, start: int, stop: int) -> np.ndarray:
        """The chunks (N, 2) of a segment of a document."""
        lengths = np.diff(self.corpus.sides[1].starts[start : stop + 1]) + 1
        if lengths.max() > self.max_target_tokens:
            sentence = start + int(lengths.argmax())
            document = int(np.searchsorted(self.corpus.document_starts, start, side="right")) - 1
            raise DataError(
                f"document {self.corpus.doc_id(document)!r}: sentence "
                f"{sentence - self.corpus.document_starts[document] + 1} has {lengths.max()} "
                f"target tokens with its separator, more than max_target_tokens={self.max_target_tokens} "
                "(model.chunk_tokens in a recipe); split the sentence or raise the limit"
            )
        cuts = start + np.array(chunk_cuts(lengths.tolist(), self.max_target_tokens))
        return np.stack([cuts[:-1], cuts[1:]], axis=1)


class ContextExamples(Examples):
    """Windows (see `Examples`) for models that read each context sentence as an input of its own.

    As in translation, blank source sentences are dropped: they are neither translated nor context.
    `side_lengths` (examples, 3) is what a row costs in a batch as `ContextCollator` pads it: tokens of the current
    sentence, of its translation, and the number of context sentences of the window times the longest of them.
    `context_sides` is `source`, `target` or `both`.
    """

    drop_blank = True

    def __init__(
        self,
        documents: "Dataset",
        tokenizer: PreTrainedTokenizerBase,
        *,
        source_lang: str,
        context_sides: str,
        **options,
    ):
        self._context_sides = {"source": (0,), "target": (1,), "both": (0, 1)}[context_sides]
        super().__init__(documents, tokenizer, source_lang=source_lang, context_sides="both", **options)
        self.context_sides = context_sides

    @property
    def side_lengths_with_context(self) -> np.ndarray:
        return self._counted(self._side_totals)

    def _token_counts(self, begin: int, end: int) -> np.ndarray:
        sides, context, count = self._current(begin, end), self._context_lengths(begin, end), 0
        longest = np.zeros(end - begin, dtype=np.int64)
        for _, lengths in context:
            count, longest = count + 1, np.maximum(longest, lengths)
        return np.stack([*sides, count * longest], axis=1)

    def _side_totals(self, begin: int, end: int) -> np.ndarray:
        """Rows begin to end - 1 of `side_lengths_with_context`."""
        sides = self._current(begin, end)
        for number, lengths in self._context_lengths(begin, end):
            sides[number] = sides[number] + lengths
        return np.stack(sides, axis=1)

    def _current(self, begin: int, end: int) -> list[np.ndarray]:
        """Tokens of the current sentences, (examples,) each of source and target."""
        document, start, _, place = self.spans(begin, end)
        begins = (start + place == self.corpus.document_starts[document]) * self.use_bod
        return [self._sentence_lengths(number, start + place) + begins for number in (0, 1)]

    def _context_lengths(self, begin: int, end: int) -> Iterator[tuple[int, np.ndarray]]:
        """Side and tokens (examples,) of every context sentence of the window, 0 for a missing one."""
        document, start, stop, place = self.spans(begin, end)
        current, last = start + place, np.minimum(stop, self.corpus.document_starts[document + 1])
        for number in self._context_sides:
            reach = range(-self.past_context, 1 if number else self.future_context + 1)
            for offset in (offset for offset in reach if offset):
                sentence = current + offset  # its number in the corpus
                exists = (sentence >= start) & (sentence < last)
                length = self._sentence_lengths(number, np.where(exists, sentence, current)) + self.use_bod
                yield number, np.where(exists, length, 0)

    def _sentence_lengths(self, side: int, sentences: np.ndarray) -> np.ndarray:
        """Tokens of sentences of the corpus, their ends counted."""
        starts = self.corpus.sides[side].starts
        return starts[sentences + 1] - starts[sentences] + 1


class MultiResolutionExamples(Examples):
    """The segments of every resolution of every document, all of whose sentences are current (Sun et al. 2022).

    A resolution k cuts each document into the smallest number of segments of about equal length in which none has
    more than k sentences; `document` is all of it. A segment with more than `max_target_tokens` is cut as a
    chunk is (see `Examples`). Segments that several resolutions give are included once: in a document of two sentences
    2, 4 and `document` agree. Segments are in the order of the documents.

    Departure from the paper (section 3.1), which cuts a document in 1, 2, 4, 8, ... parts: here documents of different
    length have segments of the same lengths.

        MultiResolutionExamples(documents, tokenizer, resolutions=[1, "document"], source_lang="en", target_lang="de")
    """

    def __init__(
        self,
        documents: "Dataset",
        tokenizer: PreTrainedTokenizerBase,
        *,
        resolutions: Sequence[int | str],
        **options,
    ):
        self.resolutions = list(resolutions)
        super().__init__(documents, tokenizer, view="chunk", **options)

    @property
    def fingerprint(self) -> str:
        return text_digest(json.dumps([super().fingerprint, self.resolutions]))

    def _segments(self) -> np.ndarray:
        starts = np.asarray(self.corpus.document_starts)
        segments = [split_evenly(starts, resolution) for resolution in self.resolutions]
        return in_document_order(self._cut_to_fit(np.concatenate(segments)))


def in_document_order(segments: np.ndarray) -> np.ndarray:
    """Segments (N, 2) by their first sentence, then by their last, each once."""
    segments = segments[np.lexsort(segments.T[::-1])]
    return segments[np.diff(segments, axis=0, prepend=-1).any(axis=1)]


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int | None]:
    """The ids that collators put between and around sentences."""
    names = ("pad_token", "unk_token", "bos_token", "eos_token", "sep_token")
    ids = {name: getattr(tokenizer, f"{name}_id") for name in names}
    return ids | {"bod_token": tokenizer.convert_tokens_to_ids("<bod>")}


def _check_languages(documents: "Dataset", source_lang: str, target_lang: str) -> None:
    have = [lang for lang in check_documents(documents) if lang]
    for name, lang in (("source_lang", source_lang), ("target_lang", target_lang)):
        if lang not in have:
            raise DataError(f"{name}={lang!r} is not in the documents, they have {have}; correct the language")


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
