"""Base of systems with a model of transformers: context, languages, facts for reports, translation, tokens."""

import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from os.path import commonprefix
from typing import ClassVar

import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from hf_docmt.data.tokenizers import tokenize_sentences
from hf_docmt.loading.adapters import adapted_model
from hf_docmt.loading.model_files import check_model_files, reading_model
from hf_docmt.loading.model_folders import load_weights
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.modeling.opaque_runs import score_of
from hf_docmt.modeling.text_splitting import Sentence
from hf_docmt.systems.devices import checked_dtype
from hf_docmt.systems.document_spans import (
    Span,
    TranslatedDocument,
    read_documents,
    spans_by_step,
    window_of,
)
from hf_docmt.systems.generation_settings import make_repeatable, reported_settings
from hf_docmt.systems.items import SuiteItem, context_name
from hf_docmt.systems.system import ContextReach, System

NOT_SETTINGS = ("_name_or_path", "transformers_version", "dtype")  # fields of configurations that change no score
WORD = re.compile(r"\w+|[^\w\s]+")  # letters and digits, or a run of punctuation
UNBROKEN = re.compile(r"\S+")
EncodedInput = tuple[list[int], list[int]]  # token ids of the source (or prompt), and those that the target begins with
Answer = tuple[str, bool]  # a translation, and whether it came to an end
HEADS = {
    AutoModelForSeq2SeqLM: MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    AutoModelForCausalLM: MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
}


class ModelSystem(System):
    """A model and its tokenizer. `past_context` and `future_context` are the sentences of context that it reads.

    `generate_kwargs` are arguments of its `generate`. A kind that `auto_class` of transformers loads names it. What
    translation needs of a kind are `prepare` and `generate`.
    """

    auto_class: ClassVar[type | None] = None
    batch_size: int  # of translation
    chunk_sentences: int = 1  # that are translated at once; 0: whole documents

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        *,
        past_context: int = 0,
        future_context: int = 0,
        generate_kwargs: dict | None = None,
    ):
        for field, value in (("past_context", past_context), ("future_context", future_context)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{field} is {value!r}, expected a number of sentences, 0 or more")
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.past_context, self.future_context = past_context, future_context
        self.generate_kwargs = generate_kwargs or {}

    @classmethod
    def load(
        cls,
        name: str,
        *,
        dtype: str,
        device: str,
        attn_implementation: str | None = None,
        revision: str | None = None,
        **options,
    ) -> "ModelSystem":
        model, tokenizer = cls.load_model(name, checked_dtype(dtype, device), revision)
        make_repeatable(model.generation_config, str(name))
        if attn_implementation is not None:
            model.set_attn_implementation(attn_implementation)
        return cls(model.to(device=device), tokenizer, str(name), **options)

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        """A model of transformers that `auto_class` loads; of one with several heads, an encoder-decoder first."""
        return cls.auto_class is not None and cls.auto_class is auto_class(config)

    @classmethod
    def load_model(
        cls, name: str, dtype: torch.dtype | None, revision: str | None = None
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Model, in evaluation mode, and tokenizer of a folder or Hub name. ValueError: they cannot be read."""
        if dtype is torch.int8:
            raise ValueError(f"{name}: dtype int8 is for models of this package; choose float32, bfloat16 or float16")
        check_model_files(name, revision)
        if base := adapted_model(name, revision):
            check_model_files(base)
        with reading_model(name):
            model = load_weights(cls.auto_class, name, revision, dtype=dtype or "auto")
            return model, load_tokenizer(name, revision)

    @property
    def context(self) -> ContextReach:
        return ContextReach(self.past_context, self.future_context, self.target_context)

    @property
    def target_context(self) -> str:
        """`reference`, or `none` where it reads source context alone."""
        return "reference"

    @property
    def document_languages(self) -> tuple[str | None, str | None]:
        """`source_lang` and `target_lang` of the model's configuration."""
        return tuple(getattr(self.model.config, name, None) for name in ("source_lang", "target_lang"))

    @property
    def decoding(self) -> dict:
        """`beams`: those that were given, otherwise those of the model's generation configuration; None without one."""
        asked, own = self.generate_kwargs.get("generation_config"), getattr(self.model, "generation_config", None)
        configured = (asked and asked.num_beams) or (own and (own.num_beams or 1))
        return {"strategy": None, "beams": self.generate_kwargs.get("num_beams") or configured}

    def fingerprint(self) -> str:
        """A digest of the description, all settings of model and generation, and up to 64 values of every weight."""
        settings = [config.to_dict() for config in (self.model.config, self.model.generation_config) if config]
        settings = [{key: own[key] for key in sorted(own) if key not in NOT_SETTINGS} for own in settings]
        digest = hashlib.sha256(repr((self.describe(), self.decoding, self.generate_kwargs, settings)).encode("utf-8"))
        for name, weight in self.model.state_dict().items():
            values = weight.detach().reshape(-1)
            some = values[:: max(1, len(values) // 64)][:64].float().cpu()
            digest.update(f"{name} {weight.dtype} {some.tolist()}".encode())
        return digest.hexdigest()[:12]

    def model_facts(self, architecture: str, **config) -> dict:
        """The `model` section of a report; `config` distinguishes systems further, None for what does not apply."""
        shown = {key: value for key, value in config.items() if value is not None}
        if self.model.generation_config and (search := reported_settings(self.model, self.generate_kwargs)):
            shown["generation"] = search
        shown |= {"past_context": context_name(self.past_context), "future_context": self.future_context}
        facts = {"name": str(self.name), "architecture": architecture}
        if parameters := sum(parameter.numel() for parameter in self.model.parameters()):
            facts["parameters"] = parameters
        return facts | {"config": shown}

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        """The translations of `translate_with_repairs`; warns of those that did not end before `max_new_tokens`."""
        translations, repairs = self.translate_with_repairs(documents)
        if cut := sum(repair["kind"] == "length" for repaired in repairs for repair in repaired):
            warnings.warn(f"{self.name}: {cut} translations did not end before max_new_tokens", stacklevel=2)
        return translations

    def translate_with_repairs(self, documents: list[list[str]]) -> tuple[list[list[str]], list[list[dict]]]:
        """Translations of documents, N sentences in, N out; blank sentences stay empty and are not context.

        Where translations of the context are read, span by span, the documents side by side; otherwise all at once.
        Line breaks in the translation of a sentence become blanks. ValueError: documents that are not lists of strings.
        """
        states = read_documents(documents)
        steps = spans_by_step(states, self.chunk_sentences)
        reads_targets = self.target_context == "reference" and (self.past_context or self.future_context)
        for spans in steps if reads_targets or not steps else [sum(steps, [])]:
            self.translate_spans(states, spans)
        lines = [state.translations if state.lines is None else state.lines for state in states]
        return lines, [sorted(state.repairs, key=itemgetter("sentence")) for state in states]

    def translate_spans(self, documents: Sequence[TranslatedDocument], spans: Sequence[Span]) -> None:
        """Translate spans of a sentence each."""
        windows = [window_of(documents, span, self.past_context, self.future_context) for span in spans]
        for span, (text, ended) in zip(spans, self.answers(self.prepare(windows)), strict=True):
            documents[span.document].write(span, [Sentence(one_line(text), score=score_of(text))], ended)

    def prepare(self, windows: Sequence[SuiteItem]) -> list[EncodedInput]:
        """The jobs of sentences in their context."""
        raise NotImplementedError

    def generate(self, jobs: Sequence[EncodedInput], sentences: int) -> list[Answer]:
        """Translations of jobs, all with equally long beginnings; `sentences` is the maximum in each."""
        raise NotImplementedError

    def answers(self, jobs: Sequence[EncodedInput], sentences: Sequence[int] | None = None) -> list[Answer]:
        """The results of `generate`, in batches of about equal length; `sentences` of each job, one if None.

        Jobs of a batch have prefixes of one length and one number of sentences, which limits an answer.
        """
        sizes = [1] * len(jobs) if sentences is None else list(sentences)
        kinds = [(len(prefix), size) for (_, prefix), size in zip(jobs, sizes)]
        order = sorted(range(len(jobs)), key=lambda job: (*kinds[job], len(jobs[job][0])))
        answers = [("", True)] * len(jobs)
        while order:
            batch = [job for job in order[: self.batch_size] if kinds[job] == kinds[order[0]]]
            order = order[len(batch) :]
            with evaluation_mode(self.model), torch.inference_mode():
                outputs = self.generate([jobs[job] for job in batch], sizes[batch[0]])
            for job, answer in zip(batch, outputs, strict=True):
                answers[job] = answer
        return answers


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode; its mode is restored afterwards."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def end_tokens(model: PreTrainedModel) -> list[int]:
    """Ids at which `generate` ends a text."""
    ends = model.generation_config.eos_token_id
    if ends is None:
        raise ValueError("the model has no eos_token_id, at which a translation ends; set it in generation_config")
    return list(ends) if isinstance(ends, list | tuple) else [ends]


def check_positions(where: str, tokens: int, what: str, limit: int | None, kind: str = "positions") -> None:
    """ValueError where there are more tokens than the model has positions for; `where` begins the message."""
    if limit is not None and tokens > limit:
        raise ValueError(
            f"{where}: {tokens} {what}, but the model has {kind} for {limit}; give less context or shorter sentences"
        )


def one_line(text: str) -> str:
    """The text with its line breaks as blanks, without blanks at its ends."""
    return " ".join(text.splitlines()).strip()


def auto_class(config: dict) -> type | None:
    """The class of transformers that loads a model with this `config.json`, encoder-decoders first; None if neither."""
    model_type, heads = config.get("model_type"), config.get("architectures")
    for loader, names in HEADS.items():
        classes = names.get(model_type, ())
        classes = {classes} if isinstance(classes, str) else set(classes)
        if classes and (not heads or classes & set(heads)):
            return loader
    return None


def piece_texts(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> list[str]:
    """The text that every token adds when decoded, blanks included; special tokens by their names.

    A character that is cut into several tokens comes with the last of them, those before it show U+FFFD.
    """
    texts, before = [], ""
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:end], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        texts.append(text[len(commonprefix([before, text])) :])
        before = text
    return texts


def piece_ids(tokenizer: PreTrainedTokenizerBase, text: str, *, is_target: bool) -> list[int]:
    """Token ids of a sentence without special tokens, as the scorer and training have them."""
    return tokenize_sentences([text], tokenizer, is_target=is_target)[0]


def piece_spans(tokenizer: PreTrainedTokenizerBase, text: str, *, is_target: bool) -> list[tuple[int, int]]:
    """(start, end) characters of every token of `piece_ids`; the blank before a word may be part of its first token.

    Tokenizers written in Python give no character offsets: there a token has those of its word, found by tokenizing
    the words between blanks one by one. ValueError where these tokens together are not those of the sentence.
    """
    if tokenizer.is_fast:
        side = {"text_target" if is_target else "text": text}
        encoding = tokenizer(
            **side, return_offsets_mapping=True, add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        return [tuple(span) for span in encoding["offset_mapping"]]
    words = word_spans(text, UNBROKEN)
    pieces = [piece_ids(tokenizer, text[start:end], is_target=is_target) for start, end in words]
    if sum(pieces, []) != piece_ids(tokenizer, text, is_target=is_target):
        raise ValueError(
            f"{type(tokenizer).__name__} gives no characters for its tokens, and the tokens of the words "
            f"are not those of the sentence {text!r}; use a fast tokenizer"
        )
    return [word for word, ids in zip(words, pieces) for _ in ids]


def word_spans(text: str, pattern: re.Pattern = WORD) -> list[tuple[int, int]]:
    """(start, end) characters of the words of a text; a run of punctuation is a word of its own."""
    return [match.span() for match in pattern.finditer(text)]
