"""Data augmentation: examples that change at random from epoch to epoch, so that a model learns to use context."""

import json

import numpy as np
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.examples import Examples
from hf_docmt.journal import text_digest

LENGTHS = ("side_lengths", "side_lengths_with_context", "lengths", "mean_source_length", "mean_length_ratio")


class AugmentedExamples(TorchDataset):
    """`Examples` of training data with augmentations, random in every epoch; the first two of Fernandes et al. (2021).

    `coword_dropout` (section 4): each token of the current source sentence becomes the tokenizer's mask token, or
    `<unk>` where it has none, with this probability; context and special tokens stay. Where all sentences are current
    (chunk) it is each source token. Departure from the released code, which also replaces `</s>`.

    `dynamic_context`: the number of past sentences is uniform in 0 to `past_context`, or to the available number if
    that is smaller, and that of future ones in 0 to `future_context`. Past sentences beyond it are cut off, future ones
    become empty, as after the document's end. Departure from the released code: source and target have the same number.
    A chunk of K sentences is cut to its first n or last n, each as likely, n uniform in 1 to K, so that every
    sentence is seen equally often.

    `target_noise`: each token of the target sentences before the current one is read as a token of the corpus with this
    probability, but learned unchanged (unigram noise, Xie et al. 2017, section 3.2): so that a model does not rely on
    earlier translations to be right, since they contain errors at translation. In a chunk it applies to all
    but the last sentence. The tokens read are the example's `read_target`, which collators know.

    What is random depends on `seed`, the epoch and the number of the example only: not on the order in which examples
    are asked for, nor by which worker or process. Call `set_epoch` before each epoch. Lengths are those without
    augmentation, which augmented examples never exceed.

    Recipes check that the examples have what is changed. ValueError: a tokenizer that has neither token.

        examples = AugmentedExamples(examples, tokenizer, coword_dropout=0.1, dynamic_context=True, seed=1)
        examples.set_epoch(3)
    """

    def __init__(
        self,
        examples: Examples,
        tokenizer: PreTrainedTokenizerBase,
        *,
        coword_dropout: float = 0.0,
        dynamic_context: bool = False,
        target_noise: float = 0.0,
        seed: int = 0,
    ):
        mask, unknown = tokenizer.mask_token_id, tokenizer.unk_token_id
        self.mask = unknown if mask is None else mask
        if coword_dropout and self.mask is None:
            raise ValueError(
                f"coword_dropout={coword_dropout} needs a mask token or an unknown token, the tokenizer has neither; "
                "set tokenizer.mask_token"
            )
        self.examples = examples
        self.coword_dropout, self.dynamic_context, self.seed = coword_dropout, dynamic_context, seed
        self.target_noise = target_noise
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, item: int) -> dict:
        row = self.examples[item]
        random = np.random.default_rng([self.seed, self.epoch, 1 + item])  # 0 at the end would be [seed, epoch]
        if self.dynamic_context:
            row = self._cut_segment(row, random) if row["current"] is None else self._cut_context(row, random)
        if self.coword_dropout:
            row = row | {"source": self._drop_words(row["source"], row["current"], random)}
        if self.target_noise:
            row = row | {"read_target": self._replace_words(row["target"], row["current"], random)}
        return row

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    @property
    def fingerprint(self) -> str:
        """Digest of the examples and of how they change."""
        options = [self.coword_dropout, self.mask, self.dynamic_context, self.seed]
        options += ["unigram", self.target_noise] if self.target_noise else []  # those without are known without it
        return text_digest(json.dumps([self.examples.fingerprint, options]))

    def __getattr__(self, name: str):
        """Lengths, which are those without augmentation."""
        if name in LENGTHS:
            return getattr(self.examples, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _cut_context(self, row: dict, random: np.random.Generator) -> dict:
        past, future = random.integers([self.examples.past_context + 1, self.examples.future_context + 1]).tolist()
        current = min(past, row["current"])
        cut, stop = row["current"] - current, row["current"] + 1 + future
        sides = {side: row[side][cut:stop] + [[] for _ in row[side][stop:]] for side in ("source", "target")}
        return row | sides | {"current": current, "document_start": row["document_start"] and not cut}

    def _cut_segment(self, row: dict, random: np.random.Generator) -> dict:
        count = len(row["source"])
        length, is_end = random.integers([1, 0], [count + 1, 2]).tolist()
        cut = (count - length) * is_end
        sides = {side: row[side][cut : cut + length] for side in ("source", "target")}
        return row | sides | {"index": row["index"] + cut, "document_start": row["document_start"] and not cut}

    def _drop_words(self, sentences: list[list[int]], current: int | None, random: np.random.Generator) -> list:
        changed = list(sentences)
        for number in range(len(sentences)) if current is None else [current]:
            drop = random.random(len(sentences[number])) < self.coword_dropout
            changed[number] = [self.mask if dropped else token for token, dropped in zip(sentences[number], drop)]
        return changed

    def _replace_words(self, sentences: list[list[int]], current: int | None, random: np.random.Generator) -> list:
        """Sentences with random words in those before the current one, each drawn from the corpus on its own."""
        before = sentences[: -1 if current is None else current]
        words, changed = self.examples.corpus.sides[1].ids, []
        for sentence in before:
            replaced, drawn = random.random(len(sentence)), random.integers(len(words), size=len(sentence)).tolist()
            pairs = zip(sentence, replaced < self.target_noise, drawn)
            changed.append([words[place].as_py() if new else token for token, new, place in pairs])
        return changed + sentences[len(before) :]
