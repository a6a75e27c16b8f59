"""Document translation models of this package as systems."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.evaluation.systems.forced import ForcedDecoding, model_facts

SHOWN = ("d_model", "encoder_layers", "decoder_layers", "view", "context_sides", "segment_encoding")


class DocMTSystem(ForcedDecoding):
    """A model of any architecture of this package, with as much context as it was trained for.

    `past_context` may be less than the model's, or, for one trained on chunks, whose configuration names no number of
    sentences (0), the number it is to be scored with. `strategy`, `batch_size` and further arguments go to
    `translate_documents`. ValueError: more context than a window model takes.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str | None = None,
        *,
        past_context: int | None = None,
        strategy: str | None = None,
        batch_size: int = 16,
        batch_tokens: int = 4096,
        **generate_kwargs,
    ):
        config, architecture = model.config, registry.for_config(model.config)
        past_context = config.past_context if past_context is None else past_context
        if architecture.view(config) != "chunk" and past_context > config.past_context:
            raise ValueError(
                f"past_context is {past_context}, but the model was trained with {config.past_context} sentences of "
                "past context; give as many or fewer"
            )
        super().__init__(
            model,
            tokenizer,
            name or getattr(config, "_name_or_path", "") or architecture.name,
            collate=architecture.collator(config, tokenizer, context_discount=0.0),
            past_context=past_context,
            future_context=config.future_context,
            batch_tokens=batch_tokens,
        )
        self.architecture = architecture.name
        self.strategy, self.batch_size, self.generate_kwargs = strategy, batch_size, generate_kwargs

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        """Translations of documents, lists of sentences, each as long as the document."""
        return self.model.translate_documents(
            documents, self.tokenizer, strategy=self.strategy, batch_size=self.batch_size, **self.generate_kwargs
        )

    def describe(self) -> dict:
        """The `model` section of a report."""
        config = self.model.config
        return model_facts(self, self.architecture, **{field: getattr(config, field, None) for field in SHOWN})
