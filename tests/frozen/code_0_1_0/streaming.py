"""Translation with a state: sentence by sentence, what was read and written before carried along in a memory."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import torch

from .generation_docmt import (
    Job,
    Translator,
    Walk,
    check_generation,
    finish_walk,
    make_walk,
    pad_left,
    pad_right,
)

STATE = ("encoder_memory", "decoder_memory")


class StreamTranslation:
    """Adds strategy `stream` and `translate_stream` to a model whose forward takes and returns a memory.

    `sequential`, sentence by sentence with what was translated before, is the same here; `sentence` starts every
    sentence with the initial memory.
    """

    def own_strategy(self) -> str:
        return "stream"

    def check_strategy(self, strategy: str) -> None:
        if strategy in ("sliding", "full"):
            raise ValueError(
                f"strategy {strategy!r} translates several sentences as one sequence, but this model reads one at a "
                "time and carries the others in its memory: use 'stream', or 'sentence' for none of them."
            )

    def translator(self, tokenizer, batch_size: int, generate_kwargs: dict) -> "StreamTranslator":
        if given := [name for name in (*STATE, "document_start") if name in generate_kwargs]:
            raise ValueError(
                f"{given[0]} is kept by the strategies themselves: leave it out, or give translate_stream a memory."
            )
        return StreamTranslator(self, tokenizer, batch_size, generate_kwargs)

    @staticmethod
    def memory_after(outputs) -> dict[str, torch.Tensor]:
        """The state that a pass over whole sentences gave out, as `forward` takes it for the next ones."""
        return {name: outputs[name] for name in STATE if outputs.get(name) is not None}

    @staticmethod
    def memory_with_rows(memory: dict[str, torch.Tensor], rows: int) -> dict[str, torch.Tensor]:
        """A state (fewer rows, slots, D) with empty rows behind it for documents that start, (rows, slots, D)."""
        return {
            name: torch.cat([state, state.new_zeros(rows - state.shape[0], *state.shape[1:])])
            for name, state in memory.items()
        }

    def translate_stream(
        self,
        sentences: Iterable[str],
        tokenizer,
        memory: dict[str, torch.Tensor] | None = None,
        max_sentence_tokens: int = 256,
        **generate_kwargs,
    ) -> "SentenceStream":
        """Translations of the sentences of one document, one by one as they are asked for: chat, live subtitles.

        Nothing is kept but the memory (`SentenceStream.memory`), so a stream may be endless. Where it stops, or
        `sentences` raises an error, all translations so far were given out, and `memory=stream.memory` goes on from
        there. Blank sentences stay empty and leave the memory alone; over-long ones are translated in parts. Further
        arguments go to `generate`. A sentence whose translation fails is tried again by the next call. Raises
        `ValueError` for what is no string, before it is read, and for a memory that is not this model's, of one
        document.
        """
        if isinstance(sentences, str):
            raise ValueError("sentences must be an iterable of sentences, got a plain string.")
        if max_sentence_tokens < 1:
            raise ValueError(f"max_sentence_tokens must be at least 1, got {max_sentence_tokens}.")
        check_generation(generate_kwargs)
        translator = self.translator(tokenizer, 1, generate_kwargs)
        memory = {} if memory is None else self.checked_memory(memory)
        return SentenceStream(translator, tokenizer, iter(sentences), memory, max_sentence_tokens)

    def checked_memory(self, memory: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The state of one document, or none yet ({}). `ValueError`: not of all sides that have one, other shapes."""
        stacks = zip(STATE, (self.get_encoder(), self.get_decoder()))
        expected = {name: (1, *stack.initial_memory.weight.shape) for name, stack in stacks if stack.memory_layers}
        found = type(memory).__name__
        if isinstance(memory, Mapping):
            found = {name: tuple(getattr(state, "shape", ())) for name, state in memory.items()}
        if found not in ({}, expected):
            raise ValueError(
                f"memory must be that of one document, as SentenceStream.memory has it, {expected}; got {found}."
            )
        return {name: state.to(self.device, self.dtype) for name, state in memory.items()}


class SentenceStream(Iterator[str]):
    """The iterator of `translate_stream`.

    `memory` is the state after the last sentence (empty = a document starts), as `forward` takes it, `repairs` what
    was repaired in that sentence, as `translate_documents` reports it.
    """

    def __init__(self, translator, tokenizer, sentences: Iterator[str], memory: dict, limit: int):
        self.translator, self.tokenizer, self.sentences = translator, tokenizer, sentences
        self.memory, self.limit = memory, limit
        self.repairs: list[dict] = []
        self.waiting: str | None = None  # taken from `sentences` and not translated yet

    def __next__(self) -> str:
        if self.waiting is None:
            sentence = next(self.sentences)
            if not isinstance(sentence, str):
                raise ValueError(f"a stream must give strings, got {type(sentence).__name__}.")
            self.waiting = sentence
        model = self.translator.model
        walk = make_walk([self.waiting], self.tokenizer, self.limit)
        was_training = model.training
        model.eval()
        try:
            memory = self.memory
            for place in range(len(walk.units)):
                memory = self.translator.step([(walk, place)], memory, starts=[not memory])
        finally:
            model.train(was_training)
        self.memory, self.repairs, self.waiting = memory, walk.repairs, None
        return finish_walk(walk, self.tokenizer)[0]


class StreamTranslator(Translator):
    """`sentence` of `Translator`, and `stream`."""

    def sequential(self, walks: list[Walk]) -> None:
        self.stream(walks)

    def stream(self, walks: list[Walk]) -> None:
        """The n-th sentences of `batch_size` documents together; a document that ends makes room for the next one."""
        waiting = (walk for walk in walks if walk.units)
        rows: list[tuple[Walk, int]] = []  # document, place of its next sentence
        memory: dict[str, torch.Tensor] = {}
        while rows := rows + [(walk, 0) for walk in islice(waiting, self.batch_size - len(rows))]:
            memory = self.step(rows, memory, starts=[place == 0 for _, place in rows])
            on = [row for row, (walk, place) in enumerate(rows) if place + 1 < len(walk.units)]
            memory = {name: state[on] for name, state in memory.items()}
            rows = [(walk, place + 1) for walk, place in (rows[row] for row in on)]

    @torch.no_grad()
    def step(self, rows: list[tuple[Walk, int]], memory: dict, starts: list[bool]) -> dict[str, torch.Tensor]:
        """Translate one sentence of each document; takes and returns the memory of all of them.

        A new document, whose row is not in `memory` yet, has `starts` true; its rows are the last ones.
        """
        jobs = [self.sentence_job(walk, place, begins) for (walk, place), begins in zip(rows, starts)]
        source = pad_right([job.source for job in jobs], self.config.pad_token_id, self.model.device)
        start = torch.tensor(starts, device=self.model.device)
        memory = self.model.memory_with_rows(memory, len(rows))
        encoder_outputs = self.model.get_encoder()(
            **source, encoder_memory=memory.pop("encoder_memory", None), document_start=start, return_dict=True
        )
        inputs = {"encoder_outputs": encoder_outputs, "attention_mask": source["attention_mask"]}
        inputs |= {"document_start": start, **memory}
        prompt = {}
        if any(job.prefix for job in jobs):
            prompt = pad_left([[self.start, *job.prefix] for job in jobs], self.config.pad_token_id, self.model.device)
        outputs = self.run(inputs | prompt, [job.length for job in jobs], stop_at_sep=False)
        for (walk, place), output in zip(rows, outputs):
            self.finish_unit(walk, place, output)
        written = [[self.start, *job.prefix, *walk.units[place].target] for job, (walk, place) in zip(jobs, rows)]
        target = pad_right(written, self.config.pad_token_id, self.model.device)
        after = self.model.model(
            **inputs,
            decoder_input_ids=target["input_ids"],
            decoder_attention_mask=target["attention_mask"],
            use_cache=False,
        )
        return self.model.memory_after(after)

    def sentence_job(self, walk: Walk, place: int, begins: bool) -> Job:
        job = self.job(walk, place, place + 1)
        return job if begins or not job.prefix else Job(job.source[1:], [], 1, job.length)
