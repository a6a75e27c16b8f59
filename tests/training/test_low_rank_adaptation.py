"""Adapters around the layers of every architecture: neutral at first, trained, saved, loaded, put into the weights."""

import pytest
import torch
from support.tiny_models import build, context_fields, documents_of, random_text, word_tokenizer

from hf_docmt.loading import model_folders, registry
from hf_docmt.training.low_rank_adaptation import add_adapter, save_adapter
from hf_docmt.training.recipe_sections import PeftRecipe
from hf_docmt.training.stream_trainer import memory_after

peft = pytest.importorskip("peft")
trained_tokens = pytest.importorskip("hf_docmt.loading.trained_tokens")

LINEAR = ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"]
FIELDS = context_fields(
    caching={"context_sides": "both"},
    concat={"segment_encoding": "learned", "use_bod": True},
    doct={"selection": "routing"},
    gtransformer={"global_layers": 1},
    han={"context_sides": "both"},
    memory={"memory_sides": "both"},
)
CASES = FIELDS | {
    "concat untied": {"past_context": 2, "share_encoder_decoder_embeddings": False},
    "concat no tying": {
        "past_context": 2,
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
    },
}
TEXTS = [random_text([3, 4, 2], seed=number) for number in range(4)]


@pytest.fixture(params=CASES)
def model(request):
    return build(request.param.split()[0], encoder_layers=1, decoder_layers=1, **CASES[request.param])


def batch_of(model):
    """Two documents as training batches have them."""
    architecture, tokenizer = registry.for_config(model.config), word_tokenizer()
    examples = architecture.examples(documents_of(tuple(TEXTS[:2]), tuple(TEXTS[2:])), tokenizer, model.config)
    return architecture.collator(model.config, tokenizer)([examples[index] for index in range(len(examples))])


def logits(model, batch):
    with torch.no_grad():
        return model.eval()(**batch).logits


def with_new_adapter(model, folder):
    """The model, saved in `folder`, with an adapter on all linear layers, and the names of what is trained whole."""
    model.save_pretrained(folder / "base")
    return add_adapter(model, PeftRecipe(target_modules=LINEAR, rank=4), str(folder / "base"))


@torch.no_grad()
def change(wrapped):
    """Weights of an adapter as after some training."""
    torch.manual_seed(3)
    for parameter in (parameter for parameter in wrapped.parameters() if parameter.requires_grad):
        parameter.add_(torch.randn_like(parameter) * 0.1)


def saved(wrapped, folder):
    """The folder that training would write, and the adapter's weights."""
    word_tokenizer().save_pretrained(folder)
    weights = peft.get_peft_model_state_dict(wrapped, save_embedding_layers=False)
    save_adapter(wrapped, weights, folder)
    return folder


def test_gradients(model, tmp_path):
    """An adapter is neutral at first, and switched off; else every parameter of it learns, and no other one."""
    batch = batch_of(model)
    before = logits(model, batch)
    wrapped, whole = with_new_adapter(model, tmp_path)
    torch.testing.assert_close(logits(wrapped, batch), before, atol=1e-5, rtol=0)
    assert all(".lora_" not in name for name in whole)
    change(wrapped)
    assert not torch.allclose(logits(wrapped, batch), before, atol=1e-2)
    with wrapped.disable_adapter():
        torch.testing.assert_close(logits(wrapped, batch), before, atol=1e-5, rtol=0)
    options = {"num_items_in_batch": 1, "skip_logits": True}
    carried = registry.for_config(model.config).carries_state
    first = {"document_start": torch.ones(len(batch["labels"]), dtype=torch.bool)} if carried else {}
    outputs = wrapped.train()(**batch, **options, **first)
    loss = outputs.loss + wrapped(**batch, **options, **memory_after(outputs)).loss
    loss.backward()
    for name, parameter in wrapped.named_parameters():
        learns = parameter.grad is not None and bool(parameter.grad.any())
        assert learns == parameter.requires_grad, name


def test_saved_loaded_merged(model, tmp_path):
    """By this package, by peft alone, and as a model without an adapter."""
    batch = batch_of(model)
    wrapped, _ = with_new_adapter(model, tmp_path)
    change(wrapped)
    folder = saved(wrapped, tmp_path)
    expected = logits(model, batch)
    merged, tokenizer = model_folders.load_model(folder)
    torch.testing.assert_close(logits(merged, batch), expected, atol=1e-4, rtol=0)
    assert not any("lora" in name for name, _ in merged.named_parameters())

    base = registry.for_config(model.config).model_class.from_pretrained(tmp_path / "base")
    theirs = peft.PeftModel.from_pretrained(base, str(folder))
    torch.testing.assert_close(logits(theirs, batch), expected, atol=1e-5, rtol=0)

    merged.save_pretrained(tmp_path / "whole")
    tokenizer.save_pretrained(tmp_path / "whole")
    again, _ = model_folders.load_model(tmp_path / "whole")
    torch.testing.assert_close(logits(again, batch), logits(merged, batch), atol=1e-6, rtol=0)


@pytest.mark.parametrize("case", ["concat", "concat untied", "concat no tying"])
def test_trained_tokens(case, tmp_path):
    """Embeddings of trained tokens get the gradients of peft's own layer, which copies the whole table."""
    model = build("concat", encoder_layers=1, decoder_layers=1, **CASES[case])
    wrapped, _ = with_new_adapter(model, tmp_path)
    change(wrapped)
    layers = [module for module in wrapped.modules() if hasattr(module, "token_adapter")]
    assert layers and all(type(module.token_adapter) is trained_tokens.TrainedTokens for module in layers)
    batch, gradients = batch_of(model), []
    for kind in (trained_tokens.TrainedTokens, peft.tuners.trainable_tokens.TrainableTokensLayer):
        for module in layers:
            module.token_adapter.__class__ = kind
        wrapped.zero_grad()
        wrapped.train()(**batch, num_items_in_batch=1, skip_logits=True).loss.backward()
        gradients.append({name: p.grad for name, p in wrapped.named_parameters() if "tokens_delta" in name})
    assert len(gradients[0]) == {"concat": 1, "concat untied": 2, "concat no tying": 3}[case]
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)
