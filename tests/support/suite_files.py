"""Items of the published suites as their files have them, and what writes such files."""

import copy
import dataclasses
import json
from pathlib import Path

from hf_docmt.data.documents import write_documents

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

DOCUMENT = {
    "doc_id": "1999_1_2",
    "translation": [
        {"en": "Where is the cup?", "de": "Wo ist die Tasse?"},
        {"en": "", "de": ""},
        {"en": "Here .", "de": "Hier."},
        {"en": "It 's red .", "de": "Sie ist rot."},
        {"en": "Bye.", "de": "Tschüss."},
    ],
}

CONTRAPRO = {
    "document id": "1999_1_2.de",
    "segment id": 4,
    "src segment": "It's red.",
    "ref segment": "Sie ist rot.",
    "src pronoun": "It",
    "ref pronoun": "Sie",
    "ante distance": 3,
    "intrasegmental": False,
    "errors": [{"contrastive": "Er ist rot."}, {"contrastive": "Es ist rot."}],
}

VOITA_ITEM = {
    "src": "a b _eos c _eos d",
    "dst": ["A B _eos C _eos D", "A B _eos C _eos E", "A B _eos C _eos D"],
    "true_ind": 1,
    "ctx_dist": 2,
}

LOPES = [  # source, French lines, source context, target context
    ("It is red.", ("Elle est rouge.", "Il est rouge."), ["a", "b", "c"], ["A", "B", "C"]),
    ("Where are they?", ("Où sont-ils ?", "Où sont-elles ?"), ["", "", ""], ["", "", ""]),
    ("They say it.", ("Qu'elles le disent, elles.", "Qu'ils le disent, ils."), ["", "b", "c"], ["", "B", "C"]),
]

ANAPHORA = {
    "src": ["The houses are old.", "They are red."],
    "trg": [
        {
            "correct": ["Les maisons sont vieilles.", "Elles sont rouges."],
            "incorrect": ["Les maisons sont vieilles.", "Ils sont rouges."],
            "type": "f.pl",
        },
        {
            "semi-correct": ["Les bâtiments sont vieux.", "Ils sont rouges."],
            "incorrect": ["Les bâtiments sont vieux.", "Elles sont rouges."],
            "type": "m.pl",
        },
    ]
    * 2,
}

CHOICES = {
    "type": "repet",
    "examples": [
        {
            "src": ["Crazy?", "Is this crazy?"],
            "trg": {"correct": ["Dingue ?", "C'est dingue ?"], "incorrect": ["Dingue ?", "C'est fou ?"]},
        },
        {
            "src": ["Mad?", "Is this crazy?"],
            "trg": {"correct": ["Fou ?", "C'est fou ?"], "incorrect": ["Fou ?", "C'est dingue ?"]},
        },
    ],
}


def write_json_suite(folder, *items, name="suite.json", documents=(DOCUMENT,)):
    """A suite of these items, with the documents beside it; returns its path."""
    write_documents(documents, folder / "documents.jsonl")
    path = folder / name
    path.write_text(json.dumps(list(items)), encoding="utf-8")
    return path


def write_lopes(folder, change=lambda files: None, sizes=(3,)):
    """The published files, after `change` was made to {file: lines}; returns their folder."""
    files = {
        "OpenSubs.current.src": [source for source, *_ in LOPES for _ in range(2)],
        "OpenSubs.current.trg": [line for _, lines, *_ in LOPES for line in lines],
    }
    for size in sizes:
        for side, column in (("src", 2), ("trg", 3)):
            lines = [line for item in LOPES for _ in range(2) for line in item[column][-size:]]
            files[f"OpenSubs.c{size}.context.{side}"] = lines
    change(files)
    return write_lines(folder, files)


def write_lines(folder, files):
    folder.mkdir()
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return folder


def bawden_files(name="anaphora", blocks=(ANAPHORA, ANAPHORA)):
    """The text files of a set: two lines a pair."""
    pairs = []
    for block in blocks:
        for example in block.get("examples") or [{"src": block["src"], "trg": target} for target in block["trg"]]:
            target = example["trg"]
            right = target["correct"] if "correct" in target else target["semi-correct"]
            pairs += [(example["src"], right), (example["src"], target["incorrect"])]
    return {
        f"{name}.{part}.{lang}": [pair[side][index] for pair in pairs]
        for index, part in enumerate(("prev", "current"))
        for side, lang in enumerate(("en", "fr"))
    }


def contrapro_files():
    """What the published extraction makes of the item, twice; the second without context."""
    candidates = [CONTRAPRO["ref segment"], *(error["contrastive"] for error in CONTRAPRO["errors"])]
    context = [["", "Where is it?", "Here."], ["", "Wo ist sie?", "Hier."]]
    return {
        "contrapro.text.en": [CONTRAPRO["src segment"]] * 6,
        "contrapro.text.de": candidates * 2,
        "contrapro.context.en": context[0] * 3 + [""] * 9,
        "contrapro.context.de": context[1] * 3 + [""] * 9,
    }


def changed(item, **changes):
    item = copy.deepcopy(item) | changes
    return {key: value for key, value in item.items() if value is not ...}


def without_location(items):
    return [dataclasses.replace(item, location="") for item in items]
