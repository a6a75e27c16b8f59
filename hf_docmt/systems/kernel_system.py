"""Plain models on the compiled primitives alone: translation that imports neither torch nor transformers.

The `DocMTSystem` of these settings does the rest, such as searches that tie and word alignment; it is loaded then.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import safe_open

from hf_docmt.engine.array_search import ArraySettings, best_targets
from hf_docmt.engine.cpu_kernels import MULTIPLE, most_rows
from hf_docmt.engine.saved_layers import SavedLayers, SavedPrograms
from hf_docmt.modeling.fingerprint_digests import FIELD
from hf_docmt.modeling.generation_docmt import DocumentTranslation
from hf_docmt.modeling.generation_settings import is_neutral
from hf_docmt.modeling.sequence_format import LANGUAGES
from hf_docmt.modeling.strategies import SegmentStrategies
from hf_docmt.modeling.translation_jobs import Job, Output
from hf_docmt.systems import saved_folder
from hf_docmt.systems.items import SuiteItem
from hf_docmt.systems.prompted_translator import PromptedTranslator
from hf_docmt.systems.system import ContextReach, System, languages_of_config, translated_documents

OPTIONS = {  # of a job that needs no more
    "num_beams", "max_new_tokens", "length_penalty", "early_stopping", "decoding_past_context", "repairs",
    "batch_tokens", "source_lang", "target_lang", "strategy",
}  # fmt: skip
PRECISIONS = (None, "auto", "fp32", "float32", "int8")
ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # files of their drivers
WAITING_TOKENS = 2**14  # of sources that a search takes at once, padding included


class KernelTranslator(PromptedTranslator):
    """Strategies decoded by a `KernelModel`; what ties in a search, or is begun, is left to `generate`."""

    def __init__(self, model: "KernelModel", *arguments):
        super().__init__(model, *arguments)
        self.arguments = arguments

    def waiting_tokens(self, jobs: list[Job]) -> int:
        return WAITING_TOKENS

    def search(self, jobs: Sequence[Job], ends: list[int], at_once: int) -> list[Output]:
        prompts = [[self.start, *job.prefix] for job in jobs]
        limits = [self.token_limits([job.length], len(prompt))[0] for job, prompt in zip(jobs, prompts)]
        penalty = 1.0 if self.settings.length_penalty is None else self.settings.length_penalty
        beams, is_early = self.settings.num_beams or 1, bool(self.settings.early_stopping)
        settings = ArraySettings(ends, beams, penalty, is_early, self.keeps_scores)
        sources = [job.source for job in jobs]
        outputs = []
        for job, found in zip(jobs, best_targets(self.model.programs, sources, prompts, limits, settings, at_once)):
            if found is None or job.current.part.beginning:
                outputs.append(self.by_torch(job, stop_at_sep=len(ends) > len(self.ends)))
                continue
            is_finished = bool(found.ids) and found.ids[-1] in ends
            outputs.append(Output(found.ids[:-1] if is_finished else found.ids, is_finished, found.sums))
        return outputs

    def by_torch(self, job: Job, stop_at_sep: bool) -> Output:
        """The output of a job by `generate`."""
        model = self.model.load_torch().model
        translator = model.translator_class(model, *self.arguments)
        translator.keeps_scores = self.keeps_scores
        with translator.inference():
            return translator.decode([job], stop_at_sep)[0]


class KernelModel(DocumentTranslation):
    """A document model of arrays, as what the strategies need of a model; `load_torch` loads the system with torch."""

    translator_class = KernelTranslator

    def __init__(self, config, settings, programs: SavedPrograms, load_torch: Callable[[], Any]):
        self.config, self.generation_config, self.programs, self.load_torch = config, settings, programs, load_torch


class KernelSystem(System):
    """A plain model of this package on a CPU, in its folder, for jobs with plain settings."""

    def __init__(self, model: KernelModel, tokenizer, name: str, options: dict[str, Any]):
        self.model, self.tokenizer, self.name = model, tokenizer, name
        options = dict(options)
        self.strategy, self.batch_size = options.pop("strategy", None), options.pop("batch_size")
        self.batch_tokens = options.pop("batch_tokens", None)
        self.codes = model.config.language_codes(*(options.pop(key, None) for key in LANGUAGES))
        if (past := options.pop("decoding_past_context", None)) is not None:
            options["past_context"] = past
        self.generate_kwargs, self.carries = options, options.get("repairs") != "none"
        self.reads_chunks = model.config.view == "chunk"

    @classmethod
    def fits(
        cls, folder: str, dtype: str | None, device: str | None, options: Mapping[str, Any]
    ) -> saved_folder.SavedConfig | None:
        """The configuration of a folder, where it and the settings of a job look as if they need no more."""
        is_cpu = (
            device == "cpu"
            or device is None
            and sys.platform == "linux"
            and not any(Path(file).exists() for file in ACCELERATORS)
        )
        is_usual = dtype in PRECISIONS and options.keys() <= OPTIONS and saved_folder.is_plain_search(options)
        config = saved_folder.read_config(Path(folder)) if is_cpu and is_usual else None
        if config is None:
            return None
        is_float = dtype != "int8" and getattr(config, "quantization_config", None) is None
        heads = {config.d_model // config.encoder_attention_heads, config.d_model // config.decoder_attention_heads}
        sizes = {config.d_model, config.encoder_ffn_dim, config.decoder_ffn_dim, *heads}
        has_kernels = not any(size % MULTIPLE for size in sizes) and most_rows(config.d_model, is_float) == 2**63
        return config if has_kernels else None

    @classmethod
    def of_job(cls, settings) -> "KernelSystem | None":
        """The system of `TranslationSettings`; None where a `DocMTSystem` has to translate, or to say what is wrong."""
        folder, options = Path(settings.model), settings.search
        chosen = options | ({} if settings.strategy is None else {"strategy": settings.strategy})
        if settings.compares or settings.revision is not None:
            return None
        if (config := cls.fits(settings.model, settings.dtype, settings.device, chosen)) is None:
            return None
        generation, weights = saved_folder.read_settings(folder), folder / "model.safetensors"
        tokenizer = saved_folder.read_tokenizer(folder, getattr(config, FIELD).get("tokenizer"))
        is_whole = saved_folder.weights_fingerprint(weights) == getattr(config, FIELD)["weights"]
        if None in (generation, tokenizer) or not is_whole or len(tokenizer.get_vocab()) > config.vocab_size:
            return None
        if not saved_folder.are_tokens(vars(generation), config.vocab_size):
            return None
        with safe_open(weights, framework="np") as file:
            read, names = saved_folder.WeightReader(file), set(file.keys())
            if any(file.get_slice(name).get_dtype() not in ("F32", "I8") for name in names):
                return None
            programs = SavedPrograms(SavedLayers(config, read, names, settings.dtype == "int8"))
        has_int8 = settings.dtype == "int8" or getattr(config, "quantization_config", None) is not None
        if read.is_damaged or read.names != names or has_int8 != programs.layers.has_int8:
            return None
        model = KernelModel(config, generation, programs, settings.load)
        return cls(model, tokenizer, settings.model, chosen | {"batch_size": settings.batch_size})

    @classmethod
    def language_options(
        cls, name: str, source_lang: str | None, target_lang: str | None, revision: str | None = None
    ) -> tuple[dict[str, str], tuple[str | None, str | None]]:
        return languages_of_config(name, saved_folder.read_config(Path(name)), source_lang, target_lang)

    @classmethod
    def reads_sentences_alone(cls, name: str, options: Mapping[str, Any], revision: str | None = None) -> bool:
        config = saved_folder.read_config(Path(name))
        strategy = options.get("strategy") or config.strategy or SegmentStrategies.default_strategy(config)
        return strategy == "sentence" and not config.use_bod

    @cached_property
    def full(self) -> System:
        """The system with torch."""
        system = self.model.load_torch()
        system.carries, system.scores = self.carries, self.scores
        return system

    @property
    def context(self) -> ContextReach:
        config = self.model.config
        target = "none" if config.context_sides == "source" else "reference"
        return ContextReach(config.past_context, config.future_context, target)

    @property
    def document_languages(self) -> tuple[str | None, str | None]:
        return tuple(self.codes.get(name, getattr(self.model.config, name)) for name in LANGUAGES)

    @property
    def decoding(self) -> dict:
        beams = self.generate_kwargs.get("num_beams") or self.model.generation_config.num_beams or 1
        strategy = self.model.default_strategy() if self.strategy is None else self.strategy
        return {"strategy": strategy, "beams": beams}

    @property
    def search(self) -> dict:
        names = ("past_context", "repairs")
        settings = {name: self.generate_kwargs.get(name) for name in names} | self.codes
        if settings["past_context"] is None and self.decoding["strategy"] in ("sliding", "sequential"):
            settings["past_context"] = self.model.config.decoding_past_context
        for name in ("early_stopping", "length_penalty"):  # in their order among the fields
            value = self.generate_kwargs.get(name, getattr(self.model.generation_config, name))
            settings |= {} if is_neutral(name, value) else {name: value}
        return self.decoding | {name: value for name, value in settings.items() if value is not None}

    @property
    def reads_pairs(self) -> bool:
        has_past = self.generate_kwargs.get("past_context") != 0
        return has_past and SegmentStrategies.reads_pairs(self.model.config, self.decoding["strategy"])

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        return self.translate_with_repairs(documents)[0]

    def translate_with_repairs(self, documents: list[list[str]]) -> tuple:
        return translated_documents(self, documents, self.generate_kwargs)

    # By the system with torch

    def word_fits(self, source: str, translation: str):
        return self.full.word_fits(source, translation)

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        return self.full.token_log_probabilities(items)

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        return self.full.token_texts(items)

    def describe(self) -> dict:
        return self.full.describe()
