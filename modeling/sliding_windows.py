"""Strategy `sliding`: every window whole, of which the current sentence is kept; windows that are drafts of others."""

from collections.abc import Callable, Sequence

from transformers.utils import logging

from .batch_decoding import Job, Output
from .document_state import CurrentSentence, DocumentState, all_sentences
from .draft_verification import Draft, DraftDecoder
from .strategies import Translator

logger = logging.get_logger(__name__)

Targets = dict[tuple[DocumentState, int], list[int]]  # what windows hold for the parts of documents


class SlidingTranslator(Translator, DraftDecoder):
    """`sliding` of Lupo et al. (2023), section 2, for a model that reads segments.

    Where the model writes whole windows by greedy search, windows side by side come first. They hold a translation of
    every sentence, which is the draft of it in all other windows (see `DraftDecoder`); results are the same.
    """

    drafts = True  # whether windows have drafts where they may

    def sliding(self, documents: list[DocumentState]) -> None:
        """Every window whole, its current sentence kept."""
        self.slide(all_sentences(documents))

    def slide(self, sentences: Sequence[CurrentSentence]) -> None:
        """Strategy `sliding` for these sentences; one alone where its window has another number of separators.

        Without repairs it is what stands behind the last separator, as in the released code of Lupo et al. (2023);
        where the window has future sentences, behind so many separators less.
        """
        is_plain = self.drafts and self.writes_context and self.is_plain_greedy_search()
        targets: Targets = {}
        again = []
        for together in self.side_by_side(sentences) if is_plain else [sentences]:
            again += self.translate_windows(together, targets if is_plain else None)
        if self.written:
            logger.debug("sliding: of %d tokens %d were accepted from drafts", self.written, self.accepted)
        self.translate_alone(again)

    def side_by_side(self, sentences: Sequence[CurrentSentence]) -> tuple[list[CurrentSentence], list[CurrentSentence]]:
        """The sentences whose windows stand side by side, so that together they have all sentences, and the others."""
        first, others = [], []
        covered: dict[DocumentState, int] = {}  # sentences that the windows of a document have so far
        for sentence in sentences:
            document, index = sentence
            last = min(covered.get(document, 0) + self.past, len(document.parts) - 1)
            if index == last and covered.get(document, 0) < len(document.parts):
                covered[document] = index + self.future + 1
                first.append(sentence)
            else:
                others.append(sentence)
        return first, others

    def translate_windows(self, sentences: Sequence[CurrentSentence], targets: Targets | None) -> list[CurrentSentence]:
        """Translate the windows of sentences; gives back the sentences that have to be translated again.

        Their drafts are the `targets`, to which what the windows hold is added; None for windows without drafts.
        """
        waiting = [(sentence, min(self.past, sentence.index), self.future) for sentence in sentences]
        again = []
        while waiting:
            windows = [self.largest_window(*window, self.window_job) for window in waiting]
            waiting = []
            jobs = [job for *_, job in windows]
            drafts = [self.draft(*window, targets) for window in windows] if targets is not None else None
            outputs = self.decode(jobs, drafts=drafts)
            for (sentence, past, future, job), output in zip(windows, outputs):
                if self.writes_context and self.repairs == "all" and past + future and self.is_cut_off(job, output):
                    waiting.append((sentence, *fewer(past, future)))
                    continue
                if targets is not None:
                    parts = range(sentence.index - past, sentence.index + 1 + future)
                    for part, target in zip(parts, split_at(output.ids, self.sep)):
                        targets.setdefault((sentence.document, part), target)
                self.report_fewer(sentence, past, future, min(self.past, sentence.index), self.future)
                if not self.take_current(sentence, past, future, job, output):
                    again.append(sentence)
        return again

    def draft(self, sentence: CurrentSentence, past: int, future: int, job: Job, targets: Targets) -> Draft:
        """The targets of a window's sentences in other windows; an empty one where there is no sentence."""
        document, index = sentence
        parts = range(index - past, index + 1 + future)
        return [targets.get((document, part)) if part < len(document.parts) else [] for part in parts]

    @property
    def writes_context(self) -> bool:
        """Whether a window's translation has other sentences than the current one."""
        return self.sides != "source" and (self.past > 0 or self.future > 0)

    def take_current(self, sentence: CurrentSentence, past: int, future: int, job: Job, output: Output) -> bool:
        """Take the current sentence of a window's translation; False where it has to be translated again."""
        if not self.writes_context:
            self.take_sentence(sentence, output)
            return True
        targets = split_at(output.ids, self.sep)
        if len(targets) == job.sentences:
            sentence.part.target = targets[past]
        elif self.repairs == "none":
            sentence.part.target = targets[max(-1 - future, -len(targets))]
            sentence.document.report_misaligned(sentence.index, job.sentences, len(targets))
        else:
            remedy = "translated again by strategy sentence"
            sentence.document.report_separators(sentence.index, job.sentences, len(targets), remedy)
            return False
        self.check_end(sentence, output)
        return True

    def largest_window(
        self, sentence: CurrentSentence, past: int, future: int, make_job: Callable[..., Job]
    ) -> tuple[CurrentSentence, int, int, Job]:
        """The window of at most so many sentences that learned positions reach for, with its numbers and its job."""
        past = min(past, sentence.index)
        job = make_job(*sentence, past, future)
        while (past or future) and not self.fits(len(job.source), len(job.prefix), job.length):
            past, future = fewer(past, future)
            job = make_job(*sentence, past, future)
        return sentence, past, future, job

    def report_fewer(self, sentence: CurrentSentence, past: int, future: int, all_past: int, all_future: int) -> None:
        """Report a window that became smaller for want of positions."""
        got, expected = 1 + past + future, 1 + all_past + all_future
        if got < expected:
            sentence.document.report_positions(sentence.index, got, expected, self.positions)


def fewer(past: int, future: int) -> tuple[int, int]:
    """So many sentences of context without one: the farthest before, while there is any, or else the farthest after.

    Behind a sentence of the past there are all future ones, by which the current one is told (`sentence_numbers`).
    """
    return (past - 1, future) if past else (past, future - 1)


def split_at(ids: list[int], sep: int) -> list[list[int]]:
    """Generated ids as sentences, without the separators."""
    sentences: list[list[int]] = [[]]
    for token in ids:
        if token == sep:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return sentences
