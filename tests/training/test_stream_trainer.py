"""Training on ordered documents: the memory handed on, its gradient cut where it is said, resumed, on two processes."""

import pytest
import torch
from support.errors import refused
from support.tiny_models import build, documents_of, random_text, word_tokenizer
from support.tiny_run import facts, recipe_mapping, same_course, train_until

from hf_docmt.loading import model_folders, registry
from hf_docmt.training.arguments import DocMTTrainingArguments
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train
from hf_docmt.training.stream_trainer import StreamTrainer

torch.set_num_threads(1)
TEXTS = [(random_text([3, 1, 4, 2, 3], seed=1), random_text([2, 3, 1, 4, 2], seed=2))]
TEXTS += [(random_text([2, 5], seed=3), random_text([1, 2], seed=4))]
STREAM = {"documents": 3, "window": 3}


def trainer_for(tmp_path, model, rows=2, window=5, memory_gradient=2, texts=TEXTS) -> StreamTrainer:
    architecture = registry.get("memory")
    examples = architecture.examples(documents_of(*texts), word_tokenizer(), model.config)
    arguments = {"stream_documents": rows, "stream_window": window, "memory_gradient": memory_gradient}
    return StreamTrainer(
        model=model,
        args=DocMTTrainingArguments(output_dir=str(tmp_path), report_to="none", **arguments),
        train_dataset=examples,
        eval_dataset=examples,
        data_collator=architecture.collator(model.config, word_tokenizer()),
    )


def mapping_of(data, output, **training):
    mapping = recipe_mapping(data, output, {"memory_size": 3}, **{"stream": STREAM, **training})
    return mapping | {"architecture": "memory"}


def sentence_inputs(trainer, number: int) -> dict:
    return trainer.data_collator([trainer.train_dataset[number]])


@torch.no_grad()
def summed_loss_by_hand(trainer) -> float:
    """Every document sentence by sentence, with the memory that came out for the one before."""
    total, number = 0.0, 0
    for source, _ in TEXTS:
        state = {}
        for _ in source:
            outputs = trainer.model(**sentence_inputs(trainer, number), **state, num_items_in_batch=1)
            state = trainer.model.memory_after(outputs)
            total += float(outputs.loss)
            number += 1
    return total


@pytest.mark.parametrize(("rows", "window"), [(1, 1), (2, 2), (2, 10), (1, None), (2, None)])
def test_the_memory_goes_through_the_documents(tmp_path, rows, window):
    """Training and validation losses are those of documents read one by one, however they stand side by side."""
    trainer = trainer_for(tmp_path, build("memory", memory_size=3), rows, window)
    trainer.model.eval()
    expected = summed_loss_by_hand(trainer)
    loss = sum(
        float(trainer.compute_loss(trainer.model, batch, num_items_in_batch=torch.tensor(1)))
        for batch in trainer.get_train_dataloader()
    )
    assert loss == pytest.approx(expected, rel=1e-5)
    tokens = sum(int((batch["labels"] != -100).sum()) for batch in trainer.get_eval_dataloader())
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected / tokens, rel=1e-5)


def gradients_by_hand(trainer, reach: int) -> dict[str, torch.Tensor]:
    """Every loss by itself: from the memory `reach` - 1 sentences before, a constant, through an unrolled loop."""
    model, number = trainer.model, 0
    model.zero_grad()
    for source, _ in TEXTS:
        states = [{}]  # before each sentence
        for index in range(len(source)):
            outputs = model(**sentence_inputs(trainer, number + index), **states[-1])
            states.append({name: state.detach() for name, state in model.memory_after(outputs).items()})
        for index in range(len(source)):
            first = max(0, index - reach + 1)
            state = states[first]
            for earlier in range(first, index):
                state = model.memory_after(model(**sentence_inputs(trainer, number + earlier), **state))
            model(**sentence_inputs(trainer, number + index), **state, num_items_in_batch=1).loss.backward()
        number += len(source)
    return gradients(model)


def gradients(model) -> dict[str, torch.Tensor]:
    return {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}


@pytest.mark.parametrize("reach", [2, 3])
@pytest.mark.parametrize("sides", ["source", "target", "both"])
@pytest.mark.parametrize("layers", [[-1], [0, 1]])
def test_reach_of_the_gradient(tmp_path, layers, sides, reach):
    """That of each loss, the memory being a constant `reach` - 1 sentences before; windows do not change it."""
    torch.manual_seed(3)
    model = build("memory", memory_size=3, memory_sides=sides, memory_layers=layers).eval()
    expected = gradients_by_hand(trainer_for(tmp_path, model, memory_gradient=reach), reach)
    for rows, window in ((1, 1), (2, 3), (2, None)):
        trainer = trainer_for(tmp_path, model, rows, window, reach)
        model.zero_grad()
        for batch in trainer.get_train_dataloader():
            trainer.compute_loss(model, batch, num_items_in_batch=torch.tensor(1)).backward()
        for name, value in gradients(model).items():
            where = f"rows {rows}, window {window}, {name}"
            torch.testing.assert_close(value, expected[name], atol=2e-5, rtol=1e-4, msg=lambda m, w=where: f"{w}: {m}")


def test_gradient_by_distance(tmp_path, reach=3):
    """Each source sentence has a word of its own: the rows of the embedding say which sentences a loss reaches."""
    document = ([f"w{number} w{number}" for number in range(6, 18)], random_text([2] * 12, seed=5))
    untied = {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}
    model = build("memory", memory_size=3, memory_layers=[0, 1], **untied).eval()
    for scored in (1, 7, 11):
        norms = []
        for window in (1, 10, None):
            trainer = trainer_for(tmp_path, model, 1, window, reach, texts=[document])
            model.zero_grad()
            for batch in trainer.get_train_dataloader():
                batch["labels"] = batch["labels"].masked_fill(batch["input_ids"][..., :1] != 6 + scored, -100)
                trainer.compute_loss(model, batch, num_items_in_batch=torch.tensor(1)).backward()
            norms.append(model.model.encoder.embed_tokens.weight.grad[6:18].norm(dim=1))
        torch.testing.assert_close(norms[1], norms[0], atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(norms[2], norms[0], atol=1e-6, rtol=1e-4)
        reached = range(max(0, scored - reach + 1), scored + 1)
        assert [number for number, norm in enumerate(norms[0]) if norm > 0] == list(reached)


@pytest.mark.parametrize("window", [3, "full"])
def test_a_run_and_its_model(corpus, tmp_path, window):
    folder = train(parse_recipe(mapping_of(corpus, tmp_path / "run", stream=STREAM | {"window": window})))
    model, tokenizer = model_folders.load_model(folder)
    assert model.config.memory_size == 3 and facts(folder)["steps"] == 12
    assert [len(d) for d in model.translate_documents([["Hello.", "It is new."]], tokenizer, max_new_tokens=4)] == [2]


def test_resume_restores_the_memory(corpus, tmp_path):
    straight = train(parse_recipe(mapping_of(corpus, tmp_path / "straight")))
    recipe = parse_recipe(mapping_of(corpus, tmp_path / "broken"))
    train_until(recipe, batches=8)
    saved = torch.load(tmp_path / "broken" / "checkpoints" / "checkpoint-6" / "memory_0.pt")
    assert {side: state.shape for side, state in saved.items()} == dict.fromkeys(("encoder", "decoder"), (3, 3, 16))
    assert same_course(straight, train(recipe, resume=True))


def test_predictions_are_refused(tmp_path):
    trainer = trainer_for(tmp_path, build("memory", memory_size=3))
    refused("translate with model.translate_documents", trainer.predict, trainer.eval_dataset)
    trainer.compute_metrics = lambda prediction: {}
    refused("remove compute_metrics", trainer.evaluate)
    assert trainer.memory == {}


def test_memory_after_a_model_with_context(corpus, tmp_path):
    """What that reads in its segment is not taken over; its strategy and view neither."""
    model = {"view": "chunk", "chunk_tokens": 200}
    first = train(parse_recipe(recipe_mapping(corpus, tmp_path / "chunks", model, max_steps=1)))
    mapping = mapping_of(corpus, tmp_path / "run", max_steps=1)
    mapping |= {"init_from": str(first), "tokenizer": None, "model": {"memory_size": 3}}
    model, _ = model_folders.load_model(train(parse_recipe(mapping)))
    assert (model.config.view, model.config.past_context) == ("window", 0)


def test_too_few_documents(corpus, tmp_path):
    with pytest.raises(ValueError, match="lower training.stream.documents"):
        train(parse_recipe(mapping_of(corpus, tmp_path / "run", stream={"documents": 20})))
