"""The languages in which a model is looked at, where its family has codes of many."""

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import PreTrainedModel


def set_languages(model: PreTrainedModel, source_lang: str | None = None, target_lang: str | None = None) -> None:
    """Make the languages that are given those of the model's configuration; analyses read and write these.

    A model without codes takes what its configuration leaves open. ValueError: a code that the model does not have or
    that is missing, another language than that of a model without codes.
    """
    config, given = model.config, {"source_lang": source_lang, "target_lang": target_lang}
    codes = config.language_codes(**given)
    unknown = [name for name in given if name not in codes and getattr(config, name) is None]
    config.sequence_format(**{name: None if name in unknown else language for name, language in given.items()})
    for name, language in (codes | {name: given[name] for name in unknown}).items():
        setattr(config, name, language)


@contextmanager
def chosen_languages(model: PreTrainedModel, source_lang: str | None, target_lang: str | None) -> Iterator[None]:
    """The model with these languages; afterwards it has its own again. ValueError: see `set_languages`."""
    own = {name: getattr(model.config, name) for name in ("source_lang", "target_lang")}
    try:
        set_languages(model, source_lang, target_lang)
        yield
    finally:
        for name, language in own.items():
            setattr(model.config, name, language)
