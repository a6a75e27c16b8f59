"""The built-in discourse corpus: determinism, German, balance, suites recomputed from their own text, the data card."""

import hashlib
import json
import re
from collections import Counter, defaultdict

import datasets
import pytest
from huggingface_hub import DatasetCard
from support.discourse_reading import NOUNS, TERMS, address_of, class_of_it, mentions_of_class, words
from support.errors import refused

from hf_docmt.data.synthetic.corpus import CHANCE, FAR_CHANCE, SPLITS, make_corpus, make_suites, write_corpus
from hf_docmt.data.synthetic.scene import LEXICON, PRONOUNS

DIGESTS = {
    "cataphora.json": "3a782d77",
    "deixis.json": "03dca399",
    "documents.jsonl": "cb5d5bdf",
    "ellipsis.json": "f54b7a3c",
    "lex_cohesion.json": "700db3be",
    "pronoun.json": "d9e09723",
    "register.json": "ce26dc49",
    "test.jsonl": "146d4be1",
    "train.jsonl": "42eb87ae",
    "validation.jsonl": "fa931353",
}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(seed=3, train=600, validation=40, test=40)


@pytest.fixture(scope="module")
def suites():
    return make_suites(seed=5, items_per_cell=12)


@pytest.fixture(scope="module")
def texts(corpus, suites):
    """Every English-German sentence pair of the corpus and of the suites' right answers."""
    pairs = [(p["en"], p["de"]) for row in [*corpus["train"], *suites["documents"]] for p in row["translation"]]
    for name in ("deixis", "lex_cohesion", "ellipsis"):
        for item in suites[name]:
            pairs += zip(item["src"].split(" _eos "), item["dst"][item["true_ind"]].split(" _eos "))
    return pairs


def test_same_seed_same_corpus_and_growing_keeps_documents(corpus):
    assert make_corpus(seed=3, train=600, validation=40, test=40) == corpus
    smaller = make_corpus(seed=3, train=10, validation=40, test=40)
    assert smaller["train"] == corpus["train"][:10] and smaller["test"] == corpus["test"]
    assert make_corpus(seed=4, train=10, validation=0, test=0)["train"] != smaller["train"]


def test_rows_follow_the_document_contract(corpus):
    assert list(corpus) == list(SPLITS) and [len(rows) for rows in corpus.values()] == [600, 40, 40]
    for row in (row for rows in corpus.values() for row in rows):
        assert set(row) == {"doc_id", "translation", "phenomena"}
        assert 6 <= len(row["translation"]) == len(row["phenomena"]) <= 10
        assert all(set(pair) == {"en", "de"} and all(pair.values()) for pair in row["translation"])


def test_no_document_is_in_two_splits(corpus):
    rows = [row for split in SPLITS for row in corpus[split]]
    assert len({row["doc_id"] for row in rows}) == len(rows)
    assert len({json.dumps(row["translation"]) for row in rows}) == len(rows)


def test_very_short_documents_stay_disjoint_or_are_refused(monkeypatch):
    corpus = make_corpus(train=150, validation=50, test=50, sentences=(1, 1))
    texts = [json.dumps(row["translation"]) for rows in corpus.values() for row in rows]
    assert len(set(texts)) == 250
    monkeypatch.setattr("hf_docmt.data.synthetic.corpus._ATTEMPTS", 3)
    refused("fewer or longer documents", make_corpus, train=4000, validation=0, test=0, sentences=(1, 1))


def test_labels_match_the_text(corpus):
    for row in corpus["train"]:
        english = [pair["en"] for pair in row["translation"]]
        german = [pair["de"] for pair in row["translation"]]
        clue, term_indices = 0, []
        assert row["phenomena"][0] == "greeting"
        for index, label in enumerate(row["phenomena"]):
            is_pronoun, is_address = re.search(r"\b[Ii]t\b", english[index]), address_of(german[index])
            assert bool(is_pronoun) == label.startswith("pronoun") and bool(is_address) == label.startswith("deixis")
            if is_pronoun:
                named = mentions_of_class(german[: index + 1], class_of_it(english[index]))
                assert label == f"pronoun-{index - named[-1][0]}"
            if is_address:
                assert label == f"deixis-{index - clue}"
                clue = index
            used = [index for word in words(german[index]) if word in TERMS]
            term_indices += used
            if used:
                distance = f"-{index - term_indices[-2]}" if len(term_indices) > 1 else ""
                assert label == f"lex_cohesion{distance}"


def test_lexicon_is_balanced_and_unambiguous():
    assert all(len(nouns) == 3 for genders in LEXICON["nouns"].values() for nouns in genders.values())
    english = [entry[0] for entry in NOUNS.values()] + [term["en"] for term in LEXICON["terms"]]
    assert len(NOUNS) == 54 and len(set(english)) == len(english) == 57
    assert len({tuple(pair) for pair in LEXICON["addressees"]["du"]}) == len(LEXICON["addressees"]["Sie"])
    participles = [verb[2] for verb in LEXICON["verbs"]]
    assert len(set(participles)) == len(participles) >= 4


def test_sentences_are_written_correctly(texts):
    for english, german in texts:
        for text in (english, german):
            assert text[0].isupper() and text[-1] in ".?" and "  " not in text and not set("{}") & set(text)
        assert english.endswith("?") == german.endswith("?")
        assert not re.search(r"\b(haben|können|wohnen|sehen|mögen|warten) sie\b|\bihnen\b|\bihre\b", german)


def test_suites_are_deterministic_and_of_the_stated_size(suites):
    assert make_suites(seed=5, items_per_cell=12) == suites
    assert make_suites(seed=5, items_per_cell=2)["deixis"] == suites["deixis"][: 2 * 6]
    sizes = {name: len(items) for name, items in suites.items()}
    assert sizes == {
        "pronoun": 180,
        "register": 216,
        "documents": 396,
        "deixis": 72,
        "lex_cohesion": 72,
        "ellipsis": 48,
    }


def test_pronoun_distance_and_answer_follow_from_the_text(suites):
    documents = {row["doc_id"]: row for row in suites["documents"]}
    for item in suites["pronoun"]:
        german = [pair["de"] for pair in documents[item["document id"]]["translation"]]
        index, distance = item["segment id"] - 1, item["ante distance"]
        assert index == len(german) - 1 >= 3
        (named,) = mentions_of_class(german, class_of_it(item["src segment"]))
        assert index - named[0] == distance and PRONOUNS[named[1]] == item["ref pronoun"]
        between = [{NOUNS[w][1] for w in words(text) if w in NOUNS} for text in german[named[0] + 1 : index]]
        assert all(len(genders) == 1 for genders in between)
        genders = [gender for group in between for gender in group]
        assert len(set(genders)) == len(genders)
        assert named[1] not in genders if distance < 4 else sorted(genders) == sorted(PRONOUNS)
        head = words(german[named[0]])[item["ref ante head id"] - 1]
        assert head == item["ref ante head"] and item["ref ante phrase"].endswith(head)
        if distance < 2:  # a noun of another gender stands nearer to the pronoun
            after = german[named[0]].split(head)[1]
            assert {NOUNS[word][1] for word in words(after) if word in NOUNS} - {named[1]}


def test_deixis_answer_and_distance_follow_from_the_text(suites):
    for item in suites["deixis"]:
        *context, answer = item["dst"][item["true_ind"]].split(" _eos ")
        register = "Sie" if re.search(r"\b(Herr|Frau) ", context[0]) else "du"
        assert address_of(answer) == {register}
        clues = [0] + [index for index, text in enumerate(context) if address_of(text)]
        assert item["ctx_dist"] == 3 - clues[-1] and all(address_of(context[c]) == {register} for c in clues[1:])
        assert {frozenset(address_of(text.split(" _eos ")[3])) for text in item["dst"]} == {
            frozenset({"du"}), frozenset({"Sie"}),
        }  # fmt: skip


def test_term_answer_and_distance_follow_from_the_text(suites):
    for item in suites["lex_cohesion"]:
        *context, answer = item["dst"][item["true_ind"]].split(" _eos ")
        used = [(index, word) for index, text in enumerate(context) for word in words(text) if word in TERMS]
        ((index, term),) = used
        assert term in words(answer) and item["ctx_dist"] == 3 - index
        finals = [words(text.split(" _eos ")[3]) for text in item["dst"]]
        assert [set(column) for column in zip(*finals) if len(set(column)) > 1] == [set(TERMS[term][2])]


def test_ellipsis_takes_the_verb_before_it_and_another_person(suites):
    participles = {verb[2]: verb for verb in LEXICON["verbs"]}
    for item in suites["ellipsis"]:
        *context, answer = item["dst"][item["true_ind"]].split(" _eos ")
        (verb,) = [word for word in words(context[2]) if word in participles]
        assert item["ctx_dist"] == 1 and not set(words(item["src"].split(" _eos ")[3])) & {
            v[0] for v in LEXICON["verbs"]
        }
        for candidate in item["dst"]:
            last = words(candidate.split(" _eos ")[3])
            (own,) = [word for word in last if word in participles]
            assert participles[own][1] in [word.lower() for word in last]
            assert (own == verb) == (candidate == item["dst"][item["true_ind"]])
        assert not set(words(context[2])) & set(words(answer)) & set(LEXICON["names"])


def test_without_context_accuracy_is_chance(suites):
    """The best answer that looks at the current sentence and its candidates only is right in exactly CHANCE."""
    seen = defaultdict(lambda: defaultdict(Counter))
    for item in suites["pronoun"]:
        candidates = frozenset([item["ref segment"], *(error["contrastive"] for error in item["errors"])])
        if item["ante distance"]:
            seen["pronoun", item["ante distance"]][item["src segment"], candidates][item["ref segment"]] += 1
    for name in ("deixis", "lex_cohesion", "ellipsis"):
        for item in suites[name]:
            finals = [text.split(" _eos ")[3] for text in item["dst"]]
            key = item["src"].split(" _eos ")[3], frozenset(finals)
            seen[name, item["ctx_dist"]][key][finals[item["true_ind"]]] += 1
    assert len(seen) == 4 + 3 + 3 + 1
    for (name, _), groups in seen.items():
        best = sum(max(answers.values()) for answers in groups.values())
        assert best / sum(answers.total() for answers in groups.values()) == pytest.approx(CHANCE[name])


def test_bytes_stay(tmp_path):
    """Tables of studies are of a corpus that is made again by its settings."""
    sizes = {"train": 30, "validation": 5, "test": 5, "suite_items": 3}
    folder = write_corpus(tmp_path / "near", seed=4, cataphora=0.2, **sizes)
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:8] for file in folder.glob("*.json*")}
    assert digests == DIGESTS


@pytest.mark.parametrize(
    "options, message",
    [
        ({"train": -1}, "train: got -1 documents, expected an integer"),
        ({"validation": 2.5}, "validation: got .* expected an integer"),
        ({"test": "3"}, "test: got .* expected an integer"),
        *(({"sentences": sentences}, "shortest <= longest") for sentences in [(0, 4), (5, 4), (6,), (2.0, 3), 7, "ab"]),
        *(({"cataphora": share}, f"cataphora: got {share}, expected a share from 0") for share in (-0.1, 1.5)),
    ],
)
def test_bad_options(options, message):
    refused(message, make_corpus, **{"train": 1} | options)


@pytest.mark.parametrize("items", [-1, 1.5])
def test_bad_suite_size(items, tmp_path):
    refused("items_per_cell: got", make_suites, 0, items)
    refused("items_per_cell: got", write_corpus, tmp_path / "corpus", train=1, validation=1, test=1, suite_items=items)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options, phenomena",
    [({}, "Four"), ({"cataphora": 0.2}, "Five"), ({"far": 8, "sentences": (6, 12)}, "Six")],
)
def test_the_card(tmp_path, options, phenomena):
    """Numbers and phenomena; `datasets` finds the splits, and suites and their documents are no data of them."""
    sizes = {"train": 3, "validation": 2, "test": 0, "suite_items": 1}
    folder = write_corpus(tmp_path / "corpus", seed=7, **options, **sizes)
    card = DatasetCard.load(folder / "README.md")
    assert card.data.language == ["en", "de"] and card.data.license == "apache-2.0"
    rows = (folder / "train.jsonl").read_text().count('"en"')
    assert f"| train | 3 | {rows} |" in card.text and "from a seed (7)" in card.text
    assert "| test |" not in card.text and "deixis, ellipsis" in card.text
    assert f"{phenomena} phenomena need" in card.text
    assert ("| competing_antecedents |" in card.text) == ("up to 8 sentences" in card.text) == ("far" in options)
    suites = FAR_CHANCE if "far" in options else [*CHANCE, "register", *options]
    assert {file.stem for file in folder.glob("*.json")} == set(suites)
    assert ("| cataphora |" in card.text) == (folder / "cataphora.json").exists() == bool(options)
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 3, "validation": 2}
    assert set(loaded["train"].column_names) >= {"doc_id", "translation", "phenomena"}
