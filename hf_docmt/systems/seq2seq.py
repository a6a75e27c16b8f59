"""Any encoder-decoder translation model of transformers as a system, sentence by sentence or with joined context."""

from collections.abc import Sequence

import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.collators import SegmentCollator, pad_rows
from hf_docmt.data.special_tokens import special_tokens_of
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.modeling.sequence_format import example_codes
from hf_docmt.systems.forced_decoding import ForcedDecoding
from hf_docmt.systems.items import SuiteItem
from hf_docmt.systems.model_system import Answer, EncodedInput, check_positions, end_tokens
from hf_docmt.systems.system import check_source_language


class Seq2SeqSystem(ForcedDecoding):
    """Marian, NLLB, M2M-100, mBART, T5 and similar models, with context if they were trained to read it.

    Without context every sentence is translated alone. With it, sentences are joined by `separator`, a token or a text
    (by default the tokenizer's `sep_token`); `context_sides="both"` gives the decoder the translations of the context
    as a forced prefix (in scoring the references), `"source"` gives it none. `source_prefix` is put before the source,
    such as T5's task or Marian's `>>fra<<`; `src_lang` and `tgt_lang` are the tokenizer's language codes. Labels are
    tokenized by `tokenizer(text_target=...)`; language codes in them are given, not scored. Further arguments go
    to `generate`. ValueError: context without a separator, unknown language codes, none given where the tokenizer has
    some; where it has tokens such as Marian's, an empty `source_prefix` stands for no prefix.
    """

    kind = "seq2seq"
    auto_class = AutoModelForSeq2SeqLM

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str | None = None,
        *,
        past_context: int = 0,
        future_context: int = 0,
        context_sides: str = "source",
        separator: str | None = None,
        source_prefix: str | None = None,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        batch_size: int = 16,
        batch_tokens: int | None = None,
        max_new_tokens: int = 256,
        **generate_kwargs,
    ):
        for field, code in (("src_lang", src_lang), ("tgt_lang", tgt_lang)):
            if code is not None:
                _set_language(tokenizer, field, code)
            elif _has_codes(tokenizer, field):
                raise ValueError(
                    f"{type(tokenizer).__name__} has language codes, but {field} is not given; give src_lang and "
                    "tgt_lang, such as 'eng_Latn' and 'deu_Latn' for NLLB (docmt: --option tgt_lang=deu_Latn)"
                )
        marian_codes = getattr(tokenizer, "supported_language_codes", None)
        if marian_codes and source_prefix is None:
            raise ValueError(
                f"{type(tokenizer).__name__} has tokens of target languages, such as "
                f"{example_codes(marian_codes)[0]!r}, but source_prefix is not given; give one of them (docmt: "
                "--option source_prefix=TOKEN), or '' for none"
            )
        reach = past_context + future_context
        collate = JoinedCollator(
            model,
            tokenizer,
            separator=_separator(tokenizer, separator) if reach else (),
            prefix=tokenizer(source_prefix.strip(), add_special_tokens=False)["input_ids"] if source_prefix else (),
            context_sides=context_sides if reach else "source",
        )
        super().__init__(
            model,
            tokenizer,
            name or model.config.name_or_path or model.config.model_type,
            collate=collate,
            past_context=past_context,
            future_context=future_context,
            batch_tokens=batch_tokens,
            generate_kwargs={"max_new_tokens": max_new_tokens, **generate_kwargs},
        )
        self.settings = {
            "context_sides": collate.context_sides,
            "separator": (tokenizer.sep_token if separator is None else separator) if reach else None,
            "source_prefix": source_prefix or None,
            "src_lang": src_lang,
            "tgt_lang": tgt_lang,
        }
        self.batch_size = batch_size

    @classmethod
    def language_options(
        cls, name: str, source_lang: str | None, target_lang: str | None, revision: str | None = None
    ) -> tuple[dict[str, str], tuple[str | None, str | None]]:
        """Codes of the tokenizer, where it has some."""
        tokenizer = load_tokenizer(name, revision)
        own = getattr(tokenizer, "source_lang", None)
        check_source_language(name, source_lang, own)
        codes = zip(("src_lang", "tgt_lang"), (source_lang, target_lang)) if hasattr(tokenizer, "src_lang") else ()
        return {key: code for key, code in codes if code is not None}, (source_lang or own, target_lang)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes that were given, otherwise those of the model's configuration."""
        source_lang, target_lang = self.document_languages
        return self.settings["src_lang"] or source_lang, self.settings["tgt_lang"] or target_lang

    def describe(self) -> dict:
        return self.model_facts(self.model.config.model_type, **self.settings)

    @property
    def search(self) -> dict:
        return super().search | {name: value for name, value in self.settings.items() if value is not None}

    def prepare(self, windows: Sequence[SuiteItem]) -> list[EncodedInput]:
        rows = [choice.examples[0] for choice in self.choices(windows)]  # the current sentence is empty in the target
        return [(self.collate.source(row), self.collate.decoder_prefix(row)) for row in rows]

    def generate(self, jobs: Sequence[EncodedInput], sentences: int) -> list[Answer]:
        """A translation ends before the first end token or separator.

        At the limit some models (Marian) are made to write an end token, so the length says whether it ended.
        """
        sources, prefixes = zip(*jobs)
        device, separator, ends = self.model.device, self.collate.separator, end_tokens(self.model)
        settings = {"max_length": None, "eos_token_id": [*ends, *separator] if len(separator) == 1 else ends}
        settings |= self.generate_kwargs
        if self.collate.limit is not None:
            settings["max_new_tokens"] = min(settings["max_new_tokens"], self.collate.limit - len(prefixes[0]))
        output = self.model.generate(
            input_ids=pad_rows(sources, self.collate.pad).to(device),
            attention_mask=pad_rows([[1] * len(source) for source in sources], 0).to(device),
            decoder_input_ids=torch.tensor(prefixes, device=device),
            decoder_start_token_id=self.collate.decoder_start,  # another one would be put before the prefix
            **settings,
        )
        new_tokens = [until_end(row, ends, separator) for row in output[:, len(prefixes[0]) :].tolist()]
        limit = settings["max_new_tokens"]
        return [(self.tokenizer.decode(ids, skip_special_tokens=True), len(ids) + 1 < limit) for ids in new_tokens]


def _set_language(tokenizer: PreTrainedTokenizerBase, field: str, code: str) -> None:
    if not hasattr(tokenizer, field):
        raise ValueError(
            f"{field} is {code!r}, but {type(tokenizer).__name__} has no language codes; omit it, or give the "
            "model's own token as source_prefix"
        )
    try:
        setattr(tokenizer, field, code)
        around = special_tokens_of(tokenizer, is_target=field == "tgt_lang")
        is_code = tokenizer.unk_token_id not in (*around.before, *around.after)
    except KeyError:  # M2M-100 looks codes up in a table
        is_code = False
    if not is_code:
        raise ValueError(f"{field}: {code!r} is not a language code of {type(tokenizer).__name__}")


def _has_codes(tokenizer: PreTrainedTokenizerBase, field: str) -> bool:
    """Whether texts of this side have a language code around them."""
    if not hasattr(tokenizer, field):
        return False
    try:
        around = special_tokens_of(tokenizer, is_target=field == "tgt_lang")
    except KeyError:  # M2M-100 has no target language of its own
        return True
    plain = {getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "sep", "cls")}
    return not {*around.before, *around.after} <= plain


def _separator(tokenizer: PreTrainedTokenizerBase, separator: str | None) -> list[int]:
    text = tokenizer.sep_token if separator is None else separator
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=False)["input_ids"] if text else []
    if not ids:
        raise ValueError(
            f"context needs a separator between sentences, got {separator!r} and {type(tokenizer).__name__} with "
            f"sep_token {tokenizer.sep_token!r}; give a token or text that has tokens"
        )
    if tokenizer.unk_token_id in ids:
        raise ValueError(
            f"separator is {text!r}, of which {type(tokenizer).__name__} makes {tokenizer.convert_ids_to_tokens(ids)}, "
            "with an unknown token; give a token or text that it knows"
        )
    return ids


def until_end(ids: list[int], ends: list[int], separator: list[int]) -> list[int]:
    """The tokens before the first end token or separator."""
    size = len(separator)
    stops = (n for n, token in enumerate(ids) if token in ends or (size and ids[n : n + size] == separator))
    return ids[: next(stops, None)]


class JoinedCollator(SegmentCollator):
    """Joins the sentences of each example by a separator, inside the tokenizer's special tokens, and pads on the right.

    Source: special tokens, `prefix`, sentences; target: the context sentences, too (`context_sides="both"`), or the
    current one alone (`"source"`). A context sentence that is blank on every side in use is skipped. The decoder input
    is the labels shifted right after the decoder's start token: where the target ends in a language code after the
    end token (mBART-25) that code, otherwise the model's `decoder_start_token_id`. `label_weights` are 1 on the current
    sentence and the end token or separator after it, 0 elsewhere. ValueError: no start token, no end token, more tokens
    than the model has positions.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        separator: Sequence[int],
        prefix: Sequence[int] = (),
        context_sides: str = "source",
    ):
        source, target = (special_tokens_of(tokenizer, is_target=is_target) for is_target in (False, True))
        after = list(target.after) or [tokenizer.eos_token_id]
        super().__init__(
            tokenizer, decoder_start_token_id=_start(model, after), context_sides=context_sides, context_discount=0.0
        )
        self.around_source = ([*source.before, *prefix], list(source.after))
        self.around_target = (list(target.before), after)
        self.separator, self.prefix = list(separator), list(prefix)
        self.limit = getattr(model.config, "max_position_embeddings", None)

    def __call__(self, examples: Sequence[dict]) -> dict[str, torch.Tensor]:
        sources, targets = [self.source(row) for row in examples], [self.target(row) for row in examples]
        weights = [[float(start <= i < stop) for i in range(len(ids))] for ids, (start, stop) in targets]
        labels = [ids for ids, _ in targets]
        return self._batch(sources, labels, labels) | {"label_weights": pad_rows(weights, 0.0)}

    def source(self, row: dict) -> list[int]:
        """Encoder tokens of an example."""
        joined, _, _ = self._joined(row["source"], self._kept(row), row["current"])
        before, after = self.around_source
        ids = [*before, *joined, *after]
        check_positions(row["doc_id"], len(ids), "source tokens with their context", self.limit)
        return ids

    def target(self, row: dict) -> tuple[list[int], tuple[int, int]]:
        """Labels of an example, and where (start, stop) the scored ones are among them."""
        kept = self._kept(row) if self.context_sides == "both" else [row["current"]]
        joined, start, stop = self._joined(row["target"], kept, row["current"])
        before, after = self.around_target
        end_length = 1 if stop == len(joined) else len(self.separator)
        ids = [*before, *joined, *after]
        check_positions(row["doc_id"], len(ids), "target tokens with their context", self.limit)
        return ids, (len(before) + start, len(before) + stop + end_length)

    def decoder_prefix(self, row: dict) -> list[int]:
        """The tokens before the current sentence: start token, language code, target context."""
        ids, (start, _) = self.target(row)
        return [self.decoder_start, *ids[:start]]

    def _kept(self, row: dict) -> list[int]:
        sides = [row["source"], row["target"]] if self.context_sides == "both" else [row["source"]]
        return [i for i in range(len(row["source"])) if i == row["current"] or any(side[i] for side in sides)]

    def _joined(self, sentences: list[list[int]], kept: list[int], current: int) -> tuple[list[int], int, int]:
        """The kept sentences as one, and where in it the current one starts and stops."""
        joined, start, stop = [], 0, 0
        for number, sentence in enumerate(kept):
            joined += self.separator if number else []
            if sentence == current:
                start, stop = len(joined), len(joined) + len(sentences[sentence])
            joined += sentences[sentence]
        return joined, start, stop


def _start(model: PreTrainedModel, after: Sequence[int]) -> int:
    if len(after) > 1:
        return after[-1]
    for config in (model.generation_config, model.config):
        start = getattr(config, "decoder_start_token_id", None)
        if start is not None:
            return start
    raise ValueError(
        "the model has no decoder_start_token_id, with which its decoder starts; set "
        "model.generation_config.decoder_start_token_id"
    )
