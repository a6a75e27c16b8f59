"""Document translation models of this package as systems."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.generation_settings import with_shortlist
from hf_docmt.messages import counted
from hf_docmt.systems.forced_decoding import ForcedDecoding, stream_log_probabilities
from hf_docmt.systems.items import ALL_CONTEXT, SuiteItem
from hf_docmt.systems.minimum_bayes_risk import with_rerank


class DocMTSystem(ForcedDecoding):
    """A model of any architecture of this package, with as much context as it was trained for.

    `past_context` may be less than the model's. One trained on chunks, whose configuration names no number of
    sentences, is scored with as many before and after (`future_context`) as are given, none by default; one that
    carries a state with all that there are before. `source_lang` and `target_lang` are language codes of a model that
    has some, by default those of its configuration; for others they are the languages of the data. `strategy`,
    `batch_size` and further arguments go to `translate_documents`; `shortlist` may be a path, `mbr` is a metric.
    ValueError: more context than a window model takes, a language code that is missing or unknown.
    """

    kind = "docmt"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str | None = None,
        *,
        past_context: int | None = None,
        future_context: int | None = None,
        source_lang: str | None = None,
        target_lang: str | None = None,
        strategy: str | None = None,
        batch_size: int = 16,
        batch_tokens: int = 4096,
        **generate_kwargs,
    ):
        config, architecture = model.config, registry.for_config(model.config)
        if past_context is None:
            past_context = ALL_CONTEXT if architecture.carries_state else config.past_context
        chunks = architecture.view(config) == "chunk"
        if future_context is None:
            future_context = config.future_context
        if not chunks and future_context != config.future_context:
            raise ValueError(
                f"future_context is {future_context}, but the model was trained with "
                f"{counted(config.future_context, 'sentence')} of future context; give as many"
            )
        if not chunks and not architecture.carries_state and past_context > config.past_context:
            raise ValueError(
                f"past_context is {past_context}, but the model was trained with "
                f"{counted(config.past_context, 'sentence')} of past context; give as many or fewer"
            )
        self.codes = config.language_codes(source_lang, target_lang)
        codes = (self.codes.get("source_lang"), self.codes.get("target_lang"))
        super().__init__(
            model,
            tokenizer,
            name or getattr(config, "_name_or_path", "") or architecture.name,
            collate=architecture.collator(config, tokenizer, 0.0, codes),
            past_context=past_context,
            future_context=future_context,
            batch_tokens=batch_tokens,
            missing_future="left out" if chunks else "empty",
            generate_kwargs=with_rerank(with_shortlist(generate_kwargs), tokenizer),
        )
        self.window_collate = architecture.collator(config, tokenizer, 1.0, codes)
        self.reads_chunks = chunks
        self.architecture, self.carries_state = architecture.name, architecture.carries_state
        self.separate_context = architecture.separate_context
        self.strategy, self.batch_size = strategy, batch_size

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        return str(config.get("model_type")).startswith("docmt-")

    @classmethod
    def load_model(
        cls, name: str, dtype: torch.dtype | None, revision: str | None = None
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """By the registry of architectures; int8 is the dtype of the weights of linear layers alone."""
        model, tokenizer = registry.load_model(name, revision)
        if dtype is torch.int8:
            return model if getattr(model, "is_quantized", False) else model.quantize("int8"), tokenizer
        return model.to(dtype=dtype), tokenizer

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        if not self.carries_state:
            return super().token_log_probabilities(items)
        return stream_log_probabilities(self, items)

    def window_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        if self.carries_state:
            return super().window_log_probabilities(items)
        return self.forced(items, self.window_collate)

    @property
    def document_languages(self) -> tuple[str | None, str | None]:
        """The codes with which it translates, where it has codes, else the languages of the configuration."""
        source_lang, target_lang = super().document_languages
        return self.codes.get("source_lang", source_lang), self.codes.get("target_lang", target_lang)

    @property
    def target_context(self) -> str:
        if self.carries_state and self.model.config.memory_sides == "source":
            return "none"
        return super().target_context

    @property
    def decoding(self) -> dict:
        strategy = self.model.default_strategy() if self.strategy is None else self.strategy
        return super().decoding | {"strategy": strategy}

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        return self.translate_with_repairs(documents)[0]

    def translate_with_repairs(self, documents: list[list[str]]) -> tuple[list[list[str]], list[list[dict]]]:
        return self.model.translate_documents(
            documents,
            self.tokenizer,
            strategy=self.strategy,
            batch_size=self.batch_size,
            return_report=True,
            **self.codes,
            **self.generate_kwargs,
        )

    def describe(self) -> dict:
        names = registry.get(self.architecture).config_class.reported_fields
        settings = {name: getattr(self.model.config, name, None) for name in names}
        return self.model_facts(self.architecture, **self.codes, **settings)
