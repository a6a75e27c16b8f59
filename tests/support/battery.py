"""What every architecture passes: one mixin of tests, run with tiny configurations.

A subclass names its architecture and its configurations and says what is special to it: what it sees (`reach`), its
definition (`reference`), where it is the plain backbone (`plain_backbone`), what is not trained (`untrained`). Data go
the road that training goes: documents, examples, collator.
"""

import copy
import math
from contextlib import contextmanager
from functools import partial

import pytest
import torch
from accelerate.hooks import attach_align_device_hook_on_blocks
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from transformers import Cache, LogitsProcessor
from transformers.modeling_layers import GradientCheckpointingLayer

from hf_docmt.engine import search
from hf_docmt.engine.decoding_step import DecodingStep
from hf_docmt.loading import registry
from hf_docmt.modeling.layers import CACHE_NAME, DecoderLayer, EncoderLayer
from support.int8_models import SIZES
from support.reference import weights_of
from support.tiny_models import EOS, PAD, SEP, build, documents_of, random_text, word_tokenizer


class SeparatorThird(LogitsProcessor):
    """The third token that is generated is a separator, so that every model writes several sentences."""

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] == 3:
            scores = scores.masked_fill(torch.arange(scores.shape[1], device=scores.device) != SEP, -math.inf)
        return scores


class KeptScores(LogitsProcessor):
    """Keeps the scores of every step."""

    def __init__(self):
        self.copies: list[torch.Tensor] = []

    def __call__(self, input_ids, scores):
        self.copies.append(scores.clone())
        return scores


GREEDY = {"num_beams": 1, "do_sample": False, "max_new_tokens": 6, "no_repeat_ngram_size": 2}
GREEDY |= {"logits_processor": [SeparatorThird()]}
BEAMS = GREEDY | {"num_beams": 3, "num_return_sequences": 3, "early_stopping": True}
SAMPLES = GREEDY | {"num_return_sequences": 2, "do_sample": True}
NOT_FOR_GENERATION = ("decoder_input_ids", "decoder_attention_mask", "labels", "label_weights")
ON_NEUTRAL_CASES = ("reduction", "closed_gates_with_context")
ON_TWO_CORNERS = ("saved_and_loaded", "offloaded", "assisted_is_greedy", "static_cache_is_dynamic", "half_precision")
ONE_SENTENCE = {  # two rows, one of them padded
    "input_ids": torch.tensor([[7, 9, 8, EOS], [6, EOS, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
    "decoder_input_ids": torch.tensor([[2, 9, 11], [2, 14, 7]]),
}
BATCHES: dict[tuple[type, str], dict] = {}  # by battery and case
CURRENT = 3  # sentence of the six in the document of the context tests


class Battery:
    architecture: str
    cases: dict[str, dict]  # name -> configuration fields
    corners: tuple[str, ...]  # few cases with every kind of layer, context and position in one of them
    neutral_cases: tuple[str, ...] = ()  # those in which the mechanism can be made to do nothing
    strategies = ("sentence", "sliding", "sequential", "full")
    without_program: tuple[str, ...] = ()  # cases whose steps of decoding the layers run
    rounding = 1e-6  # by which logits may differ where future tokens do

    # What a subclass says

    def reach(self, config) -> dict[str, set[int]]:
        """Offsets of the sentences, from -3 to 2, that the logits of the current sentence depend on, for each side."""
        raise NotImplementedError

    def reference(self, model, batch: dict) -> list[torch.Tensor]:
        """Logits by the paper's formula: for every row (tokens of the row, V), without padding."""
        raise NotImplementedError

    def plain_backbone(self, model) -> tuple[torch.nn.Module, dict]:
        """The plain backbone with the model's weights, and a batch in which the model's mechanism does nothing."""
        raise NotImplementedError

    def untrained(self, model) -> set[str]:
        """Names of the parameters that get no gradient."""
        return set()

    def generation_inputs(self, batch: dict) -> dict:
        return {name: value for name, value in batch.items() if name not in NOT_FOR_GENERATION}

    # Cases and data

    def pytest_generate_tests(self, metafunc):
        if "case" in metafunc.fixturenames:
            test = metafunc.function.__name__.removeprefix("test_")
            cases = self.neutral_cases if test in ON_NEUTRAL_CASES else self.corners
            cases = list(self.cases) if test == "definition" else cases
            cases = self.corners[:: len(self.corners) - 1] if test in ON_TWO_CORNERS else cases
            metafunc.parametrize("case", cases[: metafunc.config.getoption("cases")])

    @pytest.fixture
    def model(self, case, device):
        return on_device(build(self.architecture, **self.cases[case]), device)

    @pytest.fixture
    def batch(self, case, model):
        key = type(self), case
        if key not in BATCHES:
            BATCHES[key] = self.batch_of(model, self.examples(model.config))
        return {name: value.clone() for name, value in BATCHES[key].items()}

    def batch_of(self, model, examples: list[dict], context_discount: float = 1.0) -> dict:
        """On the model's device."""
        return moved(self.collate(model.config, examples, context_discount), model.device)

    def examples(self, config) -> list[dict]:
        """First, third and last of a document of five sentences, and the first of one of two."""
        lengths = [3, 1, 4, 2, 3]
        corpus = documents_of(
            (random_text(lengths, seed=1), random_text(lengths[::-1], seed=2)),
            (random_text([2, 3], seed=3), random_text([1, 5], seed=4)),
        )
        examples = registry.get(self.architecture).examples(corpus, word_tokenizer(), config)
        return [examples[number] for number in (0, 2, 4, 5) if number < len(examples)]

    def collate(self, config, examples: list[dict], context_discount: float = 1.0) -> dict:
        return registry.get(self.architecture).collator(config, word_tokenizer(), context_discount)(examples)

    # 1. Reduction

    def test_reduction(self, model):
        device = model.device
        plain, batch = self.plain_backbone(on_device(model, "cpu"))
        reduced, expected = (logits(on_device(version, device), moved(batch, device)) for version in (model, plain))
        torch.testing.assert_close(reduced, expected, atol=1e-5, rtol=0)

    # 2. Definition

    def test_definition(self, model, batch):
        slow = on_device(copy.deepcopy(model), "cpu")
        rows = self.reference(slow, moved(batch, "cpu"))
        actual = logits(model, batch).cpu()
        for row, expected in zip(actual, rows, strict=True):
            torch.testing.assert_close(row[: len(expected)], expected, atol=1e-5, rtol=1e-5)
        labels = [labels[: len(row)] for labels, row in zip(batch["labels"].cpu(), rows)]
        loss = F.cross_entropy(torch.cat(rows), torch.cat(labels))
        parameters = dict(slow.named_parameters())
        expected = torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True)
        actual = torch.autograd.grad(model(**batch).loss, list(model.parameters()), materialize_grads=True)
        for name, gradient, other in zip(parameters, actual, expected):
            text = f"gradient of {name}: "
            torch.testing.assert_close(gradient.cpu(), other, atol=1e-5, rtol=1e-4, msg=text.__add__)

    # 3. Context is used

    def test_context(self, model):
        reach = self.reach(model.config)
        source, target = random_text([3] * 6, seed=5), random_text([3] * 6, seed=6)
        before = self.current_logits(model, source, target)
        for index in range(6):
            words = {"source": (other_word(source, index), target), "target": (source, other_word(target, index))}
            after = {side: self.current_logits(model, *texts) for side, texts in words.items()}
            for side, changed in after.items():
                if index - CURRENT in reach[side]:
                    assert (changed - before).abs().max() > 1e-4, (side, index - CURRENT)
                else:
                    assert torch.equal(changed, before), (side, index - CURRENT)

    def current_logits(self, model, source: list[str], target: list[str]) -> torch.Tensor:
        """Logits of the tokens that count for the current sentence, of a chunk all of them."""
        corpus = documents_of((source, target))
        examples = registry.get(self.architecture).examples(corpus, word_tokenizer(), model.config)
        example = next(examples[i] for i in reversed(range(len(examples))) if examples[i]["index"] <= CURRENT)
        batch = self.batch_of(model, [example], context_discount=0.0)
        weights = batch.pop("label_weights", torch.ones_like(batch["labels"]))
        return logits(model, batch)[weights == 1]

    # 4. Causality, padding, batch

    def test_future_target_does_not_matter(self, model, batch):
        before = logits(model, batch)
        length = batch["labels"].shape[1]
        for length_kept in (1, length // 2):
            changed = {**batch, "decoder_input_ids": batch["decoder_input_ids"].clone()}
            changed["decoder_input_ids"][:, length_kept:] = torch.randint(SEP, 30, (len(before), length - length_kept))
            changed["decoder_input_ids"][:, length_kept] = SEP
            after = logits(model, changed)
            torch.testing.assert_close(after[:, :length_kept], before[:, :length_kept], atol=self.rounding, rtol=0)
            assert (after[:, length_kept:] - before[:, length_kept:]).abs().max() > 1e-3

    def test_row_alone_is_the_row_in_the_batch(self, model, batch):
        together = logits(model, batch)
        for row, example in enumerate(self.examples(model.config)):
            alone = logits(model, self.batch_of(model, [example]))[0]
            torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=1e-5)

    def test_padding_on_the_left(self, model, batch):
        """Of source, target and context, in front of what stands there; the gradients, too."""
        fill = {"input_ids": PAD, "attention_mask": 0, "labels": -100, "label_weights": 0}
        padded = {}
        for name, value in batch.items():
            kind = name.removeprefix("context_").removeprefix("decoder_")
            padded[name] = F.pad(value, (3, 0), value=fill[kind]) if kind in fill else value
        scored = batch["labels"] != -100
        found, expected = logits(model, padded)[:, 3:][scored], logits(model, batch)[scored]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        for one, other in zip(gradients(model, padded), gradients(model, batch), strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)

    def test_embeddings_are_those_of_the_ids(self, model, batch):
        """Embeddings of the source in place of ids, or a refusal; those of the target are refused."""
        ids = batch.pop("input_ids")
        embedded = batch | {"inputs_embeds": model.get_input_embeddings()(ids).detach()}
        if model.get_encoder().finds_sentences:
            for call in (model, model.generate):
                with pytest.raises(ValueError, match="inputs_embeds do not tell where sentences end"):
                    call(**(embedded if call is model else self.generation_inputs(embedded)))
        else:
            plain = batch | {"input_ids": ids}
            assert torch.equal(logits(model, embedded), logits(model, plain))
            generated, expected = (
                model.generate(**self.generation_inputs(inputs), **BEAMS) for inputs in (embedded, plain)
            )
            assert torch.equal(generated, expected)
        for wrong, got in ((batch, "none"), (embedded | {"input_ids": ids}, "both")):
            with pytest.raises(ValueError, match=f"inputs_embeds \\(B, S, D\\), got {got} of them"):
                model(**wrong)
        with pytest.raises(ValueError, match="decoder_inputs_embeds are not read"):
            model(input_ids=ids, **batch, decoder_inputs_embeds=embedded["inputs_embeds"])

    # 5. Generation

    def test_cached_is_uncached(self, model, batch):
        inputs = self.generation_inputs(batch) | {"return_dict_in_generate": True, "output_scores": True}
        for settings in (BEAMS, SAMPLES):
            outputs = []
            for use_cache in (True, False):
                torch.manual_seed(1)
                outputs.append(model.generate(**inputs, **settings, use_cache=use_cache))
            cached, uncached = outputs
            assert torch.equal(cached.sequences, uncached.sequences)
            assert CACHE_NAME in cached and CACHE_NAME not in uncached
            torch.testing.assert_close(torch.stack(cached.scores), torch.stack(uncached.scores), atol=1e-4, rtol=1e-4)

    def test_engine_is_transformers(self, case, monkeypatch):
        """Programs of a step of decoding give the scores of the layers; our search finds what transformers' does."""
        model = build(self.architecture, **self.cases[case] | SIZES)
        inputs = self.generation_inputs(self.batch_of(model, self.examples(model.config)))
        settings, kept, steps = BEAMS | {"num_return_sequences": 1}, {}, []
        build_step = DecodingStep.build
        monkeypatch.setattr(DecodingStep, "build", lambda *arguments: steps.append(build_step(*arguments)))
        found = {}
        for name in ("program", "forward", "transformers"):
            kept[name] = KeptScores()
            settings["logits_processor"] = [SeparatorThird(), kept[name]]
            found[name] = model.generate(**inputs, **settings)
            monkeypatch.setattr(search, "decoding_step", lambda state: None)
            if name == "forward":
                model.engine = None
        assert bool(steps) == (case not in self.without_program)
        torch.testing.assert_close(kept["program"].copies, kept["forward"].copies, atol=1e-5, rtol=0)
        assert torch.equal(found["program"], found["transformers"])

    def test_attentions_in_rows_of_beams(self, model, batch):
        """Every beam has a row of attention to the source, that of its tokens in forced decoding."""
        model.set_attn_implementation("eager")
        inputs = self.generation_inputs(batch)
        search = {"num_beams": 2, "num_return_sequences": 2, "max_new_tokens": 3, "min_new_tokens": 3}
        recorded = {"return_dict_in_generate": True, "output_attentions": True, "output_scores": True}
        generated = model.generate(**inputs, **search, **recorded)
        repeated = rows_of(inputs, torch.arange(len(batch["labels"])).repeat_interleave(2))
        forced = model(**repeated, decoder_input_ids=generated.sequences[:, :-1], output_attentions=True)
        for step, layers in enumerate(generated.cross_attentions):
            rows = generated.beam_indices[:, step]
            for weights, expected in zip(layers, forced.cross_attentions, strict=True):  # (B * beams, H, 1, S)
                torch.testing.assert_close(weights[rows, :, 0], expected[:, :, step], atol=1e-5, rtol=0)

    def test_static_cache_is_dynamic(self, model, batch):
        inputs, settings = self.generation_inputs(batch), GREEDY | {"cache_implementation": "static"}
        assert torch.equal(model.generate(**inputs, **settings), model.generate(**inputs, **GREEDY))

    def test_assisted_is_greedy(self, model, batch):
        """Whatever candidates come from: what was written, a model that is often wrong, one that is always right."""
        inputs, settings = rows_of(self.generation_inputs(batch), [0]), GREEDY | {"max_new_tokens": 9}
        expected = model.generate(**inputs, **settings)
        wrong, right = copy.deepcopy(model), copy.deepcopy(model)
        wrong.final_logits_bias += torch.randn_like(wrong.final_logits_bias)
        right.generation_config.assistant_confidence_threshold = 0.0  # it is never sure of its tokens
        for extra in ({"prompt_lookup_num_tokens": 3}, {"assistant_model": wrong}, {"assistant_model": right}):
            passes = []
            model.model.register_forward_hook(lambda *_, passes=passes: passes.append(1))
            assert torch.equal(model.generate(**inputs, **settings, **extra), expected)
        assert len(passes) <= 2

    def test_scores_are_those_of_forced_decoding(self, model, batch):
        inputs = self.generation_inputs(batch)
        generated = model.generate(**inputs, **BEAMS, return_dict_in_generate=True, output_scores=True)
        assert (generated.sequences[:, 3] == SEP).any()
        repeated = rows_of(inputs, torch.arange(len(batch["labels"])).repeat_interleave(3))
        forced = logits(model, repeated | {"decoder_input_ids": generated.sequences[:, :-1]}).log_softmax(-1)
        for row, ids in enumerate(generated.sequences[:, 1:].tolist()):
            length = ids.index(EOS) + 1 if EOS in ids else len(ids)
            total = sum(float(forced[row, position, ids[position]]) for position in range(length))
            assert math.isclose(total / length, float(generated.sequences_scores[row]), abs_tol=1e-4)

    # 6. Gradients

    def test_gradients(self, model, batch):
        model.train()(**batch).loss.backward()
        names = weights_of(model)
        assert self.untrained(model) <= names.keys()
        for name, parameter in names.items():
            got = parameter.grad is not None and bool(parameter.grad.abs().max() > 1e-7)
            if name.endswith("k_proj.bias"):
                continue  # softmax does not change when all scores rise alike
            expected = name not in self.untrained(model)
            assert got == expected, f"{name}: gradient {got}, expected {expected}; `untrained` names those without one"

    def test_parts_of_a_batch_add_up(self, model, batch):
        """The loss of a large batch is the sum of its parts' losses, each given the whole number of tokens."""
        examples = self.examples(model.config)
        count = (batch["labels"] != -100).sum()
        parts = [self.batch_of(model, examples[:1]), self.batch_of(model, examples[1:])]
        losses = [model(**part, num_items_in_batch=count).loss for part in parts]
        torch.testing.assert_close(sum(losses), model(**batch).loss)

    # Layers: what arrives in them, and where their parameters are used

    def test_layers_get_tensors(self, model, batch):
        """Nothing but tensors, numbers and the cache: what checkpointing, FSDP, compilation and export can see."""
        with layer_arguments(model) as arguments:
            model(**batch)
            model.generate(**self.generation_inputs(batch), **GREEDY)
        assert len(arguments) > 4
        for name, value in arguments:
            assert value is None or isinstance(value, torch.Tensor | bool | int | Cache), (name, type(value))

    def test_parameters_are_used_inside_their_layer(self, model, batch):
        with ParameterUse(model) as use:
            model.train()(**batch).loss.backward()
        assert not use.outside
        names = {f"{layer}.{name}" for layer, module in use.layers.items() for name, _ in module.named_parameters()}
        assert use.inside == names

    # 7. Round trip (in a process without the package: test_hub_folder.py)

    def test_saved_and_loaded(self, model, batch, tmp_path):
        """What has no head takes its weights from the folder of a model with one, all of them and no others."""
        loaded = model
        for _ in range(2):  # saved again, too
            loaded.save_pretrained(tmp_path)
            loaded = on_device(type(model).from_pretrained(tmp_path), model.device)
            assert loaded.config.to_diff_dict() == model.config.to_diff_dict()
            assert torch.equal(logits(loaded, batch), logits(model, batch))
        base, loading = type(model.model).from_pretrained(tmp_path, output_loading_info=True)
        assert not any(loading.values()) and base.config.to_diff_dict() == model.config.to_diff_dict()
        base.save_pretrained(tmp_path / "base")
        again = type(base).from_pretrained(tmp_path / "base")
        expected = states_of(model.model, batch)
        for version in (base, again):
            assert torch.equal(states_of(on_device(version, model.device), batch), expected)

    # 8. Numerics

    def test_eager_is_sdpa(self, model, batch):
        results = []
        for implementation in ("eager", "sdpa"):
            model.set_attn_implementation(implementation)
            results.append((logits(model, batch), *gradients(model, batch)))
        assert model.config._attn_implementation == "sdpa"
        for tensor, other in zip(*results):
            torch.testing.assert_close(tensor, other, atol=1e-5, rtol=1e-4)

    def test_bf16_autocast_is_close(self, model, batch):
        exact, expected = logits(model, batch), model(**batch).loss
        with torch.autocast(model.device.type, torch.bfloat16):
            outputs = model(**batch)
        assert outputs.logits.dtype == torch.bfloat16 and outputs.loss.dtype == torch.float32
        assert (outputs.logits - exact).abs().mean() < 0.03 * exact.std()
        torch.testing.assert_close(outputs.loss, expected, atol=0, rtol=0.02)

    def test_half_precision(self, model, batch):
        """The whole model in bf16, as it is loaded to translate: no two types meet, with context or alone."""
        exact, half = logits(model, batch), copy.deepcopy(model).bfloat16()
        rounded = logits(half, moved(batch, model.device, torch.bfloat16))
        assert rounded.dtype == torch.bfloat16 and (rounded - exact).abs().mean() < 0.1 * exact.std()
        for strategy in {None, "sentence"} & {None, *self.strategies}:
            documents = [["w7 w8"], ["w9", "w7"]]
            translated = half.translate_documents(documents, word_tokenizer(), strategy, max_new_tokens=3)
            assert [len(document) for document in translated] == [1, 2]

    def test_gradient_checkpointing(self, model, batch):
        """The same dropout is drawn again when layers are computed a second time."""
        config = copy.deepcopy(model.config)
        config.dropout = 0.1
        noisy = on_device(type(model)(config).train(), model.device)
        noisy.load_state_dict(model.state_dict())
        results, calls = [], []
        noisy.model.encoder.layers[0].fc1.register_forward_hook(lambda *_: calls.append(len(results)))
        for _ in range(2):
            torch.manual_seed(1)
            loss = noisy(**batch).loss
            loss.backward()
            results.append([loss.detach(), *(p.grad for p in noisy.parameters() if p.grad is not None)])
            noisy.zero_grad()
            noisy.activation_checkpointing_enable()
        assert calls.count(1) > calls.count(0)
        assert not torch.equal(results[0][0], model(**batch).loss)
        for tensor, other in zip(*results):
            torch.testing.assert_close(tensor, other, atol=1e-6, rtol=1e-5)

    # 9. Offloading

    def test_offloaded(self, model, batch):
        """What accelerate offloads is there in the call of the module that has it alone; layers are in one piece."""
        layers = {type(module).__name__ for module in model.modules() if isinstance(module, GradientCheckpointingLayer)}
        assert layers <= set(model._no_split_modules)
        search = {"num_beams": 1, "max_new_tokens": 2, "return_dict_in_generate": True, "output_scores": True}
        inputs = self.generation_inputs(batch) | search
        expected = model.generate(**inputs).scores
        stacks = (model.get_encoder(), model.get_decoder())
        parts = {part: name != "embed_tokens" for stack in stacks for name, part in stack.named_children()}
        offload = {name: parts[part] for name, part in model.named_modules() if part in parts}
        places = dict.fromkeys(offload, model.device)
        attach_align_device_hook_on_blocks(model, places, offload, weights_map=model.state_dict())
        assert next(model.get_decoder().layers.parameters()).is_meta
        torch.testing.assert_close(model.generate(**inputs).scores, expected, atol=1e-5, rtol=1e-5)

    # Documents

    def test_one_translation_per_source_sentence(self, model):
        short = {"max_new_tokens": 4, "no_repeat_ngram_size": 2}
        documents = [random_text([2, 1, 3], seed=7), ["", "w7 w8", " "], [], random_text([1], seed=8)]
        for strategy in (None, *self.strategies):
            if strategy == "full" and getattr(model.config, "context_sides", "both") == "source":
                continue
            translated = model.translate_documents(documents, word_tokenizer(), strategy, **short)
            assert [len(document) for document in translated] == [3, 3, 0, 1]
            assert translated[1][0] == translated[1][2] == ""
            assert any(sentence for document in translated for sentence in document)
            if strategy is None:
                assert model.translate_documents(documents, word_tokenizer(), batch_size=1, **short) == translated


def on_device(model, device):
    """The model there, with weights that are one where they were one."""
    model.to(device).tie_weights()
    return model


def moved(batch: dict, device, dtype: torch.dtype | None = None) -> dict:
    """There, and what is no whole number of that type."""
    return {name: v.to(device, dtype if v.is_floating_point() else None) for name, v in batch.items()}


def tokens_of(batch: dict) -> list[tuple[list[int], list[int]]]:
    """Source and target of every row, without padding."""
    names = ("input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask")
    rows = zip(*(batch[name] for name in names))
    return [(ids[: mask.sum()].tolist(), target[: seen.sum()].tolist()) for ids, mask, target, seen in rows]


def logits(model, batch: dict) -> torch.Tensor:
    """(B, T, V), without gradients."""
    with torch.no_grad():
        return model(**batch).logits


def states_of(base, batch: dict) -> torch.Tensor:
    """(B, T, D) of a model without a head, without gradients."""
    inputs = {name: value for name, value in batch.items() if name not in ("labels", "label_weights")}
    with torch.no_grad():
        return base(**inputs).last_hidden_state


def gradients(model, batch: dict) -> list[torch.Tensor]:
    """Gradients of the loss for all parameters that have one."""
    model.zero_grad()
    model(**batch).loss.backward()
    tensors = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    return tensors


def segment_reach(config) -> dict[str, set[int]]:
    """`Battery.reach` of a model in which a token reads its whole segment."""
    if config.view == "chunk":
        return {"source": {0, 1, 2}, "target": {0, 1, 2}}  # the second of two chunks of three sentences
    seen = set(range(-config.past_context, config.future_context + 1))
    past = {offset for offset in seen if offset <= 0} if config.context_sides == "both" else {0}
    return {"source": seen, "target": past}


def rows_of(batch: dict, index) -> dict:
    """Rows of all tensors of a batch."""
    return {name: value[torch.as_tensor(index, device=value.device)] for name, value in batch.items()}


def other_word(sentences: list[str], index: int) -> list[str]:
    """Sentences with another first word in the one at `index`."""
    first, *rest = sentences[index].split()
    changed = " ".join(["w7" if first != "w7" else "w8", *rest])
    return [*sentences[:index], changed, *sentences[index + 1 :]]


# What arrives in the layers of a model, and where their parameters are used


def layers_of(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    return {name: module for name, module in model.named_modules() if isinstance(module, EncoderLayer | DecoderLayer)}


@contextmanager
def layer_arguments(model: torch.nn.Module):
    """A list of (layer and argument, value) of all calls of layers."""
    arguments: list[tuple] = []

    def note(name, module, args, kwargs):
        arguments.extend((f"{name} {key}", value) for key, value in [*enumerate(args), *kwargs.items()])

    layers = layers_of(model).items()
    hooks = [layer.register_forward_pre_hook(partial(note, name), with_kwargs=True) for name, layer in layers]
    try:
        yield arguments
    finally:
        for hook in hooks:
            hook.remove()


class ParameterUse(TorchFunctionMode):
    """Names of the layers' parameters that torch functions get inside and outside of the forward of their layer."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.layers = layers_of(model)
        self.owners = [
            (parameter, name, f"{name}.{part}")
            for name, layer in self.layers.items()
            for part, parameter in layer.named_parameters()
        ]
        self.inside, self.outside, self.running = set(), set(), set()

    def __enter__(self):
        self.hooks = []
        for name, layer in self.layers.items():
            begin = layer.register_forward_pre_hook(lambda *_, name=name: self.running.add(name))
            end = layer.register_forward_hook(lambda *_, name=name: self.running.discard(name))
            self.hooks += [begin, end]
        return super().__enter__()

    def __exit__(self, *error):
        for hook in self.hooks:
            hook.remove()
        return super().__exit__(*error)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        parameters = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.nn.Parameter)]
        for value in parameters:
            for parameter, layer, name in self.owners:
                if parameter is value:
                    (self.inside if layer in self.running else self.outside).add(name)
        return function(*args, **kwargs)
