"""Files of scores: the published evaluations, written here from their rules, give the accuracies that we give."""

import json
import random

import pytest
from support.errors import refused

from hf_docmt.evaluation.contrast import read_scores, write_scores
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy
from hf_docmt.evaluation.suites import read_suite

ITEMS = 60


def contrapro(folder, generator):
    entries = []
    for number in range(ITEMS):
        german = generator.sample(["Er", "Sie", "Es"], 3)
        entries.append(
            {
                "document id": f"d{number % 5}.de",
                "segment id": number + 1,
                "src segment": f"It {number} .",
                "ref segment": f"{german[0]} {number} .",
                "src pronoun": "It",
                "ref pronoun": german[0],
                "ante distance": generator.choice([0, 0, 1, 1, 2, 3, 4, 11]),
                "intrasegmental": generator.choice([True, False]),
                "errors": [{"contrastive": f"{word} {number} ."} for word in german[1:]],
            }
        )
    return save(folder / "contrapro.json", entries)


def voita(folder, generator):
    entries = []
    for number in range(ITEMS):
        texts = [f"a _eos b _eos c{number} _eos {index}" for index in range(generator.randint(2, 5))]
        right, distance = generator.randrange(len(texts)), generator.randint(1, 3)
        entries.append(
            {"src": f"w _eos x _eos y _eos z{number}", "dst": texts, "true_ind": right, "ctx_dist": distance}
        )
    return save(folder / "deixis_dev.json", entries)


def lopes(folder, generator):
    folder.mkdir()
    pairs = [
        generator.choice([("il", "elle"), ("elle", "il"), ("ils", "elles"), ("elles", "ils")]) for _ in range(ITEMS)
    ]
    source = [f"It {number} ." for number in range(ITEMS) for _ in range(2)]
    target = [f"{word} est {number} ." for number, pair in enumerate(pairs) for word in pair]
    for name, lines in (("src", source), ("trg", target)):
        (folder / f"OpenSubs.current.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def bawden(folder, generator):
    blocks = {}
    for number in range(ITEMS // 4):
        texts = [[f"p{number}", f"ils {number}"], [f"p{number}", f"elles {number}"]]
        targets = []
        for index in range(4):
            right, wrong = texts if index % 2 else texts[::-1]
            targets.append({("correct", "semi-correct")[index // 2]: right, "incorrect": wrong, "type": "m.sg"})
        blocks[str(number + 1)] = {"src": ["b", f"they {number}"], "trg": targets}
    return save(folder / "anaphora.json", blocks)


def save(path, entries):
    path.parent.mkdir()
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


SUITES = {"contrapro": contrapro, "voita": voita, "lopes": lopes, "bawden": bawden}


@pytest.fixture(params=SUITES)
def suite(request, tmp_path):
    """(format, path, items, scores with many ties); the items have no context, which changes no accuracy."""
    generator = random.Random(request.param)
    path = SUITES[request.param](tmp_path / "suite", generator)
    items = read_suite(path, context=0)
    scores = [[-generator.randint(0, 4) / 3 for _ in item.candidates] for item in items]
    assert len(items) == ITEMS and any(len(set(row)) < len(row) for row in scores)
    return request.param, path, items, scores


# The published evaluations: what they read and print


class Counts(dict):
    """{name: (right, all)}"""

    def add(self, right, *names):
        for name in names:
            correct, total = self.get(name, (0, 0))
            self[name] = (correct + right, total + 1)


def evaluate_contrapro(json_path, scores_path, maximize):
    """{name: (right, all)}: strictly better than every error, costs unless `maximize`."""
    entries = json.loads(json_path.read_text())
    scores = iter([float(line) for line in scores_path.read_text().splitlines()])
    found = Counts()
    for entry in entries:
        reference = next(scores)
        errors = [next(scores) for _ in entry["errors"]]
        right = all(reference > error if maximize else reference < error for error in errors)
        distance = entry["ante distance"]
        pair = f"{entry['src pronoun'].lower()}:{entry['ref pronoun'].lower()}"
        distance = str(distance) if distance < 4 else ">3"
        inside = "yes" if entry["intrasegmental"] else "no"
        names = ["total", f"phenomenon={pair}", f"distance={distance}", f"intrasegmental={inside}"]
        found.add(right, *names, f"phenomenon={pair} distance={distance}")
    assert next(scores, None) is None
    return found


def evaluate_voita(json_path, scores_path, maximize):
    """The lowest loss, the first of several, has to be the one of `true_ind`."""
    losses = [-float(line) if maximize else float(line) for line in scores_path.read_text().split()]
    found, start = Counts(), 0
    for entry in json.loads(json_path.read_text()):
        own = losses[start : start + len(entry["dst"])]
        start += len(own)
        best = min(range(len(own)), key=lambda which: (own[which], which))
        found.add(best == entry["true_ind"], "total", f"distance={entry['ctx_dist']}", "phenomenon=deixis")
    assert start == len(losses)
    return found


def evaluate_lopes(folder, scores_path, maximize):
    """By two lines, as they stand in the files; the pronoun is that of the first."""
    scores = [float(line) for line in scores_path.read_text().splitlines()]
    words = [line.split()[0] for line in (folder / "OpenSubs.current.trg").read_text().splitlines()]
    found = Counts()
    for index in range(0, len(scores), 2):
        right = scores[index] > scores[index + 1] if maximize else scores[index] < scores[index + 1]
        found.add(right, "total", f"phenomenon={words[index]}")
    return found


def evaluate_bawden(json_path, scores_path, maximize):
    """By pairs, correct and semi-correct, and by blocks whose pairs are all right."""
    scores = iter([float(line) for line in scores_path.read_text().splitlines()])
    found = Counts()
    for block in json.loads(json_path.read_text()).values():
        verdicts = []
        for target in block["trg"]:
            right, wrong = next(scores), next(scores)
            verdicts.append(right > wrong if maximize else right < wrong)
            kind = "semi-correct" if "semi-correct" in target else "correct"
            found.add(verdicts[-1], "total", f"kind={kind}", f"type={target['type']}", "phenomenon=anaphora")
        found.add(all(verdicts), "block=all right")
    return found


EVALUATIONS = {contrapro: evaluate_contrapro, voita: evaluate_voita, lopes: evaluate_lopes, bawden: evaluate_bawden}


def published(format, path, scores_path, better):
    return EVALUATIONS[SUITES[format]](path, scores_path, better == "higher")


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_agrees_with_the_published_evaluation(suite, tmp_path, better):
    """Whole, every part and every size, from the file that we write and from our own accuracy on it."""
    format, path, items, scores = suite
    file = tmp_path / "scores.txt"
    write_scores(file, scores if better == "lower" else [[-score for score in row] for row in scores])
    expected = published(format, path, file, better)
    for accuracy in (
        contrastive_accuracy(items, scores),
        contrastive_accuracy(items, read_scores(file, items, better)),
    ):
        assert accuracy.value == pytest.approx(100 * expected["total"][0] / expected["total"][1])
        found = {name: (part.value * part.n / 100, part.n) for name, part in accuracy.breakdown.items()}
        assert found == {name: pytest.approx(counts) for name, counts in expected.items() if name != "total"}
    assert any(len(set(row)) < len(row) for row in scores)  # there are ties


def test_scores_come_back_as_they_were(suite, tmp_path):
    _, _, items, _ = suite
    generator = random.Random(4)
    scores = [[-generator.expovariate(0.1) for _ in item.candidates] for item in items]
    write_scores(tmp_path / "scores", scores)
    assert read_scores(tmp_path / "scores", items) == scores
    lines = (tmp_path / "scores").read_text().splitlines()
    assert len(lines) == sum(len(item.candidates) for item in items) and float(lines[0]) == -scores[0][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines.__setitem__(6, "nan"), r"scores\.txt, line 7: 'nan' is not a finite number"),
        (lambda lines: lines.__setitem__(0, "-1.2 Er ."), r"scores\.txt, line 1: '-1\.2 Er \.' is not a finite number"),
        (lambda lines: lines.__setitem__(2, ""), r"scores\.txt, line 3: '' is not a finite number"),
        (lambda lines: lines.__setitem__(2, "1_0"), r"scores\.txt, line 3: '1_0' is not a finite number"),
        (
            lambda lines: lines.append("1"),
            r"scores\.txt, line \d+: one score more than the \d+ candidates of the 60 items",
        ),
        (lambda lines: lines.pop(), r"scores\.txt: ends after line \d+, expected \d+ .* missing from .*on, so"),
        (lambda lines: lines.clear(), r"scores\.txt: the file is empty"),
    ],
)
def test_bad_score_files_are_named(suite, tmp_path, change, message):
    _, _, items, scores = suite
    file = tmp_path / "scores.txt"
    write_scores(file, scores)
    lines = file.read_text().splitlines()
    change(lines)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    refused(message, read_scores, file, items)


def test_bad_arguments(suite, tmp_path):
    _, _, items, _ = suite
    file = tmp_path / "scores.txt"
    refused("unknown order of scores 'best': the better ones are lower, higher", read_scores, file, items, "best")
