"""What encoder-decoder systems share: log-probabilities of given translations, by forced decoding."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.suites.items import context_name
from hf_docmt.evaluation.systems.log_probabilities import scored_token_ids, token_log_probabilities
from hf_docmt.evaluation.systems.token_texts import piece_texts


class ForcedDecoding:
    """An encoder-decoder model with its tokenizer, and the collator that makes its batches.

    `collate` takes examples as `hf_docmt.data.examples` has them and gives `label_weights` 1 to the tokens of the
    current sentence and its end mark. `batch_tokens` limits the padded source and target tokens of a batch.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        *,
        collate: Callable,
        past_context: int,
        future_context: int,
        batch_tokens: int,
    ):
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.collate = collate
        self.past_context, self.future_context = check_reach(past_context, future_context)
        self.batch_tokens = batch_tokens

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the current sentence, its end mark last], natural logarithm, in fp32.

        Given are the source, the context that the system takes, and the reference translation of the context.
        """
        return token_log_probabilities(
            self.scored_model(), self.tokenizer, items, batch_tokens=self.batch_tokens, **self._settings()
        )

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        """The tokens that `token_log_probabilities` scores, as text, in the same order."""
        found = scored_token_ids(self.tokenizer, items, **self._settings())
        return [[piece_texts(self.tokenizer, ids) for ids in row] for row in found]

    @property
    def target_context(self) -> str:
        """`none` where the model reads source context alone, else `reference`, what it is given in scoring."""
        reads = self.past_context or self.future_context
        return "none" if reads and self.collate.context_sides == "source" else "reference"

    def scored_model(self) -> nn.Module:
        return self.model

    def _settings(self) -> dict:
        return {
            "collate": self.collate,
            "past_context": self.past_context,
            "future_context": self.future_context,
        }


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, and afterwards as it was."""
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


def check_reach(past_context: int, future_context: int) -> tuple[int, int]:
    for name, value in (("past_context", past_context), ("future_context", future_context)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{name} is {value!r}, expected a number of sentences, 0 or more")
    return past_context, future_context


def model_facts(system, architecture: str, **config) -> dict:
    """The `model` section of a report: name, architecture, number of parameters, and what else tells systems apart."""
    parameters = sum(parameter.numel() for parameter in system.model.parameters())
    shown = {key: value for key, value in config.items() if value is not None}
    context = {"past_context": context_name(system.past_context), "future_context": system.future_context}
    return {
        "name": str(system.name),
        "architecture": architecture,
        "parameters": parameters,
        "config": {**shown, **context},
    }
