"""The forward of the published fairseq models in slow obvious code, one row at a time."""

import math

import torch

from support.context_reference import normalized
from support.fairseq_weights import DIM, EOS, HEADS, LAYERS, PAD
from support.reference import attention, feed_forward, linear, norm, sine_vector


class Released:
    """The forward of the published code, one row at a time: ids to logits (T, V)."""

    def __init__(self, settings: dict, weights: dict):
        self.settings, self.weights = settings, weights
        self.before = settings.get("encoder_normalize_before", False)

    def position(self, side: str, place: int) -> torch.Tensor:
        index = place + PAD + 1  # the first token has the index after the padding's
        if self.settings.get("encoder_learned_pos"):
            return self.weights[f"{side}.embed_positions.weight"][index]
        return sine_vector(index, DIM, "sinusoidal_t2t")

    def embedded(self, side: str, ids: list[int], added=None) -> torch.Tensor:
        """sqrt(d) times the embeddings, and what is added; by default positions."""
        added = [self.position(side, place) for place in range(len(ids))] if added is None else added
        table = self.weights[f"{side}.embed_tokens.weight"]
        return torch.stack([math.sqrt(DIM) * table[id] + vector for id, vector in zip(ids, added)])

    def attend(self, name: str, states, memory=None, causal=False):
        """A sublayer of attention, to itself without `memory`, with its residual and norm."""
        read = norm(self.weights, f"{name}_layer_norm", states) if self.before else states
        read = attention(self.weights, name, read, read if memory is None else memory, HEADS, causal)
        return states + read if self.before else norm(self.weights, f"{name}_layer_norm", states + read)

    def feed(self, name: str, states):
        """The feed-forward sublayer with its residual and norm."""
        read = norm(self.weights, f"{name}.final_layer_norm", states) if self.before else states
        read = feed_forward(self.weights, name, read, self.settings.get("activation_fn", "relu"))
        return states + read if self.before else norm(self.weights, f"{name}.final_layer_norm", states + read)

    def encode(self, ids: list[int], layers: str = "layers", last: str = "layer_norm", added=None, later=0):
        states = self.embedded("encoder", ids, added)
        for number in range(LAYERS):
            name = f"encoder.{layers}.{number}"
            states = self.attend(f"{name}.self_attn", states + later if number else states)
            states = self.feed(name, states)
        return norm(self.weights, f"encoder.{last}", states) if self.before else states

    def decode(self, ids: list[int], memory, context=None, added=None, later=0) -> torch.Tensor:
        states = self.embedded("decoder", ids, added)
        for number in range(LAYERS):
            name = f"decoder.layers.{number}"
            after_self = self.attend(f"{name}.self_attn", states + later if number else states, causal=True)
            states = self.attend(f"{name}.encoder_attn", after_self, memory)
            if context is not None:
                states = self.read_context(name, after_self, states, context)
            states = self.feed(name, states)
        states = norm(self.weights, "decoder.layer_norm", states) if self.before else states
        return states @ self.weights["decoder.output_projection.weight"].T

    def read_context(self, name, after_self, after_cross, context):
        """In parallel from the states after self-attention; the gate is behind residual and norm."""
        is_parallel = self.settings.get("context_use_parallel_cross_attention")
        states = self.attend(f"{name}.context_attn", after_self if is_parallel else after_cross, context)
        if self.settings.get("context_use_gated_context_attention"):
            states = torch.sigmoid(linear(self.weights, f"{name}.context_gate.0", states)) * states
        return states + after_cross if is_parallel else states

    # Maka et al. (2024)

    def maka(self, source: list[int], contexts: list[list[int]], target: list[int], separator: int = 0):
        """`contexts` are N sentences, the farthest first, each with its end."""
        arch, memory = self.settings["arch"], self.encode(source)
        if arch.startswith(("contextual", "multienc")):
            joined = [id for sentence in contexts for id in [*sentence[:-1], separator]][:-1] + [EOS]
            last = "context_layer_norm" if arch.startswith("multienc") else "layer_norm"
            parts = [self.encode(joined, "context_layers", last)]
            if arch.startswith("contextual"):
                return self.decode(target, torch.cat([*parts, memory]))
        else:
            parts = [self.shortened(self.encode(context)) for context in contexts]
            if self.includes_current():
                parts.append(self.shortened(memory))
        context = torch.cat([part + self.sentence_position(index) for index, part in enumerate(parts)])
        if self.settings.get("context_concatenate_context"):
            return self.decode(target, torch.cat([context, memory]))
        return self.decode(target, memory, context)

    def includes_current(self) -> bool:
        if self.settings["arch"].startswith("shortening"):
            return not self.settings.get("shortening_no_current_context")
        return bool(self.settings.get("caching_use_current_context"))

    def sentence_position(self, index: int):
        if self.settings.get("context_no_sentence_positional_embeddings"):
            return 0
        return self.row("decoder.sentence_positions.weight", index, self.settings.get("context_sentence_learned_pos"))

    def row(self, name: str, index: int, is_learned: bool):
        """Row index + 1: the first is the padding's."""
        return self.weights[name][index + 1] if is_learned else sine_vector(index + 1, DIM, "sinusoidal_t2t")

    def shortened(self, states: torch.Tensor) -> torch.Tensor:
        settings = self.settings
        if settings["arch"].startswith("caching"):
            return states.mean(0, keepdim=True) if settings.get("caching_aggregate_sentence") else states
        pooled = self.pooled(states) if settings.get("shortening_use_pooling") else self.grouped(states)
        read = attention(self.weights, "encoder.shortening_attn", pooled, states, HEADS)
        result = norm(self.weights, "encoder.shortening_layer_norm", pooled + read)
        if settings.get("shortening_no_group_positional_embeddings"):
            return result
        is_learned = settings.get("shortening_group_learned_pos")
        rows = [self.row("encoder.group_positions.weight", index, is_learned) for index in range(len(result))]
        return result + torch.stack(rows)

    def pooled(self, states):
        """Windows filled with zeros, which count."""
        size, kind = self.settings["shortening_groups"], self.settings["shortening_pooling_type"]
        states = torch.cat([states, torch.zeros(-len(states) % size, DIM)])
        windows = states.view(-1, size, DIM)
        if kind == "linear":
            return linear(self.weights, "encoder.linear_pooler", windows.flatten(1))
        return windows.mean(1) if kind == "mean" else windows.amax(1)

    def grouped(self, states):
        hidden = torch.relu(linear(self.weights, "encoder.shortening_cat.0", states))
        if self.settings.get("activation_fn") == "gelu":
            hidden = torch.nn.functional.gelu(linear(self.weights, "encoder.shortening_cat.0", states))
        scores = linear(self.weights, "encoder.shortening_cat.2", hidden)  # (M, K)
        kind = "sparsemax" if self.settings.get("shortening_use_sparsemax") else "softmax"
        if self.settings.get("shortening_selecting_groups"):
            shares = torch.stack([normalized(kind, column) for column in scores.T])  # (K, M)
        else:
            shares = torch.stack([normalized(kind, row) for row in scores]).T
        return shares @ states

    # Lupo et al. (2023)

    def lupo(self, source: list[int], target: list[int], separator: int = EOS):
        """Windows `s1 </s> ... sK <END>`; `target` is the decoder's input, which begins with `<END>`."""
        count = source.count(separator) + 1 if self.settings["mode"] == "slide_n2n" else 1
        encoded, later = self.sentence_encoding("encoder", source, source.count(separator) + 1, separator)
        memory = self.encode(source, added=encoded, later=later)
        encoded, later = self.sentence_encoding("decoder", target, count, separator)
        return self.decode(target, memory, added=encoded, later=later)

    def sentence_encoding(self, side: str, ids: list[int], count: int, separator: int):
        """What is added to the embeddings, and to the input of every later layer."""
        get = self.settings.get
        positions, segments, sentence = [], [], 0
        for place, id in enumerate(ids):
            label = count - sentence  # 1 is the current sentence
            is_start = side == "decoder" and place == 0
            shift = get("position_shift", 0) * sentence if get("segment_shifted_positions") else 0
            positions.append(self.position(side, place + shift))
            segments.append(self.segment(1 if is_start else label))
            if pse := get("pse_segment_dim", 0):
                positions[-1] = sine_vector(place + PAD + 1, DIM - pse, "sinusoidal_t2t")
            sentence += id == separator
        positions, segments = torch.stack(positions), torch.stack(segments)
        if get("pse_segment_dim", 0):
            fused = torch.cat([positions, segments], dim=1)
            return fused, fused if get("persistent_pse") else 0
        later = 0
        if get("persistent_positions"):
            later = later + positions
        if get("use_segment_emb") and get("persistent_segment_emb"):
            later = later + segments
        return positions + segments if get("use_segment_emb") else positions, later

    def segment(self, label: int) -> torch.Tensor:
        dim = self.settings.get("pse_segment_dim", 0) or DIM
        if not self.settings.get("use_segment_emb"):
            return torch.zeros(dim)
        if self.settings.get("lrn_segment_emb"):
            return self.weights["encoder.embed_segments.weight"][label]
        if self.settings.get("onehot_segment_emb"):
            return torch.eye(dim)[label - 1]
        return sine_vector(label, dim, "sinusoidal_t2t")
