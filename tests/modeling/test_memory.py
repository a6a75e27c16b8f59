"""Recurrent memory: the battery, the state that goes in and out, and what is special to it."""

import re

import pytest
import torch
from support.battery import Battery, moved, tokens_of
from support.errors import refused
from support.reference import attention, feed_forward, norm, reference_row, sine_vector, weights_of
from support.tiny_models import BOD, BOS, EOS, PAD, SEP, build, documents_of, plain_model, random_text, word_tokenizer

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.loading import registry
from hf_docmt.modeling.modeling_memory import MemoryUnit

SIDES = {"both": ("encoder", "decoder"), "source": ("encoder",), "target": ("decoder",)}
SHORT = {"max_new_tokens": 6, "no_repeat_ngram_size": 2}
DOCUMENT = random_text([3, 1, 4, 2, 3], seed=11)


def settings_of(sides: str, layers: list[int] | None) -> dict:
    return {"memory_size": 2 if layers == [0, 1] else 3, "memory_sides": sides, "memory_layers": layers}


class TestMemory(Battery):
    architecture = "memory"
    cases = {
        f"{sides}-{name}": settings_of(sides, layers)
        for sides in SIDES
        for name, layers in (("last", None), ("first", [0]), ("all", [0, 1]))
    } | {
        "one_vector": {"memory_size": 1},
        "norm_before": {"memory_size": 3, "normalize_before": True, "layernorm_embedding": True},
        "learned_positions": {"memory_size": 3, "position_type": "learned", "position_offset": 2},
        "bod": {"memory_size": 3, "use_bod": True},
        "no_residual": {"memory_size": 3, "memory_residual": "none"},
        "no_residual_norm_before": {"memory_size": 2, "memory_residual": "none", "normalize_before": True},
    }
    corners = ("both-last", "source-all", "target-first", "norm_before")
    neutral_cases = corners
    strategies = ("sentence", "sequential", "stream")

    def reach(self, config):
        """All that came before, through the memory; a decoder's first layer does not know the source yet."""
        past, here = {-3, -2, -1, 0}, {0}
        knows_source = config.memory_sides != "target" or max(config.layers_with_memory("decoder")) > 0
        return {
            "source": past if knows_source else here,
            "target": past if config.memory_sides != "source" else here,
        }

    def collate(self, config, examples, context_discount=1.0):
        """With a state from sentences before, another one for every example; documents start where they do."""
        batch = super().collate(config, examples, context_discount)
        batch["document_start"] = torch.tensor([example["document_start"] for example in examples])
        return batch | {
            f"{side}_memory": torch.stack([random_memory(config, side, example) for example in examples])
            for side in SIDES[config.memory_sides]
        }

    def current_logits(self, model, source, target):
        """Those of sentence 3, with the memory that the three before it have left."""
        examples = registry.get("memory").examples(documents_of((source, target)), word_tokenizer(), model.config)
        state = {}
        for number in range(4):
            batch = moved(super().collate(model.config, [examples[number]]), model.device)
            outputs = model(**batch, **state)
            state = state_of(outputs)
        return outputs.logits[batch["labels"] != -100].detach()

    def reference(self, model, batch):
        return [
            reference_row(model, *tokens, after_self_attention=reading(model, memory_of(model, batch, row)))
            for row, tokens in enumerate(tokens_of(batch))
        ]

    def plain_backbone(self, model):
        """What is read from the memory is nothing."""
        for unit in units(model).values():
            torch.nn.init.zeros_(unit.output_attn.out_proj.weight)
            torch.nn.init.zeros_(unit.output_attn.out_proj.bias)
        return plain_model(model), self.collate(model.config, self.examples(model.config))

    def untrained(self, model):
        """A sentence alone does not read what it has written."""
        written = ("memory.update_attn", "memory.fc", "memory.final_layer_norm")
        if model.config.memory_size == 1:  # all attention goes to the one vector
            written += ("memory.output_attn.q_proj", "memory.output_attn.k_proj")
        return {name for name in weights_of(model) if any(part in name for part in written)}


def random_memory(config, side: str, example: dict) -> torch.Tensor:
    seed = torch.Generator().manual_seed(
        10 * example["index"] + (example["doc_id"] == "d1") + 100 * (side == "decoder")
    )
    slots = len(config.layers_with_memory(side)) * config.memory_size
    return torch.randn(slots, config.d_model, generator=seed)


def memory_of(model, batch: dict, row: int) -> dict[str, list[torch.Tensor]]:
    """Of one row, what every layer with a memory reads: {side: [(M, D), ...]}"""
    found = {}
    for side in SIDES[model.config.memory_sides]:
        state = batch[f"{side}_memory"][row]
        if batch["document_start"][row]:
            state = weights_of(model)[f"model.{side}.initial_memory.weight"]
        found[side] = list(state.split(model.config.memory_size))
    return found


def reading(model, memory: dict[str, list[torch.Tensor]], after: dict | None = None):
    """The output attention of Feng et al. (2022), equation 5; into `after` goes the memory of equations 2 to 4."""
    config, weights = model.config, weights_of(model)

    def after_self_attention(side, number, states):
        layers = config.layers_with_memory(side)
        if number not in layers:
            return states
        name, heads = f"model.{side}.layers.{number}.memory", getattr(config, f"{side}_attention_heads")
        mine = memory[side][layers.index(number)]
        inputs = norm(weights, f"{name}.state_layer_norm", states) if config.normalize_before else states
        if after is not None:
            old = mine + torch.stack([sine_vector(position, config.d_model) for position in range(config.memory_size)])
            new = old + attention(weights, f"{name}.update_attn", old, inputs, heads)
            new = norm(weights, f"{name}.update_attn_layer_norm", new)
            new = new + feed_forward(weights, name, new, config.activation_function)
            after.setdefault(side, []).append(norm(weights, f"{name}.final_layer_norm", new))
        read = attention(weights, f"{name}.output_attn", inputs, mine, heads)
        return read if config.memory_residual == "none" else states + read

    return after_self_attention


def units(model) -> dict[str, MemoryUnit]:
    return {name: module for name, module in model.named_modules() if isinstance(module, MemoryUnit)}


def state_of(outputs) -> dict[str, torch.Tensor]:
    names = ("encoder_memory", "decoder_memory")
    return {name: getattr(outputs, name) for name in names if getattr(outputs, name) is not None}


def sentence_batch(*rows: tuple[list[int], list[int]]) -> dict:
    """Source and target ids of a sentence of every row, padded on the right."""
    sources = [[*source, EOS] for source, _ in rows]
    targets = [[BOS, *target] for _, target in rows]
    batch = {}
    for prefix, ids in (("", sources), ("decoder_", targets)):
        width = max(map(len, ids))
        batch[f"{prefix}input_ids"] = torch.tensor([row + [PAD] * (width - len(row)) for row in ids])
        batch[f"{prefix}attention_mask"] = torch.tensor([[1] * len(r) + [0] * (width - len(r)) for r in ids])
    return batch


@pytest.mark.parametrize("case", [*TestMemory.corners, "no_residual_norm_before", "bod"])
def test_two_sentences_by_the_formula(case):
    """The second sentence after the first, in a batch with another document of other lengths; its gradients, too."""
    model = build("memory", **TestMemory.cases[case])
    parameters, rows = list(model.parameters()), []
    steps = [sentence_batch(([7, 8], [9, 10, 11]), ([6], [14])), sentence_batch(([12], [13, 9]), ([15, 16, 17], [18]))]
    first = model(**steps[0])
    found = model(**steps[1], **state_of(first))
    for row in range(2):
        memory = memory_of(model, {"document_start": [True, True], **state_of(first)}, row)
        for step in steps:
            ids, to = (
                step[f"{side}input_ids"][row][step[f"{side}attention_mask"][row] == 1].tolist()
                for side in ("", "decoder_")
            )
            after: dict = {}
            expected = reference_row(model, ids, to, after_self_attention=reading(model, memory, after))
            memory = after
        torch.testing.assert_close(found.logits[row, : len(to)], expected, atol=1e-5, rtol=1e-5)
        rows.append(((found.logits[row, : len(to)]).sin().sum(), expected.sin().sum()))
        for name, state in state_of(found).items():
            by_hand = torch.cat(memory[name.removesuffix("_memory")])
            torch.testing.assert_close(state[row], by_hand, atol=1e-5, rtol=1e-5)
    sums = (torch.stack(one).sum() for one in zip(*rows))
    found, expected = (torch.autograd.grad(one, parameters, materialize_grads=True) for one in sums)
    for (name, _), one, other in zip(model.named_parameters(), found, expected):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4, msg=f"gradient of {name}: ".__add__)


def test_the_state_is_not_given_out_before_the_sentence_is_complete():
    model = build("memory", memory_size=3)
    outputs = model(**sentence_batch(([7], [9])), cache=DecodingCache())
    assert outputs.decoder_memory is None and outputs.encoder_memory.shape == (1, 3, 16)


@pytest.mark.parametrize("beams", [1, 3])
def test_state_carried_by_hand_is_translate_documents(beams):
    model, tokenizer = build("memory", **settings_of("both", None)), word_tokenizer()
    found = model.translate_documents([DOCUMENT], tokenizer, num_beams=beams, **SHORT)[0]
    state, by_hand = {}, []
    for sentence in DOCUMENT:
        source = tokenizer(sentence, return_tensors="pt")["input_ids"]
        ids = model.generate(input_ids=source, **state, num_beams=beams, **SHORT)[0].tolist()
        ids = ids[1 : ids.index(EOS)] if EOS in ids else ids[1:]
        ids = [token for token in ids if token != SEP]
        by_hand.append(tokenizer.decode(ids))
        state = state_of(model(input_ids=source, **state, decoder_input_ids=torch.tensor([[BOS, *ids]])))
    assert found == by_hand
    assert found != model.translate_documents([DOCUMENT], tokenizer, "sentence", num_beams=beams, **SHORT)[0]


@pytest.mark.parametrize("case", ["both-last", "source-all", "target-first", "bod"])
def test_a_document_alone_is_the_document_among_others(case):
    """Documents of very different length; one that ends makes room for the next."""
    model, tokenizer = build("memory", **TestMemory.cases[case]), word_tokenizer()
    documents = [random_text(lengths, seed=len(lengths)) for lengths in ([2, 1], [3, 1, 2, 5, 1, 1, 4], [1], [2, 2, 3])]
    documents += [DOCUMENT, [], ["w7", "", " ", "w8 w9"]]
    together = [model.translate_documents(documents, tokenizer, batch_size=size, **SHORT) for size in (3, 16)]
    assert together[0] == together[1]
    for document, translation in zip(documents, together[0]):
        stream = list(model.translate_stream(iter(document), tokenizer, return_scores=True, **SHORT))
        (scored,) = model.translate_documents([document], tokenizer, return_scores=True, **SHORT)
        scores = [[getattr(line, "score", None) for line in lines] for lines in (stream, scored)]
        assert stream == translation and scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_rows_are_refilled():
    """Three rows for five documents: no step has fewer while documents wait."""
    model, sizes = build("memory", memory_size=3), []
    encode = model.get_encoder().forward

    def counted(*args, **kwargs):
        sizes.append(len(kwargs["input_ids"]))
        return encode(*args, **kwargs)

    model.get_encoder().forward = counted
    documents = [random_text([1] * length, seed=length) for length in (1, 4, 2, 1, 3)]
    model.translate_documents(documents, word_tokenizer(), batch_size=3, **SHORT)
    assert sizes == [3, 3, 2, 2, 1]


def test_empty_sentence_in_the_middle():
    """It stays empty, and the memory passes it by."""
    model, tokenizer = build("memory", memory_size=3), word_tokenizer()
    whole = model.translate_documents([DOCUMENT], tokenizer, **SHORT)[0]
    gap = [*DOCUMENT[:2], "", " ", *DOCUMENT[2:]]
    assert model.translate_documents([gap], tokenizer, **SHORT)[0] == [*whole[:2], "", "", *whole[2:]]


def test_a_stream_that_stops_goes_on():
    model, tokenizer = build("memory", memory_size=3), word_tokenizer()
    whole = model.translate_documents([DOCUMENT], tokenizer, **SHORT)[0]

    def breaking():
        yield from DOCUMENT[:3]
        raise ConnectionError("the line is dead")

    stream, found = model.translate_stream(breaking(), tokenizer, **SHORT), []
    with pytest.raises(ConnectionError):
        for translation in stream:
            found.append(translation)
    assert found == whole[:3] and set(stream.memory) == {"encoder_memory", "decoder_memory"}
    rest = model.translate_stream(DOCUMENT[3:], tokenizer, memory=stream.memory, **SHORT)
    assert found + list(rest) == whole


def test_a_stream_is_read_one_by_one():
    model, read = build("memory", memory_size=3), []

    def endless():
        while True:
            read.append(1)
            yield "w7 w8"

    stream = model.train().translate_stream(endless(), word_tokenizer(), **SHORT)
    assert [next(stream) for _ in range(3)] and len(read) == 3 and model.training


def test_repairs_of_a_stream():
    model, tokenizer = build("memory", memory_size=3), word_tokenizer()
    model.final_logits_bias[0, SEP] += 7
    model.final_logits_bias[0, EOS] -= 20
    stream = model.translate_stream(["w7 w8 w9", "w7"], tokenizer, max_sentence_tokens=2, max_new_tokens=6)
    text = next(stream)
    assert "<sep>" not in text and {"split", "separators", "length"} == {repair["kind"] for repair in stream.repairs}
    report = model.translate_documents([["w7 w8 w9", "w7"]], tokenizer, max_sentence_tokens=2, max_new_tokens=6)
    assert report[0][0] == text


def test_bod_is_at_the_start_of_the_document_only():
    model, tokenizer, seen = build("memory", memory_size=3, use_bod=True), word_tokenizer(), []
    encode = model.get_encoder().forward

    def noted(*args, **kwargs):
        seen.append(kwargs["input_ids"][0].tolist())
        return encode(*args, **kwargs)

    model.get_encoder().forward = noted
    list(model.translate_stream(["w7", "w8"], tokenizer, **SHORT))
    model.translate_documents([["w7", "w8"]], tokenizer, **SHORT)
    assert seen == [[BOD, 7, EOS], [8, EOS]] * 2


@pytest.mark.parametrize("sentences", ["w7 w8", 7, {"en": "w7"}])
def test_no_stream_of_sentences(sentences):
    with pytest.raises(ValueError, match="sentences must be an iterable of sentences, got"):
        build("memory").translate_stream(sentences, word_tokenizer())


def test_a_stream_with_something_else_in_it():
    stream = build("memory").translate_stream(["w7", 8, "\udc00", "w9"], word_tokenizer(), **SHORT)
    next(stream)
    before = stream.memory
    for message in ("a stream must give strings, got int", "a sentence of the stream holds half of a surrogate pair"):
        refused(message, next, stream)
    assert stream.memory is before and next(stream)


def test_stream_without_a_state():
    with pytest.raises(ValueError, match="carries a state from sentence to sentence, which this model has not"):
        build("concat").translate_documents([["w7"]], word_tokenizer(), "stream")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"encoder_memory": torch.zeros(2, 3, 8)}, "state of these 2 sentences, (2, 3, 16); got (2, 3, 8)"),
        ({"encoder_memory": torch.zeros(1, 3, 16)}, "(2, 3, 16); got (1, 3, 16)"),
        ({"decoder_memory": torch.zeros(1, 3, 16)}, "decoder_memory must be the state of these 2 sentences"),
        ({"decoder_memory": torch.zeros(3, 16)}, "(2, 3, 16); got (3, 16)"),
        (
            {"encoder_memory": torch.zeros(2, 3, 16), "document_start": torch.tensor([True])},
            "one truth value for each of the 2 rows of encoder_memory, got shape (1,)",
        ),
    ],
)
def test_state_of_another_size(state, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build("memory", memory_size=3)(**sentence_batch(([7], [9]), ([8], [9])), **state)


def test_a_stream_from_a_memory_of_something_else():
    model, tokenizer = build("memory", memory_size=3), word_tokenizer()
    sides = ("encoder_memory", "decoder_memory")
    state = {side: torch.zeros(1, 3, 16).double() for side in sides}
    others = [state | {sides[0]: torch.zeros(shape)} for shape in ((2, 3, 16), (1, 9, 16), ())]
    for memory in (*others, {sides[0]: state[sides[0]]}, {"memory": state[sides[0]]}, [state], state[sides[0]]):
        refused(r"'decoder_memory': \(1, 3, 16\)}; got", model.translate_stream, ["w7"], tokenizer, memory=memory)
    refused("give max_new_tokens", model.translate_stream, ["w7"], tokenizer, max_length=9)
    assert list(model.translate_stream(["w7"], tokenizer, memory=state))


def test_strategies_that_carry_no_memory():
    model, tokenizer = build("memory"), word_tokenizer()
    for strategy in ("sliding", "full"):
        refused("this model reads one at a time", model.translate_documents, [["w7", "w8"]], tokenizer, strategy)
    found = [model.translate_documents([["w7", "w8"], ["w9"]], tokenizer, s, **SHORT) for s in ("stream", "sequential")]
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="strategies set encoder_memory"):
        model.translate_documents([["w7"]], tokenizer, encoder_memory=torch.zeros(1, 16, 16))


def test_a_state_of_higher_precision():
    model, batch = build("memory").bfloat16(), sentence_batch(([7, 8], [9, 10]))
    state = state_of(model(**batch))
    found = model(**batch, **{name: value.float() for name, value in state.items()})
    assert torch.equal(found.logits, model(**batch, **state).logits)


def test_encoder_states_alone_and_labels_alone():
    model, batch = build("memory", memory_size=3), sentence_batch(([7, 8], [9, 10]))
    states = model.get_encoder()(input_ids=batch["input_ids"]).last_hidden_state
    outputs = model(encoder_outputs=(states,), decoder_input_ids=batch["decoder_input_ids"])
    assert torch.equal(outputs.logits, model(**batch).logits) and outputs.encoder_memory is None
    labels = torch.tensor([[9, 10, EOS]])
    padded = torch.nn.functional.pad(labels, (0, 3), value=-100)
    one, other = (model(input_ids=batch["input_ids"], labels=given).decoder_memory for given in (labels, padded))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("sides", "side"), [("source", "decoder"), ("target", "encoder")])
def test_state_for_a_side_without_memory(sides, side):
    model = build("memory", memory_size=3, memory_sides=sides)
    with pytest.raises(ValueError, match=f"{side}_memory was given, but this model has no memory in its {side}"):
        model(**sentence_batch(([7], [9])), **{f"{side}_memory": torch.zeros(1, 3, 16)})
