"""Part-of-speech tags by spaCy; any function with the same result can replace it."""

from collections.abc import Callable, Sequence
from functools import cached_property

from hf_docmt.messages import install_command

Token = tuple[str, str]  # (text, fine-grained tag)
Tagger = Callable[[list[str]], list[list[Token]]]

MODELS = {"en": "en_core_web_sm", "de": "de_core_news_sm"}
Analyser = Callable[[list[str]], list[tuple[list[Token], list[str]]]]  # tokens and the names of persons


class SpacyTagger:
    """Tokens and fine-grained tags (`tag_`) of a spaCy pipeline, given by name or folder, loaded when first needed.

    The English pipelines have the tags of the Penn Treebank, the German ones those of STTS. ValueError, with the
    commands that mend it: spaCy or the pipeline is not installed, or the pipeline gives no tags.
    """

    unused = ("parser", "ner", "lemmatizer")  # parts of the pipeline that have no say in the tags

    def __init__(self, model: str):
        self.model = str(model)

    @property
    def name(self) -> str:
        """Name and version of the pipeline, such as `en_core_web_sm-3.8.0`."""
        meta = self._pipeline.meta
        return f"{meta['lang']}_{meta['name']}-{meta['version']}"

    def __call__(self, sentences: list[str]) -> list:
        documents = list(self._pipeline.pipe(sentences, batch_size=256))
        if any(map(len, documents)) and not any(document.has_annotation("TAG") for document in documents):
            raise ValueError(f"the spaCy pipeline {self.model!r} gives no tags; use one that does, such as {_known()}")
        return [self._found(document) for document in documents]

    def _found(self, document):
        return [(token.text, token.tag_) for token in document]

    @cached_property
    def _pipeline(self):
        try:
            import spacy
        except ImportError as error:
            raise ValueError(
                f"tagging needs spaCy, which is not installed: {install_command('discourse')}, then "
                f"python -m spacy download {self.model}"
            ) from error
        try:
            return spacy.load(self.model, exclude=self.unused)
        except OSError as error:
            raise ValueError(
                f"the spaCy pipeline {self.model!r} is not installed: python -m spacy download {self.model}"
            ) from error


class NameTagger(SpacyTagger):
    """Beside tokens and tags the names of the persons in each sentence, in their order."""

    unused = ("parser", "lemmatizer")

    def _found(self, document):
        return super()._found(document), [name.text for name in document.ents if name.label_ == "PERSON"]


def load_tagger(lang: str) -> SpacyTagger:
    """The tagger of Herold and Ney (2023) for English or German; ValueError for another language."""
    if lang not in MODELS:
        raise ValueError(f"no spaCy pipeline is set for the language {lang!r}, only for {_known()}; give a tagger")
    return SpacyTagger(MODELS[lang])


def tag(tagger: Tagger, sentences: Sequence[str]) -> list[list[Token]]:
    """The tokens of every sentence; ValueError if the tagger returns another number of sentences."""
    tagged = tagger(list(sentences))
    if len(tagged) != len(sentences):
        raise ValueError(
            f"the tagger {tagger_name(tagger)} returned {len(tagged)} sentences for {len(sentences)}; "
            "it must return a list of (token, tag) for every sentence"
        )
    return tagged


def tagger_name(tagger: Tagger | Analyser) -> str:
    """How a signature calls a tagger: its `name`, else that of the function or class."""
    return getattr(tagger, "name", None) or getattr(tagger, "__name__", None) or type(tagger).__name__


def _known() -> str:
    return ", ".join(f"{model} ({lang})" for lang, model in MODELS.items())
