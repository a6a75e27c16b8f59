"""COMET and document-level COMET, the mean over sentences times 100; unbabel-comet runs in its own environment."""

import math

from hf_docmt import __version__
from hf_docmt.evaluation.metrics.comet_input import CometInput, comet_input
from hf_docmt.evaluation.metrics.comet_program import MODEL, comet_command, run_comet
from hf_docmt.evaluation.metrics.metric import Metric, ScoreSettings
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments
from hf_docmt.reports.resampling import document_details
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature


class Comet(Metric):
    """COMET (Rei et al. 2020), scored by `python`, that of an environment with unbabel-comet.

    `model`: name on the Hub or checkpoint file. With `context`, sentences before the current one, see `DocumentComet`.
    """

    name = "COMET"
    needs_sources = True

    def __init__(self, python: str = "comet-env/bin/python", model: str = MODEL, context: int = 0):
        self.python, self.model, self.context = python, model, context

    def score(self, documents: TranslatedDocuments, settings: ScoreSettings | None = None) -> list[Result]:
        """One result; context that is too long is shortened, which is logged and reported. ValueError: `run_comet`."""
        sides = (self.required_sources(documents), documents.hypotheses, documents.references)
        prepared = comet_input(*sides, doc_ids=documents.doc_ids or None, context=self.context)
        found = run_comet(prepared, comet_command(prepared, self.python, self.model, "chunk"))
        return [self.result_of(prepared, found, documents, settings)]

    def result_of(
        self,
        prepared: CometInput,
        found: dict,
        documents: TranslatedDocuments,
        settings: ScoreSettings | None = None,
    ) -> Result:
        """The result from the scores of the program, which may have run elsewhere (see `comet_program`).

        What the program did not report, such as the separator and the limit in subwords, is not in the signature.
        """
        settings = settings or ScoreSettings()
        remaining, rows = iter(found["scores"]), []
        for length in prepared.lengths:
            rows.append([math.fsum(next(remaining) for _ in range(length)), length])
        known = {key: found[key] for key in ("separator", "limit") if found[key] is not None}
        signature = Signature.of({"model": found["model"], "scale": 100}) + prepared.signature
        signature += Signature.of({**known, "comet": found["comet"], "version": __version__})
        statistics = document_details(self.name, prepared.ids, rows, settings.samples, settings.seed)
        return self.result(
            documents,
            value=100 * math.fsum(found["scores"]) / len(found["scores"]),
            signature=signature,
            n=len(found["scores"]),
            breakdown={},
            details={"shortened": found["shortened"], **statistics},
        )


class DocumentComet(Comet):
    """Document-level COMET (Vernikos et al. 2022) with up to `context` sentences before the current one."""

    name = "doc-COMET"

    def __init__(self, python: str = "comet-env/bin/python", model: str = MODEL, context: int = 2):
        super().__init__(python, model, context)
