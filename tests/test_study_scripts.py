"""Studies: what the Snakefile runs, a small one that runs to its tables, and the published tables and pages."""

import lzma
import re
import runpy
import shutil
import subprocess
import sys
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from hf_docmt.cli import app
from hf_docmt.reports.report import Report
from hf_docmt.training.recipe import load_recipe

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "studies"
STUDIES = sorted(FOLDER.glob("*.yaml"))
COMMAND = [sys.executable, "-m", "snakemake", "--snakefile", str(FOLDER / "Snakefile"), "--cores", "1"]
SMALL = {
    "output_dir": "runs",
    "seeds": [1, 2],
    "prepare": {"corpus": "docmt corpus {output_dir}/corpus --train 40 --validation 6 --test 6 --suite-items 2"},
    "recipe": {
        "base": "demo_sentence",
        "model": {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32},
        "data": {"num_proc": 1, "test": None}
        | {name: {"format": "jsonl", "path": f"runs/corpus/{name}.jsonl"} for name in ("train", "validation")},
        "training": {"max_steps": 4, "eval_steps": 2, "max_tokens": 500, "warmup_steps": 2, "log_steps": 2},
        "tokenizer": {"model": "bpe", "vocab_size": 400},
    },
    "systems": {"sentence": {}, "concat2": {"init_from": "sentence", "tokenizer": None, "model": {"past_context": 1}}},
    "evaluations": {
        "bleu": [
            "docmt translate {model} {output_dir}/corpus/test.jsonl -o {work}/test.jsonl --max-new-tokens 20",
            "docmt evaluate {work}/test.jsonl {output_dir}/corpus/test.jsonl --source-lang en --target-lang de "
            "--by index -o {report}",
        ],
        "accuracy": {
            "commands": ["docmt contrast {model} {output_dir}/corpus/deixis.json --conditions true,empty -o {report}"],
            "options": {"concat2": "--context 1"},
        },
    },
    "tables": {
        "scores": {
            "baseline": "sentence",
            "columns": {
                "parameters": {"fact": "parameters", "digits": 0},
                "s-BLEU": {"evaluation": "bleu", "metric": "s-BLEU"},
                "deixis": {"evaluation": "accuracy", "metric": "accuracy"},
            },
        }
    },
    "figures": {"distance": {"evaluation": "accuracy"}},
    "budgets": {"short": {"seeds": [3]}},
}


# Numbers in sentences. A paragraph ends in a marker: `<!-- TABLE: SYSTEM SYSTEM; other: 0.05 -->` names the rows of
# tables/TABLE.md that have its numbers, and those that are in no cell (of papers, p-values, differences). Integers of
# one digit and years are not compared.

PAGES = [page for page in FOLDER.glob("**/*.md") if page.parent.name != "tables"]
RUNS = re.compile(r"(?<![\d./])\d+(?:\.\d+)?/\d+(?:\.\d+)?/\d+(?:\.\d+)?(?![\d/])")  # figures of runs 1, 2 and 3
NUMBER = re.compile(r"(?<![\w.,/-])(?<!p < )(?!(?:19|20)\d\d\b)-?\d[\d,]*(?:\.\d+|\d)(?![/\w]|\.\d|,\d)")
UNSTORED = re.compile(r"(?:No|no) (?:stored report|report\s+of\s+(the rest of )?this\s+section\s+is\s+stored)")


def printed(folder, *config):
    command = [*COMMAND, "--dry-run", "--printshellcmds", "--config", *config]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def small(tmp_path):
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    return tmp_path


def test_runs_of_a_study(small):
    """A budget, one system of a run alone, options of a system, and what a run begins with."""
    text = printed(small, "study=small.yaml", "budget=short", "only=concat2")
    (line,) = [line for line in text.splitlines() if "Shell command" in line and "docmt contrast" in line]
    assert line.endswith(
        "docmt contrast runs/models/concat2-seed3 runs/corpus/deixis.json --conditions true,empty "
        "-o runs/reports/accuracy/concat2-seed3.json --context 1) > runs/logs/accuracy/concat2-seed3.log 2>&1"
    )
    assert "docmt train runs/recipes/sentence-seed3.yaml --resume" in text and "seed1" not in text
    assert "docmt compare runs/reports/bleu/concat2-seed3.json --name=concat2-seed3" in text
    assert "tables.py small.yaml --results small-short --budget short" in text
    recipe = load_recipe(small / "runs/recipes/concat2-seed3.yaml")
    assert (recipe.seed, recipe.output_dir) == (3, "runs/models/concat2-seed3")
    assert recipe.init_from == "runs/models/sentence-seed3" and recipe.training.max_steps == 4
    text = printed(small, "study=small.yaml", "only=sent*,*-seed2", "devices=4/5")
    assert "sentence-seed1" in text and "concat2-seed1" not in text and "concat2-seed2" in text
    assert "CUDA_VISIBLE_DEVICES=5 docmt contrast runs/models/concat2-seed2" in text


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_the_studies_of_the_examples(path, tmp_path):
    """Each can be planned, its recipes and commands are known, and a first stage is one of its systems."""
    study = yaml.safe_load(path.read_text("utf-8"))
    known = {command.name for command in get_command(app).commands.values()}
    for budget in (None, *study.get("budgets", {})):
        text = printed(tmp_path, f"study={path}", *([f"budget={budget}"] if budget else []), f"results={tmp_path}/made")
        assert set(re.findall(r"(?:^|&& |\()docmt (\S+)", text)) - {"train"} <= known
    elsewhere = {f"runs/{recipe['base']}" for recipe in study["systems"].values() if "base" in recipe}
    for recipe in map(load_recipe, tmp_path.glob("runs/studies/*/recipes/*-seed1.yaml")):
        assert recipe.init_from not in elsewhere, "give init_from: the system that it begins with"


def test_a_recipe_trains_the_printed_experiment(tmp_path):
    run = "gtransformer4-elided-seed1"
    only = f"only={run},sentence-elided"
    text = printed(tmp_path, f"study={FOLDER / 'dialogue.yaml'}", only, f"results={tmp_path}/made")
    (file,) = tmp_path.glob(f"runs/**/{run}.yaml")
    alone, of_study = (load_recipe(one).to_dict() | {"output_dir": "", "seed": 1} for one in ("ende_docs_elided", file))
    assert alone | {"data": alone["data"] | {"num_proc": 1}} == of_study
    assert text.count("docmt rerank") == 2 and re.search("seed3/training.json, .*beams/sentence-elided-seed5", text)


def test_the_pages_of_results_show_the_tables_of_the_studies():
    shown = 0
    for page in PAGES:
        for name, text in re.findall(r"<!-- (\S+\.md) -->\n(.*?)\n<!-- end -->", page.read_text(), re.DOTALL):
            rows = [line for line in (page.parent / name).read_text().splitlines() if line.startswith("|")]
            assert text.strip().splitlines() == rows, f"copy the rows of {name} into {page}"
            shown += 1
        others = re.sub(r"<!-- \S+\.md -->\n.*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
        for section in re.split(r"\n(?=#)", others):
            is_index = "\n|" not in section or "\n| study | question |" in section
            assert is_index or UNSTORED.search(section), f"{page}: a table without reports has to say so"
    assert shown


@pytest.mark.parametrize("name", ["dialogue", "mechanisms", "pronouns"])
def test_the_tables_of_the_examples_follow_from_their_reports(name, tmp_path, monkeypatch):
    """The means, deviations, tests and facts; reports without statistics give the values without their marks."""
    monkeypatch.chdir(tmp_path)
    script = runpy.run_path(str(FOLDER / "tables.py"))
    file, results = tmp_path / f"{name}.yaml", tmp_path / "made"
    study = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8")) | {"figures": {}}
    file.write_text(yaml.safe_dump(study, sort_keys=False), "utf-8")
    results.mkdir()
    (results / "reports.jsonl.xz").symlink_to(FOLDER / name / "reports.jsonl.xz")
    files = script["render"](file, results)
    assert {made.name for made in files} == {made.name for made in (FOLDER / name / "tables").iterdir()}
    for made in files:
        texts = made.read_text("utf-8"), (FOLDER / name / "tables" / made.name).read_text("utf-8")
        if name != "mechanisms" and made.name not in ("elided.md", "mbr.md"):
            texts = tuple(table_of(text.replace("\\*", "")) for text in texts)
        assert texts[0] == texts[1], made.name


def table_of(text: str) -> dict[str, list[str]]:
    """The cells of a Markdown table, by the first one of their row."""
    rows = [line.replace("\\_", "_").strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {name: cells for name, *cells in rows}


def paragraphs(text: str) -> list[str]:
    """Paragraphs and list items, without code, tables, and what the page says no report is stored of."""
    text = re.sub(r"```.*?```|<!-- \S+\.md -->\n.*?<!-- end -->|^\|.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    found, is_stored = [], True
    for block in re.split(r"\n\s*\n|\n(?=- |#)", text):
        is_stored = is_stored or block.startswith("#")
        unstored = UNSTORED.search(" ".join(block.split()))
        is_stored = is_stored and not (unstored and "section" in unstored[0])
        if is_stored and not unstored:
            found.append(block)
    return found


def unknown_numbers(paragraph: str, folder: Path, runs: dict) -> list[str]:
    """Numbers, and figures of three runs, that are nowhere; others that the text does not have."""
    marker = re.search(r"<!-- ([\w/]+: .*?) -->", paragraph, re.DOTALL)
    rows = dict(field.split(": ") for field in " ".join(marker[1].split()).split("; ")) if marker else {}
    text = re.sub("<!--.*?-->|`[^`]*`", "", paragraph, flags=re.DOTALL)
    others = set(rows.pop("other", "").split())
    tables = {name: table_of((folder / f"{name}.md").read_text("utf-8")) for name in rows}
    cells = [cell for name in rows for system in rows[name].split() for cell in tables[name][system]]
    known = [match[0].replace(",", "") for match in map(re.compile(r"-?\d[\d,]*(\.\d+)?").match, cells) if match]
    numbers, triples = set(NUMBER.findall(text)), set(RUNS.findall(text))
    unknown = [number for number in numbers - others if not any(is_rounded(number, cell) for cell in known)]
    unknown = [number for number in unknown if number.replace(",", "") not in sizes()]
    unknown += [triple for triple in triples - others if not any(are_runs(triple, values) for values in runs.values())]
    return sorted(unknown) + sorted(others - numbers - triples)


def is_rounded(number: str, cell: str) -> bool:
    """Whether a number is a cell with as many or fewer digits; a half may go either way."""
    step = Decimal(1).scaleb(Decimal(number.replace(",", "")).as_tuple().exponent)
    exact = Decimal(cell).as_tuple().exponent <= step.as_tuple().exponent
    return exact and abs(Decimal(number.replace(",", "")) - Decimal(cell)) <= step / 2


def are_runs(triple: str, values: list[float]) -> bool:
    return len(values) == 3 and all(
        is_rounded(number, f"{value:.6f}") for number, value in zip(triple.split("/"), values)
    )


@cache
def sizes() -> set[str]:
    """Numbers of three digits or more in the stored reports: documents, items, updates, parameters."""
    texts = (lzma.decompress(path.read_bytes()).decode() for path in FOLDER.glob("*/reports.jsonl.xz"))
    return {number for text in texts for number in re.findall(r'": (\d{3,})[,}]', text)}


@pytest.fixture(scope="module")
def mechanisms() -> tuple[dict, dict, dict[tuple, list[float]]]:
    """tables.py, the reports of the first study, and every score of its systems and part of one, by run."""
    script, runs = runpy.run_path(str(FOLDER / "tables.py")), {}
    study = yaml.safe_load((FOLDER / "mechanisms.yaml").read_text("utf-8"))
    reports = script["read_reports"](study, Path("absent"), FOLDER / "mechanisms")
    for name, systems in reports.items():
        for system, made in systems.items():
            for result in (result for report in made.values() for result in report.results):
                key = (name, system, result.metric, result.dataset, result.strategy, script["condition_of"](result))
                for part, score in {"": result, **result.breakdown}.items():
                    runs.setdefault((*key, part), []).append(score.value)
    return script, reports, runs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(FOLDER)))
def test_numbers_in_sentences_are_those_of_the_tables(page, mechanisms):
    folder = page.parent if page.parent == FOLDER else page.parent / "tables"
    found = ((one, unknown_numbers(one, folder, mechanisms[2])) for one in paragraphs(page.read_text("utf-8")))
    assert not [(paragraph, numbers) for paragraph, numbers in found if numbers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("At 33.3 BLEU. <!-- longer: sentence -->", []),
        ("At 33.4 BLEU. <!-- longer: sentence -->", ["33.4"]),
        ("At 28.3 BLEU. <!-- longer: sentence -->", ["28.3"]),  # of another system
        ("At 33.259 BLEU. <!-- longer: sentence -->", ["33.259"]),  # more digits than the table
        ("At 33 BLEU and 26 %. <!-- longer: sentence -->", []),
        ("At 34 BLEU and 26 %. <!-- longer: sentence -->", ["34"]),
        ("3,431 sentences, 3,432 words, in 2022.", ["3,432"]),
        ("At 33.3 BLEU.", ["33.3"]),
        ("By 2.5 points. <!-- other: 2.5 0.1 -->", ["0.1"]),
        ("In 50/60/70 and 1/2/3 %.", ["1/2/3"]),
        ("Both, p < 0.05, in version 0.2.0.", []),
    ],
)
def test_numbers_that_are_in_no_cell_are_found(text, expected):
    assert unknown_numbers(text, FOLDER / "dialogue" / "tables", {"a": [50.4, 59.6, 70.0], "b": [1.0, 2.0]}) == expected


def test_speeds_of_the_readme_are_in_the_reports():
    """Ours and a peer's are in one row of the tables that the reports make."""
    text = (FOLDER.parents[1] / "README.md").read_text("utf-8")
    speed = text[text.index("\n## Speed") : text.index("\n## Architectures")]
    pairs = re.findall(r"(?:CTranslate2|transformers) ([\d.]+), hf-docmt ([\d.]*\d)", speed)
    for row in re.findall(r"^\| (?!real text).*? \| (.*\d.*) \|$", speed, re.MULTILINE):
        *peers, ours = re.findall(r"\d[\d.]*", row)
        pairs += [(peer, ours) for peer in peers]
    pairs += re.findall(r"([\d.]+) CPU s, ([\d.]+) MiB", speed)
    reports = (FOLDER.parent / "reports" / "README.md").read_text("utf-8").splitlines()
    rows = [set(re.findall(r"\d[\d.]*", line)) for line in reports if line.startswith("|")]
    assert len(pairs) == 10 and not [pair for pair in pairs if not any(row.issuperset(pair) for row in rows)]


def test_scores_of_the_demo_in_the_readme_are_in_its_reports():
    pattern = r"(\d+) BLEU and (\d+) % accuracy on contrastive pronouns, the sentence-level model (\d+) and (\d+) %"
    figures = re.search(pattern, " ".join((FOLDER.parents[1] / "README.md").read_text("utf-8").split())).groups()
    reports = [Report.read(FOLDER.parent / "reports" / f"demo_{name}.json") for name in ("concat", "sentence")]
    found = [one for report in reports for one in report.results if one.metric == "s-BLEU" or one.dataset == "pronoun"]
    assert figures == tuple(f"{one.value:.0f}" for one in found)


def test_a_column_that_several_results_fit_is_refused(mechanisms):
    script, reports, _ = mechanisms
    report = reports["accuracy"]["concat4"][1]
    with pytest.raises(ValueError, match="concat4-seed1, accuracy: several results fit the column, say which: "):
        script["score"]({"evaluation": "accuracy"}, report)


@pytest.mark.slow
def test_a_study_from_file_to_table(small, monkeypatch):
    config = ["study=small.yaml", "budget=short", f"docmt={sys.executable} -m hf_docmt"]
    subprocess.run([*COMMAND, "--config", *config], cwd=small, check=True)
    rows = [line.split(" | ") for line in (small / "small-short/tables/scores.md").read_text().splitlines()]
    assert [row[0].strip("| ") for row in rows[2:4]] == ["sentence", "concat2"] and rows[2][1].replace(
        ",", ""
    ).isdigit()
    assert (small / "small-short/figures/distance.png").stat().st_size > 1000
    assert "concat2" in (small / "runs/compared/bleu.md").read_text()
    again = subprocess.run([*COMMAND, "--dry-run", "--config", *config], cwd=small, capture_output=True, text=True)
    assert "Nothing to be done" in again.stdout + again.stderr
    monkeypatch.chdir(small)
    render, table = runpy.run_path(str(FOLDER / "tables.py"))["render"], small / "small-short/tables/scores.md"
    text = table.read_text()
    render(Path("small.yaml"), small / "small-short", "short", store=True)
    shutil.rmtree("runs")
    table.unlink()
    render(Path("small.yaml"), small / "small-short", "short")
    assert table.read_text() == text, "the stored reports make the same table"
