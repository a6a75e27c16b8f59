"""The work of one process in a translation job: it loads the model once, and translates groups of documents."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hf_docmt.data.documents import UNNAMED
from hf_docmt.messages import first_line
from hf_docmt.modeling.opaque_runs import CarriedSentence
from hf_docmt.modeling.text_splitting import Sentence
from hf_docmt.systems.system import System
from hf_docmt.translation.corpus import translation_rows
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.memory import Memory

DOCUMENT_ERRORS = (ValueError, RuntimeError, MemoryError)  # errors that end one document only, also for lack of memory


@dataclass(frozen=True)
class TranslationSettings:
    """How a job translates; small and picklable, so that every process and machine gets the same.

    `model`, `device`, `dtype` and `revision` are those of `System.load`; `strategy`, `batch_size` and `search` options
    of the system. `source_lang` and `target_lang` None are the model's languages. With `carry` false the model gets
    unchanged sentences; with `compares`, rows of files with markup have translations without context as `alone`.
    """

    model: str
    source_lang: str | None = None
    device: str = "cpu"
    strategy: str | None = None
    batch_size: int = 16
    search: dict[str, Any] = field(default_factory=dict)
    dtype: str | None = None
    revision: str | None = None
    target_lang: str | None = None
    line_by_line: bool = False
    carry: bool = True
    memory: tuple[str, ...] = ()
    scores: bool = True
    compares: bool = False

    def load(self) -> System:
        """The system, which translates so. ValueError: it cannot be loaded, or an option is not the system's."""
        chosen = {} if self.strategy is None else {"strategy": self.strategy}
        place = {"dtype": self.dtype or "auto", "device": self.device, "revision": self.revision}
        system = System.load(self.model, **place, batch_size=self.batch_size, **chosen, **self.search)
        system.carries, system.scores = system.carries and self.carry, self.scores
        return system

    def load_for_job(self) -> System:
        """The system; without torch, which takes longer to import than a page to translate, where it is not needed."""
        from hf_docmt.systems.kernel_system import KernelSystem

        system = KernelSystem.of_job(self)
        if system is None:
            return self.load()
        system.carries, system.scores = system.carries and self.carry, self.scores
        return system


class GroupTranslator:
    """Loads the model of the settings and translates groups with it.

    Raises `ValueError` for a model that cannot be loaded, and for settings that do not fit it.
    """

    def __init__(self, settings: TranslationSettings):
        self.settings, self.system = settings, (system := settings.load_for_job())
        languages = settings.source_lang or "", settings.target_lang or self.system.languages[1]
        self.memory = Memory.read(settings.memory, *languages) if settings.memory else None
        self.source_lang: str = settings.source_lang or self.system.languages[0] or UNNAMED
        self.alone = system.without_context() if settings.compares else None
        self._translate(Group(0, []), self.system)  # checks the settings

    def __call__(self, group: Group, is_smallest: bool = False) -> list[dict]:
        """Rows of `translate_corpus`, one for each document of the group.

        A document that cannot be translated (scores that are not finite, no memory left) has empty sentences and the
        reason as `error`. It is found by halving the group; without memory for a batch, sentences go one by one.
        """
        rows = group.rows
        try:
            return self._translate(group, one_by_one(self.system) if is_smallest else self.system)
        except DOCUMENT_ERRORS as error:
            if not isinstance(error, ValueError) and not is_out_of_memory(error):
                raise  # which ends the job
            if len(rows) > 1:
                half = len(rows) // 2
                return self(replace(group, rows=rows[:half])) + self(replace(group, rows=rows[half:]))
            if not isinstance(error, ValueError) and not is_smallest:
                return self(group, is_smallest=True)
            if getattr(error, "document", None) is not None:  # counted in this call
                error.document = rows[0]["doc_id"]  # type: ignore[union-attr]
            reason = str(error) if isinstance(error, ValueError) else first_line(error) or "no memory is left"
        (source,) = group.sources(self.source_lang)
        failed = {"doc_id": rows[0]["doc_id"], "source": source, "translation": [""] * len(source), "repairs": []}
        return [failed | {"search": self.system.search, "error": reason}]

    def _translate(self, group: Group, system: System) -> list[dict]:
        """The rows, of documents with markup with what places it in the sentences that have some."""
        has_markup = any("docmt_markup" in row for row in group.rows)
        if has_markup:
            from hf_docmt.formats.document_file import given_runs
            from hf_docmt.translation.html_rows import translated_html
        given = [given_runs(row) for row in group.rows] if has_markup else None
        ids, sources = [row["doc_id"] for row in group.rows], group.sources(self.source_lang)
        known = list(map(self.memory.applied, sources)) if self.memory else sources
        try:
            results, carried = translation_rows(system, ids, known, given)
        except IndexError as error:  # of an embedding
            raise ValueError(f"tokenizer and model do not fit: {first_line(error)}") from error
        for row, *pair in zip(results, sources, known):
            if found := sum(before.target != now.target for before, now in zip(*pair)):
                row["from_memory"] = found
        if not has_markup:
            return results
        made = [translated_html(system, *each) for each in zip(group.rows, results, carried)]
        for row, own, texts in zip(made, carried, zip(sources, known)):
            row |= {"notes": sentence_notes(own, zip(*texts))} if "word_fits" in row else {}  # of a file with markup
        if self.alone:
            for row, lines in zip(made, self.alone.translate_carried(known, given)[0][0]):
                row["alone"] = list(lines)
        return made


def sentence_notes(carried: dict[int, CarriedSentence], texts: Iterable[tuple[Sentence, Sentence]]) -> list[dict]:
    """Carried runs and kept translations in the form of repairs; `texts` are sentences without and with the memory."""
    notes = [(n, "carried", "  ".join(each.runs)) for n, each in carried.items() if each.runs]
    notes += [(n, "around", "") for n, each in carried.items() if each.is_in_parts]
    kept = [(n, before) for n, (before, now) in enumerate(texts) if now.target is not None]
    notes += [(n, "memory" if before.target is None else "previous", "") for n, before in kept]
    return [dict(zip(("sentence", "kind", "detail"), note)) for note in notes]


def one_by_one(system: System) -> System:
    """A copy of the system that translates in batches of one."""
    system = copy.copy(system)
    system.batch_size, system.batch_tokens = 1, None
    return system


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that no memory is left, on whatever device: of a CPU it is a plain `RuntimeError`."""
    import torch
    from accelerate.utils.memory import should_reduce_batch_size

    words = ("not enough memory", "out of memory", "std::bad_alloc")  # of Windows, CTranslate2, C++
    return (
        isinstance(error, torch.OutOfMemoryError | MemoryError)
        or should_reduce_batch_size(error)
        or any(word in str(error) for word in words)
    )
