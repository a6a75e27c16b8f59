"""Model cards made from a saved report."""

import os
import re
from collections.abc import Sequence
from itertools import zip_longest

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedConfig
from transformers.utils import cached_file
from yaml import YAMLError

from hf_docmt.loading import registry
from hf_docmt.loading.model_card import DECIMALS, ModelCardText
from hf_docmt.messages import check_known
from hf_docmt.reports.measurement import measures_the_same
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import extra_digits

UNKNOWN_LICENSE = "unknown"
FORMS = {"document": "transformers", "stock": "transformers", "ctranslate2": "ctranslate2"}  # form: its library


def make_card(
    report: Report | None,
    *,
    config: PreTrainedConfig,
    repo_id: str | None = None,
    license: str | None = None,
    datasets: Sequence[str] = (),
    form: str = "document",
    model_class: str | None = None,
    needs: Sequence[str] | None = None,
    example: Sequence[str] | None = None,
    parameters: int | None = None,
    untrained: bool = False,
    baseline: Report | None = None,
    limits: Sequence[str] = (),
) -> ModelCard:
    """The card of a model: the text of its architecture, and numbers and facts of its report, nothing else.

    A pure function of its arguments: no network, no clock. Missing facts are omitted; the header has `license: unknown`
    by default. `repo_id` is the name in the usage example (without it there is a placeholder),
    `datasets` are names of training data on the Hub, `needs` what the tokenizer needs installed, `example` two
    sentences of the source language for the calls; by default they are general ones. `form` is that of the files, one
    of `FORMS`, `model_class` the class of a stock model, `parameters` their number, for a report without it;
    `untrained` marks a new model that has not seen documents. `baseline` is the report of another model,
    whose scores are shown next to those measured in the same way, `limits` are sentences on the limits of this one.
    Header: language, license, library_name, pipeline_tag, tags, base_model, widget, datasets, metrics, model-index,
    each result with its signature. Raises ValueError for an architecture that is not registered, and another form.
    """
    check_known(form, FORMS, "form", "expected one of")
    architecture = registry.for_config(config)
    text = ModelCardText(config, repo_id, needs, example)
    name = (report and report.name) or repo_id or config.model_type
    own = report.results if report else []
    theirs = baseline.results if baseline else []
    others = [next((other for other in theirs if measures_the_same(result, other)), None) for result in own]
    results = [_eval_result(result) for result in own]
    header = ModelCardData(
        **text.metadata() | {"library_name": FORMS[form]},
        license=license or UNKNOWN_LICENSE,
        datasets=list(datasets) or None,
        metrics=sorted({result.metric_type for result in results}) or None,
        model_name=name if results else None,
        eval_results=results or None,
    )
    body = text.body(
        form=form,
        name=name,
        facts=report.to_dict() if report else {"model": {}, "data": {}, "results": []},
        results=list(zip_longest(own, others)),
        baseline=baseline.name if any(others) else None,
        limits=limits,
        architecture=architecture.name,
        parameters=parameters,
        license=license,
        model_class=model_class,
        untrained=untrained,
        sequence=config.sequence_format() if form == "stock" else None,
    )
    return ModelCard(f"---\n{header.to_yaml()}\n---\n\n{body}\n")


def license_of(source: str | os.PathLike) -> str | None:
    """The licence that the card of a model's folder or Hub name states in its header; None where it states none."""
    file = cached_file(
        str(source),
        "README.md",
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
        _raise_exceptions_for_gated_repo=False,
    )
    try:
        stated = ModelCard.load(file, ignore_metadata_errors=True).data.get("license") if file else None
    except (ValueError, TypeError, YAMLError):
        return None
    if isinstance(stated, list) and len(stated) == 1:
        stated = stated[0]
    return stated if isinstance(stated, str) and stated.lower() != UNKNOWN_LICENSE else None


def _eval_result(result: Result) -> EvalResult:
    """A result of the report as the Hub groups them, by task, dataset and split."""
    contrastive = result.task == "contrastive"
    arguments = {"signature": str(result.signature), "n": result.n, "strategy": result.strategy, "beams": result.beams}
    return EvalResult(
        task_type="translation",
        task_name="Contrastive translation" if contrastive else "Translation",
        dataset_type=re.sub(r"[^\w./-]+", "-", result.dataset).strip("-").lower() or "unknown",
        dataset_name=result.dataset,
        dataset_split=result.split,
        metric_type=result.metric.lower().split("-")[-1],  # s-BLEU and d-BLEU are BLEU to the Hub
        metric_name=result.metric,
        metric_value=round(result.value, DECIMALS + extra_digits(str(result.signature))),
        metric_args={name: value for name, value in arguments.items() if value is not None},
    )
