"""What encoder-decoder systems share: log-probabilities of given translations, by forced decoding."""

from collections.abc import Callable, Sequence

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems.log_probabilities import scored_token_ids, token_log_probabilities
from hf_docmt.evaluation.systems.model_system import ModelSystem
from hf_docmt.evaluation.systems.token_texts import piece_texts


class ForcedDecoding(ModelSystem):
    """An encoder-decoder model with its tokenizer, and the collator that makes its batches.

    `collate` takes examples as `hf_docmt.data.examples` has them and gives `label_weights` 1 to the tokens of the
    current sentence and its end token. `batch_tokens` limits the padded source and target tokens of a batch.
    `options` are those of `ModelSystem`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        *,
        collate: Callable,
        batch_tokens: int,
        **options,
    ):
        super().__init__(model, tokenizer, name, **options)
        self.collate, self.batch_tokens = collate, batch_tokens

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the current sentence, its end token last], natural logarithm, in fp32.

        Given are the source, the context that the system takes, and the reference translation of the context.
        """
        return self._forced(items, self.collate)

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        """The tokens that `token_log_probabilities` scores, as text, in the same order."""
        found = scored_token_ids(self.tokenizer, items, collate=self.collate, **self._context())
        return [[piece_texts(self.tokenizer, ids) for ids in row] for row in found]

    @property
    def target_context(self) -> str:
        """`none` where the model reads source context alone, else `reference`, what it is given in scoring."""
        reads = self.past_context or self.future_context
        return "none" if reads and self.collate.context_sides == "source" else "reference"

    def scored_model(self) -> nn.Module:
        """The model as `token_log_probabilities` calls it."""
        return self.model

    def _forced(self, items: Sequence[SuiteItem], collate: Callable) -> list[list[list[float]]]:
        """Log-probabilities of the labels that have a weight in the batches of `collate`."""
        model, options = self.scored_model(), {"batch_tokens": self.batch_tokens, **self._context()}
        return token_log_probabilities(model, self.tokenizer, items, collate=collate, **options)

    def _context(self) -> dict:
        return {"past_context": self.past_context, "future_context": self.future_context}
