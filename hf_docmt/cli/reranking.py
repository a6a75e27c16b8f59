"""`docmt rerank`: the best of several translations of the same documents."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from hf_docmt.cli.options import command, refuse
from hf_docmt.files import check_writable_file
from hf_docmt.options import argument, named_files, option


@command
def rerank(
    *,
    call: typer.Context,
    translations: list[str] = argument("JSON lines of docmt translate, of several systems, or of one with candidates."),
    output: str = option("-", "JSON lines to write; - is standard output.", "-o", "--output"),
    metric: str = option("chrf", "Utility of minimum Bayes risk: chrf or bleu, of sentences."),
    unit: str = option("sentence", "What is chosen: sentence, or document (each from one system as a whole)."),
    external: Sequence[tuple[str, str]] | None = option(
        None,
        "Scores of another program in place of the risk, NAME=FILE, as docmt evaluate takes them: one for each system, "
        "in their order.",
        read=named_files,
        repeated=True,
    ),
) -> None:
    """Choose among translations of several systems, seeds or searches: that which agrees most with all of them.

    Where systems wrote candidates (docmt translate --nbest), these are chosen among, too.
    """
    from hf_docmt.evaluation.reranking import reranked_rows
    from hf_docmt.translation.corpus import write_translations

    if external:
        refuse(call, ("metric",), "is the utility of minimum Bayes risk, but --external is given")
    check_writable_file(output, [*translations, *(path for _, path in external or ())])
    write_translations(reranked_rows(translations, metric, unit, external or ()), output)
