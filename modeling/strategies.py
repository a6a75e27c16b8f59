"""What the strategies of all models share, and strategy `sentence`."""

from collections.abc import Sequence

from .batch_decoding import BatchDecoder, Job, Languages, Output
from .document_state import CurrentSentence, DocumentState, all_sentences
from .inference import inference
from .tested_versions import check_untested_version

STRATEGIES = ("sentence", "sliding", "sequential", "chunk_sequential", "full", "stream")
REPAIRS = ("all", "none")
LOOKING_BACK = ("sliding", "sequential")  # strategies that `past_context` is for


class Translator(BatchDecoder):
    """Base class: strategy `sentence`, and which strategies a model of this configuration has."""

    def __init__(self, model, batch_size: int, generate_kwargs: dict, languages: Languages = (None, None)):
        super().__init__(model, batch_size, generate_kwargs, languages)
        self.past, self.future = (getattr(self.config, f"{side}_context", 0) for side in ("past", "future"))
        self.sides = getattr(self.config, "context_sides", "both")
        self.past_context: int | None = None  # k that was asked for
        self.repairs = "all"

    @classmethod
    def default_strategy(cls, config) -> str:
        """The strategy that fits how a model of this configuration was trained."""
        return "sentence"

    @classmethod
    def check_strategy(cls, config, strategy: str) -> None:
        """Raise `ValueError` for a strategy that a model of this configuration does not have."""
        if strategy == "stream":
            raise ValueError(
                "strategy 'stream' carries a state from sentence to sentence, which this model has not: use "
                f"{cls.default_strategy(config)!r}."
            )
        if strategy == "chunk_sequential":
            raise ValueError(
                "strategy 'chunk_sequential' is for models of chunks (view='chunk'), which this one is not: use "
                f"'sequential' or {cls.default_strategy(config)!r}."
            )

    @classmethod
    def repaired_strategies(cls, config) -> tuple[str, ...]:
        """The strategies whose translations may need repairs, which `repairs="none"` leaves out."""
        return ()

    @classmethod
    def check_search(cls, config, strategy: str, past_context: int | None, repairs: str) -> None:
        """Raise `ValueError` for a `past_context` or `repairs` that do not fit the strategy or the model."""
        if past_context is not None:
            cls.check_past_context(config, strategy, past_context)
        if repairs not in REPAIRS:
            raise ValueError(f"repairs must be one of {', '.join(REPAIRS)}, got {repairs!r}.")
        repaired = cls.repaired_strategies(config)
        if repairs == "none" and strategy not in repaired:
            others = f", or use {' or '.join(map(repr, repaired))}" if repaired else ""
            raise ValueError(
                f"repairs='none' leaves segments as they were written, got strategy {strategy!r}, which writes this "
                f"model's sentences one by one: leave it out{others}."
            )

    @classmethod
    def check_past_context(cls, config, strategy: str, past_context: int) -> None:
        """Raise `ValueError` for a number of past sentences that the strategy or the model does not read."""
        if strategy not in LOOKING_BACK:
            raise ValueError(
                "past_context is how many sentences before the current one the strategies 'sliding' and 'sequential' "
                f"read, got {past_context} with strategy {strategy!r}: leave it out."
            )
        if not isinstance(past_context, int) or isinstance(past_context, bool) or past_context < 0:
            raise ValueError(f"past_context must be a whole number >= 0, got {past_context!r}.")
        trained = getattr(config, "past_context", 0)
        if getattr(config, "view", "window") != "chunk" and past_context > trained:
            raise ValueError(
                f"past_context must be at most {trained}, the sentences that this model was trained with, got "
                f"{past_context}."
            )

    def translate(
        self, documents: list[DocumentState], strategy: str, past_context: int | None = None, repairs: str = "all"
    ) -> None:
        """Translate documents by a strategy that the model has; the targets of their parts are filled in.

        `past_context` and `repairs` are those of `translate_documents`, checked by `check_search`.
        """
        self.past_context, self.repairs = past_context, repairs
        if past_context is not None:
            self.past = past_context
        check_untested_version(self.model)
        with inference(self.model):
            getattr(self, strategy)(documents)

    def sentence(self, documents: list[DocumentState]) -> None:
        """Every sentence alone."""
        self.translate_alone(all_sentences(documents))

    def translate_alone(self, sentences: Sequence[CurrentSentence]) -> None:
        for sentence, output in zip(sentences, self.decode([self.window_job(*sentence) for sentence in sentences])):
            self.take_sentence(sentence, output)

    def window_job(self, document: DocumentState, index: int, past: int = 0, future: int = 0) -> Job:
        """The window of the part at `index`; future sentences that the document does not have are empty ones."""
        first, end = max(0, index - past), index + 1 + future
        missing = max(0, end - len(document.parts))
        job = self.segment_job(document, first, end - missing, padding=missing)
        job.current = CurrentSentence(document, index)
        if self.sides == "source":
            job.length = len(document.parts[index].ids)
            if index > 0:
                job.prefix = list(
                    self.format.target_before
                )  # the target is the current sentence, which does not start the document
        return job

    def take_sentence(self, sentence: CurrentSentence, output: Output) -> None:
        """Take over the translation of one sentence, without separators."""
        document, index = sentence
        sentence.part.target = [token for token in output.ids if token != self.sep]
        found = len(output.ids) - len(sentence.part.target) + 1
        if found > 1:
            document.report_separators(index, 1, found, "separators taken out")
        self.check_end(sentence, output)

    def check_end(self, sentence: CurrentSentence, output: Output, **remedy: str) -> None:
        """Report a translation that was stopped before its end."""
        if not output.finished:
            sentence.document.report_length(sentence.index, len(output.ids), **remedy)
