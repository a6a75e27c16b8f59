"""Document-level machine translation for HuggingFace Transformers: the Python API.

    import hf_docmt

    model, tokenizer = hf_docmt.load_model("runs/concat")
    documents = hf_docmt.read_documents(path="runs/corpus/test.jsonl", source_lang="en", target_lang="de")
    rows = hf_docmt.translate_corpus(model, tokenizer, documents)
    print(hf_docmt.evaluate(rows, documents))

Data: `read_documents`, `make_documents`, `write_documents`, `write_corpus`, `train_tokenizer`, `adapt_tokenizer`.
Models: `load_model`, `convert_sentence_model`, `get_architecture`, `register_architecture`, `describe`, `export_model`,
`push_model`, `trust_remote_code`, `register_all` (`AutoModel.from_pretrained` then asks for no trust).
Training: `load_recipe`, `train`, `DocMTTrainer`, `DocMTTrainingArguments`.
Translation: `translate_corpus`, `write_translations`, and `translate_file` of documents with markup; models have
`translate_documents`.
Evaluation: `evaluate`, `contrast`, `cxmi`, `load_system`, `read_suite`, `compare`, `reranked_rows`; `Report`, `Result`,
`Signature`.
Parts to subclass: `Reader`, `Suite`, `Metric`, `System`, `Architecture`.

Everything is imported when it is first used, so that `import hf_docmt` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hf_docmt.messages import __version__

_LOCATIONS = {  # name -> module and, where it differs, the name there
    "Architecture": "loading.registry",
    "DocMTTrainer": "training.trainer",
    "DocMTTrainingArguments": "training.arguments",
    "Metric": "evaluation.metrics",
    "Reader": "data.readers",
    "Report": "reports.report",
    "Result": "reports.result",
    "Signature": "reports.signature",
    "Suite": "evaluation.suites",
    "System": "systems",
    "adapt_tokenizer": "data.tokenizers",
    "compare": "evaluation.comparison",
    "contrast": "evaluation.contrast:contrast_report",
    "convert_sentence_model": "hub.export",
    "cxmi": "evaluation.cxmi:cxmi_report",
    "describe": "training.info",
    "evaluate": "evaluation.translation_scores",
    "export_model": "hub.export",
    "get_architecture": "loading.registry:get",
    "load_model": "loading.model_folders",
    "load_recipe": "training.recipe",
    "load_system": "systems",
    "make_documents": "data.documents",
    "push_model": "hub.publishing",
    "read_documents": "data.readers",
    "read_suite": "evaluation.suites",
    "register_all": "loading.registry",
    "register_architecture": "loading.registry",
    "reranked_rows": "evaluation.reranking",
    "train": "training.run",
    "train_tokenizer": "data.tokenizers",
    "translate_corpus": "translation.corpus",
    "translate_file": "formats.file_translation",
    "trust_remote_code": "loading.remote_code",
    "write_corpus": "data.synthetic.corpus",
    "write_documents": "data.documents",
    "write_translations": "translation.corpus",
}

__all__ = ["__version__", *_LOCATIONS]

if TYPE_CHECKING:  # exported to type checkers, which cannot read the list
    from hf_docmt.data.documents import make_documents as make_documents, write_documents as write_documents
    from hf_docmt.data.readers import Reader as Reader, read_documents as read_documents
    from hf_docmt.data.synthetic.corpus import write_corpus as write_corpus
    from hf_docmt.data.tokenizers import adapt_tokenizer as adapt_tokenizer, train_tokenizer as train_tokenizer
    from hf_docmt.evaluation.comparison import compare as compare
    from hf_docmt.evaluation.contrast import contrast_report
    from hf_docmt.evaluation.cxmi import cxmi_report
    from hf_docmt.evaluation.metrics import Metric as Metric
    from hf_docmt.evaluation.reranking import reranked_rows as reranked_rows
    from hf_docmt.evaluation.suites import Suite as Suite, read_suite as read_suite
    from hf_docmt.evaluation.translation_scores import evaluate as evaluate
    from hf_docmt.formats.file_translation import translate_file as translate_file
    from hf_docmt.hub.export import convert_sentence_model as convert_sentence_model, export_model as export_model
    from hf_docmt.hub.publishing import push_model as push_model
    from hf_docmt.loading.model_folders import load_model as load_model
    from hf_docmt.loading.registry import (
        Architecture as Architecture,
        get,
        register_all as register_all,
        register_architecture as register_architecture,
    )
    from hf_docmt.loading.remote_code import trust_remote_code as trust_remote_code
    from hf_docmt.reports.report import Report as Report
    from hf_docmt.reports.result import Result as Result
    from hf_docmt.reports.signature import Signature as Signature
    from hf_docmt.systems import System as System, load_system as load_system
    from hf_docmt.training.arguments import DocMTTrainingArguments as DocMTTrainingArguments
    from hf_docmt.training.info import describe as describe
    from hf_docmt.training.recipe import load_recipe as load_recipe
    from hf_docmt.training.run import train as train
    from hf_docmt.training.trainer import DocMTTrainer as DocMTTrainer
    from hf_docmt.translation.corpus import (
        translate_corpus as translate_corpus,
        write_translations as write_translations,
    )

    contrast, cxmi, get_architecture = contrast_report, cxmi_report, get


def __getattr__(name: str) -> Any:
    if name not in _LOCATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _LOCATIONS[name].partition(":")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), attribute or name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
