"""The sections of a recipe: tokenizer, data, adapter, training with streams, decoding. Each checks its values."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hf_docmt.data.examples import check_resolutions
from hf_docmt.data.samplers import Budget
from hf_docmt.options import option, out_of_bounds
from hf_docmt.training.recipe_schema import RecipeError


class Section:
    """A mapping in a recipe, at the dotted `key`."""

    key: ClassVar[str]

    def __post_init__(self):
        for name, bounds, value in out_of_bounds(self):
            raise RecipeError(f"{self.key}.{name}", f"expected {bounds}, got {value}")


@dataclass
class TokenizerRecipe(Section):
    """A tokenizer to load (`path`), or one trained on both sides of the training data.

    From a corpus of more than `sample` sentence pairs that number is drawn, from the whole corpus, the same in every
    run: runs that differ in their seed share the vocabulary.
    """

    key = "tokenizer"
    path: str | None = option(None, "Folder of a saved tokenizer; null = a new one.")
    model: Literal["bpe", "unigram"] | None = option(None, "Kind of a new vocabulary; null = bpe.")
    vocab_size: int | None = option(None, "Vocabulary size, including special tokens and bytes; null = 32000.", least=1)
    lowercase: bool = option(False, "Whether its vocabulary is lower case only.")
    sample: int | None = option(None, "Sentence pairs that it is trained on; null = 1000000.", least=1)

    def __post_init__(self):
        super().__post_init__()
        if self.path is None:
            self.model, self.vocab_size = self.model or "bpe", self.vocab_size or 32000
            self.sample = self.sample or 1_000_000
        elif self.model or self.vocab_size or self.lowercase or self.sample:
            raise RecipeError("tokenizer", "with path its vocabulary is used unchanged; remove the other keys")


@dataclass
class DataRecipe(Section):
    """Documents: for each part a mapping of `format` and the files that its reader takes.

    They are read and tokenized once, into a cache that runs may share: the next start finds them there, unless a file
    has changed its size or its time of change. The folder may be deleted whenever no run uses it.
    """

    key = "data"
    source_lang: str
    target_lang: str
    train: dict[str, Any]
    validation: dict[str, Any]
    test: dict[str, Any] | None = option(None, "The test data of the system; training does not read it.")
    cache: str | None = option(None, "Folder; null = .docmt_cache next to output_dir.")
    num_proc: int | None = option(None, "Processes that tokenize; null = one a core.", least=1)

    def __post_init__(self):
        super().__post_init__()
        if self.cache is not None and not self.cache.strip():
            raise RecipeError("data.cache", f"expected a folder, got {self.cache!r}; remove it for the default")
        for part in ("train", "validation", "test"):
            for name, value in (getattr(self, part) or {}).items():
                key = f"data.{part}.{name}"
                if name in ("source_lang", "target_lang"):
                    raise RecipeError(key, f"the languages are the same for all parts; set data.{name}")
                several = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
                if not isinstance(value, str) and not several:
                    raise RecipeError(key, f"expected a text or a list of texts, got {value!r}")


@dataclass
class PeftRecipe(Section):
    """Low-rank adaptation (LoRA, Hu et al. 2022) of `init_from`, whose own weights stay frozen.

    The mechanism of the architecture is trained whole, and so are the embeddings of the tokens that come with context.
    """

    key = "peft"
    target_modules: list[str] = field(default_factory=lambda: ["q_proj", "v_proj"])  # ends of names of linear layers
    rank: int = option(16, "Rows of A and columns of B.", least=1)
    alpha: float = option(32.0, "The update of a weight is alpha / rank x B A.", above=0)
    dropout: float = option(0.0, "Dropout on the input of A.", least=0, below=1)

    def __post_init__(self):
        super().__post_init__()
        names = self.target_modules
        if not names or not all(isinstance(name, str) for name in names):
            raise RecipeError("peft.target_modules", f"expected names of linear layers, such as q_proj, got {names!r}")


@dataclass
class StreamRecipe(Section):
    """Batches of models that carry a state from sentence to sentence; they replace `max_tokens`."""

    key = "training.stream"
    documents: int = option(16, "Documents read side by side.", least=1)
    window: int | str = option(
        10,
        "Maximum sentences of each document in one batch, drawn at random; or full, the document.",
        least=1,
    )
    memory_gradient: int = option(
        2, "Sentences that the gradient of a loss reaches, the current one included.", least=2
    )

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.window, str) and self.window != "full":
            raise RecipeError("training.stream.window", f"expected a whole number or full, got {self.window!r}")


@dataclass
class TrainingRecipe(Section):
    """Optimisation. One update has `accumulation` x processes batches, each of the size that `max_tokens` gives it."""

    key = "training"
    max_tokens: int = option(8000, "Size of a batch in tokens, counted as budget says.", least=1)
    budget: Budget = option(
        "padded", "All tokens with padding; or the longer side, with or without separate context, as fairseq counts."
    )
    accumulation: int = option(1, "Batches of an update in each process.", least=1)
    max_steps: int | None = option(None, "Updates; null = by epochs.", least=1)
    epochs: float | None = option(None, "Passes over the data; null = by max_steps.", above=0)
    learning_rate: float = option(5e-4, "Peak learning rate.", above=0)
    new_learning_rate: float | None = option(
        None, "Learning rate of parameters that init_from does not have; with peft of fully trained modules.", above=0
    )
    freeze: bool = option(False, "Train only new parameters, at learning_rate; those of init_from stay frozen.")
    neutral_start: bool = option(
        False,
        "New parameters leave the output unchanged, separators start as ends of sentences; always after conversion.",
    )
    scheduler: Literal["inverse_sqrt", "linear"] = option("inverse_sqrt", "How the learning rate falls.")
    warmup_steps: int = option(4000, "Number of warm-up updates.", least=0)
    adam_betas: tuple[float, float] = option((0.9, 0.98), "Betas of Adam.")
    adam_epsilon: float = option(1e-8, "Epsilon of Adam.", least=0)
    weight_decay: float = option(0.0, "Weight decay, not of biases and norms.", least=0)
    clip: float | None = option(None, "Maximum gradient norm.", above=0)
    label_smoothing: float = option(0.1, "Probability that the loss spreads over the vocabulary.", least=0, below=1)
    context_discount: float = option(1.0, "Weight of context tokens in the loss.", least=0, most=1)
    coword_dropout: float = option(
        0.0, "Probability that a token of the current source sentence is masked.", least=0, below=1
    )
    dynamic_context: bool = option(
        False, "Draw the number of sentences of context, or of a chunk, for every example, up to the model's."
    )
    target_noise: float = option(
        0.0, "Probability that a token of an earlier target sentence is read as another one.", least=0, below=1
    )
    resolutions: list[int | str] | None = option(
        None,
        "Segments of these numbers of sentences side by side, such as [1, 2, 4, document]; null = the model's view.",
    )
    eval_steps: int | None = option(None, "Updates between validations and checkpoints; null = every epoch.", least=1)
    patience: int | None = option(None, "Validations without a better loss before training stops.", least=1)
    stop_on: Literal["discounted", "undiscounted"] = option(
        "discounted", "Whether the loss of validation has the weights of context_discount."
    )
    average: int = option(4, "Checkpoints after the best one that are averaged with it.", least=0)
    stream: StreamRecipe | None = option(None, "For architectures that carry a state; null = the defaults.")
    bf16: Literal["auto"] | bool = option(
        False, "Compute in bfloat16 where it is exact enough; auto = where this device is faster so."
    )
    gradient_checkpointing: bool = option(False, "Less memory, more time: states inside layers are computed twice.")
    workers: int = option(0, "Processes that load data.", least=0)
    log_steps: int = option(100, "Updates between losses that are logged.", least=1)
    report_to: Literal["none", "tensorboard", "trackio"] = option("none", "Tracker of experiments.")

    def __post_init__(self):
        super().__post_init__()
        if (self.max_steps is None) == (self.epochs is None):
            raise RecipeError(
                "training",
                f"expected one of max_steps and epochs, got max_steps={self.max_steps}, epochs={self.epochs}; set "
                + ("one of them" if self.epochs is None else "training.max_steps=null or training.epochs=null"),
            )
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise RecipeError("training.adam_betas", f"expected two numbers in [0, 1), got {list(self.adam_betas)}")
        if self.resolutions is not None:
            try:
                check_resolutions(self.resolutions)
            except ValueError as error:
                raise RecipeError("training.resolutions", f"{error}; for example [1, 2, 4, 8, document]") from error
        if self.freeze and self.new_learning_rate is not None:
            raise RecipeError(
                "training.new_learning_rate",
                "with freeze only new parameters are trained, at learning_rate; set that and remove this",
            )

    @property
    def second_stage_settings(self) -> list[str]:
        """The settings in use that treat new parameters and those of `init_from` differently."""
        return [name for name in ("new_learning_rate", "freeze", "neutral_start") if getattr(self, name)]


@dataclass
class DecodingRecipe(Section):
    """The default settings of the trained model's translation."""

    key = "decoding"
    strategy: Literal["sentence", "sliding", "sequential", "chunk_sequential", "full", "stream"] | None = option(
        None, "How documents are walked through; null = the architecture's."
    )
    past_context: int | None = option(
        None, "Sentences that sliding and sequential read; null = as many as in training.", least=0
    )
    num_beams: int = option(4, "Beam size.", least=1)
    length_penalty: float = option(1.0, "Exponent of the length in beam scores.")
    early_stopping: bool | None = option(
        None, "End at num_beams finished translations, as fairseq does; null = the origin's way, or later."
    )
    max_new_tokens: int | None = option(
        None,
        "Maximum tokens of a translated segment (fairseq's max_len_b); null = twice its source's plus 32.",
        least=1,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.num_beams == 1 and self.early_stopping:
            raise RecipeError("decoding.early_stopping", "it ends a search with beams, got num_beams=1; remove it")
        if self.num_beams == 1 and self.length_penalty != 1:
            raise RecipeError(
                "decoding.length_penalty",
                f"it weighs beams, got {self.length_penalty} with num_beams=1; remove it, or raise num_beams",
            )
