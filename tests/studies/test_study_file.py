"""Study files: what they mean, and what is refused."""

import re
from pathlib import Path

import pytest
import yaml
from support.errors import refused
from typer.main import get_command

from hf_docmt.cli import app
from hf_docmt.studies.plan import Run, StudyPlan
from hf_docmt.studies.run import render
from hf_docmt.studies.study import load_study


def plan_of(study_file, changes=None, **options):
    return StudyPlan(load_study(study_file(changes)), **options)


def pending(plan, only=()):
    return [f"{evaluation}/{run.name}" for evaluation, run in plan.pending(only)]


def test_runs_and_evaluations(study_file):
    plan = plan_of(study_file)
    assert list(plan.runs) == ["sentence-seed1", "concat2-seed1", "sentence-seed2", "concat2-seed2"]
    assert pending(plan) == [
        "bleu/sentence-seed1", "bleu/concat2-seed1", "accuracy/concat2-seed1",
        "bleu/sentence-seed2", "bleu/concat2-seed2", "accuracy/concat2-seed2",
    ]  # fmt: skip
    (prepared, origin) = plan.needs(Run("concat2", 2))
    assert prepared.match("runs/prepared/corpus-*") and str(origin) == "runs/models/sentence-seed2/training.json"
    assert plan.results.name == "small"


def test_the_recipe_of_a_run(study_file):
    plan = plan_of(study_file)
    recipe = yaml.safe_load(plan.recipe_text(Run("concat2", 2)))
    assert (recipe["seed"], recipe["output_dir"]) == (2, "runs/models/concat2-seed2")
    assert recipe["init_from"] == "runs/models/sentence-seed2" and recipe["training"]["max_steps"] == 4
    assert {"past_context": 1, "d_model": 16, "normalize_before": True}.items() <= recipe["model"].items()


def test_patterns(study_file):
    plan = plan_of(study_file)
    assert pending(plan, ["concat2-seed1"]) == ["bleu/concat2-seed1", "accuracy/concat2-seed1"]
    assert pending(plan, ["sent*", "*-seed2"]) == [
        "bleu/sentence-seed1", "bleu/sentence-seed2", "bleu/concat2-seed2", "accuracy/concat2-seed2"
    ]  # fmt: skip
    assert {run.system for _, run in plan_of(study_file, {"only": ["concat2"]}).pending()} == {"concat2"}


def test_a_budget_lies_over_the_study(study_file):
    study = load_study(study_file(), "short")
    assert StudyPlan(study).results.name == "small-short"
    assert study.seeds == [3]
    assert study.recipe_of("concat2")["training"]["max_steps"] == 2
    assert study.recipe_of("concat2")["training"]["eval_steps"] == 2


def test_places_are_filled_in_behind_the_split(study_file):
    commands = ["docmt translate {model} 'a b' -o {work}/x", "docmt evaluate {system} {seed} -o {report}"]
    plan = plan_of(study_file, {"evaluations.bleu": commands, "output_dir": "my runs"}, docmt="docmt -t")
    run = Run("sentence", 1)
    assert plan.evaluation_commands("bleu", run).split(" && ")[2:] == [
        "docmt -t translate 'my runs/models/sentence-seed1' 'a b' -o 'my runs/work/bleu/sentence-seed1/x'",
        f"docmt -t evaluate sentence 1 -o 'my runs/reports/bleu/sentence-seed1-{plan.digest('bleu', run)}.json'",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"file": "x"}, "file: unknown key"),
        ({"only": ["concat3"]}, "no system 'concat3'"),
        ({"seeds": []}, "no systems or no seeds"),
        ({"seeds": [1, 1]}, "different whole numbers"),
        ({"seeds": [-1]}, "whole numbers from 0"),
        ({"seed": 1}, "seed: unknown key"),
        ({"systems.a b": {}}, "letters, digits"),
        ({"systems.concat2.init_from": ["sentence"]}, "init_from: expected a text"),
        ({"recipe.data": None}, "data: expected a mapping"),
        ({"only": [{}]}, "only: no system {}"),
        ({"systems.concat2.init_from": "concat2"}, "a circle, concat2 -> concat2"),
        ({"systems.sentence.init_from": "concat2"}, "a circle"),
        ({"systems.concat2.seed": 1}, "systems.concat2.seed: the study sets it"),
        ({"systems.concat2.base": "demo_sentense"}, "did you mean the packaged recipe 'demo_sentence'"),
        ({"systems.concat2": [1]}, "systems.concat2: expected a mapping"),
        ({"systems.concat2.model.past_contxt": 1}, "systems.concat2: model.past_contxt: unknown key"),
        ({"systems.concat2.training": {"max_steps": 0}}, "expected at least 1, got 0"),
        ({"evaluations.bleu": []}, "at least one command"),
        ({"evaluations.train": ["docmt x -o {report}"]}, "prepare and train are other jobs"),
        ({"evaluations.bleu": ["docmt 'x -o {report}"]}, "evaluations.bleu: No closing quotation"),
        ({"evaluations.bleu": ["rm -rf {work}"]}, "commands that begin with docmt"),
        ({"evaluations.bleu": ["docmt evaluate {modle} -o {report}"]}, "unknown place {modle}.*did you mean 'model'"),
        ({"evaluations.bleu": ["docmt evaluate {model}"]}, "writes no {report}"),
        ({"evaluations.accuracy.options": {"concat3": "--context 1"}}, "options: no system 'concat3'.*'concat2'"),
        ({"evaluations.accuracy.options": {"concat2": "'"}}, "evaluations.accuracy: No closing quotation"),
        ({"evaluations.accuracy.options": {"concat2": 1}}, "options.concat2: expected a text, got 1"),
        ({"evaluations.accuracy.systems": ["concat3"]}, "no system 'concat3'.*did you mean 'concat2'"),
        ({"prepare.corpus": "docmt corpus {model}"}, "unknown place {model}"),
        ({"tables.scores.baseline": "sentences"}, "no system 'sentences'.*did you mean 'sentence'"),
        ({"tables.scores.columns.parameters": {"fact": "parameter"}}, "unknown fact 'parameter'.*'parameters'"),
        ({"tables.scores.columns.parameters": {"digits": 1}}, "expected evaluation or fact"),
        ({"tables.scores.columns.s-BLEU": {"evaluation": "blue"}}, "no evaluation 'blue'.*did you mean 'bleu'"),
        ({"tables.scores.columns": {}}, "tables.scores.columns: expected at least one column, got none"),
        ({"tables.scores.columns": {1: {"evaluation": "bleu"}}}, 'names of columns, got 1: write "1" in quotes'),
        ({"tables.scores.columns.s-BLEU.digits": -1}, "digits: expected at least 0, got -1"),
        ({"figures.distance": {"evaluation": "bleu", "axis": "time"}}, "allowed: distance, exact_distance"),
    ],
)
def test_refused(study_file, changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        plan_of(study_file, changes)
    assert "small.yaml" in str(caught.value)


def test_unknown_budget_pattern_and_file(study_file):
    refused("no budget 'shrot'.*did you mean 'short'", load_study, study_file(), "shrot")
    refused(r"--only concat3: no such system or run.*concat2", plan_of(study_file).pending, ["concat3"])
    refused(r"nothing.yaml: no such study", load_study, "nothing.yaml")
    study_file().write_text("- sentence\n", encoding="utf-8")
    refused(r"small.yaml: study: expected a mapping of keys to values, got \['sent", load_study, "small.yaml")


@pytest.mark.parametrize(
    ("begun", "change", "named"),
    [
        ("sentence", {"recipe.training.max_steps": 5}, "sentence-seed1.json"),
        ("concat2", {"systems.sentence.model": {"dropout": 0.2}}, "concat2-seed1.json"),  # what it began with
        ("concat2", {"prepare.corpus": "docmt corpus {output_dir}/corpus --train 50"}, "concat2-seed1.json"),
    ],
)
def test_a_model_that_was_made_in_another_way_is_refused(study_file, begun, change, named):
    plan_of(study_file).write_recipes()
    other = plan_of(study_file, change)
    other.write_recipes()  # no training has begun: what is there is replaced
    plan_of(study_file).write_recipes()
    folder = plan_of(study_file).model(Run(begun, 1))
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text("")
    refused(f"{named} has another recipe than {begun}-seed1.*delete {folder}", other.write_recipes)


def test_a_system_has_options_of_its_own(study_file):
    """They are part of what its evaluation was made by; the other systems' evaluations stay what they were."""
    before = plan_of(study_file)
    plan = plan_of(study_file, {"evaluations.accuracy.options": {"concat2": "--context 1"}})
    assert plan.evaluation_commands("accuracy", Run("concat2", 1)).endswith(" --context 1")
    assert plan.digest("accuracy", Run("concat2", 1)) != before.digest("accuracy", Run("concat2", 1))
    assert plan.digest("accuracy", Run("sentence", 1)) == before.digest("accuracy", Run("sentence", 1))


def test_results_that_are_a_file_are_refused(study_file):
    path = study_file().rename("study")  # without a suffix: the folder of its name would be the file itself
    refused("study is a file.*--results", StudyPlan, load_study(path))


def test_digests_tell_recipes_and_commands_apart(study_file):
    changes = (
        {},
        {"title": "another"},
        {"systems.sentence.model": {"dropout": 0.2}},
        {"evaluations.bleu": ["docmt x -o {report}"]},
    )
    digests = [plan_of(study_file, change).digest("bleu", Run("concat2", 1)) for change in changes]
    assert digests[0] == digests[1]  # a title changes no number
    assert len(set(digests)) == 3  # the system that it begins with does


STUDIES = sorted((Path(__file__).parents[2] / "examples" / "studies").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_the_studies_of_the_examples(path, tmp_path, monkeypatch):
    """Each can be read, with every budget, and its recipes and commands are known."""
    commands = {command.name for command in get_command(app).commands.values()}
    budgets = yaml.safe_load(path.read_text()).get("budgets", {})
    for budget in (None, *budgets):
        study = load_study(path, budget)
        study.output_dir = str(tmp_path)
        plan = StudyPlan(study, tmp_path / "results")
        assert plan.pending()
        lines = [plan.evaluation_commands(*evaluation) for evaluation in plan.evaluations]
        lines += map(plan.prepare_command, study.prepare)
        assert {name for line in lines for name in re.findall(r"(?:^|&& )docmt (\S+)", line)} <= commands


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_stages_and_results_of_the_examples(path):
    """`init_from` names the system of a first stage, not the folder that its own recipe names.

    ValueError for a report that was made from another recipe or by other commands.
    """
    study, bases = load_study(path), yaml.safe_load(path.read_text())["systems"].values()
    elsewhere = {f"runs/{recipe['base']}" for recipe in bases if "base" in recipe}
    wrong = [name for name in study.systems if study.recipe_of(name).get("init_from") in elsewhere]
    assert not wrong, f"give init_from: the system that {wrong} begin with"
    plan = StudyPlan(study)
    assert plan.reports.keys() <= {(evaluation, run.name) for evaluation, run in plan.evaluations}


def test_the_pages_of_results_show_the_tables_of_the_studies():
    folder = STUDIES[0].parent
    pages = [file for file in folder.glob("**/*.md") if file.parent.name != "tables"]
    shown = 0
    for page in pages:
        for name, text in re.findall(r"<!-- (\S+\.md) -->\n(.*?)\n<!-- end -->", page.read_text(), re.DOTALL):
            rows = [line for line in (page.parent / name).read_text().splitlines() if line.startswith("|")]
            assert text.strip().splitlines() == rows, f"copy the rows of {name} into {page}"
            shown += 1
    assert shown


def test_the_tables_of_the_examples_follow_from_their_packed_reports(tmp_path):
    plan = StudyPlan(load_study(STUDIES[0].with_name("mechanisms.yaml")))
    tables, plan.results, plan.study.figures = plan.results / "tables", tmp_path, {}
    files = render(plan)
    assert {file.name for file in files} == {file.name for file in tables.iterdir()}
    for file in files:
        assert file.read_text() == (tables / file.name).read_text()
