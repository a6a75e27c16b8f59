"""Documents and suites with far clues, resolved again by a reader who sees nothing but their text."""

import hashlib
import json
import re
from collections import Counter, defaultdict

import pytest
from support.discourse_reading import NOUNS, PRONOUN_OF, TERMS, address_of, antecedent, class_of_it, words

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import FAR_CHANCE, make_corpus, make_suites, write_corpus
from hf_docmt.data.synthetic.document_plan import DISTANCES
from hf_docmt.data.synthetic.scene import LEXICON, PRONOUNS
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy
from hf_docmt.evaluation.suites import read_suite

FAR, LONGEST, ITEMS = 30, 40, 2
ANTECEDENTS = ("pronoun", "cataphora", "competing_antecedents")
DIGESTS = {  # of the first version
    "cataphora.json": "a454ac83",
    "competing_antecedents.json": "ec68a2ed",
    "lex_cohesion.json": "841bef48",
    "pronoun.json": "52e18529",
    "register.json": "6b4e60b4",
    "train.jsonl": "1a41e80b",
}
PARTICIPLES = {verb[2] for verb in LEXICON["verbs"]}


@pytest.fixture(scope="module")
def rows():
    return make_corpus(seed=3, train=200, validation=0, test=0, sentences=(6, LONGEST), far=FAR)["train"]


@pytest.fixture(scope="module")
def suites():
    return make_suites(seed=5, items_per_cell=ITEMS, longest=LONGEST, far=FAR)


@pytest.fixture(scope="module")
def texts(suites):
    """(English, German) sentences of every document of the suites by its id."""
    return {row["doc_id"]: sides(row) for row in suites["documents"]}


def sides(row):
    return tuple([pair[lang] for pair in row["translation"]] for lang in ("en", "de"))


def candidates(item):
    return [item["ref segment"], *(error["contrastive"] for error in item["errors"])]


def test_a_reader_resolves_every_sentence(rows):
    """Everything that context decides follows from the text, with the phenomenon and distance of its label."""
    seen = Counter()
    for row in rows:
        english, german = sides(row)
        formal = bool(re.search(r"\b(Herr|Frau) ", german[0]))
        taken_up, terms, addressed = {}, {}, 0
        for index, label in enumerate(row["phenomena"]):
            phenomenon = re.sub(r"-\d+$", "", label)
            if re.search(r"\b[Ii]t\b", english[index]):
                noun, distance = antecedent(english, index)
                pronouns = PRONOUN_OF[NOUNS[noun][1]] & {word.lower() for word in words(german[index])}
                assert len(pronouns) == 1 and label == f"{phenomenon}-{abs(distance)}" and abs(distance) <= FAR
                two = len(
                    {word for text in german for word in words(text) if NOUNS.get(word, "??")[2:] == (NOUNS[noun][2],)}
                )
                assert phenomenon == ("cataphora" if distance < 0 else ("pronoun", "competing_antecedents")[two - 1])
                # the pronoun before, whose German would tell, is not nearer than the noun
                assert taken_up.get(NOUNS[noun][2], -1) <= index - distance if distance > 0 else True
                assert distance >= 0 or NOUNS[noun][2] not in taken_up
                taken_up[NOUNS[noun][2]] = index
            elif address_of(german[index]):
                assert (
                    address_of(german[index]) == {"Sie" if formal else "du"} and label == f"deixis-{index - addressed}"
                )
                addressed = index
            elif used := [word for word in words(german[index]) if word in TERMS]:
                term = TERMS[used[0]][0]
                before, word = terms.get(term, (None, used[0]))
                assert used == [word] and label == (
                    "lex_cohesion" if before is None else f"lex_cohesion-{index - before}"
                )
                terms[term] = index, word
            elif phenomenon == "ellipsis":
                (verb,) = PARTICIPLES & set(words(german[index]))
                assert verb in words(german[index - 1]) and label == "ellipsis-1"
            else:
                assert label in ("greeting", "mention", "action")
            seen[phenomenon] += 1
    assert set(seen) == {*ANTECEDENTS, "greeting", "mention", "action", "deixis", "lex_cohesion", "ellipsis"}


def test_growing_keeps_documents_and_clues_are_within_the_limit(rows):
    assert make_corpus(seed=3, train=9, validation=1, test=1, sentences=(6, LONGEST), far=FAR)["train"] == rows[:9]
    few = make_corpus(seed=3, train=60, validation=0, test=0, sentences=(3, 9), far=1)["train"]
    labels = {label for row in few for label in row["phenomena"] if not label.startswith("deixis")}
    assert "cataphora-1" in labels and not [label for label in labels if int((re.findall(r"\d+", label) or "0")[0]) > 1]


def test_sizes(suites):
    cells = len(DISTANCES)
    sizes = {name: len(items) for name, items in suites.items()}
    assert sizes.pop("documents") == sum(sizes.values()) - sizes["deixis"] - sizes["ellipsis"]
    assert sizes.keys() == FAR_CHANCE.keys()
    assert sizes == {
        **dict.fromkeys(ANTECEDENTS, 3 * cells * ITEMS),
        "lex_cohesion": 2 * cells * ITEMS,
        "register": 2 * (cells + 1) * ITEMS,
        "deixis": 6 * ITEMS,
        "ellipsis": 4 * ITEMS,
    }
    assert 5 * sum(sizes.values()) < 1500
    assert {i["ante distance"] for i in suites["pronoun"]} == set(DISTANCES)
    assert {-i["ante distance"] for i in suites["cataphora"]} == set(DISTANCES)
    assert max(item["ante distance"] for item in suites["register"]) == LONGEST - 1


@pytest.mark.parametrize("name", ANTECEDENTS)
def test_antecedents_of_items_follow_from_their_document(suites, texts, name):
    for item in suites[name]:
        english, german = texts[item["document id"]]
        index = item["segment id"] - 1
        assert (english[index], german[index]) == (item["src segment"], item["ref segment"])
        noun, distance = antecedent(english, index)
        assert PRONOUNS[NOUNS[noun][1]] == item["ref pronoun"] and distance == item["ante distance"]
        assert noun == item["ref ante head"] and noun in words(german[index - distance])
        of_class = [
            at for at, text in enumerate(english) for word in words(text) if named_class(word) == NOUNS[noun][2]
        ]
        assert of_class == [index - distance] * (2 if name == "competing_antecedents" else 1)
        pronouns = [at for at, text in enumerate(english) if re.search(r"\b[Ii]t\b", text)]
        assert [at for at in pronouns if class_of_it(english[at]) == NOUNS[noun][2]] == [index]


def named_class(english):
    return next((kind for word, _, kind in NOUNS.values() if word == english), None)


def test_a_group_has_one_current_sentence_with_every_answer_equally_often(suites):
    sizes = FAR_CHANCE | {"competing_antecedents": 1 / 6}
    for name, chance in sizes.items():
        grouped = defaultdict(list)
        for item in suites[name]:
            grouped[item["group"]].append(item)
        assert {len(group) for group in grouped.values()} == {round(1 / chance)}
        for group in grouped.values():
            if name in ("deixis", "ellipsis"):
                finals = {
                    (item["src"].split(" _eos ")[-1], *(t.split(" _eos ")[-1] for t in item["dst"])) for item in group
                }
                answers = Counter(item["true_ind"] for item in group)
            else:
                finals = {(item["src segment"], *sorted(candidates(item))) for item in group}
                answers = Counter(item["ref segment"] for item in group)
            assert len(finals) == 1 and len(set(answers.values())) == 1 and len(answers) == round(1 / FAR_CHANCE[name])


def test_only_the_greeting_tells_the_register(suites, texts):
    for item in suites["register"]:
        english, german = texts[item["document id"]]
        assert len(german) == item["ante distance"] + 1 and not any(map(address_of, german[:-1]))
        assert address_of(german[-1]) == {"Sie" if re.search(r"\b(Mr|Mrs) ", english[0]) else "du"}
    for first, other in zip(suites["register"][::2], suites["register"][1::2]):
        rest = [[side[1:] for side in texts[item["document id"]]] for item in (first, other)]
        assert rest[0][0] == rest[1][0] and rest[0][1][:-1] == rest[1][1][:-1]
        assert first["ref segment"] == other["errors"][0]["contrastive"]
        assert first["src segment"] == other["src segment"]


def test_suites_are_read_with_the_whole_document(suites, texts, tmp_path):
    """The scorer gets the clue, before or after, and reports all distances apart."""
    write_documents(suites["documents"], tmp_path / "documents.jsonl")
    for name in (*ANTECEDENTS, "lex_cohesion", "register"):
        (tmp_path / f"{name}.json").write_text(json.dumps(suites[name]), encoding="utf-8")
        items = read_suite(tmp_path / f"{name}.json", context=100, future_context=100)
        for item, entry in zip(items, suites[name], strict=True):
            english, german = texts[entry["document id"]]
            assert [*item.source, *item.source_after] == english
            assert [*item.target_context, item.candidates[item.correct], *item.target_after] == german
            assert len(item.source_after if item.distance < 0 else item.target_context) >= abs(item.distance)
        breakdown = contrastive_accuracy(items, [[0.0] + [1.0] * (len(i.candidates) - 1) for i in items]).breakdown
        distances = {label for label in breakdown if label.startswith("exact_distance=")}
        assert distances == {f"exact_distance={item.distance}" for item in items}


def test_bytes_stay(tmp_path):
    """Tables of studies are of a corpus that is made again by its settings."""
    sizes = {"train": 30, "validation": 5, "test": 5, "suite_items": 3}
    folder = write_corpus(tmp_path / "far", seed=4, sentences=(6, 12), far=8, **sizes)
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.json*")}
    assert {name: digests[name][:8] for name in DIGESTS} == DIGESTS


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"far": -1}, "far: got -1, expected a number of sentences, or 0"),
        ({"far": 2.5}, "far: got 2.5, expected a number of sentences, or 0"),
        ({"far": 9}, "far: got 9, but the longest document has 10 sentences; ask for 11 or more"),
        ({"far": 8, "cataphora": 0.1}, "cataphora: got 0.1 with far 8, whose documents have it; omit cataphora"),
    ],
)
def test_impossible_sizes_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_corpus(train=1, validation=0, test=0, **wrong)
