"""Translation of whole documents: strategies that walk a document, N sentences in, N out."""

import copy
from dataclasses import dataclass, field

import torch
from transformers import StoppingCriteria, StoppingCriteriaList

STRATEGIES = ("sentence", "sliding", "sequential", "full", "stream")


@dataclass
class Unit:
    """What is translated as one sentence: a sentence of the input, or a part of one that is over-long."""

    sentence: int
    ids: list[int]
    target: list[int] = field(default_factory=list)


@dataclass
class Walk:
    """One document on its way: its units, the text around them and what had to be repaired."""

    size: int
    units: list[Unit]
    repairs: list[dict]


class DocumentTranslation:
    """Adds `translate_documents` to a model with `generate`."""

    def translate_documents(
        self,
        documents: list[list[str]],
        tokenizer,
        strategy: str | None = None,
        batch_size: int = 16,
        max_sentence_tokens: int = 256,
        return_report: bool = False,
        **generate_kwargs,
    ):
        """Translate documents, lists of sentences; every list that comes back is as long as the one that went in.

        Strategies (Lupo et al. 2023, section 2; Herold and Ney 2023, section 3.4):
        `sentence` - every sentence alone;
        `sliding` - every window is translated whole and its current sentence kept;
        `sequential` (SD) - sentence by sentence, earlier translations as forced target prefix;
        `full` (FSD) - parts of the document that do not overlap, each translated at once;
        `stream` - sentence by sentence with a state carried along, for models that have one.
        The default is the one the model was trained for. Blank sentences stay empty and are no context. A sentence of
        more than `max_sentence_tokens` tokens is translated in parts, and where a translation has another number of
        separators than its source, its sentences are translated again: by `sequential` after `full`, by `sentence`
        after `sliding`. Separators in the translation of a sentence alone are taken out.

        `generate_kwargs` go to `generate`; without `max_new_tokens` a sentence may get twice its source tokens and 32
        more. With `return_report`, a second list holds for every document its repairs:
        dicts with `sentence` (index), `kind` (`split`, `separators`, `length` = stopped at `max_new_tokens`) and
        `detail`. Raises `ValueError` for a strategy that is unknown or not this model's, and for documents that are not
        lists of strings.
        """
        strategy = strategy or self.default_strategy()
        documents = list(documents)
        check_arguments(documents, strategy, batch_size, max_sentence_tokens, generate_kwargs)
        self.check_strategy(strategy)
        translator = self.translator(tokenizer, batch_size, generate_kwargs)
        was_training = self.training
        self.eval()
        try:
            walks = [make_walk(document, tokenizer, max_sentence_tokens) for document in documents]
            getattr(translator, strategy)(walks)
        finally:
            self.train(was_training)
        translations = [finish_walk(walk, tokenizer) for walk in walks]
        return (translations, [walk.repairs for walk in walks]) if return_report else translations

    def check_strategy(self, strategy: str) -> None:
        """Raise `ValueError` for a strategy that is not this model's."""
        if strategy == "full" and getattr(self.config, "context_sides", "both") == "source":
            raise ValueError(
                "strategy 'full' needs a model that writes all sentences; this one has context_sides='source': use "
                "'sliding' or 'sentence'."
            )
        if strategy == "stream":
            raise ValueError(
                "strategy 'stream' carries a state from sentence to sentence, which this model has not: use "
                f"{self.own_strategy()!r}."
            )

    def translator(self, tokenizer, batch_size: int, generate_kwargs: dict) -> "Translator":
        """What walks documents with this model."""
        return Translator(self, tokenizer, batch_size, generate_kwargs)

    def default_strategy(self) -> str:
        """The strategy of the configuration, or the one that fits how the model was trained."""
        return self.config.strategy or self.own_strategy()

    def own_strategy(self) -> str:
        """The strategy that fits how the model was trained."""
        if getattr(self.config, "view", "window") == "chunk":
            return "full"
        around = getattr(self.config, "past_context", 0) or getattr(self.config, "future_context", 0)
        return "sliding" if around else "sentence"


def check_arguments(documents, strategy, batch_size, max_sentence_tokens, generate_kwargs) -> None:
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}.")
    if isinstance(documents, str) or any(isinstance(document, str) for document in documents):
        raise ValueError("documents must be a list of documents, each a list of sentences; got a plain string.")
    for place, document in enumerate(documents):
        for index, sentence in enumerate(document):
            if not isinstance(sentence, str):
                raise ValueError(
                    f"sentence {index} of document {place} must be a string, got {type(sentence).__name__}."
                )
    if batch_size < 1 or max_sentence_tokens < 1:
        raise ValueError(
            f"batch_size and max_sentence_tokens must be at least 1, got {batch_size} and {max_sentence_tokens}."
        )
    check_generation(generate_kwargs)


def check_generation(generate_kwargs: dict) -> None:
    if generate_kwargs.get("num_return_sequences", 1) != 1:
        raise ValueError("a sentence has one translation: leave num_return_sequences at 1.")
    if "max_length" in generate_kwargs:
        raise ValueError("max_length counts the forced prefix, too: give max_new_tokens instead.")


def make_walk(document: list[str], tokenizer, limit: int) -> Walk:
    """Token ids of what is not blank, over-long sentences in parts."""
    units, repairs = [], []
    for index, sentence in enumerate(document):
        if not sentence.strip():
            continue
        parts = split_sentence(sentence, tokenizer, limit)
        if len(parts) > 1:
            detail = f"{sum(map(len, parts))} tokens, limit {limit}: translated in {len(parts)} parts"
            repairs.append({"sentence": index, "kind": "split", "detail": detail})
        units.extend(Unit(index, ids) for ids in parts)
    return Walk(len(document), units, repairs)


def split_sentence(text: str, tokenizer, limit: int) -> list[list[int]]:
    """Ids of a sentence, cut at the blank nearest to its middle (or in the middle) until every part fits."""
    text = text.strip()
    ids = token_ids(text, tokenizer)
    if len(ids) <= limit or len(text) < 2:
        return [ids]
    middle = len(text) // 2
    blanks = [place for place, character in enumerate(text) if character.isspace() and 0 < place < len(text) - 1]
    cut = min(blanks, key=lambda place: abs(place - middle), default=middle)
    return split_sentence(text[:cut], tokenizer, limit) + split_sentence(text[cut:], tokenizer, limit)


def token_ids(text: str, tokenizer) -> list[int]:
    """Ids of a text as training sees them: what looks like a special token is read as text, or is unknown."""
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    unknown = tokenizer.unk_token_id
    if unknown is None:
        return ids
    special = {token for token in tokenizer.all_special_ids if token != unknown}
    return [unknown if token in special else token for token in ids]


def finish_walk(walk: Walk, tokenizer) -> list[str]:
    """Texts of all sentences, the parts of a split one joined by a blank."""
    parts: list[list[str]] = [[] for _ in range(walk.size)]
    for unit in walk.units:
        parts[unit.sentence].append(tokenizer.decode(unit.target, skip_special_tokens=True).strip())
    walk.repairs.sort(key=lambda repair: repair["sentence"])
    return [" ".join(part for part in sentence if part) for sentence in parts]


class Translator:
    """The strategies, over a batch of documents. A segment below is (walk, first unit, end, current unit or None)."""

    def __init__(self, model, tokenizer, batch_size: int, generate_kwargs: dict):
        self.model, self.config, self.batch_size = model, model.config, batch_size
        settings = generate_kwargs.pop("generation_config", None) or model.generation_config
        self.settings = copy.deepcopy(settings)
        self.generate_kwargs = self.settings.update(**generate_kwargs)  # what no configuration holds
        self.settings.update(return_dict_in_generate=False, num_return_sequences=1)
        self.past, self.future = (getattr(self.config, f"{side}_context", 0) for side in ("past", "future"))
        self.sides = getattr(self.config, "context_sides", "both")
        self.sep = getattr(model.config, "sep_token_id", None)
        self.eos = model.generation_config.eos_token_id
        if isinstance(self.eos, list):
            self.eos = self.eos[0]
        start = self.settings.decoder_start_token_id
        self.start = self.config.decoder_start_token_id if start is None else start

    # Strategies

    def sentence(self, walks: list[Walk]) -> None:
        self.windows([(walk, place) for walk in walks for place in range(len(walk.units))], past=0, future=0)

    def sliding(self, walks: list[Walk]) -> None:
        places = [(walk, place) for walk in walks for place in range(len(walk.units))]
        self.windows(places, self.past, self.future)

    def windows(self, places: list[tuple[Walk, int]], past: int, future: int) -> None:
        """Translate whole windows, keep the current sentence; one alone where the separators do not match."""
        jobs, firsts = [], []
        for walk, place in places:
            first, end = max(0, place - past), min(len(walk.units), place + 1 + future)
            jobs.append(self.window_job(walk, place, first, end, future))
            firsts.append(first)
        again = []
        alone = past == future == 0 or self.sides == "source"
        for (walk, place), first, job, output in zip(places, firsts, jobs, self.decode(jobs)):
            sentences = split_at(output.ids, self.sep)
            expected = 1 if alone else job.sentences
            if len(sentences) == expected:
                walk.units[place].target = sentences[0 if alone else place - first]
                self.note_length(walk, place, output)
            elif alone:
                walk.units[place].target = [token for token in output.ids if token != self.sep]
                self.note_separators(walk, place, 1, len(sentences), "separators taken out")
                self.note_length(walk, place, output)
            else:
                self.note_separators(walk, place, expected, len(sentences), "translated again by strategy sentence")
                again.append((walk, place))
        if again:
            self.windows(again, past=0, future=0)

    def full(self, walks: list[Walk]) -> None:
        """Parts that do not overlap, each at once; sentence by sentence where the separators do not match."""
        parts = [(walk, *part) for walk in walks for part in self.parts(walk)]
        jobs = [self.job(walk, first, end) for walk, first, end in parts]
        again = []
        for (walk, first, end), output in zip(parts, self.decode(jobs)):
            sentences = split_at(output.ids, self.sep)
            if len(sentences) == end - first and output.finished:
                for unit, target in zip(walk.units[first:end], sentences):
                    unit.target = target
            else:
                remedy = "translated again by strategy sequential"
                for place in range(first, end):
                    if output.finished:
                        self.note_separators(walk, place, end - first, len(sentences), remedy)
                    else:
                        self.note_length(walk, place, output, remedy)
                again.append((walk, first, end))
        self.prefixed(again)

    def sequential(self, walks: list[Walk]) -> None:
        if getattr(self.config, "view", "window") == "chunk":
            self.prefixed([(walk, *part) for walk in walks for part in self.parts(walk)])
            return
        past, future = self.past, self.future
        walks = sorted(walks, key=lambda walk: -len(walk.units))
        for start in range(0, len(walks), self.batch_size):
            group = walks[start : start + self.batch_size]
            for place in range(len(group[0].units) if group else 0):
                active = [walk for walk in group if place < len(walk.units)]
                jobs = []
                for walk in active:
                    first, end = max(0, place - past), min(len(walk.units), place + 1 + future)
                    job = self.window_job(walk, place, first, end, future)
                    job.length = len(walk.units[place].ids)
                    if self.sides == "both":
                        job.prefix += [token for unit in walk.units[first:place] for token in (*unit.target, self.sep)]
                    jobs.append(job)
                for walk, output in zip(active, self.decode(jobs, stop_at_sep=True)):
                    walk.units[place].target = output.ids
                    self.note_length(walk, place, output)

    def prefixed(self, parts: list[tuple[Walk, int, int]]) -> None:
        """Sentence by sentence inside fixed parts: the source is encoded once, the prefix is read once."""
        parts = sorted(parts, key=lambda part: part[1] - part[2])
        for start in range(0, len(parts), self.batch_size):
            group = parts[start : start + self.batch_size]
            state = PrefixState(self.model, self.start, [self.job(*part) for part in group])
            for step in range(group[0][2] - group[0][1]):
                active = [row for row, (_, first, end) in enumerate(group) if first + step < end]
                state.select(active)
                group = [group[row] for row in active]
                lengths = [len(walk.units[first + step].ids) for walk, first, _ in group]
                outputs = self.run(state.inputs(), lengths, stop_at_sep=True, use_cache=True)  # the state is a cache
                state.extend([[*output.ids, self.sep] for output in outputs])
                for (walk, first, _), output in zip(group, outputs):
                    walk.units[first + step].target = output.ids
                    self.note_length(walk, first + step, output)

    def parts(self, walk: Walk) -> list[tuple[int, int]]:
        """A document in parts: windows side by side, or chunks of about equal length in source tokens."""
        size = len(walk.units)
        if getattr(self.config, "view", "window") != "chunk":
            step = self.past + 1 + self.future
            return [(first, min(first + step, size)) for first in range(0, size, step)]
        lengths = [len(unit.ids) + 1 for unit in walk.units]
        ends = torch.tensor(lengths).cumsum(0)
        limit = max(self.config.chunk_tokens, *lengths) if size else 0
        count = -(-int(ends[-1]) // limit) if size else 0
        while True:
            cuts = sorted({int((ends <= ends[-1] * k / count).sum()) for k in range(1, count)} | {0, size})
            parts = list(zip(cuts, cuts[1:]))
            if all(sum(lengths[first:end]) <= limit for first, end in parts):
                return parts
            count += 1

    # Decoding

    def window_job(self, walk: Walk, place: int, first: int, end: int, future: int) -> "Job":
        """The window of the unit at `place`; future sentences that the document has not are empty ones."""
        job = self.job(walk, first, end, padding=future - (end - place - 1))
        if self.sides == "source":
            job.length = len(walk.units[place].ids)
            if place > 0:
                job.prefix = []  # the target is the current sentence, which does not start the document
        return job

    def job(self, walk: Walk, first: int, end: int, padding: int = 0) -> "Job":
        """Source segment of units first..end, with `padding` empty future sentences that a window asks for."""
        source: list[int] = []
        for unit in walk.units[first:end]:
            source += [*unit.ids, self.sep]
        source = source[:-1] + [self.sep] * padding + [self.eos]
        prefix = [self.config.bod_token_id] if getattr(self.config, "use_bod", False) and first == 0 else []
        return Job(prefix + source, list(prefix), end - first + padding, len(source))

    def decode(self, jobs: list["Job"], stop_at_sep: bool = False) -> list["Output"]:
        """Outputs of independent jobs, in their order; longest together, in batches."""
        outputs: list[Output] = [Output([], True)] * len(jobs)
        order = sorted(range(len(jobs)), key=lambda row: -len(jobs[row].source))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = [jobs[row] for row in rows]
            inputs = pad_right([job.source for job in batch], self.config.pad_token_id, self.model.device)
            if any(job.prefix for job in batch):
                prompts = [[self.start, *job.prefix] for job in batch]
                inputs |= pad_left(prompts, self.config.pad_token_id, self.model.device)
            for row, output in zip(rows, self.run(inputs, [job.length for job in batch], stop_at_sep)):
                outputs[row] = output
        return outputs

    def run(self, inputs: dict, lengths: list[int], stop_at_sep: bool, **settings) -> list["Output"]:
        """Outputs of one batch whose rows have so many source tokens to translate."""
        stops = [self.eos, self.sep] if stop_at_sep else [self.eos]
        prompt = inputs["decoder_input_ids"].shape[1] if "decoder_input_ids" in inputs else 1
        asked = self.settings.max_new_tokens
        limits = [2 * length + 32 if asked is None else asked for length in lengths]
        if getattr(self.config, "position_type", None) == "learned":
            limits = [max(1, min(limit, self.config.max_position_embeddings - prompt)) for limit in limits]
        config = copy.deepcopy(self.settings)
        # one token more than any row gets: an end that settings force at the last one would hide what is cut off
        config.update(eos_token_id=stops, max_new_tokens=max(limits) + 1, **settings)
        others = dict(self.generate_kwargs)
        criteria = StoppingCriteriaList([*(others.pop("stopping_criteria", None) or []), RowLimits(limits, prompt)])
        sequences = self.model.generate(**inputs, **others, generation_config=config, stopping_criteria=criteria)
        outputs = []
        for row, limit in zip(sequences[:, prompt:].tolist(), limits):
            row = row[:limit]  # what stands behind it is padding, for which beam search may take the end token
            end = next((place for place, token in enumerate(row) if token in stops), None)
            outputs.append(Output(row[:end], end is not None))
        return outputs

    def finish_unit(self, walk: Walk, place: int, output: "Output") -> None:
        """Take over what was written for a sentence alone, without separators."""
        unit = walk.units[place]
        unit.target = [token for token in output.ids if token != self.sep]
        found = len(output.ids) - len(unit.target) + 1
        if found > 1:
            self.note_separators(walk, place, 1, found, "separators taken out")
        self.note_length(walk, place, output)

    # Repairs

    def note_separators(self, walk: Walk, place: int, expected: int, got: int, remedy: str) -> None:
        detail = f"{got} sentences for {expected}: {remedy}"
        walk.repairs.append({"sentence": walk.units[place].sentence, "kind": "separators", "detail": detail})

    def note_length(
        self, walk: Walk, place: int, output: "Output", remedy: str = "raise max_new_tokens if more is right"
    ) -> None:
        if not output.finished:
            detail = f"stopped after {len(output.ids)} tokens without an end: {remedy}"
            walk.repairs.append({"sentence": walk.units[place].sentence, "kind": "length", "detail": detail})


@dataclass
class Job:
    """Source segment, forced target prefix, sentences in the source, and source tokens of what is to be generated."""

    source: list[int]
    prefix: list[int]
    sentences: int
    length: int


@dataclass
class Output:
    """Generated ids without the end, and whether an end was generated."""

    ids: list[int]
    finished: bool


class RowLimits(StoppingCriteria):
    """Ends each row (and all its beams) after its own number of new tokens, so that no other row changes it."""

    def __init__(self, limits: list[int], prompt: int):
        self.ends = torch.tensor(limits) + prompt

    def __call__(self, input_ids: torch.Tensor, scores, **kwargs) -> torch.Tensor:
        ends = self.ends.to(input_ids.device).repeat_interleave(input_ids.shape[0] // len(self.ends))
        return input_ids.shape[1] >= ends


class PrefixState:
    """Encoder states and the decoder's cache of a growing target prefix, rows = parts of documents.

    New prefix tokens are appended as columns, padded on the left inside their columns; the mask leaves the holes out,
    and positions count tokens only, so rows of different length keep their cache without being moved.
    """

    def __init__(self, model, start: int, jobs: list[Job]):
        self.model, config = model, model.config
        source = pad_right([job.source for job in jobs], config.pad_token_id, model.device)
        with torch.no_grad():
            self.encoder_outputs = model.get_encoder()(**source, return_dict=True)
        self.source_mask = source["attention_mask"]
        prompt = [[start, *job.prefix] for job in jobs]
        target = pad_left(prompt, start, model.device)  # or generate puts one more in front
        self.ids, self.mask = target["decoder_input_ids"], target["decoder_attention_mask"]
        self.cache = None

    def inputs(self) -> dict:
        self.cache = self.cache if self.cache is not None else self.model.new_cache()
        return {
            "encoder_outputs": self.encoder_outputs,
            "attention_mask": self.source_mask,
            "decoder_input_ids": self.ids,
            "decoder_attention_mask": self.mask,
            "past_key_values": self.cache,
        }

    def extend(self, tokens: list[list[int]]) -> None:
        """Append the chosen sentences; of the cache only the prompt stays, which all beams of a row share."""
        self.cache.keep(self.ids.shape[0], self.ids.shape[1])
        new = pad_left(tokens, self.model.config.pad_token_id, self.ids.device)
        self.ids = torch.cat([self.ids, new["decoder_input_ids"]], dim=1)
        self.mask = torch.cat([self.mask, new["decoder_attention_mask"]], dim=1)

    def select(self, rows: list[int]) -> None:
        """Keep these rows."""
        if len(rows) == self.ids.shape[0]:
            return
        index = torch.tensor(rows, device=self.ids.device)
        self.ids, self.mask, self.source_mask = self.ids[index], self.mask[index], self.source_mask[index]
        for name, value in self.encoder_outputs.items():
            if torch.is_tensor(value):
                self.encoder_outputs[name] = value[index]
        self.cache.batch_select_indices(index)


def split_at(ids: list[int], sep: int) -> list[list[int]]:
    """Generated ids as sentences, without the separators."""
    sentences: list[list[int]] = [[]]
    for token in ids:
        if token == sep:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return sentences


def pad_right(rows: list[list[int]], pad: int, device) -> dict:
    """Source rows as `input_ids` and `attention_mask`, (B, S)."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    return {"input_ids": ids, "attention_mask": mask}


def pad_left(rows: list[list[int]], pad: int, device) -> dict:
    """Target prefixes as `decoder_input_ids` and `decoder_attention_mask`, (B, T)."""
    width = max(map(len, rows))
    ids = torch.tensor([[pad] * (width - len(row)) + row for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return {"decoder_input_ids": ids, "decoder_attention_mask": mask}
