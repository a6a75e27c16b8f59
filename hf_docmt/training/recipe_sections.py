"""The sections of a recipe: tokenizer, data, adapter, training with streams, decoding. Each checks its values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from hf_docmt.training.recipe_schema import RecipeError


@dataclass
class TokenizerRecipe:
    """A tokenizer to load (`path`), or one trained on both sides of the training data.

    A corpus of more than `sample` sentence pairs gives so many of them, drawn over the whole of it, the same in every
    run: runs that differ in their seed share the vocabulary.
    """

    path: str | None = None
    model: Literal["bpe", "unigram"] | None = None  # null = bpe
    vocab_size: int | None = None  # null = 32000
    lowercase: bool = False
    sample: int | None = None  # sentence pairs that it is trained on; null = 1000000

    def __post_init__(self):
        if self.vocab_size is not None and self.vocab_size < 1:
            raise RecipeError("tokenizer.vocab_size", f"expected at least 1, got {self.vocab_size}")
        if self.sample is not None and self.sample < 1:
            raise RecipeError("tokenizer.sample", f"expected at least 1, got {self.sample}")
        if self.path is None:
            self.model, self.vocab_size = self.model or "bpe", 32000 if self.vocab_size is None else self.vocab_size
            self.sample = self.sample or 1_000_000
        elif self.model or self.vocab_size or self.lowercase or self.sample:
            raise RecipeError("tokenizer", "with path its vocabulary is taken as it is; leave the other keys out")


@dataclass
class DataRecipe:
    """Documents: for each part a mapping of `format` and the files that its reader takes.

    They are read and tokenized once, into a cache that runs may share: the next start finds them there, unless a file
    has changed its size or its time of change. The folder may be deleted whenever no run uses it.
    """

    source_lang: str
    target_lang: str
    train: dict[str, Any]
    validation: dict[str, Any]
    test: dict[str, Any] | None = None  # what the system is made for; training does not read it
    cache: str | None = None  # folder; null = .docmt_cache beside output_dir
    num_proc: int | None = None  # processes that tokenize; null = one a core

    def __post_init__(self):
        if self.num_proc is not None and self.num_proc < 1:
            raise RecipeError("data.num_proc", f"expected at least 1, got {self.num_proc}")
        if self.cache is not None and not self.cache.strip():
            raise RecipeError("data.cache", f"expected a folder, got {self.cache!r}; leave it out for the default")
        for part in ("train", "validation", "test"):
            for name, value in (getattr(self, part) or {}).items():
                key = f"data.{part}.{name}"
                if name in ("source_lang", "target_lang"):
                    raise RecipeError(key, f"the languages are the same for all parts; set data.{name}")
                several = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
                if not isinstance(value, str) and not several:
                    raise RecipeError(key, f"expected a text or a list of texts, got {value!r}")


@dataclass
class PeftRecipe:
    """Low-rank adaptation (LoRA, Hu et al. 2022) of `init_from`, whose own weights stay as they are.

    The mechanism of the architecture is trained whole, and so are the embeddings of the tokens that come with context.
    """

    target_modules: list[str] = field(default_factory=lambda: ["q_proj", "v_proj"])  # ends of names of linear layers
    rank: int = 16
    alpha: float = 32.0  # the update of a weight is alpha / rank x B A
    dropout: float = 0.0  # on the input of A

    def __post_init__(self):
        names = self.target_modules
        if not names or not all(isinstance(name, str) for name in names):
            raise RecipeError("peft.target_modules", f"expected names of linear layers, such as q_proj, got {names!r}")
        if self.rank < 1:
            raise RecipeError("peft.rank", f"expected at least 1, got {self.rank}")
        if self.alpha <= 0:
            raise RecipeError("peft.alpha", f"expected more than 0, got {self.alpha}")
        if not 0 <= self.dropout < 1:
            raise RecipeError("peft.dropout", f"expected in [0, 1), got {self.dropout}")


@dataclass
class StreamRecipe:
    """Batches of models that carry a state from sentence to sentence; they replace `max_tokens`."""

    documents: int = 16  # read side by side
    window: int | str = 10  # most sentences of each document in one batch, drawn at random; or full, the document
    memory_gradient: int = 2  # sentences that the gradient of a loss reaches, the current one included

    def __post_init__(self):
        if isinstance(self.window, str) and self.window != "full":
            raise RecipeError("training.stream.window", f"expected a whole number or full, got {self.window!r}")
        for name, least in (("documents", 1), ("window", 1), ("memory_gradient", 2)):
            value = getattr(self, name)
            if value != "full" and value < least:
                raise RecipeError(f"training.stream.{name}", f"expected at least {least}, got {value}")


@dataclass
class TrainingRecipe:
    """Optimisation. One update = `max_tokens` x `accumulation` x processes, source and target tokens with padding."""

    max_tokens: int = 8000
    accumulation: int = 1
    max_steps: int | None = None
    epochs: float | None = None
    learning_rate: float = 5e-4
    # of parameters that `init_from` does not have; with peft of those that are trained whole
    new_learning_rate: float | None = None
    freeze: bool = False  # train only those, at `learning_rate`; what `init_from` has stays as it is
    neutral_start: bool = False  # they begin so that they change nothing, as those of a converted model always do
    scheduler: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"
    warmup_steps: int = 4000
    adam_betas: tuple[float, float] = (0.9, 0.98)
    adam_epsilon: float = 1e-8
    weight_decay: float = 0.0
    clip: float | None = None  # largest gradient norm
    label_smoothing: float = 0.1
    context_discount: float = 1.0  # weight of context tokens in the loss
    coword_dropout: float = 0.0  # probability that a token of the current source sentence is masked
    dynamic_context: bool = False  # draw the number of context sentences anew for every example, up to the model's
    eval_steps: int | None = None  # updates between validations (and checkpoints); null = every epoch
    patience: int | None = None  # validations without a better loss before training stops
    stop_on: Literal["discounted", "undiscounted"] = "discounted"  # weights of context_discount in validation or not
    average: int = 4  # checkpoints after the best one that are averaged with it
    stream: StreamRecipe | None = None  # of architectures that carry a state; null = the defaults
    bf16: bool = False
    gradient_checkpointing: bool = False  # less memory, more time: states inside layers are computed twice
    workers: int = 0  # processes that load data
    log_steps: int = 100
    report_to: Literal["none", "tensorboard", "trackio"] = "none"

    def __post_init__(self):
        if (self.max_steps is None) == (self.epochs is None):
            raise RecipeError(
                "training",
                f"expected one of max_steps and epochs, got max_steps={self.max_steps}, epochs={self.epochs}; set one "
                "and leave the other null",
            )
        for name in ("max_tokens", "accumulation", "max_steps", "eval_steps", "patience", "log_steps"):
            self._check(name, lambda value: value >= 1, "at least 1")
        for name in ("learning_rate", "new_learning_rate", "epochs", "clip"):
            self._check(name, lambda value: value > 0, "more than 0")
        for name in ("warmup_steps", "adam_epsilon", "weight_decay", "average", "workers"):
            self._check(name, lambda value: value >= 0, "at least 0")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise RecipeError("training.adam_betas", f"expected two numbers in [0, 1), got {list(self.adam_betas)}")
        for name in ("label_smoothing", "coword_dropout"):
            self._check(name, lambda value: 0 <= value < 1, "in [0, 1)")
        self._check("context_discount", lambda value: 0 <= value <= 1, "in [0, 1]")
        if self.freeze and self.new_learning_rate is not None:
            raise RecipeError(
                "training.new_learning_rate",
                "with freeze only new parameters are trained, at learning_rate; set that and leave this out",
            )

    @property
    def second_stage_settings(self) -> list[str]:
        """The settings in use that treat new parameters and those of `init_from` differently."""
        return [name for name in ("new_learning_rate", "freeze", "neutral_start") if getattr(self, name)]

    def _check(self, name: str, allowed: Callable[[Any], bool], expected: str) -> None:
        value = getattr(self, name)
        if value is not None and not allowed(value):
            raise RecipeError(f"training.{name}", f"expected {expected}, got {value}")


@dataclass
class DecodingRecipe:
    """What the trained model does by default when it translates."""

    # null = the architecture's
    strategy: Literal["sentence", "sliding", "sequential", "chunk_sequential", "full", "stream"] | None = None
    past_context: int | None = None  # sentences that sliding and sequential read; null = as many as in training
    num_beams: int = 4
    length_penalty: float = 1.0

    def __post_init__(self):
        if self.num_beams < 1:
            raise RecipeError("decoding.num_beams", f"expected at least 1, got {self.num_beams}")
        if self.past_context is not None and self.past_context < 0:
            raise RecipeError("decoding.past_context", f"expected at least 0, got {self.past_context}")
        if self.num_beams == 1 and self.length_penalty != 1:
            raise RecipeError(
                "decoding.length_penalty",
                f"it weighs beams, got {self.length_penalty} with num_beams=1; leave it out, or raise num_beams",
            )
