"""The context sentence that decided a translation, by translating without each of them (leave-one-out).

One sentence is translated again as its strategy does, the translations of others given.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, log
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.loading import registry
from hf_docmt.modeling.decoding import Translator
from hf_docmt.modeling.row_processors import pad_rows
from hf_docmt.modeling.strategies import segments_that_fit
from hf_docmt.modeling.text_splitting import has_text
from hf_docmt.modeling.translation_jobs import CurrentSentence, DocumentState, Job, Output, all_sentences, split_at
from hf_docmt.systems.model_system import piece_ids

HALF = log(2)
REACH = 16  # context sentences that are removed in turn, the nearest ones
SEGMENTS = ("full", "chunk_sequential")  # strategies that write segments which do not overlap
NOT_FOR_SENTENCES = ("past_context", "repairs")  # arguments of `translate_documents` that strategy `sentence` refuses


@dataclass(frozen=True)
class LeftOutSentence:
    """A context sentence that was removed, number from 1, and the translation without it.

    `loss` is the drop in log-probability of the translation with all context without it, in nats. `is_usable` is false
    if the window without it was translated into another number of sentences, so that no context was read.
    """

    number: int
    source: str
    translation: str
    loss: float
    is_usable: bool = True

    @property
    def remaining(self) -> float:
        """How probable the translation with all context still is without it, as a fraction of before."""
        return exp(-self.loss)


@dataclass(frozen=True)
class DecisiveContext:
    """A sentence of a document (number from 1) by one strategy: with its context, alone, and without each of it.

    `left_out` are the removed context sentences in document order, empty if no context was read: `alone_because` is the
    reason. `is_cut`: there is more context than was tested.
    """

    number: int
    source: str
    translation: str
    alone: str
    strategy: str
    left_out: tuple[LeftOutSentence, ...] = ()
    alone_because: str | None = None
    is_cut: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether context changed the translation."""
        return self.translation != self.alone

    @property
    def changing(self) -> tuple[LeftOutSentence, ...]:
        """The sentences without which it reads differently, the one that costs the translation most first."""
        changing = [one for one in self.left_out if one.is_usable and one.translation != self.translation]
        return tuple(sorted(changing, key=lambda one: -one.loss))

    @property
    def decisive(self) -> LeftOutSentence | None:
        """The sentence that decided; None if removing any one of them changes nothing."""
        return next(iter(self.changing), None)

    @property
    def strongest(self) -> LeftOutSentence | None:
        """The sentence whose removal makes the translation least probable, by half or more; None without one."""
        usable = [one for one in self.left_out if one.is_usable and one.loss >= HALF]
        return max(usable, key=lambda one: one.loss, default=None)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if self.alone_because:
            return f"No context was read: {self.alone_because}."
        if self.decisive:
            same = "" if self.is_changed else " Without any context the translation is also the same."
            return f"Sentence {self.decisive.number} decided.{same}"
        if not self.is_changed:
            return "Context changed nothing: the sentence alone has the same translation."
        if not (one := self.strongest):
            return "No single sentence decided: removing any one of them changes nothing."
        percent = f"{100 * one.remaining:.0f}" if one.remaining >= 0.005 else "less than 1"
        return (
            f"No single sentence decided. Sentence {one.number} matters most: without it this translation is "
            f"{percent} % as probable."
        )

    def to_dict(self) -> dict:
        """The form for JSON."""
        decisive, strongest = self.decisive, self.strongest
        fields = ("number", "source", "translation", "alone", "strategy", "alone_because")
        return {
            **{name: getattr(self, name) for name in fields},
            "decisive": decisive and decisive.number,
            "strongest": strongest and strongest.number,
            "left_out": [vars(one) for one in self.left_out],
            "more_context": self.is_cut,
        }


def decisive_context(
    model: PreTrainedModel,
    source: Sequence[str],
    translation: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    sentence: int,
    strategy: str | None = None,
    **search,
) -> DecisiveContext:
    """The context that decided the translation of sentence number `sentence` (from 1) of a document.

    The sentence is translated again by the strategy (None: the model's own) and `search`, further arguments of
    `translate_documents`, with all that it read, without each context sentence, source and translation, and alone:
    reach + 2 short translations in batches, of up to 16 context sentences. Translations before it, which `sequential`,
    `full`, `chunk_sequential` and `stream` read, are those given; `sliding` writes them again in each window. The
    decisive sentence is the one whose removal changes the translation and makes it least probable. ValueError: lists of
    different lengths, a number outside the document, a blank sentence, and what `translate_documents` refuses.
    """
    check_sentence(source, translation, sentence)
    strategy = strategy or model.default_strategy()
    run = CurrentSentenceRun(model, tokenizer, source, translation, sentence - 1, search)
    everything, (alone,) = run.translate([source], strategy)[0], run.translate([source], "sentence")
    found = DecisiveContext(sentence, source[sentence - 1], everything.translation, alone.translation, strategy)
    if everything.is_alone or not everything.read:
        return replace(found, alone_because=reason_alone(model, strategy, everything))
    nearest = sorted(everything.read, key=lambda other: abs(other - run.index))[:REACH]
    numbers = sorted(nearest)
    kept = set(everything.read) | {run.index}
    variants = [without(source, other, kept) for other in numbers]
    left_out = []
    for other, one in zip(numbers, run.translate(variants, strategy), strict=True):
        loss = everything.log_probability - one.log_probability
        left_out.append(LeftOutSentence(other + 1, source[other], one.translation, loss, is_usable=not one.is_alone))
    return replace(found, left_out=tuple(left_out), is_cut=len(nearest) < len(everything.read))


def without(source: Sequence[str], left_out: int, kept: set[int]) -> list[str]:
    """The document with one sentence, and all that are not kept, blanked out."""
    return [text if number in kept and number != left_out else "" for number, text in enumerate(source)]


def reason_alone(model: PreTrainedModel, strategy: str, found: Retranslation) -> str:
    """Why a sentence was translated without context."""
    if found.is_alone:
        return "its window was translated into another number of sentences, so it was translated again alone"
    if strategy == "sentence":
        return "strategy 'sentence' translates every sentence alone"
    reach = model.config.context_reach()
    return f"strategy {strategy!r} reads no other sentence for it, or those around are too long (context: {reach})"


@dataclass
class Retranslation:
    """A sentence translated again: `read` are the indices of its context sentences, from 0.

    `log_probability` is that of the first translation of the run, in nats. `is_alone`: the translation of the
    window had the wrong number of sentences, so that the sentence was translated without context.
    """

    translation: str = ""
    read: set[int] = field(default_factory=set)
    log_probability: float = 0.0
    is_alone: bool = False


class CurrentSentenceRun:
    """Sentence `index` (from 0) of a document, to be translated with all of its context and with parts of it.

    `search` are further arguments of `translate_documents`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        source: Sequence[str],
        translation: Sequence[str],
        index: int,
        search: dict,
    ):
        self.model, self.tokenizer, self.index, self.search = copy.copy(model), tokenizer, index, search
        self.model.translator_class = current_sentence_class(model.translator_class, self)
        self.known = [piece_ids(tokenizer, text, is_target=True) for text in translation]
        self.first = next((number for number, text in enumerate(source) if has_text(text)), 0)
        self.written: dict[int, list[int]] = {}  # part of the sentence -> its first translation
        self.found: list[Retranslation] = []
        self.shared = 0  # sentences from the first one that all documents of a call have
        self.memories: dict[int, dict[str, torch.Tensor]] = {}  # index of a part that they share -> the state after it

    def translate(self, documents: Sequence[Sequence[str]], strategy: str) -> list[Retranslation]:
        """The sentence of each document; blank sentences are not read. See `translate_documents` for errors."""
        self.found = [Retranslation() for _ in documents]
        self.strategy = strategy
        pairs = enumerate(zip(*documents, strict=True))
        self.shared = next((number for number, texts in pairs if len(set(texts)) > 1 or number == self.index), 0)
        left_out = NOT_FOR_SENTENCES if strategy == "sentence" else ()
        search = {name: value for name, value in self.search.items() if name not in left_out}
        search = {"batch_size": max(1, len(documents))} | search
        texts = self.model.translate_documents(documents, self.tokenizer, strategy, **search)
        for one, text in zip(self.found, texts):
            one.translation = text[self.index]
        return self.found

    def is_current(self, sentence: CurrentSentence) -> bool:
        return sentence.part.sentence == self.index

    def record(
        self, translator: Translator, inputs: dict, jobs: Sequence[Job], outputs: Sequence[Output], are_windows: bool
    ) -> None:
        """Note what the current sentences of a batch read, and how probable the first translation is for them.

        `are_windows`: the outputs have the sentences around the current one, too.
        """
        prompts = [[translator.start, *job.prefix] for job in jobs]
        targets: list[list[int]] = [[] for _ in jobs]
        for row, (job, output) in enumerate(zip(jobs, outputs)):
            if not self.is_current(job.current):
                continue
            self.found_for(job.current).read |= self.context_of(translator, job)
            sentences = split_at(output.ids, translator.sep) if are_windows else [output.ids]
            position = job.past if are_windows else 0
            if position >= len(sentences):
                continue
            for other in sentences[:position]:
                prompts[row] += [*other, translator.sep]
            targets[row] = self.written.setdefault(part_number(job.current), sentences[position])
        values = log_probabilities(translator, inputs, prompts, targets)
        for job, value in zip(jobs, values):
            if self.is_current(job.current):
                self.found_for(job.current).log_probability += value

    def found_for(self, sentence: CurrentSentence) -> Retranslation:
        return self.found[sentence.document.number or 0]

    def context_of(self, translator, job: Job) -> set[int]:
        """Indices of the sentences of the document that a job reads in addition to the current one."""
        document, index = job.current
        if self.strategy == "sentence":
            numbers: Sequence[int] = ()
        elif registry.for_config(translator.config).carries_state:
            numbers = range(index)
        elif registry.for_config(translator.config).separate_context:
            numbers = [context.index for context in translator.context_of(job.current)]
        else:
            numbers = range(index - job.past, min(index + job.future + 1, len(document.parts)))
        return {document.parts[number].sentence for number in numbers} - {self.index}


def check_sentence(source: Sequence[str], translation: Sequence[str], sentence: int) -> None:
    """ValueError: lists of different lengths, a number (from 1) outside the document, a blank sentence."""
    if len(source) != len(translation):
        raise ValueError(f"{len(source)} source sentences but {len(translation)} translations: give one for each")
    if not 1 <= sentence <= len(source):
        raise ValueError(f"sentence {sentence} of {len(source)}: expected a number from 1 to {len(source)}")
    if not has_text(source[sentence - 1]):
        raise ValueError(f"sentence {sentence} is blank, and blank sentences are not translated: choose another one")


def part_number(sentence: CurrentSentence) -> int:
    """The number of a part in its sentence, from 0; over-long sentences have several."""
    document, index = sentence
    return sum(part.sentence == sentence.part.sentence for part in document.parts[:index])


@torch.no_grad()
def log_probabilities(
    translator: Translator, inputs: dict, prompts: Sequence[list[int]], targets: Sequence[list[int]]
) -> list[float]:
    """The sum over each row's target tokens after its prompt, natural logarithms; `inputs` are those of `generate`."""
    rows = [[*prompt, *target] for prompt, target in zip(prompts, targets)]
    ids, mask = pad_rows(rows, translator.pad, translator.model.device)  # (B, T)
    own = {"decoder_input_ids": ids, "decoder_attention_mask": mask, "use_cache": False}
    logits = translator.model(**inputs | own).logits[:, :-1].float()  # (B, T - 1, V)
    scores = logits.log_softmax(dim=-1).gather(2, ids[:, 1:, None])[..., 0]  # (B, T - 1)
    ends = [(len(prompt) - 1, len(row) - 1) for prompt, row in zip(prompts, rows)]
    return [float(scores[row, first:end].sum()) for row, (first, end) in enumerate(ends)]


def current_sentence_class(translator_class: type, run: CurrentSentenceRun) -> type:
    """The strategies of a class, which translate the current sentence alone and have given targets for all others."""
    base: Any = translator_class
    own = base.strategies

    class CurrentSentenceTranslator(translator_class):
        strategies = own | {name: partial(within_segments, run=run) for name in SEGMENTS if name in own}

        def translate(self, documents, *arguments, **options):
            for document in documents:
                for index, part in enumerate(document.parts):
                    is_first = part_number(CurrentSentence(document, index)) == 0
                    part.target = run.known[part.sentence] if is_first else []
            return super().translate(documents, *arguments, **options)

        def slide(self, sentences):
            super().slide([sentence for sentence in sentences if run.is_current(sentence)])

        def translate_known(self, sentences):
            super().translate_known([sentence for sentence in sentences if run.is_current(sentence)])

        def translate_alone(self, sentences):
            sentences = [sentence for sentence in sentences if run.is_current(sentence)]
            for sentence in sentences:
                run.found_for(sentence).is_alone = run.strategy != "sentence"
            super().translate_alone(sentences)

        def segment_job(self, document, first, end, padding=0, is_opened=None):
            if is_opened is None:
                is_opened = document.parts[first].sentence == run.first
            return super().segment_job(document, first, end, padding, is_opened)

        def step(self, rows, memory, starts):
            """Sentences that all documents have are read once."""
            index = rows[0].index
            if max(row.part.sentence for row in rows) >= run.shared:
                return super().step(rows, memory, starts)
            if index not in run.memories:
                first = {name: state[:1] for name, state in memory.items()}
                run.memories[index] = super().step(rows[:1], first, starts[:1])
            return {name: state.repeat(len(rows), 1, 1) for name, state in run.memories[index].items()}

        def generate(self, inputs, jobs, stop_at_sep=False, **settings):
            if not any(run.is_current(job.current) for job in jobs):
                return [Output(job.current.part.target, True) for job in jobs]
            outputs = super().generate(inputs, jobs, stop_at_sep, **settings)
            are_windows = hasattr(self, "slide") and self.sides != "source" and not stop_at_sep
            run.record(self, inputs, jobs, outputs, are_windows)
            return [
                output if run.is_current(job.current) else Output(job.current.part.target, True)
                for job, output in zip(jobs, outputs)
            ]

    return CurrentSentenceTranslator


def within_segments(translator, documents: list[DocumentState], run: CurrentSentenceRun) -> None:
    """Strategies `full` and `chunk_sequential` for the current sentence: its segment, translations before it forced."""
    waiting = [sentence for sentence in all_sentences(documents) if run.is_current(sentence)]
    while waiting:
        together = [sentence for sentence in waiting if part_number(sentence) == part_number(waiting[0])]
        waiting = [sentence for sentence in waiting if sentence not in together]
        jobs = [forced_job(translator, *sentence) for sentence in together]
        for job, output in zip(jobs, translator.decode(jobs, stop_at_sep=True)):
            job.current.part.target = output.ids


def forced_job(translator, document: DocumentState, index: int) -> Job:
    """The part at `index` in its segment, with the translations before it as the forced prefix."""
    segments = segments_that_fit(translator, document)
    first, end = next((first, end) for _, first, end in segments if first <= index < end)
    job = translator.segment_job(document, first, end)
    job.current, job.past, job.future = CurrentSentence(document, index), index - first, end - index - 1
    job.length = len(document.parts[index].ids)
    for part in document.parts[first:index]:
        job.prefix += [*part.target, translator.sep]
    return job
