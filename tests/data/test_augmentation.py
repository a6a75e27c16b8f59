"""Augmentation: what changes in an example and what never does; the same in every process, another in every epoch."""

from collections import Counter
from itertools import pairwise

import pytest
import torch
from support.tiny_models import EOS, SEP, UNK, documents_of, random_text, word_tokenizer
from support.tiny_run import facts, recipe_mapping, write_corpus_files
from support.tiny_trainer import Stop, losses, make_trainer, make_training_data, validation_losses

from hf_docmt.data.augmentation import AugmentedExamples
from hf_docmt.data.collators import ContextCollator, SegmentCollator
from hf_docmt.data.examples import Examples
from hf_docmt.training.checkpoints import read_weights
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train

torch.set_num_threads(1)
LENGTHS = [[4, 3, 9, 2, 5, 7], [6], [1, 8, 4]]
TEXTS = [(random_text(sizes, seed=1), random_text(sizes[::-1], seed=2)) for sizes in LENGTHS]
ALL = {"coword_dropout": 0.3, "dynamic_context": True, "target_noise": 0.2}
BOTH = {"coword_dropout": 0.3, "dynamic_context": True}
VIEWS = [
    {"past_context": 3},
    {"past_context": 2, "future_context": 2},
    {"view": "sentence"},
    {"view": "chunk", "max_target_tokens": 16},
]


def examples_of(**settings):
    return Examples(documents_of(*TEXTS), word_tokenizer(), source_lang="en", target_lang="de", **settings)


def augmented(examples, seed=7, **aids):
    return AugmentedExamples(examples, word_tokenizer(), seed=seed, **aids)


def rows_of(changing, epoch=0):
    changing.set_epoch(epoch)
    return [changing[number] for number in range(len(changing))]


@pytest.mark.parametrize("settings", VIEWS)
def test_coword_dropout(settings):
    """Tokens of current source sentences are masked in the right proportion, everything else is as it was."""
    examples, dropped, tokens = examples_of(**settings), 0, 0
    changing = augmented(examples, coword_dropout=0.2)
    for epoch in range(60):
        for row, changed in zip(examples, rows_of(changing, epoch), strict=True):
            assert row | {"source": None} == changed | {"source": None}
            for number, (before, after) in enumerate(zip(row["source"], changed["source"], strict=True)):
                if row["current"] not in (None, number):
                    assert after == before
                    continue
                assert all(new in (old, UNK) for old, new in zip(before, after, strict=True))
                dropped, tokens = dropped + after.count(UNK), tokens + len(before)
    assert tokens > 2000 and dropped / tokens == pytest.approx(0.2, abs=0.03)


def test_special_tokens_stay():
    examples = examples_of(past_context=2)
    collate = SegmentCollator(word_tokenizer(), decoder_start_token_id=2, use_bod=True)
    changing = augmented(examples, coword_dropout=0.99)
    before, after = collate(list(examples)), collate(rows_of(changing))
    changed = before["input_ids"] != after["input_ids"]
    assert changed.sum() > 30 and (after["input_ids"][changed] == UNK).all()
    assert not torch.isin(before["input_ids"][changed], torch.tensor([0, 2, EOS, SEP, 5])).any()
    assert all(torch.equal(before[name], after[name]) for name in before if name != "input_ids")


@pytest.mark.parametrize("settings", [view for view in VIEWS if view.get("view") != "sentence"])
def test_target_noise(settings):
    """Earlier target sentences are read with words of the corpus in the right proportion, and all are learned as is."""
    examples, replaced, tokens = examples_of(**settings), Counter(), 0
    changing = augmented(examples, target_noise=0.2)
    for epoch in range(60):
        for row, changed in zip(examples, rows_of(changing, epoch), strict=True):
            assert row == {name: value for name, value in changed.items() if name != "read_target"}
            last = len(row["target"]) - 1 if row["current"] is None else row["current"]
            assert changed["read_target"][last:] == row["target"][last:]
            for before, after in zip(row["target"][:last], changed["read_target"][:last], strict=True):
                pairs = list(zip(before, after, strict=True))
                replaced.update(new for old, new in pairs if old != new)
                tokens += len(pairs)
    words = Counter(token for row in examples_of(view="sentence") for token in row["target"][0])
    others = 1 - sum((count / words.total()) ** 2 for count in words.values())  # a word is drawn in its own place, too
    assert replaced.keys() <= words.keys() and len(replaced) > len(words) / 2
    assert tokens > 1000 and replaced.total() / tokens == pytest.approx(0.2 * others, abs=0.03)


def test_noise_is_drawn_word_by_word():
    """More pairs of neighbours than the corpus has."""
    changing, kinds = augmented(examples_of(view="chunk"), target_noise=1), {}
    rows = [row for epoch in range(9) for row in rows_of(changing, epoch)]
    for name in ("target", "read_target"):
        kinds[name] = len({pair for row in rows for text in row[name] for pair in pairwise(text)})
    assert kinds["read_target"] > 2 * kinds["target"]


def test_noise_is_read_and_not_learned():
    """In a segment, and in target context of its own."""
    examples = examples_of(past_context=2)
    rows = rows_of(augmented(examples, target_noise=0.5))
    segments = SegmentCollator(word_tokenizer(), decoder_start_token_id=2, use_bod=True)
    before, after = segments(list(examples)), segments(rows)
    changed = before["decoder_input_ids"] != after["decoder_input_ids"]
    assert changed.sum() > 10
    assert not torch.isin(before["decoder_input_ids"][changed], torch.tensor([0, 2, EOS, SEP, 5])).any()
    assert all(torch.equal(before[name], after[name]) for name in before if name != "decoder_input_ids")
    for row, ids in zip(rows, after["decoder_input_ids"].tolist()):
        opening = [5] if row["document_start"] else []
        target = [token for sentence in row["read_target"] for token in [*sentence, SEP]][:-1]
        assert ids[: len(opening) + len(target) + 1] == [2, *opening, *target]
    context = ContextCollator(word_tokenizer(), decoder_start_token_id=2, context_sides="both")
    before, after = context(list(examples)), context(rows)
    changed = before["context_input_ids"] != after["context_input_ids"]
    assert changed.sum() > 10 and not changed[~before["context_is_target"]].any()
    assert all(torch.equal(before[name], after[name]) for name in before if name != "context_input_ids")


def test_mask_token_comes_before_unk():
    tokenizer = word_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "<mask>"})
    row = AugmentedExamples(examples_of(view="sentence"), tokenizer, coword_dropout=0.99)[2]
    assert tokenizer.mask_token_id in row["source"][0] and UNK not in row["source"][0]


@pytest.mark.parametrize(("past", "future"), [(3, 0), (0, 2), (2, 1)])
@pytest.mark.parametrize("sides", ["both", "source"])
def test_dynamic_context(past, future, sides):
    """An example is the one of a smaller window, with empty sentences for the future that is left out."""
    examples = examples_of(past_context=past, future_context=future, context_sides=sides)
    smaller = {size: list(examples_of(past_context=size, future_context=future)) for size in range(past + 1)}
    changing, sizes = augmented(examples, dynamic_context=True), Counter()
    for epoch in range(200):
        for number, (row, changed) in enumerate(zip(examples, rows_of(changing, epoch), strict=True)):
            kept = max(n for n, side in enumerate(changed["source"]) if side or n == changed["current"])
            kept -= changed["current"]  # future sentences, the ones of these texts are never empty
            expected = smaller[changed["current"]][number]
            stop = changed["current"] + 1 + kept
            for side in ("source", "target"):
                rest = [[]] * (len(expected[side]) - stop)
                expected = expected | {side: expected[side][:stop] + rest}
            assert changed == expected
            if row["current"] == past and number == 3:  # there are as many as the window can hold
                sizes[changed["current"], kept] += 1
    assert len(sizes) == (past + 1) * (future + 1)
    assert all(count / 200 == pytest.approx(1 / len(sizes), abs=0.1) for count in sizes.values())


def test_less_context_than_chosen():
    """At the start of a document, numbers beyond the context that there is give all of it."""
    changing = augmented(examples_of(past_context=3), dynamic_context=True)
    sizes = Counter(rows_of(changing, epoch)[1]["current"] for epoch in range(200))  # the second sentence
    assert sizes[0] / 200 == pytest.approx(1 / 4, abs=0.1) and sizes[0] + sizes[1] == 200


def test_dynamic_context_of_chunks():
    """The first or the last sentences, every number of them and every sentence equally often."""
    examples = examples_of(view="chunk", max_target_tokens=16)
    changing, counts, seen, epochs = augmented(examples, dynamic_context=True), Counter(), Counter(), 400
    for epoch in range(epochs):
        for row, changed in zip(examples, rows_of(changing, epoch), strict=True):
            count, start = len(changed["source"]), changed["index"] - row["index"]
            assert start == 0 or start + count == len(row["source"])
            sides = {side: row[side][start : start + count] for side in ("source", "target")}
            opens = row["document_start"] and start == 0
            assert changed == row | sides | {"index": row["index"] + start, "document_start": opens}
        counts[count] += 1
        seen.update(range(start, start + count))
    size = len(row["source"])  # of the last one
    assert len(counts) == size > 2
    assert all(counts[number] / epochs == pytest.approx(1 / size, abs=0.08) for number in counts)
    assert all(seen[sentence] / epochs == pytest.approx((size + 1) / (2 * size), abs=0.08) for sentence in seen)


def test_lengths_are_upper_bounds():
    examples = examples_of(past_context=2, future_context=1)
    changing = augmented(examples, **BOTH)
    assert len(changing) == len(examples)
    assert (changing.lengths == examples.lengths).all() and (changing.side_lengths == examples.side_lengths).all()
    assert changing.mean_source_length == examples.mean_source_length
    assert changing.mean_length_ratio == examples.mean_length_ratio
    for row, longest in zip(rows_of(changing, 5), changing.side_lengths.tolist(), strict=True):
        for side, length in zip(("source", "target"), longest):
            assert sum(len(sentence) + 1 for sentence in row[side]) <= length


def test_off_is_identical():
    examples = examples_of(past_context=2, future_context=1)
    assert rows_of(augmented(examples), epoch=3) == list(examples)


def test_samples_follow_seed_epoch_and_number_only():
    examples = examples_of(past_context=2, future_context=1)
    changing, other = augmented(examples, **BOTH), augmented(examples, **BOTH)
    first, second = rows_of(changing, 0), rows_of(changing, 1)
    assert first != second and rows_of(changing, 0) == first
    assert rows_of(augmented(examples, seed=8, **BOTH)) != first
    other.set_epoch(1)
    assert [other[number] for number in reversed(range(len(other)))] == second[::-1]


def test_fingerprint_tells_augmentations_apart():
    examples = examples_of(past_context=2, future_context=1)
    aids = [BOTH, {"coword_dropout": 0.3}, {"coword_dropout": 0.2}, {"dynamic_context": True}, {"target_noise": 0.1}]
    changing = [augmented(examples, **BOTH, seed=8), *(augmented(examples, **some) for some in aids)]
    assert len({examples.fingerprint, *(augmentation.fingerprint for augmentation in changing)}) == 7
    changing[0].set_epoch(4)
    assert changing[0].fingerprint == augmented(examples, **BOTH, seed=8).fingerprint


def test_no_token_for_dropped_context():
    examples, tokenizer = examples_of(), word_tokenizer()
    tokenizer.unk_token = None
    with pytest.raises(ValueError, match="the tokenizer has neither; set tokenizer.mask_token"):
        AugmentedExamples(examples, tokenizer, coword_dropout=0.1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_training_data(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_resume_inside_the_second_epoch(data, tmp_path, workers):
    def start(folder, callbacks=None):
        changing = (AugmentedExamples(data[0], data[2], seed=1, **BOTH), *data[1:])
        return make_trainer(changing, folder, callbacks, dataloader_num_workers=workers, **steps)

    batches = len(make_trainer(data, tmp_path / "none").get_train_dataloader())
    steps = {"max_steps": batches + 4, "eval_steps": batches + 2, "save_steps": batches + 2}
    straight = start(tmp_path / "straight")
    straight.train()
    with pytest.raises(InterruptedError):
        start(tmp_path / "broken", [Stop(batches + 3)]).train()
    resumed = start(tmp_path / "broken")
    resumed.train(resume_from_checkpoint=True)
    assert losses(resumed) == losses(straight) and len(losses(straight)) == batches + 4
    assert validation_losses(resumed) == validation_losses(straight)


def test_epochs_reach_the_examples(data, tmp_path):
    """Each batch of a training run holds what its epoch makes of the examples."""
    changing = AugmentedExamples(data[0], data[2], seed=1, **BOTH)
    trainer = make_trainer((changing, *data[1:]), tmp_path, max_steps=1)
    loader, seen = trainer.get_train_dataloader(), []
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        numbers = list(loader.batch_sampler)
        batches = [batch["input_ids"] for batch in loader]
        rows = rows_of(changing, epoch)
        expected = [trainer.data_collator([rows[n] for n in batch])["input_ids"] for batch in numbers]
        assert all(torch.equal(batch, other) for batch, other in zip(batches, expected, strict=True))
        seen.append(sorted(batch.sum().item() for batch in batches))
    assert seen[0] != seen[1]


def test_run(tmp_path):
    """A recipe turns the aids on; the validation loss is that of the data as they are."""
    corpus = write_corpus_files(tmp_path)

    def run(name, **aids):
        window = {"past_context": 2, "future_context": 1}
        return train(
            parse_recipe(recipe_mapping(corpus, tmp_path / name, window, max_steps=3, learning_rate=1e-12, **aids))
        )

    plain, first, again = run("plain"), run("one", **ALL), run("again", **ALL)
    assert facts(first)["losses"] == facts(again)["losses"] != facts(plain)["losses"]
    (_, before), (_, after) = facts(plain)["validation_losses"][0], facts(first)["validation_losses"][0]
    assert after == pytest.approx(before, abs=1e-6)  # with weights that have hardly moved
    weights = read_weights(again)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in read_weights(first).items())
