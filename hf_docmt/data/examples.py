"""Training examples cut from documents, by the view:

`sentence` is one sentence, `window` the current sentence with the ones around it (sliding, sKtoK), `chunk` a long
document in parts of about equal length, `document` the whole document.
"""

import hashlib
import json
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.documents import check_documents
from hf_docmt.files import DataError

VIEWS = ("sentence", "window", "chunk", "document")
CONTEXT_SIDES = ("both", "source")
SENTENCES_PER_CALL = 1000


class Examples(TorchDataset):
    """Training examples of a set of documents, as lists of token ids per sentence, without special tokens.

    `examples[i]` is a dict of
        doc_id, index    the document, and the number (from 0) of the first current sentence in it
        source, target   token ids of each sentence, two lists of the same number of sentences
        current          which of them is current; None where all are (chunk, document)
        document_start   whether the lists begin at the document's first sentence

    A window has as many past sentences as there are, at most `past_context`, and exactly `future_context` future ones;
    the ones after the document's end are empty lists, so the current one always has number len - 1 - future_context.
    A chunk has at most `max_target_tokens` target tokens, separators included (Herold and Ney 2023 cut near 1000).

    `examples.side_lengths` (examples, 2) int64 is the number of source and target tokens of each, with a separator or
    end mark after every sentence and, with `use_bod`, the `<bod>` that opens a document; with `context_sides="source"`
    the target side counts the current sentence only, as the collator then takes it. `examples.lengths` (examples,) is
    their sum.

    Every sentence is tokenized once. Text that looks like a special token is read as plain text. `DataError` for
    languages that the documents do not have and a sentence longer than `max_target_tokens`, `ValueError` for unknown
    choices and context that the view has no room for.

        examples = Examples(documents, tokenizer, source_lang="en", target_lang="de", view="window", past_context=3)
        examples[0]["source"]
    """

    def __init__(
        self,
        documents: Dataset,
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
    ):
        check_choices(view=(view, VIEWS), context_sides=(context_sides, CONTEXT_SIDES))
        _check_languages(documents, source_lang, target_lang)
        _check_reach(view, past_context, future_context, max_target_tokens)
        table = documents.select_columns(["doc_id", "translation"]).with_format("arrow")[:]
        self.doc_ids: list[str] = table.column("doc_id").to_pylist()
        translation = table.column("translation")
        counts = pc.list_value_length(translation).to_numpy().astype(np.int64)
        self.document_starts = np.concatenate([[0], np.cumsum(counts)])  # in sentences of the corpus
        self.sides = tuple(
            TokenizedSentences(_texts(translation, lang), tokenizer, is_target=lang == target_lang)
            for lang in (source_lang, target_lang)
        )
        self.past_context, self.future_context = past_context, future_context
        self.context_sides, self.use_bod = context_sides, use_bod
        self._options = {
            "kind": type(self).__name__,
            "view": view,
            "past_context": past_context,
            "future_context": future_context,
            "max_target_tokens": max_target_tokens,
            "context_sides": context_sides,
            "use_bod": use_bod,
            "special_tokens": _special_ids(tokenizer),
        }
        self._set_spans(view, past_context, max_target_tokens)
        self.side_lengths = self._token_counts()
        self.lengths = self.side_lengths.sum(axis=1)

    def __len__(self) -> int:
        return len(self.current)

    def __getitem__(self, item: int) -> dict:
        if not 0 <= item < len(self):
            raise IndexError(f"example {item} of {len(self)}")
        document, start, stop = int(self.document[item]), int(self.start[item]), int(self.stop[item])
        first, end = self.document_starts[document : document + 2]
        missing = max(0, stop - int(end))  # number of future sentences after the document's end
        source, target = (side.lists(start, stop - missing) + [[] for _ in range(missing)] for side in self.sides)
        current = int(self.current[item])
        return {
            "doc_id": self.doc_ids[document],
            "index": int(start - first) + max(current, 0),
            "source": source,
            "target": target,
            "current": None if current < 0 else current,
            "document_start": bool(start == first),
        }

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the tokens, of how examples are cut, and of the special tokens; not of document ids.

        Examples with the same fingerprint are the same in every process and version.
        """
        arrays = [self.document_starts, *(array for side in self.sides for array in (side.starts, side.ids))]
        digests = [array_digest(array) for array in arrays]
        return text_digest(json.dumps([digests, self._options], sort_keys=True))

    @property
    def mean_source_length(self) -> float:
        """Average number of tokens of a source sentence in the corpus, its separator included."""
        source = self.sides[0]
        return float(source.starts[-1] / (len(source.starts) - 1)) + 1

    @property
    def mean_length_ratio(self) -> float:
        """Average over the examples of source tokens per target token, separators included."""
        return float((self.side_lengths[:, 0] / self.side_lengths[:, 1]).mean())

    def _token_counts(self) -> np.ndarray:
        stop = np.minimum(self.stop, self.document_starts[self.document + 1])
        source, target = (side.starts[stop] - side.starts[self.start] for side in self.sides)
        source, target = source + self.stop - self.start, target + self.stop - self.start
        if self.context_sides == "source" and self.current[0] >= 0:
            current = self.start + self.current
            target = self.sides[1].starts[current + 1] - self.sides[1].starts[current] + 1
        if self.use_bod:
            first = self.document_starts[self.document]
            source = source + (self.start == first)
            alone = self.context_sides == "source" and self.current[0] >= 0
            target = target + (self.start + self.current * alone == first)
        return np.stack([source, target], axis=1)

    def _set_spans(self, view: str, past_context: int, max_target_tokens: int) -> None:
        """Set `document`, `start`, `stop` (corpus sentences; stop may pass the document's end), `current` (-1: all)."""
        first, end = self.document_starts[:-1], self.document_starts[1:]
        if view in ("sentence", "window"):
            current = np.arange(end[-1])  # each sentence of the corpus in turn
            self.document = np.repeat(np.arange(len(first)), end - first)
            self.start = np.maximum(current - past_context, first[self.document])
            self.stop = current + 1 + self.future_context
            self.current = current - self.start
            return
        if view == "document":
            cuts = [np.array([0, length]) for length in end - first]
        else:
            cuts = [self._chunk_cuts(document, max_target_tokens) for document in range(len(first))]
        self.document = np.repeat(np.arange(len(first)), [len(cut) - 1 for cut in cuts])
        self.start = np.concatenate([cut[:-1] + begin for cut, begin in zip(cuts, first)])
        self.stop = np.concatenate([cut[1:] + begin for cut, begin in zip(cuts, first)])
        self.current = np.full(len(self.start), -1)

    def _chunk_cuts(self, document: int, limit: int) -> np.ndarray:
        first, end = self.document_starts[document : document + 2]
        lengths = np.diff(self.sides[1].starts[first : end + 1]) + 1
        if lengths.max() > limit:
            raise DataError(
                f"document {self.doc_ids[document]!r}: sentence {int(lengths.argmax()) + 1} has {lengths.max()} target "
                f"tokens with its separator, more than max_target_tokens={limit}; split the sentence or raise the limit"
            )
        return equal_cuts(lengths, limit)


class TokenizedSentences:
    """The token ids of many sentences in one array: sentence i is `ids[starts[i]:starts[i + 1]]`."""

    def __init__(self, texts: Iterable[list[str]], tokenizer: PreTrainedTokenizerBase, *, is_target: bool):
        ids, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
        for batch in texts:
            sides = {"text_target": batch} if is_target else {"text": batch}
            rows = tokenizer(
                **sides,
                add_special_tokens=False,
                split_special_tokens=True,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )["input_ids"]
            lengths.append(np.array([len(row) for row in rows], dtype=np.int64))
            ids.append(np.array([token for row in rows for token in row], dtype=np.int32))
        self.ids = np.concatenate(ids)
        self.starts = np.cumsum(np.concatenate(lengths))
        special = [token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id]
        if tokenizer.unk_token_id is not None:  # a word of the text that the vocabulary only has as a special token
            self.ids[np.isin(self.ids, special)] = tokenizer.unk_token_id

    def lists(self, start: int, stop: int) -> list[list[int]]:
        """Token ids of the sentences start to stop - 1."""
        return [self.ids[self.starts[i] : self.starts[i + 1]].tolist() for i in range(start, stop)]


def equal_cuts(lengths: np.ndarray, limit: int) -> np.ndarray:
    """Borders (from 0 to the number of sentences) of parts of about equal length, none longer than `limit`.

    As few parts as possible for cuts at the sentence borders nearest to equal shares. `lengths`: (sentences,), each at
    most `limit`.
    """
    borders = np.concatenate([[0], np.cumsum(lengths)])
    parts = -(-borders[-1] // limit)
    while True:
        shares = borders[-1] * np.arange(parts + 1) / parts
        after = np.searchsorted(borders, shares).clip(1, len(lengths))
        cuts = np.unique(after - (shares - borders[after - 1] <= borders[after] - shares))
        if np.diff(borders[cuts]).max() <= limit:
            return cuts
        parts += 1


def array_digest(array: np.ndarray) -> str:
    """SHA-256 of type, shape and values."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int | None]:
    """The ids that collators put between and around sentences."""
    names = ("pad_token", "unk_token", "bos_token", "eos_token", "sep_token")
    ids = {name: getattr(tokenizer, f"{name}_id") for name in names}
    return ids | {"bod_token": tokenizer.convert_tokens_to_ids("<bod>")}


def _texts(translation: pa.ChunkedArray, lang: str) -> Iterable[list[str]]:
    """The sentences of all documents in one language, some at a time."""
    for chunk in translation.chunks:
        texts = chunk.flatten().field(lang)
        for start in range(0, len(texts), SENTENCES_PER_CALL):
            yield texts.slice(start, SENTENCES_PER_CALL).to_pylist()


def check_choices(**choices: tuple[str, tuple[str, ...]]) -> None:
    """ValueError for the first name=(value, allowed values) whose value is not allowed."""
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(allowed)}")


def _check_languages(documents: Dataset, source_lang: str, target_lang: str) -> None:
    have = [lang for lang in check_documents(documents) if lang]
    for name, lang in (("source_lang", source_lang), ("target_lang", target_lang)):
        if lang not in have:
            raise DataError(f"{name}={lang!r} is not in the documents, they have {have}; correct the language")


def _check_reach(view: str, past_context: int, future_context: int, max_target_tokens: int) -> None:
    if past_context < 0 or future_context < 0 or max_target_tokens < 1:
        raise ValueError(
            f"past_context={past_context} and future_context={future_context} must be 0 or more and "
            f"max_target_tokens={max_target_tokens} 1 or more"
        )
    if view != "window" and (past_context or future_context):
        raise ValueError(
            f"view={view!r} has no context around it, got past_context={past_context} and "
            f"future_context={future_context}; set both to 0 or view='window'"
        )
