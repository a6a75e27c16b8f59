"""The base class of readers, and the readers by the name of their format."""

import inspect
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from hf_docmt.data.readers.evidence import Evidence, Sample
from hf_docmt.files import DataError
from hf_docmt.messages import closest_hint

# arguments of readers that are no files, though a file or folder may have their value as its name
NO_FILES = ("split", "config", "system", "tgt_lang", "translator")

_READERS: dict[str, type["Reader"]] = {}


class Reader(ABC):
    """A file format of parallel documents. A subclass with a `name` registers itself by being defined.

        class Capitals(Reader):
            "Sentences, one a line; a line in capitals begins a document."

            name = "capitals"

            def read(self, languages, path):
                ...
                yield f"{path}, line {number}", make_row(location, doc_id, source, target, languages)

    `name` is the format. `several_files`: it takes a list of files, too. `plain`: it is lines without document ids, so
    translations are written as plain lines. `output_format` is how translations of such input are written where that
    is neither plain lines nor JSON lines (see `hf_docmt.translation.outputs`). `document_ids` is false where ids are
    made from file names and numbers, so that documents of two files are matched by their order. `first_line_mark` is
    the word of messages for what gives away a format of one file a side, where such a file is given as `path`.
    """

    name: ClassVar[str] = ""
    several_files: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    output_format: ClassVar[str | None] = None
    document_ids: ClassVar[bool] = True
    first_line_mark: ClassVar[str] = "a mark of the format"

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            return  # a base of readers
        known = _READERS.get(cls.name, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            both = " and ".join(f"{reader.__module__}.{reader.__qualname__}" for reader in (known, cls))
            raise ValueError(f"two readers have the name {cls.name!r}, {both}; rename one of them")
        _READERS[cls.name] = cls

    @abstractmethod
    def read(self, languages: list[str], **files) -> Iterator[tuple[str, dict]]:
        """Yield (location for messages, row of the document contract) of every document, in order.

        `languages` is [source, target], or [source] where only the source side is wanted. The further parameters are
        the files the format takes, in most formats `path`, or `source` and `target`; those without a default are
        needed. DataError says file, line and remedy.
        """

    def recognize(self, sample: Sample) -> Evidence:
        """How sure it is that files are of this format, from arguments, name and first bytes; NONE: never detected."""
        return Evidence.NONE

    def recognize_lines(self, sample: Sample) -> bool:
        """Whether files that no format recognizes are of this one; it may read all lines."""
        return False

    @classmethod
    def arguments(cls) -> dict[str, bool]:
        """The arguments of `read` besides the languages: whether each is needed."""
        parameters = list(inspect.signature(cls.read).parameters.values())[2:]
        return {parameter.name: parameter.default is parameter.empty for parameter in parameters}

    @classmethod
    def has_one_file_a_side(cls) -> bool:
        return list(cls.arguments()) == ["source", "target"]


def readers() -> dict[str, type[Reader]]:
    """All readers by format: those of this folder by their files, which are imported now, then those of plugins."""
    own = [f"{__package__}.{module.name}" for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    for name in own:
        import_module(name)
    place = {name: number for number, name in enumerate(own)}
    return dict(sorted(_READERS.items(), key=lambda item: place.get(item[1].__module__, len(own))))


def plugin_files() -> list[Path]:
    """The files in which readers of plugins are defined."""
    names = {reader.__module__ for reader in readers().values() if not reader.__module__.startswith(f"{__package__}.")}
    files = {getattr(sys.modules.get(name), "__file__", None) for name in names}
    return sorted(Path(file) for file in files if file and Path(file).is_file())


def get_reader(format: str) -> Reader:
    """The reader of a format; DataError with the closest name for an unknown one."""
    known = readers()
    if format not in known:
        hint = closest_hint(format, known, " (did you mean {!r}?)")
        raise DataError(f"unknown format {format!r}{hint}; the formats are {', '.join(known)} and auto")
    return known[format]()


def input_files(text: str, format: str = "auto") -> dict[str, str]:
    """The arguments of `read_documents` in a text: `FILE`, or `NAME=VALUE,NAME=VALUE` with the names of arguments.

    >>> input_files("source=a.en,target=a.de")
    {'source': 'a.en', 'target': 'a.de'}
    """
    if "=" not in text or Path(text).exists():
        return {input_argument(format): text}
    pairs = [part.partition("=") for part in text.split(",")]
    files = {name: value for name, _, value in pairs}
    if not all(name and equals and value for name, equals, value in pairs) or len(files) < len(pairs):
        raise ValueError(f"{text!r}: expected FILE, or NAME=FILE,NAME=FILE such as source=a.en,target=a.de")
    return files


def input_argument(format: str) -> str:
    """The argument of `read_documents` that the file of the side to read is given as: `source` or `path`."""
    return "source" if format != "auto" and get_reader(format).has_one_file_a_side() else "path"
