"""What a search read and wrote: the source segments, forced prefixes and chosen hypotheses of a translation."""

from dataclasses import dataclass

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.documents import check_documents, sentences


@dataclass(frozen=True)
class SearchedSegment:
    """Token ids of one search: its source; prefix and hypothesis as the decoder reads them, and as it writes them.

    `read` begins with the start token, `written` ends with the end token, so that both have T tokens; `is_predicted`
    (T) is 0 for the forced prefix, and for an end that the search did not come to.
    """

    source: list[int]
    read: list[int]
    written: list[int]
    is_predicted: list[int]


@dataclass(frozen=True)
class RecordedSearch:
    """All segments that were searched, and how."""

    segments: list[SearchedSegment]
    strategy: str
    beams: int


def record_search(
    model: PreTrainedModel, documents: Dataset, tokenizer: PreTrainedTokenizerBase, strategy: str | None, **search
) -> RecordedSearch:
    """Translate documents and keep what was searched, in the order of the searches; nothing is repaired.

    `strategy` and `search` are those of `translate_documents`. ValueError: a strategy that keeps a state between the
    searches, so that they are not known one by one.
    """
    strategy, own = strategy or model.default_strategy(), model.translator_class
    if strategy in own.repaired_strategies(model.config):
        search = {"repairs": "none"} | search
    segments: list[SearchedSegment] = []

    class Recorder(own):
        def decode(self, jobs, *arguments, **options):
            outputs = super().decode(jobs, *arguments, **options)
            segments.extend(searched_segment(job, output, self) for job, output in zip(jobs, outputs))
            return outputs

        def write_jobs(self, search, next_jobs, take):
            def record_and_take(job, output):
                segments.append(searched_segment(job, output, self))
                take(job, output)

            super().write_jobs(search, next_jobs, record_and_take)

    lang, _ = check_documents(documents)
    was_set = "translator_class" in vars(model)
    model.translator_class = Recorder
    try:
        model.translate_documents([sentences(row, lang) for row in documents], tokenizer, strategy, **search)
    finally:
        del model.translator_class
        if was_set:
            model.translator_class = own
    if not segments:
        raise ValueError(
            f"strategy {strategy!r} keeps a state between the sentences, so its searches are not recorded; use "
            "'sequential', 'sliding', 'full' or 'sentence'"
        )
    return RecordedSearch(segments, strategy, search.get("num_beams") or model.generation_config.num_beams or 1)


def searched_segment(job, output, translator) -> SearchedSegment:
    """A job and its output, see `modeling.decoding`, as a segment."""
    return SearchedSegment(
        source=job.source,
        read=[translator.start, *job.prefix, *output.ids],
        written=[*job.prefix, *output.ids, translator.eos],
        is_predicted=[*[0] * len(job.prefix), *[1] * len(output.ids), int(output.finished)],
    )
