"""What the analyses of a model share: the model and what it reads, files that are written, tables."""

from __future__ import annotations

import json


class Subject:
    """A model that is looked into, and the documents it reads, in the languages of the model."""

    def __init__(self, model: str, documents: str):
        from pathlib import Path

        from hf_docmt.cli import device, load
        from hf_docmt.data.readers import read_documents

        self.model, self.tokenizer = load(model)
        self.model.to(device())
        config = self.model.config
        self.languages = {"source_lang": config.source_lang, "target_lang": config.target_lang}
        if not all(self.languages.values()):
            raise ValueError(
                f"{model}: its config.json names no source_lang and target_lang, which documents need; add them"
            )
        self.documents = read_documents(path=documents, **self.languages)
        self.name, self.dataset = Path(model).name, Path(documents).stem
        self.title = f"{self.name}, {self.dataset}"

    @property
    def loaded(self) -> tuple:
        """What every analysis takes first."""
        return self.model, self.documents, self.tokenizer

    def report(self, *results: dict) -> dict:
        data = {"documents": len(self.documents), **self.languages}
        return report_of(self.model, self.tokenizer, self.name, data, *results)


def report_of(model, tokenizer, name: str, data: dict, *results: dict) -> dict:
    """The report of a model that was looked into."""
    from hf_docmt.evaluation.systems import DocMTSystem
    from hf_docmt.reports.report import build_report, make_result

    described = DocMTSystem(model, tokenizer, name).describe()
    return build_report(model=described, data=data, results=[make_result(**result) for result in results])


def check_files(picture: str | None, output: str | None) -> None:
    """ValueError, before anything is computed, where a file cannot be written."""
    from pathlib import Path

    from hf_docmt.analysis.pictures.comparison import checked_path
    from hf_docmt.files import check_output

    check_output(output or "-")
    if picture:
        if checked_path(Path(picture)).resolve() == Path(output or "-").resolve():
            raise ValueError(f"{picture} is to be both picture and report; give two files")


def check_folder(folder: str | None) -> None:
    """ValueError, before anything is computed, where a folder for reports cannot be made."""
    from pathlib import Path

    place = Path(folder or ".")
    if not next(one for one in (place, *place.resolve().parents) if one.exists()).is_dir():
        raise ValueError(f"{folder} cannot be a folder for reports: there is a file of this name; choose another one")


def model_names(models: list[str]) -> list[str]:
    """The names of their folders. ValueError: two of one name."""
    from pathlib import Path

    names = [Path(model).name for model in models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two models are called {twice[0]!r}; give their folders different names")
    return names


def write_reports(reports: dict[str, dict], folder: str) -> None:
    """NAME.json in a folder, for each of them."""
    from pathlib import Path

    from hf_docmt.reports.report import write_report

    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, report in reports.items():
        write_report(report, Path(folder) / f"{name}.json")


def show_table(cells: list[list[str]], facts: dict | list, as_json: bool) -> None:
    """Rows of cells, the first one a header, or all that is known as JSON."""
    from hf_docmt.reports.report import align_columns

    print(json.dumps(facts, ensure_ascii=False) if as_json else align_columns(cells))
