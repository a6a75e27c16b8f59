"""Which format files have, by the arguments given, the file's name and its first bytes."""

from hf_docmt.data.readers.evidence import Evidence, Sample
from hf_docmt.data.readers.reader import Reader, readers
from hf_docmt.files import DataError, display_path


def detect_format(files: dict) -> str:
    """The name of the format; DataError where nothing tells it. `files` are the arguments of `read_documents`.

    Every reader says what it recognizes (`Reader.recognize`), and the surest one is chosen; a file that no reader is
    sure of goes to the first one that takes its lines. Raw text must be named (`format="text"`), and so must one side
    of a pair that is given as `path`.
    """
    sample = Sample(files)
    known = [reader() for reader in readers().values()]
    evidence = {reader: reader.recognize(sample) for reader in known}
    best = max(evidence, key=evidence.get)  # of equals the first
    if evidence[best] is Evidence.ARGUMENTS:
        return best.name
    if sample.argument is None:
        raise DataError(f"no input file, got {sorted(files)}; give path=, or source= and target=")
    if sample.argument == "source" and sample.is_stdin:
        names = [reader.name for reader in known if reader.has_one_file_a_side()]
        raise DataError(
            f"the format of standard input as source cannot be detected; name it ({', '.join(names[:-1])} or "
            f"{names[-1]})"
        )
    if evidence[best] is Evidence.NONE:
        return _format_of_lines(sample, known)
    if sample.argument == "path" and best.has_one_file_a_side():
        raise DataError(
            f"{display_path(sample.path)}: the first line has {best.first_line_mark}; name the format {best.name!r}, "
            "with the file as source, or 'lines' if every line is a sentence"
        )
    return best.name


def _format_of_lines(sample: Sample, known: list[Reader]) -> str:
    for reader in known:
        if reader.recognize_lines(sample):
            return reader.name
    raise DataError(
        f"{display_path(sample.path)}: the format cannot be detected (no <d>, no _eos, no blank line between "
        "documents); name it, format='blank' if each file is one document"
    )
