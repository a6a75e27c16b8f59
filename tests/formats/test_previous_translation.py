"""New versions of documents: what is the same keeps its translation, human edits included."""

import json

import docx
import pytest
from support.errors import refused

from hf_docmt.formats.file_translation import translate_file
from hf_docmt.formats.previous_translation import shared_out
from hf_docmt.modeling.text_splitting import known_target
from hf_docmt.systems import System

OLD = """# The lamp

The lamp is **old**. It is blue. My sister made it [here](https://a.org/en) in 1987.

- Open the window.
- Close the door with `make close`.

![A blue house](house.png "The house")

| Name | Place |
|------|-------|
| House | River |

> She sleeps in the garden.
> The dog is here.

The same words.

Between them.

The same words.
"""
HUMAN = """# Die  Lampe &amp; so

Die Lampe ist **alt**. Sie ist *sehr* blau. Meine Schwester machte sie 1987 [hier](https://a.org/de).

* Fenster auf!
- Tür zu mit `make close`.

![Ein blaues Haus](house.png "Das Haus")

| Name | Ort |
|------|-------|
| Haus | Fluss |

> Sie schläft im Garten, und
> der Hund ist hier.

Dieselben Wörter, zuerst.

Dazwischen.

Dieselben Wörter, zuletzt.
"""


class Angled(System):
    """Puts sentences in angle brackets; `asked` are those that it has to translate."""

    document_languages = ("en", "de")
    tokenizer = None
    token_log_probabilities = token_texts = describe = None

    def __init__(self):
        self.asked, self.known = [], {}

    def translate(self, documents):
        for document in documents:
            self.asked += [text for text in document if known_target(text) is None]
            self.known |= {str(text): text.target for text in document if known_target(text) is not None}
        return [[f"‹{text}›" for text in document] for document in documents]


def translated(folder, old: bytes, human: bytes, new: bytes, ending: str):
    system, paths = Angled(), [folder / f"{name}.{ending}" for name in ("old", "old.de", "new", "new.de")]
    for path, data in zip(paths, (old, human, new)):
        path.write_bytes(data)
    written = translate_file(system, paths[2], paths[3], previous=(paths[0], paths[1]))
    return paths[3].read_bytes(), system, written


def test_markdown(tmp_path):
    """A sentence changed, a paragraph added, two items exchanged, one line gone; all else letter by letter."""
    new = OLD.replace("in 1987", "in 1990").replace("The dog is here.\n", "The dog is here.\n\nA new one.\n")
    new = new.replace(
        "- Open the window.\n- Close the door with `make close`.",
        "- Close the door with `make close`.\n- Open the window.",
    )
    new = new.replace("Between them.\n\n", "")
    data, system, written = translated(tmp_path, OLD.encode(), HUMAN.encode(), new.encode(), "md")
    expected = HUMAN.replace(
        "Meine Schwester machte sie 1987 [hier](https://a.org/de).",
        "‹My sister made it [here](https://a.org/en) in 1990.›",
    )
    expected = expected.replace(
        "* Fenster auf!\n- Tür zu mit `make close`.", "- Tür zu mit `make close`.\n- Fenster auf!"
    )
    expected = (
        expected.replace("ist hier.", "ist hier.\n\n‹A new one.›")
        .replace("Dazwischen.\n\n", "")
        .replace("*sehr*", "sehr")
    )
    assert data.decode() == expected and not written.problems
    assert system.asked == ["My sister made it X1 in 1990.".replace("X1", "here"), "A new one."]
    assert system.known["The lamp is old."] == "Die Lampe ist alt." and written.kept == 12


@pytest.mark.parametrize(
    ("ending", "wrap"),
    [
        ("html", "<html><body>{}</body></html>".format),
        (
            "json",
            lambda text: json.dumps(dict(enumerate(text.replace("<p>", "").split("</p>")[:-1])), ensure_ascii=False),
        ),
        (
            "yaml",
            lambda text: "".join(
                f"k{n}: {line}\n" for n, line in enumerate(text.replace("<p>", "").split("</p>")[:-1])
            ),
        ),
    ],
)
def test_other_formats(tmp_path, ending, wrap):
    texts = [
        "<p>The house is blue here.</p><p>Open the windows now.</p><p>She sleeps in it.</p>",
        "<p>Das Haus &amp; so ist blau.</p><p>Mach die Fenster auf.</p><p>Sie schläft darin.</p>",
        "<p>The house is blue here.</p><p>Close all doors tonight.</p><p>She sleeps in it.</p>",
    ]
    data, system, written = translated(tmp_path, *(wrap(text).encode() for text in texts), ending)
    expected = wrap(texts[1].replace("Mach die Fenster auf.", "‹Close all doors tonight.›"))
    assert data.decode().replace(' lang="de"', "") == expected and written.kept == 2 and not written.problems
    assert system.asked == ["Close all doors tonight."]


def test_docx(tmp_path):
    """Paragraphs that moved, with their runs."""

    def made(*paragraphs):
        file = docx.Document()
        for runs in paragraphs:
            paragraph = file.add_paragraph()
            for number, text in enumerate(runs):
                paragraph.add_run(text).bold = number == 1
        file.save(tmp_path / "x.docx")
        return (tmp_path / "x.docx").read_bytes()

    old = ("The lamp is ", "old", "."), ("She sleeps in it.",), ("Open the window.",)
    human = ("Die Lampe ist ", "alt", " & müde."), ("Sie schläft darin.",), ("Fenster auf!",)
    new = made(old[0], ["He reads a book tonight."], old[2], old[1])
    _, system, written = translated(tmp_path, made(*old), made(*human), new, "docx")
    found = [[run.text for run in paragraph.runs] for paragraph in docx.Document(tmp_path / "new.de.docx").paragraphs]
    assert found == [[*human[0]], ["‹He reads a book tonight.›"], [*human[2]], [*human[1]]] and written.kept == 3
    assert system.asked == ["He reads a book tonight."] and not written.problems


def test_everything_is_kept(tmp_path):
    data, system, written = translated(tmp_path, OLD.encode(), HUMAN.encode(), OLD.encode(), "md")
    assert data.decode() == HUMAN.replace("* Fenster", "- Fenster")
    assert system.asked == [] and written.text().startswith("14 segments, 14 kept as translated before")


def test_uncertain_segments_are_translated_again(tmp_path):
    """Beside a paragraph of the translator's own, any of those before and behind it may be the translation."""
    human = HUMAN.replace("Dieselben Wörter, zuerst.", "Anmerkung: keine.\n\nDieselben Wörter, zuerst.")
    data, system, _ = translated(tmp_path, OLD.encode(), human.encode(), OLD.encode(), "md")
    assert system.asked == ["The same words.", "Between them.", "The same words."]
    assert "> der Hund ist hier.\n\n‹The same words.›\n" in data.decode()


def test_refusals(tmp_path):
    po = b'msgid "The lamp"\nmsgstr ""\n'
    refused("--memory", translated, tmp_path, po, po, po, "po")
    (tmp_path / "new.md").write_text("The lamp")
    paths = tmp_path / "none.md", tmp_path / "none.de.md"
    refused(
        "none.md: the file does not", translate_file, Angled(), tmp_path / "new.md", tmp_path / "x.md", previous=paths
    )


@pytest.mark.parametrize(
    ("texts", "lengths", "shares"),
    [
        (["a" * 10, "b" * 20], [10, 20], ["a" * 10, "b" * 20]),
        (["a" * 10, "b" * 5, "c" * 14], [10, 20], ["a" * 10, "b" * 5 + " " + "c" * 14]),
        (["a" * 9], [5, 20], ["", "a" * 9]),
        ([], [3], [""]),
    ],
)
def test_texts_are_shared_out(texts, lengths, shares):
    assert shared_out(texts, lengths) == shares


def test_a_repeated_segment_keeps_its_translation(tmp_path):
    data, system, _ = translated(
        tmp_path, b"One.\n\nA dog.\n", b"Eins.\n\nHund.\n", b"A dog.\n\nOne.\n\nA dog.\n", "md"
    )
    assert not system.asked and data == b"Hund.\n\nEins.\n\nHund.\n"
