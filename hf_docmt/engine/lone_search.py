"""Searches for one source after the other, from its ids to those of its translation, for models of torch."""

import numpy as np
import torch

from hf_docmt.engine.array_search import ArraySettings, Found, best_targets
from hf_docmt.engine.decoding_step import known_program
from hf_docmt.engine.encoder import MOST_PLACES, layers_program
from hf_docmt.engine.int8_linear import whole_blocks
from hf_docmt.engine.known_layers import embeds_tokens, has_methods, step_inputs
from hf_docmt.engine.program_maker import STATES, array
from hf_docmt.engine.programs import ModuleProgramMaker
from hf_docmt.engine.scope import made_once
from hf_docmt.engine.search import SearchSettings
from hf_docmt.modeling.modeling_docmt import Encoder


@torch.no_grad()
def lone_search(model, settings: SearchSettings) -> "LoneSearch | None":
    """The search for a model in a scope whose sources may wait; None where torch runs its encoder or the search."""
    encoder, norm = model.get_encoder(), getattr(model.get_encoder(), "layer_norm", None)
    is_plain = all(step_inputs(stack) == "none" for stack in (encoder, model.get_decoder()))
    is_plain = is_plain and has_methods(encoder, Encoder, "forward") and embeds_tokens(encoder)
    is_known = is_plain and not model.model.encoder_input_names
    layers = layers_program(encoder, MOST_PLACES, encoder.layers, norm) if is_known else None
    if layers is None or not settings.is_plain(model.config.vocab_size):
        return None
    return LoneSearch(model, settings, layers)


class LoneSearch:
    """`best_targets` of one source at a time; it has the attributes of `SavedPrograms`, of the modules of a model."""

    def __init__(self, model, settings: SearchSettings, layers: tuple):
        encoder, decoder = stacks = model.get_encoder(), model.get_decoder()
        self.layers, self.config, make = self, model.config, ModuleProgramMaker()
        before = [make.norm(encoder.layernorm_embedding, STATES)] if self.config.layernorm_embedding else []
        program = made_once(model, lambda: known_program(model))
        self.encoder, (self.decoder,), self.sources = array([*before, *layers[0]]), program.parts, program.sources
        self.writers, self.readers, self.kept = len(program.writers), len(program.readers), (make, layers, program)
        self.source_table, self.table = (stack.embed_tokens.weight.detach().float().numpy() for stack in stacks)
        self.scale, self.bias = encoder.embed_scale, whole_blocks(model.final_logits_bias[0].float()).numpy()
        is_learned = self.config.position_type == "learned"
        self.most = self.config.max_position_embeddings if is_learned else 2**31  # tokens with a position
        self.stacks = dict(zip(("encoder", "decoder"), stacks))
        self.positions: dict[str, np.ndarray] = {}
        ends, penalty, is_early = settings.eos_token_id, settings.length_penalty, settings.early_stopping is True
        self.settings = ArraySettings(ends, settings.num_beams, penalty, is_early, settings.has_sums)

    def __call__(self, source: list[int], prompt: list[int], limit: int) -> Found | None:
        """Up to `limit` ids after a prompt.

        None where `generate` has to search: for long ones, unknown tokens, beams that tie and scores that are NaN.
        """
        tokens, words = max(len(source), len(prompt) + limit), min(len(self.source_table), len(self.table))
        is_known = 0 <= min(*source, *prompt) and max(*source, *prompt) < words
        if len(source) > MOST_PLACES or tokens > self.most or not is_known:
            return None
        return best_targets(self, [source], [prompt], [limit], self.settings, at_once=1)[0]

    def encodings(self, side: str, count: int) -> np.ndarray:
        """The encodings of the first positions, (count, D) float32, kept for the next source."""
        if len(self.positions.get(side, ())) < count:
            positions = torch.arange(min(count + MOST_PLACES, self.most), device="cpu")[None]
            encodings = self.stacks[side].position_encoding(positions)[0]
            self.positions[side] = encodings.detach().float().contiguous().numpy()
        return self.positions[side][:count]
