"""The state of documents during translation, and the jobs of token ids that strategies make of them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeVar

from .generation_settings import end_tokens, merged_config
from .text_splitting import Sentence, has_text, known_target


@dataclass
class SentencePart:
    """A unit of translation: a sentence of the document, or a part of an over-long one.

    `sentence` is its index in the document, `ids` are the source tokens, `target` those of the translation. `lines` are
    the sentences written for it where they were not repaired, any number; None = `target`. `candidates` are
    translations that the search found, where they are kept. With `is_known` its target was given. `context` are known
    parts that are read before it, `beginning` the first tokens of its translation, see `Sentence`. `score` are the sum
    of the log-probabilities of the target and its number of tokens, if they are kept.
    """

    sentence: int
    ids: list[int]
    target: list[int] = field(default_factory=list)
    lines: list[list[int]] | None = None
    candidates: list[list[int]] = field(default_factory=list)
    is_known: bool = False
    context: list["SentencePart"] = field(default_factory=list)
    beginning: list[int] = field(default_factory=list)
    score: tuple[float, int] | None = None

    def take(self, output: "Output", sentences: Sequence[list[int]] = (), number: int = 0) -> None:
        """Take the whole output as the translation, or of its `sentences` the one with this number."""
        sentences = sentences or [output.ids]
        self.target = sentences[number]
        first = sum(len(ids) + 1 for ids in sentences[: number % len(sentences)])
        end = min(first + len(self.target) + 1, len(output.sums) - 1)  # with the end token or separator
        if end > first:
            self.score = output.sums[end] - output.sums[first], end - first


@dataclass(eq=False)
class DocumentState:
    """A document of `size` sentences: the parts of those that are not blank, in order. Equal to itself only.

    `repairs` are dicts: `sentence` is an index in the document, `kind` one of `split` (over-long, translated in parts),
    `separators` (its segment was written in another number of sentences than its source has), `misaligned` (the same,
    and left so), `length` (stopped at `max_new_tokens`) and `positions` (translated with fewer sentences than asked
    for, as learned positions do not reach for more). `number` is its index in the call, None in a stream. `known` are
    translations that were given, by sentence. With `is_opened` false its first part does not begin the document.
    """

    size: int
    parts: list[SentencePart]
    repairs: list[dict] = field(default_factory=list)
    number: int | None = None
    known: dict[int, str] = field(default_factory=dict)
    is_opened: bool = True

    def next_unknown(self, index: int) -> "CurrentSentence | None":
        """The first part from this one on without a known translation."""
        numbers = range(index, len(self.parts))
        return next((CurrentSentence(self, number) for number in numbers if not self.parts[number].is_known), None)

    def report_count(self, index: int, expected: int, got: int, remedy: str | None = None) -> None:
        """The translation of the part at `index` came in `got` sentences; without a remedy it was left so."""
        detail = f"{got} sentences for {expected}: {remedy or 'left as written'}"
        self.add_repair(self.parts[index].sentence, "separators" if remedy else "misaligned", detail)

    def report_length(self, index: int, tokens: int, remedy: str = "raise max_new_tokens if more is right") -> None:
        """The translation of the part at `index` was cut off after this number of tokens."""
        detail = f"stopped after {tokens} tokens without an end: {remedy}"
        self.add_repair(self.parts[index].sentence, "length", detail)

    def report_positions(self, indices: range, got: int, expected: int, limit: int) -> None:
        """The parts at `indices` were translated with `got` sentences, themselves among them, not `expected`."""
        for index in indices:
            detail = f"{got} sentences instead of {expected}: learned positions for {limit} tokens"
            self.add_repair(self.parts[index].sentence, "positions", detail)

    def add_repair(self, sentence: int, kind: str, detail: str) -> None:
        self.repairs.append({"sentence": sentence, "kind": kind, "detail": detail})

    def report(self) -> list[dict]:
        """The repairs in the order of the sentences."""
        return sorted(self.repairs, key=lambda repair: repair["sentence"])


class CurrentSentence(NamedTuple):
    """A part of a document to translate."""

    document: DocumentState
    index: int

    @property
    def part(self) -> SentencePart:
        return self.document.parts[self.index]


def all_sentences(documents: list[DocumentState]) -> list[CurrentSentence]:
    """All parts of the documents without a known translation, in order."""
    sentences = (CurrentSentence(document, n) for document in documents for n in range(len(document.parts)))
    return [sentence for sentence in sentences if not sentence.part.is_known]


def read_document(
    sentences: list[str], tokenizer, max_sentence_tokens: int, number: int | None = None, reads_known: bool = True
) -> DocumentState:
    """Token ids of what has text (see `has_text`), over-long sentences in parts; known ones of that length are skipped.

    Without `reads_known` all known sentences are skipped.
    """
    document = DocumentState(len(sentences), [], number=number)

    def known_parts(index: int, source: str, target: str) -> list[SentencePart]:
        ids, written = token_ids(source.strip(), tokenizer), token_ids(target.strip(), tokenizer, is_target=True)
        has_room = has_text(source) and max(len(ids), len(written)) <= max_sentence_tokens
        return [SentencePart(index, ids, written, is_known=True)] if has_room else []

    texts = [text.strip() for text in sentences if known_target(text) is None and has_text(text)]
    read = dict(zip(texts, ids_of_texts(texts, tokenizer)))
    for index, sentence in enumerate(sentences):
        if (target := known_target(sentence)) is not None:
            document.known[index] = target
            document.parts += known_parts(index, sentence, target) if reads_known else []
            continue
        if not has_text(sentence):
            continue
        pairs = [part for pair in getattr(sentence, "context", ()) for part in known_parts(index, *pair)]
        parts = split_sentence(sentence, tokenizer, max_sentence_tokens, read)
        if len(parts) > 1:
            tokens = sum(map(len, parts))
            detail = f"{tokens} tokens, limit {max_sentence_tokens}: translated in {len(parts)} parts"
            document.add_repair(index, "split", detail)
        beginning = token_ids(text, tokenizer, is_target=True) if (text := getattr(sentence, "beginning", "")) else []
        for number, ids in enumerate(parts):
            part = SentencePart(index, ids, context=pairs, beginning=[] if number else beginning)
            document.parts.append(part)
    return document


def translated_sentences(document: DocumentState, tokenizer) -> list[str]:
    """Texts of all sentences, one for each source sentence unless parts have `lines`; known ones unchanged.

    Parts of one sentence are joined. A sentence has the mean score of its parts, if these have any.
    """
    texts: list[list[str] | None] = [None] * document.size
    scores: dict[int, tuple[float, int]] = {}
    for part in document.parts:
        lines = [part.target] if part.lines is None else part.lines
        lines = [tokenizer.decode(line, skip_special_tokens=True).strip() for line in lines]
        before = texts[part.sentence] or []
        if before and lines:
            lines[0] = f"{before.pop()} {lines[0]}".strip()
        if part.score and len(lines) == 1:
            (total, count), own = scores.get(part.sentence, (0.0, 0)), part.score
            scores[part.sentence] = total, count = total + own[0], count + own[1]
            lines[0] = Sentence(lines[0], score=total / count)
        texts[part.sentence] = before + lines
    for number, target in document.known.items():
        texts[number] = [target]
    return [line for lines in texts for line in ([""] if lines is None else lines)]


def candidate_sentences(document: DocumentState, tokenizer, count: int) -> list[list[str]]:
    """For every sentence up to this number of texts from the search, the most probable first; parts are joined."""
    found: list[list[list[str]]] = [[] for _ in range(document.size)]
    for part in document.parts:
        texts = tokenizer.batch_decode((part.candidates or [part.target])[:count], skip_special_tokens=True)
        found[part.sentence].append([text.strip() for text in texts])
    texts = [list(map(" ".join, zip(*parts))) or [""] for parts in found]
    return [[document.known[number]] if number in document.known else own for number, own in enumerate(texts)]


def split_at(ids: list[int], sep: int) -> list[list[int]]:
    """Generated ids as sentences, without the separators."""
    ends = [index for index, token in enumerate(ids) if token == sep]
    return [ids[first:end] for first, end in zip([0, *(end + 1 for end in ends)], [*ends, len(ids)])]


def split_sentence(text: str, tokenizer, limit: int, read: Mapping[str, list[int]]) -> list[list[int]]:
    """Ids of a sentence, cut at the blank nearest to its middle (or in the middle) until every part fits.

    `read` has the ids of texts that were tokenized before.
    """
    text = text.strip()
    ids = read[text] if text in read else token_ids(text, tokenizer)
    if len(ids) <= limit or len(text) < 2:
        return [ids]
    middle = len(text) // 2
    blanks = [offset for offset, character in enumerate(text) if character.isspace() and 0 < offset < len(text) - 1]
    cut = min(blanks, key=lambda offset: abs(offset - middle), default=middle)
    return [ids for half in (text[:cut], text[cut:]) for ids in split_sentence(half, tokenizer, limit, read)]


def token_ids(text: str, tokenizer, is_target: bool = False) -> list[int]:
    """Ids of a text as in training: the name of a special token is read as text, or becomes the unknown token."""
    return ids_of_texts([text], tokenizer, is_target)[0]


def ids_of_texts(texts: list[str], tokenizer, is_target: bool = False) -> list[list[int]]:
    """Ids of several texts, by one call of the tokenizer."""
    if not texts:
        return []
    side = {"text_target" if is_target else "text": texts}
    read = tokenizer(**side, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    special, unknown = set(tokenizer.all_special_ids), tokenizer.unk_token_id
    return read if unknown is None else [[unknown if token in special else token for token in ids] for ids in read]


Row = TypeVar("Row")
Languages = tuple[str | None, str | None]  # codes of source and target
STRATEGIES = ("sentence", "sliding", "sequential", "chunk_sequential", "full", "stream")
REPAIRS = ("all", "none")
LOOKING_BACK = ("sliding", "sequential")  # strategies that `past_context` is for


@dataclass
class Job:
    """Source segment, forced target prefix, sentences in the source, source tokens of the text to generate.

    `current` is the sentence it is for (the first one of a whole segment), `past` and `future` the number of sentences
    of a window before and after it. Its first `forced` sentences are known and in the prefix.
    """

    source: list[int]
    prefix: list[int]
    sentences: int
    length: int
    current: CurrentSentence
    past: int = 0
    future: int = 0
    forced: int = 0


@dataclass
class Output:
    """Generated ids without the end token, and whether one was generated.

    `sums` are the sums of the log-probabilities up to each token and before the first one, if they are kept.
    """

    ids: list[int]
    finished: bool
    sums: Sequence[float] = ()


class BaseTranslator:
    """Makes jobs, which subclasses `decode`, and knows which strategies a model of its configuration has.

    `generate_kwargs` may hold a `generation_config`; other settings in it come before those of the configuration, and
    what neither has is as the model's own configuration has it. `languages` are codes of the source and the target
    language, None = those of the configuration. `batch_tokens` bounds batches of independent jobs by their padded
    source tokens, instead of `batch_size`. Raises `ValueError` for languages as `config.sequence_format` does.
    """

    batch_tokens: int | None = None

    def __init__(self, model, batch_size: int, generate_kwargs: dict, languages: Languages = (None, None)):
        self.model, self.config, self.batch_size = model, model.config, batch_size
        self.format = model.config.sequence_format(*languages)
        starts_with_code = self.config.target_format.startswith("[target_lang]")
        check_languages(self.config, self.format, generate_kwargs, starts_with_code)
        generate_kwargs = dict(generate_kwargs)
        config = generate_kwargs.pop("generation_config", None)
        if self.format.target_before:  # it is in the prefix, or `generate` sets it
            generate_kwargs["forced_bos_token_id"] = None
        self.settings, self.generate_kwargs = merged_config(model, config, generate_kwargs)
        recorded = dict.fromkeys(("output_attentions", "output_hidden_states", "output_scores", "output_logits"), False)
        self.settings.update(return_dict_in_generate=False, num_return_sequences=1, **recorded)
        check_settings(self.settings)
        self.sep, self.pad = getattr(self.config, "sep_token_id", None), self.config.pad_token_id
        self.ends = end_tokens(self.settings) or end_tokens(self.config)
        self.eos = self.ends[0]
        start = self.settings.decoder_start_token_id
        self.start = self.format.start if start is None or starts_with_code else start
        self.settings.decoder_start_token_id = self.start
        learned = getattr(self.config, "position_type", None) == "learned"
        self.positions = self.config.max_position_embeddings if learned else math.inf  # tokens of either side
        self.sentence_positions = self.positions  # tokens of a sentence, or of one that is context
        self.past, self.future = (getattr(self.config, f"{side}_context", 0) for side in ("past", "future"))
        self.sides = getattr(self.config, "context_sides", "both")
        self.past_context: int | None = None  # k that was asked for
        self.keeps_candidates = self.keeps_scores = False
        self.repairs = "all"

    # Which strategies a model of a configuration has

    @classmethod
    def default_strategy(cls, config) -> str:
        """The strategy that fits how a model of this configuration was trained."""
        if hasattr(config, "view"):
            raise ValueError("this model reads segments: set translator_class = SegmentTranslator in its class.")
        return "sentence"

    @classmethod
    def refusals(cls, config) -> dict[str, str]:
        """Why a model of this configuration does not have a strategy, and what to use, by the strategy's name."""
        default = cls.default_strategy(config)
        state = "carries a state from sentence to sentence, which this model has not"
        chunks = "is for models of chunks (view='chunk'), which this one is not"
        return {"stream": f"{state}: use {default!r}", "chunk_sequential": f"{chunks}: use 'sequential' or {default!r}"}

    @classmethod
    def check_strategy(cls, config, strategy: str) -> None:
        """Raise `ValueError` for a strategy that a model of this configuration does not have."""
        reason = cls.refusals(config).get(strategy)
        if reason or strategy not in cls.strategies:
            reason = reason or f"is not one of this model's ({', '.join(cls.strategies)}); see its translator_class"
            raise ValueError(f"strategy {strategy!r} {reason}.")

    @classmethod
    def repaired_strategies(cls, config) -> tuple[str, ...]:
        """The strategies whose translations may need repairs, which `repairs="none"` skips."""
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
                f"repairs='none' leaves segments unchanged, got strategy {strategy!r}, which writes this "
                f"model's sentences one by one: omit it{others}."
            )

    @classmethod
    def check_past_context(cls, config, strategy: str, past_context: int) -> None:
        """Raise `ValueError` for a number of past sentences that the strategy or the model does not read."""
        if strategy not in LOOKING_BACK:
            raise ValueError(
                "past_context is the number of previous sentences that the strategies 'sliding' and 'sequential' "
                f"read, got {past_context} with strategy {strategy!r}: omit it."
            )
        if not isinstance(past_context, int) or isinstance(past_context, bool) or past_context < 0:
            raise ValueError(f"past_context must be a whole number >= 0, got {past_context!r}.")
        trained = getattr(config, "past_context", 0)
        if not is_of_chunks(config) and past_context > trained:
            raise ValueError(f"past_context must be at most {trained}, as in training, got {past_context}.")

    @classmethod
    def reads_pairs(cls, config, strategy: str) -> bool:
        """Whether the strategy reads pairs of a sentence and its translation as context, see `Sentence`."""
        return False

    def translate(
        self, documents: list[DocumentState], strategy: str, past_context: int | None = None, repairs: str = "all"
    ) -> None:
        """Give the parts of documents their targets; the strategy and its settings are checked by `check_search`."""
        self.past_context, self.repairs = past_context, repairs
        if past_context is not None:
            self.past = past_context
        with self.inference():
            self.strategies[strategy](self, documents)

    def inference(self) -> AbstractContextManager:
        """Scope in which the model translates."""
        raise NotImplementedError

    def decode(self, jobs: list[Job], stop_at_sep: bool = False) -> list[Output]:
        """Outputs of independent jobs, in their order; with `stop_at_sep` they end at a separator, too."""
        raise NotImplementedError

    def sentence(self, documents: list[DocumentState]) -> None:
        """Every sentence alone."""
        self.translate_alone(all_sentences(documents))

    def translate_alone(self, sentences: Sequence[CurrentSentence]) -> None:
        """Strategy `sentence` for these sentences."""
        jobs = [self.window_job(*sentence) for sentence in sentences]
        for sentence, output in zip(sentences, self.decode(jobs)):
            self.take_sentence(sentence, output)

    strategies: ClassVar[dict[str, Callable]] = {"sentence": sentence}  # functions of the translator and documents

    def take_sentence(self, sentence: CurrentSentence, output: Output) -> None:
        """Take over the translation of one sentence, without separators."""
        document, index = sentence
        sentence.part.take(output)
        sentence.part.target = [token for token in output.ids if token != self.sep]
        count = len(output.ids) - len(sentence.part.target) + 1
        if count > 1:
            document.report_count(index, 1, count, "separators taken out")
        self.check_end(sentence, output)

    def check_end(self, sentence: CurrentSentence, output: Output, **remedy: str) -> None:
        """Report a translation that was stopped before its end."""
        if not output.finished:
            sentence.document.report_length(sentence.index, len(output.ids), **remedy)

    def segment_job(
        self, document: DocumentState, first: int, end: int, padding: int = 0, is_opened: bool | None = None
    ) -> Job:
        """Source segment of the parts first..end and `padding` empty ones; `is_opened`: it opens the document."""
        sentences: list[int] = []
        for part in document.parts[first:end]:
            sentences += [*part.ids, self.sep]
        sentences = sentences[:-1] + [self.sep] * padding
        opening = self.opening(first == 0 and document.is_opened if is_opened is None else is_opened)
        return Job(
            source=self.format.source([*opening, *sentences]),
            prefix=[*self.format.target_before, *opening],
            sentences=end - first + padding,
            length=len(sentences) + 1,
            current=CurrentSentence(document, first),
        )

    def window_job(self, document: DocumentState, index: int, past: int = 0, future: int = 0) -> Job:
        """The window of the part at `index`; future sentences that the document does not have are empty ones."""
        first, end = max(0, index - past), index + 1 + future
        missing = max(0, end - len(document.parts))
        job = self.segment_job(document, first, end - missing, padding=missing)
        job.current, job.past, job.future = CurrentSentence(document, index), past, future
        if self.sides == "source":
            job.length = len(document.parts[index].ids)
            if index > 0:  # the target is the current sentence, which does not start the document
                job.prefix = list(self.format.target_before)
        return job

    def opening(self, is_opened: bool) -> list[int]:
        """`<bod>` where a sequence opens its document and the model has this token."""
        return [self.config.bod_token_id] if is_opened and self.config.use_bod else []

    def batches(self, rows: Sequence[Row], length: Callable[[Row], int], waiting: int = 0) -> Iterator[list[Row]]:
        """Rows in batches, longest together; a row of more than `batch_tokens` tokens is a batch of its own.

        Up to this number of tokens, padding included, others may be with them that wait.
        """
        order = sorted(rows, key=lambda row: -length(row))
        start = 0
        while start < len(order):
            size = max(self.rows_of_batch(length(order[start])), waiting // max(1, length(order[start])))
            yield order[start : start + size]
            start += size

    def waiting_tokens(self, jobs: list[Job]) -> int:
        """The most tokens of sources, padding included, of which a search begins the next where one is done."""
        return 0

    def rows_of_batch(self, longest: int) -> int:
        """The most rows of a batch whose longest source has this number of tokens."""
        return self.batch_size if self.batch_tokens is None else max(1, self.batch_tokens // max(1, longest))

    def beginning_of(self, job: Job, stop_at_sep: bool) -> list[int]:
        """The tokens that the translation of a job has to start with; none if it starts with another sentence."""
        is_current = stop_at_sep or self.sides == "source" or job.forced == job.past
        return job.current.part.beginning if is_current else []

    def keep_candidates(self, job: Job, outputs: list[Output], stop_at_sep: bool) -> None:
        """Keep what was written for the sentences of a job, for the current one alone, a window's one, or all of it.

        Outputs are sorted by probability; those with the number of separators of the first are kept.
        """
        document, index = job.current
        count = outputs[0].ids.count(self.sep)
        written = [output.ids for output in outputs if output.ids.count(self.sep) == count]
        if stop_at_sep or count + 1 != job.sentences - job.forced:
            document.parts[index].candidates = [[token for token in ids if token != self.sep] for ids in written]
            return
        sentences = list(zip(*(split_at(ids, self.sep) for ids in written)))  # by sentence
        is_window = bool(job.past or job.future)
        first = max(0, job.past - job.forced)
        for part, found in zip(document.parts[index:], sentences[first:][: 1 if is_window else None]):
            part.candidates = list(found)

    def ends_of(self, stop_at_sep: bool) -> list[int]:
        """The tokens that a translation ends at."""
        return [*self.ends, self.sep] if stop_at_sep else self.ends

    def token_limits(self, lengths: list[int], prompt: int) -> list[int]:
        """New tokens that each row may get, where positions are left for them after the prompt."""
        return [max(1, min(self.wanted(length), self.positions - prompt)) for length in lengths]

    def wanted(self, length: int) -> int:
        """Maximum of new tokens for a number of source tokens: `max_new_tokens`, or twice the number plus 32."""
        asked = self.settings.max_new_tokens
        return 2 * length + 32 if asked is None else asked

    def fits(self, source: int, prefix: int, length: int) -> bool:
        """Whether learned positions suffice for a source of this length, a forced prefix and its continuation."""
        room = min(self.wanted(length), 2 * length + 32)  # after a prefix of sentences
        return source <= self.positions and (prefix <= self.marks or 1 + prefix + room <= self.positions)

    def is_cut_off(self, job: Job, output: Output) -> bool:
        """Whether a translation stopped before its end where the learned positions end."""
        return not output.finished and self.wanted(job.length) > self.positions - 1 - len(job.prefix)

    def sentence_limit(self, max_sentence_tokens: int) -> int:
        """Tokens of a sentence that is translated at once: at most as many as positions without marks."""
        marks = len(self.format.source(self.opening(True)))
        return max(1, min(max_sentence_tokens, self.sentence_positions - marks))

    @property
    def marks(self) -> int:
        """Tokens allowed between the start token and the first sentence of a target."""
        return len(self.format.target_before) + 1


def is_of_chunks(config) -> bool:
    """Whether a model was trained on chunks of documents."""
    return getattr(config, "view", "window") == "chunk"


def check_languages(config, sequence_format, generate_kwargs: dict, starts_with_code: bool) -> None:
    """ValueError for tokens of another language than the target language: what is written starts with its code."""
    own = {"forced_bos_token_id": sequence_format.target_before[:1]}
    if starts_with_code:
        own["decoder_start_token_id"] = [sequence_format.start]
    for name, tokens in own.items():
        if tokens and generate_kwargs.get(name) not in (None, *tokens):
            remedy = "choose the language by target_lang" if config.language_ids else "omit it"
            raise ValueError(
                f"{name} must be {tokens[0]}, with which translations of this model start, got "
                f"{generate_kwargs[name]!r}: {remedy}."
            )


def check_settings(settings) -> None:
    """ValueError for generation settings that make a search impossible."""
    for name in ("num_beams", "max_new_tokens"):
        value = getattr(settings, name)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ValueError(f"{name} must be a whole number >= 1, got {value!r}.")
    penalty = settings.length_penalty
    if penalty is not None and (not isinstance(penalty, int | float) or not abs(penalty) <= 10):
        raise ValueError(f"length_penalty must be a number from -10 to 10, got {penalty!r}.")


def model_name(model) -> str:
    """The name of a model in messages."""
    return model.config.name_or_path or type(model).__name__
