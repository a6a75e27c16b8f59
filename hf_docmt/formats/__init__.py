"""Documents with markup, in and out: a class and a file for each format, which registers itself by being defined.

A new format is one new file here with one subclass of `DocumentFormat`.
"""

import pkgutil
from importlib import import_module
from pathlib import Path

from hf_docmt.data.readers.reader import Evidence, Reader, Sample, readers
from hf_docmt.formats.document_folder import DocumentFolder, folder_files
from hf_docmt.formats.document_format import FORMATS, DocumentFormat


def document_formats() -> dict[str, type[DocumentFormat]]:
    """All formats by their names: those of this folder, and those from outside that were imported."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return FORMATS


def document_reader(files: dict[str, str | None], format: str = "auto") -> Reader | None:
    """The reader of documents with markup, by name, or by the ending or first bytes of the file; None: another one.

    A folder with files of such formats is read as a whole. Where a reader of parallel documents is as sure of a file,
    it is its.
    """
    formats = document_formats()
    if format in formats:
        return formats[format]()
    sample = Sample({name: value for name, value in files.items() if value is not None})
    if format != "auto" or sample.argument != "path":
        return None
    evidence = {name: reader().recognize(sample) for name, reader in formats.items()}
    best = max(evidence, key=lambda name: evidence[name])
    if evidence[best] is Evidence.NONE:
        is_folder = sample.path is not None and Path(sample.path).is_dir() and any(folder_files(sample.path))
        return DocumentFolder() if is_folder else None
    others = max(reader().recognize(sample) for reader in readers().values())
    return formats[best]() if evidence[best] > others else None
