"""Study files: what they mean, and what is refused."""

import re
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from hf_docmt.cli import app
from hf_docmt.studies.jobs import Run, StudyPlan
from hf_docmt.studies.study import command_arguments, load_study


def test_runs_and_jobs(study_file):
    plan = StudyPlan(load_study(study_file()))
    assert [run.name for run in plan.runs] == ["sentence-seed1", "concat2-seed1", "sentence-seed2", "concat2-seed2"]
    assert [job.name for job in plan.pending()] == [
        "prepare/corpus",
        "train/sentence-seed1",
        "bleu/sentence-seed1",
        "train/concat2-seed1",
        "bleu/concat2-seed1",
        "accuracy/concat2-seed1",
        "train/sentence-seed2",
        "bleu/sentence-seed2",
        "train/concat2-seed2",
        "bleu/concat2-seed2",
        "accuracy/concat2-seed2",
    ]
    assert plan.jobs["train/concat2-seed2"].needs == ("prepare/corpus", "train/sentence-seed2")
    assert plan.jobs["bleu/concat2-seed2"].needs == ("prepare/corpus", "train/concat2-seed2")
    assert plan.results.name == "small"


def test_the_recipe_of_a_run(study_file):
    plan = StudyPlan(load_study(study_file()))
    found = yaml.safe_load(plan.recipe_text(Run("concat2", 2)))
    assert found["seed"] == 2
    assert found["output_dir"] == "runs/models/concat2-seed2"
    assert found["init_from"] == "runs/models/sentence-seed2"
    assert found["model"]["past_context"] == 1
    assert found["model"]["d_model"] == 16
    assert found["model"]["normalize_before"] is True  # of the base
    assert found["training"]["max_steps"] == 4


def test_patterns(study_file):
    plan = StudyPlan(load_study(study_file()))
    assert [run.name for run in plan.chosen_runs(["concat2"])] == ["concat2-seed1", "concat2-seed2"]
    assert [run.name for run in plan.chosen_runs(["*-seed2"])] == ["sentence-seed2", "concat2-seed2"]
    only = StudyPlan(load_study(study_file({"only": ["concat2"]})))
    assert {run.system for run in only.chosen_runs()} == {"concat2"}
    needed = [job.name for job in plan.pending(["concat2-seed1"])]
    assert "train/sentence-seed1" in needed and "bleu/sentence-seed1" not in needed


def test_a_budget_lies_over_the_study(study_file):
    study = load_study(study_file(), "short")
    assert StudyPlan(study).results.name == "small-short"
    assert study.seeds == [3]
    assert study.recipe_of("concat2")["training"]["max_steps"] == 2
    assert study.recipe_of("concat2")["training"]["eval_steps"] == 2


def test_places_are_filled_in_behind_the_split():
    found = command_arguments("docmt translate {model} 'a b' -o {work}/x", {"model": "my model", "work": "w"})
    assert found == ("translate", "my model", "a b", "-o", "w/x")


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
        StudyPlan(load_study(study_file(changes)))
    assert "small.yaml" in str(caught.value)


def test_unknown_budget_pattern_and_file(study_file):
    with pytest.raises(ValueError, match="no budget 'shrot'.*did you mean 'short'"):
        load_study(study_file(), "shrot")
    with pytest.raises(ValueError, match=r"--only concat3: no such system or run.*concat2"):
        StudyPlan(load_study(study_file())).pending(["concat3"])
    with pytest.raises(ValueError, match=r"nothing.yaml: no such study"):
        load_study("nothing.yaml")
    study_file().write_text("- sentence\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"small.yaml: study: expected a mapping of keys to values, got \['sentence'\]"
    ):
        load_study("small.yaml")


def test_a_recipe_that_changed_is_refused_once_its_training_has_begun(study_file):
    plan = StudyPlan(load_study(study_file()))
    job = plan.jobs["train/sentence-seed1"]
    plan.prepare(job)
    assert not plan.is_done(job)
    other = StudyPlan(load_study(study_file({"recipe.training.max_steps": 5})))
    assert job.name in [pending.name for pending in other.pending()]  # it failed before it began: mended, it may go on
    plan.model_folder(job.run).mkdir(parents=True)
    (plan.model_folder(job.run) / "recipe.yaml").write_text("")
    with pytest.raises(ValueError, match="another recipe than sentence-seed1.*delete runs/models/sentence-seed1"):
        other.pending()


def test_a_model_that_began_with_another_is_refused(study_file):
    """Also where what it begins with was deleted, to be trained anew."""
    plan = StudyPlan(load_study(study_file()))
    job = plan.jobs["train/concat2-seed1"]
    plan.prepare(job)
    plan.model_folder(job.run).mkdir(parents=True)
    (plan.model_folder(job.run) / "training.json").write_text("{}")
    assert plan.is_done(job)
    other = StudyPlan(load_study(study_file({"systems.sentence.model": {"dropout": 0.2}})))
    with pytest.raises(ValueError, match="origins.concat2-seed1.json has another recipe than concat2-seed1"):
        other.pending()


def test_a_system_has_options_of_its_own(study_file):
    """They are part of what its evaluation was made by; the other systems' evaluations stay what they were."""
    before = StudyPlan(load_study(study_file({"evaluations.accuracy.systems": None})))
    own = {"evaluations.accuracy.systems": None, "evaluations.accuracy.options": {"concat2": "--context 1"}}
    plan = StudyPlan(load_study(study_file(own)))
    assert plan.jobs["accuracy/concat2-seed1"].commands[-1][-2:] == ("--context", "1")
    assert plan.jobs["accuracy/sentence-seed1"].commands == before.jobs["accuracy/sentence-seed1"].commands
    for run in plan.runs:
        same = plan.digest(run, "accuracy") == before.digest(run, "accuracy")
        assert same == (run.system == "sentence")


def test_results_that_are_a_file_are_refused(study_file):
    path = study_file().rename("study")  # without a suffix: the folder of its name would be the file itself
    with pytest.raises(ValueError, match="study is a file.*--results"):
        StudyPlan(load_study(path))


def test_a_report_of_an_earlier_try_is_deleted(study_file):
    plan = StudyPlan(load_study(study_file()))
    job = plan.jobs["bleu/sentence-seed1"]
    plan.prepare(job)
    plan.full_report(job).write_text("{}")
    plan.prepare(job)
    assert not plan.full_report(job).exists()


def test_digests_tell_recipes_and_commands_apart(study_file):
    run = Run("concat2", 1)
    plans = [
        StudyPlan(load_study(study_file(changes)))
        for changes in (
            {},
            {"title": "another"},
            {"systems.sentence.model": {"dropout": 0.2}},
            {"evaluations.bleu": ["docmt x -o {report}"]},
        )
    ]
    digests = [plan.digest(run, "bleu") for plan in plans]
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
        assert {command[0] for job in plan.jobs.values() for command in job.commands} <= commands


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_no_system_of_the_examples_begins_with_a_model_that_another_system_of_its_study_makes_elsewhere(path):
    """`init_from` has to name the system: recipes of a second stage name the folder of their first."""
    study, bases = load_study(path), yaml.safe_load(path.read_text())["systems"].values()
    elsewhere = {f"runs/{recipe['base']}" for recipe in bases if "base" in recipe}
    wrong = [name for name in study.systems if study.recipe_of(name).get("init_from") in elsewhere]
    assert not wrong, f"give init_from: the system that {wrong} begin with"


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_the_results_of_the_examples_are_of_what_their_files_say(path):
    """ValueError for a report that was made from another recipe or by other commands."""
    plan = StudyPlan(load_study(path))
    reports = {file for name in plan.study.evaluations for file in (plan.results / name).glob("*.json")}
    missing = {plan.report_file(job) for job in plan.missing()}
    assert reports.isdisjoint(missing)
    assert reports <= {plan.report_file(job) for job in plan.jobs.values()}


def test_the_page_of_results_shows_the_tables_of_the_studies():
    folder = STUDIES[0].parent
    shown = re.findall(r"<!-- (\S+\.md) -->\n(.*?)\n<!-- end -->", (folder / "README.md").read_text(), re.DOTALL)
    assert shown
    for name, text in shown:
        rows = [line for line in (folder / name).read_text().splitlines() if line.startswith("|")]
        assert text.strip().splitlines() == rows, f"copy the rows of {name} into {folder / 'README.md'}"
