"""What one process does for a translation job: it loads the model once, and turns groups of documents into rows."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from accelerate.utils.memory import should_reduce_batch_size
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.data.documents import UNNAMED
from hf_docmt.formats.document_file import with_fits
from hf_docmt.generation_settings import make_repeatable, with_shortlist
from hf_docmt.messages import closest_hint, first_line, install_command
from hf_docmt.modeling.generation_docmt import DocumentTranslation
from hf_docmt.systems import DocMTSystem, System, load_system
from hf_docmt.systems.minimum_bayes_risk import with_rerank
from hf_docmt.translation.corpus import search_settings, system_rows, translation_rows
from hf_docmt.translation.job_input import Group

DTYPES = dict.fromkeys(("fp32", "float32"), torch.float32)
DTYPES |= dict.fromkeys(("bf16", "bfloat16"), torch.bfloat16) | dict.fromkeys(("fp16", "float16"), torch.float16)
ONE_BY_ONE: dict[str, Any] = {"batch_size": 1, "batch_tokens": None}
INT8 = "int8"  # of the weights of linear layers; the others, and what is computed between layers, stay as saved
TORCH_ERRORS = (RuntimeError, AssertionError, ValueError, NotImplementedError)
DOCUMENT_ERRORS = (ValueError, RuntimeError, MemoryError)  # what one document may raise, if no memory is left


@dataclass(frozen=True)
class TranslationSettings:
    """How a job translates; small and picklable, so that every process and machine gets the same.

    `model` is a folder or Hub name, `device` that of torch, `source_lang` the side of the documents that is read (None:
    the model's, or else `source`).
    `strategy` (None: the model's own), `batch_size` and `search` are arguments of `model.translate_documents`, `search`
    those that are not named here: num_beams, length_penalty, past_context, repairs, alignment, max_new_tokens,
    batch_tokens, shortlist (the path of a file), mbr (a metric), nbest, and the codes source_lang and target_lang.
    `dtype` is one of `DTYPES` or int8 (None: that of the saved weights), `revision` a branch, tag or commit of a model
    on the Hub. `engine` computes: `transformers`, `ctranslate2` for a folder of its own format, or `system` for a model
    of another package, a system of `hf_docmt.systems`; then `search` are options of its class and
    arguments of its `generate`.
    """

    model: str
    source_lang: str | None = None
    device: str = "cpu"
    strategy: str | None = None
    batch_size: int = 16
    search: dict[str, Any] = field(default_factory=dict)
    dtype: str | None = None
    revision: str | None = None
    engine: str = "transformers"


def translates_without_context(config: PreTrainedConfig, strategy: str | None) -> bool:
    """Whether a model of this configuration reads sentences by themselves, wherever in a document they stand.

    That is strategy `sentence` (`strategy` None is the model's own), but where a token marks the first sentence.
    """
    strategies = registry.for_config(config).model_class.translator_class
    strategy = strategy or config.strategy or strategies.default_strategy(config)
    return strategy == "sentence" and not config.use_bod


def load_engine(settings: TranslationSettings) -> tuple[DocumentTranslation, PreTrainedTokenizerBase]:
    """The model of the settings, on its device and in its dtype, and its tokenizer. ValueError: it cannot be loaded."""
    if settings.engine == "transformers":
        model, tokenizer = registry.load_model(settings.model, settings.revision)
        model = model.to(device=settings.device, dtype=checked_dtype(settings.dtype, settings.device))
        if settings.dtype == INT8 and not getattr(model, "is_quantized", False):
            model.quantize(INT8)
        return model, tokenizer
    try:
        from hf_docmt.systems.ctranslate2_model import load_ctranslate2_model
    except ImportError as error:
        raise ValueError(f"--engine ctranslate2 needs CTranslate2: {install_command('ctranslate2')}") from error
    return load_ctranslate2_model(settings.model, settings.device, settings.dtype, settings.revision)


def load_translating_system(settings: TranslationSettings) -> System:
    """The system of the settings, on its device and in its dtype. ValueError: it cannot be loaded."""
    dtype = checked_dtype(settings.dtype, settings.device)
    return load_system(
        settings.model,
        dtype=settings.dtype if settings.dtype == INT8 else str(dtype or "auto").removeprefix("torch."),
        device=settings.device,
        revision=settings.revision,
        batch_size=settings.batch_size,
        **settings.search,
    )


class GroupTranslator:
    """Loads the model of the settings and translates groups with it.

    Raises `ValueError` for a model that cannot be loaded, and for settings that do not fit it.
    """

    def __init__(self, settings: TranslationSettings):
        self.settings = settings
        self.system = load_translating_system(settings) if settings.engine == "system" else None
        if self.system is None:
            self.model, self.tokenizer = load_engine(settings)
            make_repeatable(self.model.generation_config)
            search = with_rerank(with_shortlist(settings.search), self.tokenizer)
            self.search = {"strategy": settings.strategy, "batch_size": settings.batch_size, **search}
            own = self.model.config.source_lang
        else:
            self.tokenizer, own = self.system.tokenizer, self.system.languages[0]
        self.source_lang: str = settings.source_lang or own or UNNAMED
        self._translate(Group(0, []))  # checks the settings

    @cached_property
    def aligner(self) -> System | None:
        """What gives the word fits of documents with markup: the model itself, where it is one of transformers."""
        if self.settings.engine != "transformers":
            return self.system
        codes = {name: self.settings.search.get(name) for name in ("source_lang", "target_lang")}
        return DocMTSystem(self.model, self.tokenizer, **codes)

    def __call__(self, group: Group, is_smallest: bool = False) -> list[dict]:
        """Rows of `translate_corpus`, one for each document of the group.

        A document that cannot be translated (scores that are not finite, no memory left) has empty sentences and the
        reason as `error`. It is found by halving the group, so that the others are still translated in batches; where
        memory does not reach for a batch of one document's sentences, they are translated one by one.
        """
        rows = group.rows
        try:
            return self._translate(group, **(ONE_BY_ONE if is_smallest else {}))
        except DOCUMENT_ERRORS as error:
            if not isinstance(error, ValueError) and not is_out_of_memory(error):
                raise  # which ends the job
            if len(rows) > 1:
                half = len(rows) // 2
                return self(replace(group, rows=rows[:half])) + self(replace(group, rows=rows[half:]))
            if not isinstance(error, ValueError) and not is_smallest:
                return self(group, is_smallest=True)
            if getattr(error, "document", None) is not None:  # counted in this call
                error.document = rows[0]["doc_id"]  # type: ignore[union-attr]
            reason = str(error) if isinstance(error, ValueError) else first_line(error) or "no memory is left"
        (source,) = group.sources(self.source_lang)
        if self.system is not None:
            search = self.system.search
        else:
            strategy = self.settings.strategy or self.model.default_strategy()
            search = search_settings(self.model, strategy, self.settings.search)
        failed = {"doc_id": rows[0]["doc_id"], "source": source, "translation": [""] * len(source), "repairs": []}
        return [failed | {"search": search, "error": reason}]

    def _translate(self, group: Group, **smaller: Any) -> list[dict]:
        doc_ids = [row["doc_id"] for row in group.rows]
        sources = group.sources(self.source_lang)
        if self.system is not None:
            size = self.system.batch_size
            self.system.batch_size = smaller.get("batch_size", size)
            try:
                return self._with_fits(group, system_rows(self.system, doc_ids, sources))
            except IndexError as error:  # of an embedding
                raise ValueError(f"tokenizer and model do not fit: {first_line(error)}") from error
            finally:
                self.system.batch_size = size
        options = self.search | smaller
        return self._with_fits(group, translation_rows(self.model, self.tokenizer, doc_ids, sources, **options))

    def _with_fits(self, group: Group, results: list[dict]) -> list[dict]:
        """The results, of documents with markup with the word fits of the sentences that have some."""
        return [with_fits(self.aligner, row, result) for row, result in zip(group.rows, results)]


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that no memory is left, on whatever device: of a CPU it is a plain `RuntimeError`."""
    words = ("not enough memory", "out of memory", "std::bad_alloc")  # of Windows, CTranslate2, C++
    return (
        isinstance(error, torch.OutOfMemoryError | MemoryError)
        or should_reduce_batch_size(error)
        or any(word in str(error) for word in words)
    )


def check_device(device: str) -> str:
    """The name of a device that torch can use, such as `cpu`, `cuda` or `cuda:1`; ValueError for others."""
    try:
        torch.zeros(1, device=device) + 1
    except TORCH_ERRORS as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"device {device!r} cannot be used here ({reason}); give cpu, or leave it out") from error
    return device


def checked_dtype(name: str | None, device: str) -> torch.dtype | None:
    """The dtype of this name, None for None and int8, where the dtype stays that of the saved weights.

    ValueError for an unknown one and one that the device does not compute.
    """
    if name == INT8 and torch.device(device).type != "cpu":
        raise ValueError(f"int8 is for the CPU, got device {device!r}; choose device cpu, or another dtype")
    if name is None or name == INT8:
        return None
    if name not in DTYPES:
        names = [*DTYPES, INT8]
        hint = closest_hint(name, names, " (did you mean {!r}?)")
        raise ValueError(f"unknown dtype {name!r}{hint}; choose one of {', '.join(names)}")
    dtype = DTYPES[name]
    try:
        states = torch.ones(2, 8, 8, device=device, dtype=dtype)
        states = torch.nn.functional.linear(states, states[0])
        states = torch.nn.functional.layer_norm(states, (8,))
        torch.nn.functional.scaled_dot_product_attention(*[states[:, None]] * 3).softmax(-1)
    except TORCH_ERRORS as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"{device} does not compute in {name} ({reason}); choose another dtype") from error
    return dtype
