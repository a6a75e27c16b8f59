"""Part-of-speech tags by spaCy or the Hanover Tagger; any function with the same result can replace them."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.metadata import version

from hf_docmt.messages import check_known, install_command

Token = tuple[str, str]  # (text, fine-grained tag)
Tagger = Callable[[list[str]], list[list[Token]]]

MODELS = {"en": "en_core_web_sm", "de": "de_core_news_sm"}
HANOVER_MODELS = {"en": "morphmodel_en.pgz", "de": "morphmodel_ger.pgz"}
BNC_TAGS = {"PNP": "PRP", "DPS": "PRP$", "PNQ": "WP"}  # pronouns in the English model's tags and in the Penn Treebank's
TOKEN = re.compile(r"\w+(?=n't\b)|n't\b|'\w+|\w+|[^\w\s]", re.IGNORECASE)
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
            models = ", ".join(MODELS.values())
            raise ValueError(f"the spaCy pipeline {self.model!r} gives no tags; use one of {models}")
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
            raise ValueError(f"the spaCy pipeline is missing: python -m spacy download {self.model}") from error


class NameTagger(SpacyTagger):
    """Tokens and tags, and the names of the persons in each sentence, in order."""

    unused = ("parser", "lemmatizer")

    def _found(self, document):
        return super()._found(document), [name.text for name in document.ents if name.label_ == "PERSON"]


class HanoverTagger:
    """Tokens and tags of the Hanover Tagger (HanTa), which brings its models: Penn Treebank's for pronouns, STTS."""

    def __init__(self, lang: str):
        self.lang = lang

    @property
    def name(self) -> str:
        """Language and version, such as `de_hanta-1.2.1`."""
        return f"{self.lang}_hanta-{version('HanTa')}"

    def __call__(self, sentences: list[str]) -> list[list[Token]]:
        rows = [self._tagger.tag_sent(TOKEN.findall(sentence.replace("’", "'"))) for sentence in sentences]
        return [[(word, BNC_TAGS.get(tag, tag)) for word, _, tag in row] for row in rows]

    @cached_property
    def _tagger(self):
        try:
            from HanTa.HanoverTagger import HanoverTagger as Hanta
        except ImportError as error:
            raise ValueError(f"the tagger hanta is not installed: {install_command('discourse')}") from error
        return Hanta(HANOVER_MODELS[self.lang])


TAGGERS = {"spacy": lambda lang: SpacyTagger(MODELS[lang]), "hanta": HanoverTagger}


def load_tagger(lang: str, tagger: str = "spacy") -> Tagger:
    """The tagger for English or German: `spacy`, as in Herold and Ney (2023), or `hanta`; ValueError for others."""
    check_known(tagger, TAGGERS, "tagger", "expected one of")
    if lang not in MODELS:
        raise ValueError(f"no tagger is set for the language {lang!r}, only for en and de; give a tagger")
    return TAGGERS[tagger](lang)


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
    """How a signature calls a tagger: its `name`, otherwise that of the function or class."""
    return getattr(tagger, "name", None) or getattr(tagger, "__name__", None) or type(tagger).__name__
