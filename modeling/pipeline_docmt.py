r"""The pipeline "document-translation": text, sentences or documents in, the same out in the other language.

    pipe = pipeline("document-translation", model=name, trust_remote_code=True)
    pipe("She sleeps. It is late.\n\nGood night!", num_beams=4)

A model that is loaded already needs no trust: `pipeline("document-translation", model=model, tokenizer=tokenizer)`.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from transformers import AutoModelForSeq2SeqLM, Pipeline
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_docmt import TASK
from .generation_docmt import check_counts, checked_documents
from .opaque_runs import Finder, carry, context_reach
from .text_splitting import join_text, split_text

OF_DOCUMENTS = ("strategy", "batch_size", "batch_tokens", "past_context", "repairs", "alignment")  # not of a stream
DOCUMENTS_AT_ONCE = 16  # of an iterator


class DocumentTranslationPipeline(Pipeline):
    r"""Translates a text or documents, and returns the same form.

    A string is a text, whose lines, paragraphs and indents stay; a list of strings the sentences of one document; a
    list of such lists documents. Opaque runs such as code and addresses are copied (see `opaque_runs`). For an iterator
    or other iterable of texts or of lists of sentences, documents come back one by one, read `batch_size` at a time.

    Settings are those of `model.translate_documents` (`strategy`, `source_lang`, `target_lang`, `batch_size`,
    `num_beams`, ...), given to `pipeline(...)` for all calls or to one call. Raises `ValueError` for other inputs.

    >>> pipe = DocumentTranslationPipeline(model, tokenizer)
    >>> pipe("Hello. She sleeps.\n\nIt is late.", num_beams=4)
    'Hallo. Sie schläft.\n\nEs ist spät.'
    >>> pipe([["Hello.", "She sleeps."], ["It is late."]])
    [['Hallo.', 'Sie schläft.'], ['Es ist spät.']]
    """

    _load_tokenizer = True
    _load_processor = _load_image_processor = _load_video_processor = _load_feature_extractor = False

    def __call__(self, inputs, num_workers: int | None = None, batch_size: int | None = None, **settings):
        """Translations of `inputs`, see the class; `num_workers`, of transformers' loaders, has nothing to load."""
        if batch_size is not None:
            settings["batch_size"] = batch_size
        settings = self.settings(settings)
        if isinstance(inputs, str | list | tuple):
            return self.run_single(inputs, {}, settings, {})
        if isinstance(inputs, dict | bytes) or not hasattr(inputs, "__iter__") and not hasattr(inputs, "__getitem__"):
            raise ValueError(
                f"expected a text, a list of sentences, a list of documents or an iterable of them, got a "
                f"{type(inputs).__name__}; of a data set give one column, such as dataset['text']."
            )
        size = settings.get("batch_size", DOCUMENTS_AT_ONCE)
        check_counts(batch_size=size)
        return self.one_by_one(iter(inputs), size, settings)

    def stream(self, sentences: Iterable[str], **settings) -> Iterator[str]:
        """Translations of the sentences of a document as they come; `ValueError` for a model without a memory."""
        settings = self.settings(settings)
        if settings.get("strategy") not in (None, "stream"):
            raise ValueError(f"a stream has the strategy 'stream', got {settings['strategy']!r}: omit it.")
        settings = {name: value for name, value in settings.items() if name not in OF_DOCUMENTS}
        return self.model.translate_stream(sentences, self.tokenizer, **settings)

    def settings(self, of_call: dict) -> dict:
        """The settings; those of a call override those of the pipeline."""
        of_pipeline = {} if self._batch_size is None else {"batch_size": self._batch_size}
        return of_pipeline | self._forward_params | self._sanitize_parameters(**of_call)[1]

    def one_by_one(self, inputs: Iterator, size: int, settings: dict) -> Iterator:
        """Documents of an iterator in batches of this size."""
        while documents := list(islice(inputs, size)):
            yield from self.run_single(documents, {"are_documents": True}, settings, {})

    # Methods that transformers requires of a pipeline

    def _sanitize_parameters(self, **settings) -> tuple[dict, dict, dict]:
        """All are settings of the translation. `ValueError` for `return_report`, which changes what comes back."""
        if "return_report" in settings:
            raise ValueError("return_report: a pipeline gives translations alone; use model.translate_documents.")
        return {}, settings, {}

    def _upload_modified_files(self, working_dir, repo_id, *args, **kwargs):
        """As in transformers, with the model's card instead of the template."""
        self.model.write_card(working_dir, repo_id)
        return super()._upload_modified_files(working_dir, repo_id, *args, **kwargs)

    def preprocess(self, inputs, are_documents: bool = False) -> dict:
        """`documents`, lists of sentences, the `gaps` around those of texts, and whether it is one document."""
        is_one = not are_documents and (isinstance(inputs, str) or all(isinstance(item, str) for item in inputs))
        documents = [inputs] if is_one else inputs
        are_texts = [isinstance(document, str) and (is_one or are_documents) for document in documents]
        texts = [split_text(text) if is_text else (text, None) for text, is_text in zip(documents, are_texts)]
        sentences, gaps = zip(*texts)
        return {"documents": checked_documents(sentences), "gaps": list(gaps), "is_one": is_one}

    def _forward(self, inputs: dict, **settings) -> dict:
        def translate(documents: list[list[str]]) -> list[list[str]]:
            return self.model.translate_documents(documents, self.tokenizer, **settings)

        if settings.get("repairs") == "none":  # sentences of the translations are not those of the source
            translations = translate(inputs["documents"])
        else:
            reach = context_reach(self.model.config)
            translations, _ = carry(translate, inputs["documents"], Finder(self.tokenizer), reach=reach)
        return inputs | {"translations": translations}

    def postprocess(self, outputs: dict):
        """Translations in the form of the input."""
        documents = []
        for document, translation, gaps in zip(outputs["documents"], outputs["translations"], outputs["gaps"]):
            if gaps is not None and len(translation) != len(document):
                raise ValueError(
                    f"{len(translation)} sentences for a text of {len(document)}: omit repairs='none', or give "
                    "lists of sentences."
                )
            documents.append(translation if gaps is None else join_text(translation, gaps))
        return documents[0] if outputs["is_one"] else documents


PIPELINE_REGISTRY.supported_tasks.setdefault(  # another copy of this file may be there
    TASK, {"impl": DocumentTranslationPipeline, "pt": (AutoModelForSeq2SeqLM,), "type": "text"}
)
