"""DocMTTrainer: loss, gradients, learning rates, validation, checkpoints and resuming."""

import json
import resource
from pathlib import Path

import pytest
import torch
from support.errors import refused
from support.tiny_run import SIZES
from support.tiny_trainer import Stop, losses, make_config, make_trainer, validation_losses
from transformers import EarlyStoppingCallback, TrainerCallback

from hf_docmt.loading import registry
from hf_docmt.training.arguments import DocMTTrainingArguments
from hf_docmt.training.checkpoints import average_weights, checkpoint_steps, read_weights, steps_to_average

torch.set_num_threads(1)


class Gradients(TrainerCallback):
    """Keeps the gradients of the first update."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if state.global_step == 0:
            self.first = {name: p.grad.clone() for name, p in model.named_parameters()}


def test_accumulation_equals_large_batch(data, tmp_path):
    single, many = Gradients(), Gradients()
    whole = make_trainer(data, tmp_path / "a", [single], dropout=0.0, max_tokens=10**6, max_steps=1, max_grad_norm=0)
    parts = len(make_trainer(data, tmp_path / "b", max_tokens=300).get_train_dataloader())
    assert parts > 4
    accumulated = make_trainer(
        data,
        tmp_path / "c",
        [many],
        dropout=0.0,
        max_tokens=300,
        max_steps=1,
        gradient_accumulation_steps=parts,
        max_grad_norm=0,
    )
    whole.train()
    accumulated.train()
    assert losses(whole)[0][1] == pytest.approx(losses(accumulated)[0][1], abs=1e-6)
    for name, gradient in single.first.items():
        torch.testing.assert_close(many.first[name], gradient, atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_validation_of_window_models_is_by_the_alignment_of_search(data, tmp_path):
    """b_i = i here, not the ratio of lengths that training takes: the loss with these columns of the source given."""
    fields = {**SIZES, "past_context": 2, "window": 1, "alignment": "one_to_one", "init_std": 0.3}
    config = registry.get("window").config_class(vocab_size=len(data[2]), **fields)
    trainer = make_trainer(data, tmp_path, max_tokens=150, context_discount=1.0)
    trainer.model = model = registry.get("window").model_class(config)
    loss = trainer.evaluate()["eval_loss"]
    batch = trainer.data_collator([data[1][i] for i in range(len(data[1]))])
    columns = torch.arange(batch["labels"].shape[1])[None].minimum(batch["attention_mask"].sum(1, keepdim=True) - 1)
    assert loss == pytest.approx(model.eval()(**batch, decoder_alignment=columns).loss.item(), abs=1e-5)
    config.alignment = "sentence"
    assert abs(trainer.evaluate()["eval_loss"] - loss) > 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory_gradient": 1}, "memory_gradient must be >= 2, .* got 1"),
        ({"stop_on": "undiscount"}, "unknown stop_on 'undiscount': expected one of discounted, undiscounted"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    refused(message, DocMTTrainingArguments, output_dir=str(tmp_path), **arguments)


def test_smoothing_without_label_weights_is_refused(data, tmp_path):
    with pytest.raises(ValueError, match=r"label_smoothing_factor must be 0, got 0.1.* set label_smoothing in"):
        make_trainer(data, tmp_path, label_smoothing_factor=0.1)


def test_validation_loss_without_the_discount(data, tmp_path):
    """-sum w log p over the number of tokens; w is the discount on context, with `stop_on` undiscounted 1."""
    expected, loss = {}, {}
    for stop_on in ("discounted", "undiscounted"):
        trainer = make_trainer(data, tmp_path, max_tokens=150, stop_on=stop_on)
        trainer.data_collator.context_discount = 0.25
        assert len(trainer.get_eval_dataloader()) > 3
        loss[stop_on] = trainer.evaluate()["eval_loss"]
        batch = trainer.data_collator([data[1][i] for i in range(len(data[1]))])
        with torch.no_grad():
            logits = trainer.model(**{name: x for name, x in batch.items() if name != "label_weights"}).logits
        log_p = logits.log_softmax(-1).gather(2, batch["labels"].clamp(min=0)[..., None])[..., 0]
        weights = batch["label_weights"] if stop_on == "discounted" else (batch["labels"] != -100).float()
        assert set(batch["label_weights"].unique().tolist()) == {0, 0.25, 1}
        expected[stop_on] = -float((weights * log_p).sum() / (batch["labels"] != -100).sum())
    assert loss == pytest.approx(expected, abs=1e-5) and loss["undiscounted"] > loss["discounted"]


@pytest.mark.parametrize("stop_on", ["discounted", "undiscounted"])
def test_predictions_by_generate(data, tmp_path, stop_on):
    """Those of `generate` from the source alone; the loss is that of validation, in one batch."""
    trainer = make_trainer(
        data, tmp_path, predict_with_generate=True, stop_on=stop_on, max_tokens=10**6, per_device_eval_batch_size=100
    )
    loss = trainer.evaluate()["eval_loss"]
    predicted = trainer.predict(data[1], max_length=12, num_beams=2)
    batch = trainer.data_collator([data[1][i] for i in range(len(data[1]))])
    source = {name: batch[name] for name in ("input_ids", "attention_mask")}
    expected = trainer.model.generate(**source, max_length=12, num_beams=2)
    assert "label_weights" in batch and predicted.predictions[:, :12].tolist() == expected.tolist()
    assert (predicted.predictions[:, 12:] == data[2].pad_token_id).all()
    assert predicted.label_ids.tolist() == batch["labels"].tolist()
    assert predicted.metrics["test_loss"] == pytest.approx(loss, abs=1e-6)

    trainer.compute_metrics = lambda predictions: {"rows": len(predictions.predictions)}
    metrics = trainer.evaluate(max_length=12)
    assert metrics["eval_rows"] == len(data[1]) and metrics["eval_loss"] == pytest.approx(loss, abs=1e-6)


def test_nan_validation_loss_stops(data, tmp_path):
    trainer = make_trainer(data, tmp_path)
    with torch.no_grad():
        trainer.model.model.shared.weight.fill_(float("nan"))
    refused("validation loss is nan after 0 updates, training has diverged", trainer.evaluate)


def test_parameter_groups_and_schedule(data, tmp_path):
    new = {"model.encoder.segment_encoding.embedding.weight", "model.encoder.layers.0.fc1.bias"}
    trainer = make_trainer(
        data, tmp_path, new_parameters=new, learning_rate=1e-4, new_learning_rate=1e-3, weight_decay=0.1, max_steps=6
    )
    optimizer = trainer.create_optimizer()
    names = {id(p): name for name, p in trainer.model.named_parameters()}
    groups = {(g["lr"], g["weight_decay"]): {names[id(p)] for p in g["params"]} for g in optimizer.param_groups}
    assert isinstance(optimizer, torch.optim.AdamW)
    assert groups[1e-3, 0.1] | groups[1e-3, 0.0] == new
    assert groups[1e-3, 0.0] == {"model.encoder.layers.0.fc1.bias"}
    assert all("bias" in name or "norm" in name for name in groups[1e-4, 0.0])
    assert not any("bias" in name or "norm" in name for name in groups[1e-4, 0.1])
    assert sum(map(len, groups.values())) == len(names)

    refused("new_parameters: .'nowhere'. are not parameters", make_trainer, data, tmp_path, new_parameters={"nowhere"})

    trainer.train()
    rates = {group["initial_lr"]: group["lr"] for group in trainer.optimizer.param_groups}
    expected = (4 / 6) ** 0.5  # inverse square root, 4 warm-up steps, after 6 updates
    assert rates == {1e-4: pytest.approx(1e-4 * expected), 1e-3: pytest.approx(1e-3 * expected)}


@pytest.mark.parametrize("moment", ["inside an epoch", "after an epoch"])
def test_resume_gives_the_same_losses(data, tmp_path, moment):
    batches = len(make_trainer(data, tmp_path / "none").get_train_dataloader())
    assert batches > 6
    accumulation, every = (2, 2) if moment == "inside an epoch" else (1, batches)
    options = {"gradient_accumulation_steps": accumulation, "eval_steps": every, "save_steps": every}
    options["max_steps"] = batches // accumulation + 3
    straight = make_trainer(data, tmp_path / "straight", **options)
    straight.train()
    with pytest.raises(InterruptedError):
        make_trainer(data, tmp_path / "broken", [Stop(every + 1)], **options).train()
    unfinished = tmp_path / "broken" / f"checkpoint-{2 * every}"  # as a kill while saving leaves it
    unfinished.mkdir()
    (unfinished / "model.safetensors").write_bytes(b"half a file")
    assert checkpoint_steps(tmp_path / "broken") == [every]
    resumed = make_trainer(data, tmp_path / "broken", **options)
    resumed.train(resume_from_checkpoint=True)
    assert losses(resumed) == losses(straight) and len(losses(straight)) == options["max_steps"]
    assert validation_losses(resumed) == validation_losses(straight)
    assert straight.state.epoch > 1


def test_full_disk_leaves_the_former_checkpoint(data, tmp_path):
    class Full(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 3:
                resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError, match="checkpoint-4 could not be written .*complete checkpoints are intact"):
            make_trainer(data, tmp_path, [Full()]).train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert checkpoint_steps(tmp_path) == [2]
    trainer = make_trainer(data, tmp_path)
    trainer.train(resume_from_checkpoint=True)
    assert trainer.state.global_step == 8
    with pytest.raises(ValueError, match="no complete checkpoint to resume from"):
        make_trainer(data, tmp_path / "empty").train(resume_from_checkpoint=True)


def test_patience_is_counted_on_after_resuming(data, tmp_path):
    """With far too high a learning rate the loss soon stops falling."""
    options = {"learning_rate": 0.3, "lr_scheduler_type": "constant", "warmup_steps": 0, "max_steps": 60, "average": 3}
    straight = make_trainer(data, tmp_path / "straight", [EarlyStoppingCallback(3)], **options)
    straight.train()
    best, last = straight.state.best_global_step, straight.state.global_step
    assert last == best + 3 * 2 < 60
    assert checkpoint_steps(tmp_path / "straight") == [best, best + 2, best + 4, best + 6]
    with pytest.raises(InterruptedError):
        make_trainer(data, tmp_path / "broken", [EarlyStoppingCallback(3), Stop(last - 1)], **options).train()
    resumed = make_trainer(data, tmp_path / "broken", [EarlyStoppingCallback(3)], **options)
    resumed.train(resume_from_checkpoint=True)
    assert validation_losses(resumed) == validation_losses(straight)


def test_several_validation_sets(data, tmp_path, capfd):
    """A loss of each; one of them says which checkpoint is the best, and when to stop."""
    train, validation, tokenizer = data
    sets = {"chat": validation, "film": train}
    options = {"learning_rate": 0.3, "lr_scheduler_type": "constant", "warmup_steps": 0, "max_steps": 60}
    several = make_trainer(
        (train, sets, tokenizer),
        tmp_path,
        [EarlyStoppingCallback(3)],
        metric_for_best_model="eval_film_loss",
        **options,
    )
    several.train()
    losses_by_set = {
        name: {log["step"]: log[f"eval_{name}_loss"] for log in several.state.log_history if f"eval_{name}_loss" in log}
        for name in sets
    }
    best, last = several.state.best_global_step, several.state.global_step
    assert last == best + 3 * 2 < 60 and losses_by_set["film"][best] == min(losses_by_set["film"].values())
    output = capfd.readouterr().err
    assert "step 2 of 60  eval_chat_loss" in output and "step 2 of 60  eval_film_loss" in output
    several.create_model_card()
    for name, rows in sets.items():  # the best checkpoint was loaded at the end
        alone = make_trainer((train, rows, tokenizer), tmp_path / name)
        alone.model = alone.model_wrapped = several.model
        assert alone.evaluate()["eval_loss"] == pytest.approx(losses_by_set[name][best], abs=1e-6)

    others = {"chat": train, "film": train}
    with pytest.raises(ValueError, match="^the validation data changed since .*restore it"):
        make_trainer((train, others, tokenizer), tmp_path, metric_for_best_model="eval_film_loss").train(True)


def test_no_validation_set(data, tmp_path):
    with pytest.raises(ValueError, match="evaluation needs eval_dataset, got None"):
        make_trainer((data[0], None, data[2]), tmp_path, eval_strategy="no", load_best_model_at_end=False).evaluate()


@pytest.mark.parametrize("speed", [0.4, 2.0])
@pytest.mark.parametrize("bf16", [True, False])
def test_a_processor_that_is_slower_in_bf16_is_named(data, tmp_path, monkeypatch, caplog, speed, bf16):
    monkeypatch.setattr("hf_docmt.training.arguments.bf16_speed", lambda device: speed)
    make_trainer(data, tmp_path, bf16=bf16, use_cpu=True)
    assert ("take 2.5 times as long with it as in fp32" in caplog.text) is (bf16 and speed < 1)


def test_output_and_bf16(data, tmp_path, capfd):
    full = make_trainer(data, tmp_path / "full", dropout=0.0)
    full.train()
    output = capfd.readouterr()
    assert output.out == "" and "step 2 of 8  eval_loss" in output.err and "step 1 of 8  loss" in output.err
    assert "warmup" not in output.err
    half = make_trainer(data, tmp_path / "half", dropout=0.0, bf16=True)
    half.train()
    assert losses(half) != losses(full)
    assert [loss for _, loss in losses(half)] == pytest.approx([loss for _, loss in losses(full)], rel=0.02)
    assert validation_losses(half)[-1][1] == pytest.approx(validation_losses(full)[-1][1], rel=0.02)
    assert json.loads(Path(tmp_path / "half" / "checkpoint-8" / "config.json").read_text())["use_cache"] is True


def test_a_warm_up_longer_than_the_training_is_reported(data, tmp_path, capfd):
    make_trainer(data, tmp_path, learning_rate=1e-3, warmup_steps=16, max_steps=1).train()
    text = "rises for 16 updates and there are 1, so it ends at 6.25e-05, not 0.001; give a lower training.warmup_steps"
    assert text in capfd.readouterr().err


def test_gradient_checkpointing(data, tmp_path):
    """Layers are computed twice, with the same dropout, and the course is the same."""
    courses, calls = [], []
    for checkpointing in (False, True):
        trainer = make_trainer(data, tmp_path / str(checkpointing), activation_checkpointing=checkpointing)
        layer = trainer.model.model.encoder.layers[0]
        layer.fc1.register_forward_hook(lambda module, *_: calls.append(len(courses)) if module.training else None)
        trainer.train()
        courses.append([loss for _, loss in losses(trainer)])
    assert calls.count(1) == 2 * calls.count(0) > 0
    assert courses[1] == pytest.approx(courses[0], rel=1e-4)


def test_averaging(data, tmp_path):
    assert steps_to_average([10, 20, 30, 40], best=20, following=1) == [20, 30]
    assert steps_to_average([10, 20, 30], best=30, following=4) == [30]
    assert steps_to_average([10, 20], best=None, following=4) == [20]
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(registry.get("concat").model_class(make_config(data[2])))
        models[-1].save_pretrained(tmp_path / str(seed))
    mean = average_weights(tmp_path / str(seed) for seed in range(3))
    for name, tensor in mean.items():
        expected = sum(model.state_dict()[name].double() for model in models) / 3
        torch.testing.assert_close(tensor, expected.float())
    assert mean.keys() == read_weights(tmp_path / "0").keys()

    other = registry.get("concat").model_class(make_config(data[2], d_model=8))
    other.save_pretrained(tmp_path / "other")
    refused("not the same tensors", average_weights, [tmp_path / "0", tmp_path / "other"])
    weights = tmp_path / "1" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match="model.safetensors: corrupt or truncated safetensors file"):
        average_weights([tmp_path / "0", tmp_path / "1"])
    weights.unlink()
    refused("no model.safetensors there", average_weights, [tmp_path / "0", tmp_path / "1"])
