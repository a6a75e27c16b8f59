"""Running text cut into sentences, and put together again."""

import random

import pytest

from hf_docmt.modeling.text_splitting import join_text, split_text

TEXTS = {
    "She sleeps. It is late!  Really? Yes.": ["She sleeps.", "It is late!", "Really?", "Yes."],
    "Dr. Who met J. R. Smith, e.g. on Monday. He left.": [
        "Dr. Who met J. R. Smith, e.g. on Monday.",
        "He left.",
    ],
    "Das war am 3. Mai, z. B. in Bonn. Und 1990. Danach bzw. Später nicht.": [
        "Das war am 3. Mai, z. B. in Bonn.",
        "Und 1990.",
        "Danach bzw. Später nicht.",
    ],
    "“Really?” she asked. “No.” He left (at last). … Then … and so on": [
        "“Really?” she asked.",
        "“No.”",
        "He left (at last).",
        "…",
        "Then … and so on",
    ],
    "¿Quién es? ¡Ana! —No. 7.5 y 3.": ["¿Quién es?", "¡Ana!", "—No.", "7.5 y 3."],
    "你好。她说：“晚安！”他走了。": ["你好。", "她说：“晚安！”", "他走了。"],
    "यह है। वह है।": ["यह है।", "वह है।"],
    "no end\nnext line\r\n\r\n\tA. Last one.\n": ["no end", "next line", "A. Last one."],
    "It is No. 112. Then he left on Jan. 112. So.": ["It is No. 112.", "Then he left on Jan. 112.", "So."],
    "1. Red vs. Blue is in Vol. 3, No. 2, pp. 4-5. 2. Approx. 9 of them (see Figs. 6 and 7) left.": [
        "1. Red vs. Blue is in Vol. 3, No. 2, pp. 4-5.",
        "2. Approx. 9 of them (see Figs. 6 and 7) left.",
    ],
    "(They were inside.) This (really?) Ends. Ends at 2.5. II. Das neue (bessere!) Haus. „Gut.“ Er **ging.** So.": [
        "(They were inside.)",
        "This (really?) Ends.",
        "Ends at 2.5.",
        "II. Das neue (bessere!) Haus.",
        "„Gut.“",
        "Er **ging.**",
        "So.",
    ],
    "": [],
    " \n\n ": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_sentences(text):
    sentences, gaps = split_text(text)
    assert sentences == TEXTS[text]
    assert len(gaps) == len(sentences) + 1
    rejoined = "".join(gap + sentence for gap, sentence in zip(gaps, [*sentences, ""]))
    assert rejoined == text
    if "你" not in text:
        assert join_text(sentences, gaps) == text


def test_every_text_comes_back():
    """Lines, paragraphs and indents of any text; between sentences of a line as their script has it."""
    draw = random.Random(1)
    for _ in range(300):
        pieces = draw.choices(
            ["A", "b", "12", ".", "!", "。", "”", "Mr", " ", "  ", "\t", "\n", "\r\n", "\u2028"], k=12
        )
        text = "".join(pieces)
        sentences, gaps = split_text(text)
        assert "".join(gap + sentence for gap, sentence in zip(gaps, [*sentences, ""])) == text
        assert all(sentence and sentence == sentence.strip() for sentence in sentences)
        assert not any(len(sentence.splitlines()) > 1 for sentence in sentences)
        translated = join_text(["x"] * len(sentences), gaps)
        assert [line.strip() == "" for line in translated.splitlines()] == [
            line.strip() == "" for line in text.splitlines()
        ]
        assert [line[: len(line) - len(line.lstrip())] for line in translated.splitlines()] == [
            line[: len(line) - len(line.lstrip())] for line in text.splitlines()
        ]


def test_blanks_of_another_script():
    sentences, gaps = split_text("你好。她睡了。\n再见！")
    assert join_text(["Hello.", "She sleeps.", "Bye!"], gaps) == "Hello. She sleeps.\nBye!"
    sentences, gaps = split_text("Hello. She sleeps.\n\nBye!")
    assert join_text(["你好。", "她睡了。", "再见！"], gaps) == "你好。她睡了。\n\n再见！"


def test_closing_marks_at_the_end_of_a_line_stay_with_their_sentence():
    assert split_text("「你好。」\n再见！！") == (["「你好。」", "再见！！"], ["", "\n", ""])
