"""Strategies with a state: sentence by sentence, what was read and written before carried along in a memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import torch

from .decoding import Translator
from .generation_docmt import check_counts, check_generation
from .generation_mixin import check_untested_version, inference
from .row_processors import pad_rows
from .text_splitting import check_unicode
from .translation_jobs import CurrentSentence, DocumentState, Languages, read_document, translated_sentences

STATE = ("encoder_memory", "decoder_memory")


class StreamTranslator(Translator):
    """`stream` for a model whose forward takes and returns a memory.

    `sequential`, sentence by sentence with what was translated before, is the same here; `sentence` starts every
    sentence with the initial memory.
    """

    def __init__(self, model, batch_size: int, generate_kwargs: dict, languages: Languages = (None, None)):
        if refused := [name for name in (*STATE, "document_start") if name in generate_kwargs]:
            raise ValueError(f"strategies set {refused[0]}: omit it, or give translate_stream a memory.")
        super().__init__(model, batch_size, generate_kwargs, languages)

    @classmethod
    def default_strategy(cls, config) -> str:
        return "stream"

    @classmethod
    def refusals(cls, config) -> dict[str, str]:
        reason = (
            "translates several sentences as one sequence, but this model reads one at a time and carries the others "
            "in its memory: use 'stream', or 'sentence' for none of them"
        )
        return dict.fromkeys(("sliding", "chunk_sequential", "full"), reason)

    @classmethod
    def check_past_context(cls, config, strategy: str, past_context: int) -> None:
        raise ValueError(
            f"this model's memory holds all previous sentences, got past_context={past_context}: omit it, or "
            "use strategy 'sentence' for none."
        )

    def stream(self, documents: list[DocumentState]) -> None:
        """The n-th sentences of `batch_size` documents together; a document that ends makes room for the next one."""
        waiting = (document for document in documents if document.next_unknown(0))
        rows: list[CurrentSentence] = []  # the next sentence of each document
        memory: dict[str, torch.Tensor] = {}
        while rows := rows + [CurrentSentence(new, 0) for new in islice(waiting, self.batch_size - len(rows))]:
            memory = self.step(rows, memory, starts=[sentence.index == 0 for sentence in rows])
            going_on = [row for row, (document, index) in enumerate(rows) if document.next_unknown(index + 1)]
            memory = {name: state[going_on] for name, state in memory.items()}
            rows = [CurrentSentence(rows[row].document, rows[row].index + 1) for row in going_on]

    strategies = Translator.strategies | {"sequential": stream, "stream": stream}

    @torch.no_grad()
    def step(self, rows: Sequence[CurrentSentence], memory: dict, starts: list[bool]) -> dict[str, torch.Tensor]:
        """Translate one sentence of each document; takes and returns the memory of all of them, (B, slots, D) a side.

        A sentence with a known translation is only read, on both sides.
        A new document, which has no row in `memory` yet, has `starts` true; new documents are the last ones.
        """
        # only where its document begins a sentence has the mark of the beginning
        jobs = [self.segment_job(*row, row.index + 1, is_opened=begins) for row, begins in zip(rows, starts)]
        source, start = self.source_inputs(jobs), torch.tensor(starts, device=self.device)
        memory = self.model.memory_with_rows(memory, len(rows))
        encoder_memory = memory.get("encoder_memory")
        encoder_outputs = self.model.get_encoder()(
            **source, encoder_memory=encoder_memory, document_start=start, return_dict=True
        )
        inputs = {"encoder_outputs": encoder_outputs, "attention_mask": source["attention_mask"]}
        inputs |= {name: state for name, state in memory.items() if name != "encoder_memory"}
        inputs["document_start"] = start
        if not all(sentence.part.is_known for sentence in rows):
            outputs = self.generate(source | inputs | self.prefix_inputs(jobs), jobs)
            for sentence, output in zip(rows, outputs):
                if not sentence.part.is_known:
                    self.take_sentence(sentence, output)
        written = [[self.start, *job.prefix, *sentence.part.target] for job, sentence in zip(jobs, rows)]
        ids, mask = pad_rows(written, self.pad, self.device)
        inputs |= {"decoder_input_ids": ids, "decoder_attention_mask": mask}
        after = self.model.model(**inputs, use_cache=False, return_dict=True)
        return self.model.memory_after(after)

    def checked_memory(self, memory: Mapping[str, torch.Tensor] | None) -> dict[str, torch.Tensor]:
        """The state of one document, or none yet ({}). `ValueError`: not of all sides that have one, other shapes."""
        model = self.model
        stacks = zip(STATE, (model.get_encoder(), model.get_decoder()))
        expected = {name: (1, *stack.initial_memory.weight.shape) for name, stack in stacks if stack.memory_layers}
        memory = {} if memory is None else memory
        got = type(memory).__name__
        if isinstance(memory, Mapping):
            got = {name: tuple(getattr(state, "shape", ())) for name, state in memory.items()}
        if got not in ({}, expected):
            raise ValueError(f"memory must be that of one document (SentenceStream.memory), {expected}; got {got}.")
        return {name: state.to(model.device, model.dtype) for name, state in memory.items()}


class StreamTranslation:
    """Mixin that precedes `DocMTForConditionalGeneration`: streams of sentences, for a model with a memory."""

    translator_class = StreamTranslator

    def translate_stream(
        self,
        sentences: Iterable[str],
        tokenizer,
        memory: dict[str, torch.Tensor] | None = None,
        max_sentence_tokens: int = 256,
        source_lang: str | None = None,
        target_lang: str | None = None,
        return_scores: bool = False,
        **generate_kwargs,
    ) -> "SentenceStream":
        """Translations of the sentences of one document, one by one on request: chat, live subtitles.

        Nothing is kept but the memory (`SentenceStream.memory`), so a stream may be endless. Where it stops, or
        `sentences` raises an error, all translations so far were given out, and `memory=stream.memory` goes on from
        there. Blank sentences stay empty and leave the memory alone; over-long ones are translated in parts. Languages
        and scores are as in `translate_documents`. Further arguments go to `generate`. A sentence whose translation
        fails is tried again by the next call. Raises `ValueError` for a sentence that is not a string, for a memory
        that is not that of one document of this model, for languages as `translate_documents` does.

        >>> stream = model.translate_stream(["Hello .", "She sleeps ."], tokenizer)
        >>> next(stream)
        'Hallo .'
        """
        if isinstance(sentences, str):
            raise ValueError("sentences must be an iterable of sentences, got a plain string.")
        if isinstance(sentences, Mapping) or not isinstance(sentences, Iterable):
            raise ValueError(f"sentences must be an iterable of sentences, got {type(sentences).__name__}.")
        check_counts(max_sentence_tokens=max_sentence_tokens)
        check_generation(generate_kwargs)
        self.check_tokenizer(tokenizer)
        translator = self.translator_class(self, 1, generate_kwargs, (source_lang, target_lang))
        memory, translator.keeps_scores = translator.checked_memory(memory), return_scores
        limit = translator.sentence_limit(max_sentence_tokens)
        return SentenceStream(translator, tokenizer, iter(sentences), memory, limit)


class SentenceStream(Iterator[str]):
    """The iterator of `translate_stream`.

    `memory` is the state after the last sentence (empty = a document starts), as `forward` takes it; `repairs` is what
    was repaired in that sentence, as `translate_documents` reports it.
    """

    def __init__(self, translator: StreamTranslator, tokenizer, sentences: Iterator[str], memory: dict, limit: int):
        self.translator, self.tokenizer, self.sentences = translator, tokenizer, sentences
        self.memory, self.limit = memory, limit
        self.repairs: list[dict] = []
        self.waiting: str | None = None  # taken from `sentences` and not translated yet

    def __next__(self) -> str:
        if self.waiting is None:
            sentence = next(self.sentences)
            if not isinstance(sentence, str):
                raise ValueError(f"a stream must give strings, got {type(sentence).__name__}.")
            check_unicode(sentence, "a sentence of the stream")
            self.waiting = sentence
        document = read_document([self.waiting], self.tokenizer, self.limit)
        memory = self.memory
        check_untested_version(self.translator.model)
        with inference(self.translator.model):
            for index in range(len(document.parts)):
                memory = self.translator.step([CurrentSentence(document, index)], memory, starts=[not memory])
        self.memory, self.repairs, self.waiting = memory, document.report(), None
        return translated_sentences(document, self.tokenizer)[0]
