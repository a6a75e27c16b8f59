"""A translation job: documents in, translations out in the same order, written group by group."""

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_docmt.files import is_address
from hf_docmt.journal import file_digest
from hf_docmt.loading.adapters import ADAPTER_CONFIG, BASE, adapted_model
from hf_docmt.messages import __version__, counted
from hf_docmt.translation.group_translation import TranslationSettings
from hf_docmt.translation.interruption import Interrupted, Interruption
from hf_docmt.translation.job_input import Group, JobInput, arriving_rows, document_groups
from hf_docmt.translation.job_output import StreamOutput, changes
from hf_docmt.translation.progress import JobSummary, Progress

if TYPE_CHECKING:
    from hf_docmt.translation.input_parts import InputParts

Results = Generator[tuple[Group, list[dict]], None, None]  # groups and their rows of `translate_corpus`
# gives the results of groups in their order; it may take groups in advance, None says that no group has arrived yet
Engine = Callable[[Iterable[Group | None]], Results]
FIRST_DOCUMENTS = 10  # if these all fail, the job ends
MODEL_FILES = (
    "config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*",
    "*token*.json", "*vocab*", "chat_template*", "model.bin", "merges.txt", "*.spm", "*.model", "*.py", "ctranslate2/*",
    "adapter_config.json", "adapter_model.bin", "base/*.safetensors*",
)  # fmt: skip  # of a folder: what its translations follow from


@dataclass(frozen=True)
class TranslationJob:
    """Documents of an input that are translated to an output.

    `make_engine` loads the model, here, in other processes or on other machines. `open_output` opens the output of a
    job of this identity; to resume, it holds the groups of the earlier job, which then ends with
    the same bytes as without the interruption.
    """

    settings: TranslationSettings
    input: "JobInput | InputParts"
    make_engine: Callable[[TranslationSettings], Engine]
    open_output: Callable[[dict[str, Any]], StreamOutput]

    def run(self, interruption: Interruption) -> JobSummary:
        """Translate all documents that the output does not hold; those that fail are counted in the summary.

        Raises `ValueError`, also where the first ten documents of a new job fail, or all of fewer, since then the model
        or a setting is to blame; `OSError` for what cannot be written, and `Interrupted`. What can be is known before
        work. Where an error leaves finished work, a line on standard error says how to go on.
        """
        identity = job_identity(self.settings, self.input)
        with self.open_output(identity) as output:
            check = (lambda results: results) if output.holds_work else check_first_documents
            try:
                engine, size = self.make_engine(self.settings), self.input.size()
                rows = self.input.rows()
                if self.input.is_pipe and not output.is_kept:
                    rows = arriving_rows(rows)  # written as they come, without waiting for a group to be full
                results = engine(output.missing(document_groups(rows, batch_size=self.settings.batch_size)))
                # closing the results ends the processes of an engine
                with closing(Progress(size, output.summary)) as progress, closing(results):
                    for group, rows_of_group in check(results):
                        with interruption.held() if output.is_kept else nullcontext():
                            output.write(group, rows_of_group)
                        interruption.check()
                        progress.update(output.summary)
                    self._check_input(identity["input"], size, output.summary)
                    output.finish()
            except Interrupted as stopped:
                raise Interrupted(stopped.number, output.way_on()) from stopped
            except Exception:
                if output.holds_work:
                    print(output.way_on(), file=sys.stderr)
                raise
            return output.summary

    def _check_input(self, before: dict | None, size: JobSummary | None, done: JobSummary) -> None:
        """ValueError where the input is not what it was when the job began, or not all of it was translated."""
        if before is not None and (changed := changes(before, self.input.identity())):
            raise ValueError(
                f"the input changed while it was translated ({changed}): restore it, or translate it again"
            )
        if size is not None and (size.documents, size.sentences) != (done.documents, done.sentences):
            raise ValueError(
                f"the input has {counted(size.documents, 'document')} of {counted(size.sentences, 'sentence')}, but "
                f"{done.documents} of {done.sentences} were translated: please report this"
            )


def check_first_documents(results: Results) -> Results:
    """Pass on results; ValueError where the first ten documents fail, or all of fewer."""
    held, first = [], []
    for group, rows in results:
        held.append((group, rows))
        first = (first + rows)[:FIRST_DOCUMENTS]
        if len(first) == FIRST_DOCUMENTS or not all("error" in row for row in first):
            break
    if first and all("error" in row for row in first):
        problem = (
            "the first document cannot be translated"
            if len(first) == 1
            else f"none of the first {len(first)} documents can be translated"
        )
        raise ValueError(f"{problem}; {first[0]['doc_id']!r}: {first[0]['error']}")
    yield from held
    yield from results


def job_identity(settings: TranslationSettings, documents: "JobInput | InputParts") -> dict[str, Any]:
    """The identity of a job, as JSON values: it can be resumed only with the same model, options, input and versions.

    Model and input count by their content, not by their names.
    """
    options = asdict(settings) | {"format": documents.format, "memory": [file_digest(Path(p)) for p in settings.memory]}
    return {
        "model": model_checksums(options.pop("model"), settings.revision),
        "options": options,
        "input": documents.identity(),
        "versions": {"hf-docmt": __version__} | {name: version(name) for name in ("torch", "transformers")},
    }


def model_checksums(model: str, revision: str | None = None) -> dict[str, str]:
    """SHA-256 of each file of a model's folder that its translations depend on; for a Hub name its commit.

    An adapter includes its base model. Empty if the model does not exist; loading it will report that.
    """
    if is_address(model):
        return {"address": model}
    folder = Path(model)
    if folder.is_dir():
        files = {path for pattern in MODEL_FILES for path in folder.glob(pattern) if path.is_file()}
        checksums = {path.relative_to(folder).as_posix(): file_digest(path) for path in sorted(files)}
        base = adapted_model(folder) if ADAPTER_CONFIG in checksums else None
        adapted = model_checksums(base) if base and Path(base) != folder / BASE else {}
        return checksums | {f"adapted model: {name}": digest for name, digest in adapted.items()}
    from transformers.utils import cached_file

    try:
        return {"commit": Path(cached_file(model, "config.json", revision=revision)).parent.name}
    except (OSError, ValueError):
        return {}
