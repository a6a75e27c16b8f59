"""Models in an unmodified Seq2SeqTrainer of transformers."""

import math
import pickle

import pytest
import torch
from support.tiny_models import build, documents_of, random_text, word_tokenizer
from transformers import GenerationConfig, Seq2SeqTrainer, Seq2SeqTrainingArguments
from transformers.trainer_pt_utils import LabelSmoother, LengthGroupedSampler
from transformers.utils.generic import find_labels

from hf_docmt.loading import registry

DOCUMENTS = documents_of(*[(random_text([3, 2, 4], seed), random_text([2, 3, 3], seed + 9)) for seed in range(3)])


SPECIAL_TOKENS = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 2}


def plain_trainer(architecture: str, folder, collate=None, generation_config=None, **fields) -> Seq2SeqTrainer:
    """A trainer that leaves the examples whole, and is told nothing else of documents."""
    model, tokenizer = build(architecture, **fields), word_tokenizer()
    examples = registry.get(architecture).examples(DOCUMENTS, tokenizer, model.config)
    return Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            str(folder),
            max_steps=2,
            per_device_train_batch_size=4,
            remove_unused_columns=False,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            generation_config=generation_config,
        ),
        train_dataset=examples,
        eval_dataset=examples,
        data_collator=collate or registry.get(architecture).collator(model.config, tokenizer),
    )


@pytest.mark.parametrize(
    "architecture", [name for name in registry.ARCHITECTURES if not registry.get(name).carries_state]
)
def test_loss_of_validation(architecture, tmp_path):
    trainer = plain_trainer(architecture, tmp_path)
    trainer.train()
    losses = [trainer.evaluate()["eval_loss"] for _ in range(2)]
    assert math.isfinite(losses[0]) and losses[0] == losses[1]


@pytest.mark.parametrize("processing", [None, word_tokenizer()])
@pytest.mark.parametrize("architecture, fields", [("concat", {"past_context": 2}), ("doct", {"past_context": 1})])
def test_batches_of_equal_length(architecture, fields, processing, tmp_path):
    """Its samplers by length find the source tokens of every example, whatever names the first input."""
    trainer = plain_trainer(architecture, tmp_path, **fields)
    trainer.args.train_sampling_strategy, trainer.processing_class = "group_by_length", processing
    sampler = trainer._get_train_sampler()
    assert isinstance(sampler, LengthGroupedSampler)
    assert sampler.lengths == [sum(map(len, row["source"])) for row in trainer.train_dataset]
    assert trainer.train().global_step == 2 and math.isfinite(trainer.evaluate()["eval_loss"])
    trainer.args.train_sampling_strategy = "batch_rebalance"
    assert trainer.train().global_step == 2


def test_predictions_are_padded_to_the_longest_translation(tmp_path):
    """Its `prediction_step` does so, after `generate`, by `generation_config.max_length`: the limit of the model.

    A configuration in the arguments sets another one; `generate` itself ends with the batch.
    """
    trainer = plain_trainer("window", tmp_path, view="chunk")
    trainer.args.predict_with_generate = True
    predictions = trainer.predict(trainer.eval_dataset).predictions
    batch = trainer.data_collator(list(trainer.eval_dataset))
    generated = trainer.model.generate(**{name: batch[name] for name in ("input_ids", "attention_mask")}).numpy()
    width = generated.shape[1]
    assert width < 20 < predictions.shape[1] == trainer.model.config.longest_translation
    assert (predictions[:, :width] == generated).all() and (predictions[:, width:] == 0).all()

    config = GenerationConfig(max_length=20, **SPECIAL_TOKENS)
    shorter = plain_trainer("window", tmp_path, generation_config=config, view="chunk")
    shorter.args.predict_with_generate = True
    assert (shorter.predict(shorter.eval_dataset).predictions == predictions[:, :20]).all()


def test_examples_are_dicts_still():
    examples = registry.get("concat").examples(DOCUMENTS, word_tokenizer(), build().config)
    assert list(examples[0]) == ["doc_id", "index", "source", "target", "current", "document_start"]
    assert examples[0] == dict(examples[0]) == pickle.loads(pickle.dumps(examples[0]))
    assert "input_ids" in examples[0] and "labels" not in examples[0]
    with pytest.raises(KeyError, match="labels"):
        examples[0]["labels"]


def test_label_weights_are_not_labels():
    for architecture in registry.ARCHITECTURES.values():
        assert find_labels(architecture.model_class) == ["labels"]


def test_discount_under_label_smoothing_of_the_trainer(tmp_path):
    """Its loss sees no weights: the discount would be lost without a word."""
    config = build(past_context=2).config
    collate = registry.get("concat").collator(config, word_tokenizer(), context_discount=0.1)
    trainer = plain_trainer("concat", tmp_path, collate=collate, past_context=2)
    assert trainer.train().global_step == 2
    trainer.label_smoother = LabelSmoother(epsilon=0.1)
    with pytest.raises(ValueError, match=r"label_weights .*got none.*label_smoothing_factor.*set it to 0"):
        trainer.train()


def test_memory_is_refused(tmp_path):
    """A trainer that carries no memory from sentence to sentence; where none is to be carried it trains."""
    with pytest.raises(ValueError, match=r"a training step without a memory.*StreamTrainer"):
        plain_trainer("memory", tmp_path).train()

    def alone(examples):
        batch = collate(examples)
        return batch | {"document_start": torch.ones(len(batch["labels"]), dtype=torch.bool)}

    collate = registry.get("memory").collator(build("memory").config, word_tokenizer())
    trainer = plain_trainer("memory", tmp_path, collate=alone)
    assert trainer.train().global_step == 2 and math.isfinite(trainer.evaluate()["eval_loss"])
