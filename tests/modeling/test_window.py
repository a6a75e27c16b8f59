"""Window attention: the battery for every alignment and kind of position, and what is special to it."""

import math
import random

import pytest
import torch
from support.battery import Battery, gradients, logits, tokens_of
from support.errors import refused
from support.reference import attention, reference_row
from support.tiny_models import EOS, SEP, build, long_batch, plain_model

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.modeling import limited_attention as limited
from hf_docmt.modeling.configuration_window import WindowConfig
from hf_docmt.modeling.limited_attention import limit_inputs, limited_attention, limits_of
from hf_docmt.modeling.modeling_window import source_borders

ALIGNMENTS = {
    "one_to_one": {"alignment": "one_to_one"},
    "linear": {"alignment": "linear", "length_ratio": 0.8},
    "sentence": {"alignment": "sentence"},
}
CHUNK = {"view": "chunk", "chunk_tokens": 12, "window": 3}
CASES = {
    f"{name}_{position}": {"past_context": 2, "window": 1, "position": position} | fields
    for name, fields in ALIGNMENTS.items()
    for position in ("relative", "absolute")
}
OTHER_CASES = {
    "wide": {"past_context": 1, "window": 64},
    "future": {"past_context": 1, "future_context": 1, "window": 2},
    "chunk": CHUNK,
    "chunk_bod": CHUNK | {"use_bod": True, "position": "absolute", "alignment": "linear", "length_ratio": 1.3},
    "norm_before": {"past_context": 1, "window": 3, "normalize_before": True, "layernorm_embedding": True},
    "sentence_level": {"window": 2},
    "sees_all": {"past_context": 2, "window": 2, "sees_all": True},
    "learned": {
        "past_context": 1,
        "window": 2,
        "position": "absolute",
        "position_type": "learned",
        "position_offset": 2,
    },
}


class TestWindow(Battery):
    architecture = "window"
    cases = CASES | OTHER_CASES
    corners = ("one_to_one_relative", "linear_absolute", "sentence_relative", "chunk_bod", "norm_before", "sees_all")
    without_program = ("sees_all",)
    neutral_cases = corners

    def reach(self, config):
        """Of segments with four tokens a sentence."""
        if config.view == "chunk":
            return {"source": {0, 1, 2}, "target": {0, 1, 2}}  # the second of two chunks of three sentences
        past, future = -config.past_context, config.future_context
        if config.sees_all:
            return {"source": set(range(past, future + 1)), "target": set(range(past, 1))}
        if config.window == 1:  # 4 source tokens on either side, 2 target tokens back
            return {"source": {-1, 0}, "target": {0}}
        target = {0} if past == 0 else {-1, 0}
        return {"source": set(range(past, future + 1)), "target": target}

    def reference(self, model, batch):
        return [reference_logits(model, *row) for row in tokens_of(batch)]

    def plain_backbone(self, model):
        """In a window as long as the sequence all is seen; relative vectors are zero there, positions none."""
        if model.config.position == "absolute":
            plain = plain_model(model)
        else:
            plain = plain_model(model, position_type="learned", position_offset=0)
            for stack in (plain.get_encoder(), plain.get_decoder()):
                torch.nn.init.zeros_(stack.embed_positions.weight)
        wide = type(model)(WindowConfig(**model.config.to_dict() | {"window": 5})).eval()
        missing, _ = wide.load_state_dict({n: v for n, v in model.state_dict().items() if "relative" not in n}, False)
        assert all("relative" in name for name in missing)
        for name, parameter in wide.named_parameters():
            if "relative" in name:
                torch.nn.init.zeros_(parameter)
        model.__dict__.update(wide.__dict__)
        return plain, {
            "input_ids": torch.tensor([[7, 9, SEP, 8, 10, EOS], [6, EOS, 0, 0, 0, 0]]),
            "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]]),
            "decoder_input_ids": torch.tensor([[2, 9, 11, SEP, 8, 6], [2, 14, 7, 9, 12, 8]]),
        }


def alignment(config, source: list[int], target: list[int]) -> list[int]:
    """b_i of section 3.3 in decoding, counted from 1, of what is read at each position; none past the source."""
    begins = [1] + [index + 2 for index, token in enumerate(source) if token == SEP]  # first token of every sentence
    found, last = [], 0
    for i, token in enumerate(target, 1):
        if config.alignment == "one_to_one":
            b = i
        elif config.alignment == "linear":
            b = math.floor(config.length_ratio * i + 0.5)
        elif token == SEP:
            sentence = target[:i].count(SEP)
            b = begins[sentence] if sentence < len(begins) else len(source)
        else:
            b = last + 1
        found.append(min(max(b, 1), len(source)))
        last = b
    return found


def reference_logits(model, source: list[int], target: list[int]) -> torch.Tensor:
    """Equation 1, with relative keys where there are some: logits (T, V) of one row."""
    w, aligned = model.config.window, alignment(model.config, source, target)

    def windowed(weights, name, states, memory, heads, centres, right):
        """(T, D) and (S, D) -> (T, D); centres count from 1."""
        reach = (len(memory), len(memory) if right else 0) if model.config.sees_all else (w, right)
        seen = [[j for j in range(len(memory)) if b - reach[0] <= j + 1 <= b + reach[1]] for b in centres]
        table, keys = weights.get(f"{name}.relative.weight"), None
        if table is not None:
            rows = [[w - max(-w, min(i - j, w)) for j in keys_of_i] for i, keys_of_i in enumerate(seen)]  # clipped
            keys = [table[row] for row in rows]
        return attention(weights, name, states, memory, heads, seen=seen, added_keys=keys)

    def self_attention(weights, name, states, heads, causal, ids):
        return windowed(weights, name, states, states, heads, range(1, len(ids) + 1), 0 if causal else w)

    def cross_attention(weights, name, states, memory, heads, ids):
        return windowed(weights, name, states, memory, heads, aligned, w)

    added = None if model.config.position == "absolute" else [0]  # no positions
    steps = {"self_attention": self_attention, "cross_attention": cross_attention}
    return reference_row(model, source, target, added, added, **steps)


# The blocked attention against all scores under a mask


def shapes(count: int):
    """Random cases: batch, queries, keys, window, kind of centres, first key and end of every row."""
    draw = random.Random(0)
    for number in range(count):
        kind = ("self", "causal", "proportional", "one_to_one", "sentence", "anywhere")[number % 6]
        length = draw.randint(1, 700) if number % 4 == 0 else draw.randint(1, 200)
        window = draw.randint(1, length) if number % 3 == 0 else draw.randint(1, min(length, 24))
        keys = length if kind in ("self", "causal") else draw.randint(1, 2 * length)
        rows = draw.choice([1, 1, 2])
        limits = [(0, keys)] * rows
        if number % 2:  # padding on the left, on the right, or of the whole row
            limits = [tuple(sorted((draw.randint(0, keys), draw.randint(0, keys)))) for _ in range(rows)]
        yield number, kind, length, keys, window, limits


def centres_of(kind: str, length: int, keys: int, limits, draw: torch.Generator) -> torch.Tensor:
    """Positions of keys (B, I) by each alignment; sentences are of random lengths."""
    own = torch.arange(length)
    if kind in ("self", "causal"):
        return own[None]
    rows = []
    for first, end in limits:
        if kind == "proportional":
            positions = first + (own + 1) * (end - first) // length - 1
        elif kind == "one_to_one":
            positions = first + own
        elif kind == "sentence":
            begins = torch.randint(0, keys, (length,), generator=draw)
            jumps = (torch.rand(length, generator=draw) < 0.05).long()
            last = (jumps * own).cummax(0).values
            positions = torch.where(last > 0, begins[last], first) + own - last
        else:
            positions = torch.randint(0, keys, (length,), generator=draw)
        rows.append(positions.clamp(max=end - 1).clamp(min=min(first, keys - 1)))
    return torch.stack(rows)


def masked_attention(query, key, value, centres, left, right, limits, table=None):
    """Equation 1: all scores, -inf outside of the window, relative keys one by one by i - j; zeros without keys."""
    keys = key.shape[2]
    distance = torch.arange(keys) - centres[..., None]  # (B or 1, I, J): j - b_i
    inside = torch.tensor([[first <= j < end for j in range(keys)] for first, end in limits])[:, None]
    seen = ((-left <= distance) & (distance <= right) & inside)[:, None]  # (B, 1, I, J)
    mask = torch.zeros(seen.shape).masked_fill(~seen & seen.any(-1, keepdim=True), -math.inf)
    scores = query @ key.transpose(2, 3)
    if table is not None:
        vectors = table[:, (distance[0] + left).clamp(0, left + right)]  # (H, I, J, Dh)
        scores = scores + torch.einsum("bhid,hijd->bhij", query, vectors)
    weights = (scores / math.sqrt(query.shape[3]) + mask).softmax(-1)
    return (weights * seen.any(-1, keepdim=True)) @ value


def test_blocked_is_masked(monkeypatch):
    """200 shapes: outputs and the gradients of queries, keys, values and relative vectors, in blocks or at once."""
    draw = torch.Generator().manual_seed(0)
    for number, kind, length, keys, window, limits in shapes(200):
        heads, dim, rows = 2, 4, len(limits)
        left, right = window, 0 if kind == "causal" else window
        query = torch.randn(rows, heads, length, dim, generator=draw).requires_grad_()
        key, value = (torch.randn(rows, heads, keys, dim, generator=draw).requires_grad_() for _ in range(2))
        centres = centres_of(kind, length, keys, limits, draw)
        table = None
        if kind in ("self", "causal") and length <= 300:  # the reference holds a vector for every query and key
            table = torch.randn(heads, left + 1 + right, dim, generator=draw).requires_grad_()
        gradient = torch.randn(query.shape, generator=draw)
        inputs = [query, key, value] + ([] if table is None else [table])
        expected = masked_attention(query, key, value, centres, left, right, limits, table)
        expected = [expected, *torch.autograd.grad(expected, inputs, gradient)]
        first, end = (torch.tensor(side)[:, None] for side in zip(*limits))
        monkeypatch.setattr(limited, "FEW_KEYS", keys * (number % 3 == 0))
        low, high = (centres - left).clamp(min=first), (centres + right).clamp(max=end - 1)
        own = (
            {}
            if table is None
            else {"places": torch.arange(keys)[None], "origin": centres - left, "width": left + 1 + right}
        )
        found = attended(query, key, value, low, high, relative=table, **own)
        found = [found, *torch.autograd.grad(found, inputs, gradient)]
        for one, other in zip(found, expected):
            close = torch.allclose(one, other, atol=1e-5, rtol=1e-5)
            assert close, (number, kind, float((one - other).abs().max()))


def attended(query, key, value, low, high, relative=None, dropout=0.0, **settings):
    limits = limits_of(limit_inputs("own", low, high, key.shape[2], **settings), "own")
    return limited_attention(query, key, value, limits, relative, dropout)[0]


@pytest.mark.parametrize(("queries", "keys"), [(0, 3), (1, 3), (3, 0), (3, 1), (0, 0), (1, 1)])
def test_hardly_any_queries_or_keys(queries, keys):
    query, key = torch.randn(1, 2, queries, 4), torch.randn(1, 2, keys, 4)
    centres = torch.arange(queries)[None].clamp(max=max(keys - 1, 0))
    found = attended(query, key, key, (centres - 1).clamp(min=0), (centres + 1).clamp(max=keys - 1))
    assert found.shape == query.shape
    if keys == 1:
        torch.testing.assert_close(found, key.expand_as(found))
    if keys == 0:
        assert not found.any()


def test_dropout():
    """Weights are dropped and scaled, the same ones forward and backward."""
    query, key = torch.randn(1, 2, 400, 4, requires_grad=True), torch.randn(1, 2, 400, 4)
    value, columns = torch.ones(1, 2, 400, 4, requires_grad=True), torch.arange(400)[None]
    found = attended(query, key, value, (columns - 40).clamp(min=0), (columns + 40).clamp(max=399), dropout=0.5)
    assert found.std() > 0.05 and abs(found.mean() - 1) < 0.05  # a sum of kept weights, twice as large
    found.sum().backward()
    torch.testing.assert_close(value.grad.sum(), found.sum())


@pytest.mark.parametrize(("dtype", "cast"), [(torch.bfloat16, False), (torch.float16, False), (torch.float32, True)])
def test_dropout_in_half_precision(dtype, cast):
    """A step over more tokens than a block has, with half-precision weights or under autocast."""
    model = build("window", past_context=3, window=4, attention_dropout=0.1).to(dtype).train()
    ids = torch.randint(6, 30, (2, 120), generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16, enabled=cast):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


# The model on segments longer than a block


@pytest.mark.parametrize("case", ["one_to_one_relative", "sentence_relative", "linear_absolute"])
@pytest.mark.parametrize("training", [False, True])
def test_long_segments_in_blocks_are_all_scores(case, training):
    """With all scores under the mask (`eager`) and in blocks: logits, loss and gradients, in training and otherwise."""
    model = build("window", **CASES[case] | {"window": 4}).train(training)
    batch, whole = long_batch(10, 12), {"skip_logits": False}
    results = []
    for implementation in ("eager", "sdpa"):
        model.set_attn_implementation(implementation)
        results.append((logits(model, batch | whole)[batch["labels"] != -100], *gradients(model, batch)))
    for one, other in zip(*results):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)
    alone = logits(model, {name: value[:1] for name, value in batch.items()} | whole)[0]
    torch.testing.assert_close(alone, results[1][0][: len(alone)], atol=1e-5, rtol=1e-4)
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(**batch).loss
    torch.testing.assert_close(loss, model(**batch).loss, atol=0, rtol=0.03)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_alignment_in_training_is_that_of_lengths(alignment):
    """b_i = round(J / I i) for every alignment that decoding may have, whatever padding the batch adds."""
    model = build("window", past_context=2, window=1, **ALIGNMENTS[alignment]).train()
    borders = torch.tensor([[0, 3, 6], [2, 5, 5]])  # J = 6 and 3
    tokens = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    ids = torch.full((2, 5), 7)
    found = model.model.align(ids, tokens, borders, training=True)
    # row 0: round(1.5 i) = 2 3 5 6, halves up; row 1: round(1.5 i) = 2 3, in columns from 2
    assert found[0, :4].tolist() == [1, 2, 4, 5] and found[1, :2].tolist() == [3, 4]
    assert torch.equal(found, model.model.align(ids * tokens, None, borders, training=True))
    before = logits(model, {"input_ids": ids, "decoder_input_ids": ids * tokens})
    model.config.alignment = "one_to_one"
    assert torch.equal(before, logits(model, {"input_ids": ids, "decoder_input_ids": ids * tokens}))


def test_alignment_by_sentence():
    """Past the last source token and past the last sentence the last source token stays; padding does not count."""
    model = build("window", past_context=2, window=1)
    source = torch.tensor([[7, 8, SEP, 9, EOS, 0], [0, 7, 8, 9, 10, EOS]])
    borders = source_borders(source, (source != 0).long(), SEP)
    assert borders.tolist() == [[0, 3, 5], [1, 6, 6]]
    target = torch.tensor([[2, 7, SEP, 7, 7, 7, SEP, 9], [2, SEP, 7, 0, 7, 7, SEP, SEP]])
    tokens = torch.ones_like(target)
    assert model.model.align(target, tokens, borders).tolist() == [[0, 1, 3, 4, 4, 4, 4, 4], [1, 5, 5, 5, 5, 5, 5, 5]]
    hole = torch.tensor([[0, 2, 7, 0, 0, 8, SEP, 9]])
    found = model.model.align(hole, (hole != 0).long(), borders[:1])
    assert found[0, [1, 2, 5, 6, 7]].tolist() == [0, 1, 2, 3, 4]
    no_sep = source_borders(torch.tensor([[7, 8, EOS]]), None, SEP)
    assert model.model.align(target[:1], tokens[:1], no_sep).tolist() == [[0, 1, 2, 2, 2, 2, 2, 2]]
    nothing = source_borders(torch.zeros(1, 0, dtype=torch.long), None, SEP)
    assert nothing.tolist() == [[0, 0]] and model.model.align(target[:1], tokens[:1], nothing).tolist() == [[0] * 8]


def test_padding_between_tokens():
    model = build("window", past_context=2, window=2)
    inputs = {"input_ids": torch.tensor([[7, 0, 8, EOS]]), "attention_mask": torch.tensor([[1, 0, 1, 1]])}
    refused("row 0 has padding between tokens", model, **inputs, decoder_input_ids=torch.tensor([[2, 7]]))


def test_long_generation_is_forced_decoding():
    """Scores of 120 tokens that were written through the cache, for three rows on two long sources."""
    model = build("window", past_context=2, window=4)
    model.final_logits_bias[:, EOS] = -1e9
    batch = long_batch(10, 12)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    settings = {"max_new_tokens": 120, "num_beams": 3, "no_repeat_ngram_size": 3, "do_sample": False}
    found = model.generate(**inputs, **settings, return_dict_in_generate=True, output_scores=True)
    ids = found.sequences
    forced = logits(model, inputs | {"decoder_input_ids": ids[:, :-1]}).log_softmax(-1)
    total = forced.gather(2, ids[:, 1:, None])[..., 0].mean(dim=1)
    torch.testing.assert_close(found.sequences_scores, total, atol=1e-4, rtol=1e-4)


def test_new_tokens_without_an_alignment():
    model = build("window", past_context=2, window=2)
    inputs = {"input_ids": torch.tensor([[7, SEP, 8, EOS]]), "decoder_input_ids": torch.tensor([[2]])}
    cache = DecodingCache()
    model(**inputs, cache=cache)
    refused("pass decoder_alignment", model, **inputs | {"decoder_input_ids": torch.tensor([[7]])}, cache=cache)


def test_ratio_that_was_not_set():
    model = build("window", alignment="linear", window=2)
    inputs = {"input_ids": torch.tensor([[7, SEP, 8, EOS]]), "decoder_input_ids": torch.tensor([[2]])}
    refused("length_ratio is not set", model, **inputs)
    model.train()(**inputs)


def test_weights_of_attention():
    """With `eager` attention, for the rows that share a source, too: nothing outside of the window."""
    model = build("window", past_context=2, window=1, alignment="one_to_one")
    model.set_attn_implementation("eager")
    source = torch.tensor([[7, SEP, 8, 9, EOS]])
    inputs = {"encoder_outputs": model.get_encoder()(input_ids=source), "output_attentions": True}
    found = model(**inputs, decoder_input_ids=torch.tensor([[2, 7, 8], [2, 9, 6]]))
    band = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0]]).bool()
    for weights in found.cross_attentions:
        assert weights.shape == (2, 4, 3, 5)
        assert torch.equal(weights > 0, band.expand_as(weights))
    assert all(weights.shape == (2, 4, 3, 3) for weights in found.decoder_attentions)


@torch.no_grad()
def test_reach_through_all_layers():
    """Source tokens that a prediction depends on: w (E + D) before the aligned one, w (E + 1) after it; w D targets."""
    window, encoder, decoder, place = 2, 2, 3, 20
    sizes = {"window": window, "encoder_layers": encoder, "decoder_layers": decoder}
    model = build("window", alignment="one_to_one", **sizes)
    source, target = torch.full((1, 45), 7), torch.full((1, 45), 9)
    before = model(input_ids=source, decoder_input_ids=target).logits[0, place]
    reached = {"source": [], "target": []}
    for side, ids in (("source", source), ("target", target)):
        for position in range(45):
            changed = ids.clone()
            changed[0, position] = 11
            sides = {"input_ids": source, "decoder_input_ids": target}
            sides["input_ids" if side == "source" else "decoder_input_ids"] = changed
            if not torch.equal(model(**sides).logits[0, place], before):
                reached[side].append(position)
    first, last = place - window * (encoder + decoder), place + window * (encoder + 1)
    assert reached["source"] == list(range(first, last + 1))
    assert len(reached["source"]) == 2 * window * encoder + window * decoder + window + 1
    assert reached["target"] == list(range(place - window * decoder, place + 1))
