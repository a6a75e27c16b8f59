"""What the package does with models besides running them: initial values, the loss, other tables, saved folders, cards.

A Hub folder has in its place a few lines of `plain_acceleration.py`, unless its weights are int8.
"""

import shutil
from pathlib import Path

import torch

from .chunked_loss import gives_loss
from .cpu_inference import prepacked_weights
from .decoding_kernels import decoding_step
from .encoder_kernels import encoder_states
from .fast_search import BeamLayer, best_continuations, best_token
from .quantization import Quantization
from .tested_versions import TORCH, TRANSFORMERS
from .training import smoothing_target, target_count, weighted_cross_entropy

TESTED = {"torch": TORCH, "transformers": TRANSFORMERS}
PLAIN_CODE = Path(__file__).with_name("plain_acceleration.py")  # a Hub folder has none
ACCELERATION = ("chunked_loss", "cpu_inference", "int8_linear", "model_support", "quantization")
ACCELERATION += (
    "cpu_kernels",
    "decoding_kernels",
    "decoding_step",
    "encoder_kernels",
    "fast_search",
    "kept_work",
    "kernel_primitives",
    "kernel_programs",
    "weight_checksums",
)
ACCELERATION += ("training",)


def version_ranges() -> str:
    """The tested versions in words: `torch 2.13 and transformers 5.23 to 5.24`."""
    return " and ".join(f"{name} {' to '.join(dict.fromkeys(versions))}" for name, versions in TESTED.items())


class ModelSupport(Quantization):
    """To be placed before `PreTrainedModel`: folders with a card and plain code; int8 weights."""

    beam_layer_class = BeamLayer  # of the decoding cache

    def fast_states(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None,
        input_ids: torch.Tensor | None = None,
        kind: str = "",
    ) -> torch.Tensor | None:
        """Of an encoder, embeddings to states without its layers, see `encoder_kernels.py`; None: call these.

        `kind`: "" for its own, "context_" for those of the context.
        """
        layers, norm = getattr(self, f"{kind}layers"), getattr(self, f"{kind}layer_norm", None)
        return encoder_states(self, hidden_states, attention_mask, layers, norm, input_ids)

    def save_pretrained(
        self, save_directory, is_main_process: bool = True, state_dict=None, push_to_hub: bool = False, **kwargs
    ) -> None:
        """As in transformers; with a card, if there is one, and with plain code, unless the weights are int8.

        A folder that is pushed gets both in `_upload_modified_files`.
        """
        kwargs |= {"is_main_process": is_main_process, "state_dict": state_dict, "push_to_hub": push_to_hub}
        super().save_pretrained(save_directory, **kwargs)
        if is_main_process and not push_to_hub:
            self.complete_folder(save_directory)

    def _upload_modified_files(self, working_dir, repo_id, *args, **kwargs):
        """With the card in place of the template that transformers has written."""
        self.complete_folder(working_dir, repo_id)
        return super()._upload_modified_files(working_dir, repo_id, *args, **kwargs)

    def complete_folder(self, folder, name: str | None = None) -> None:
        """Write the card, and make the code plain."""
        self.write_card(folder, name)
        code = Path(folder, "acceleration.py")
        if PLAIN_CODE.exists() and code.exists() and getattr(self.config, "quantization_config", None) is None:
            for module in ACCELERATION:
                code.with_name(f"{module}.py").unlink(missing_ok=True)
            shutil.copyfile(PLAIN_CODE, code)

    def write_card(self, folder, name: str | None = None) -> None:
        """Write README.md beside the weights: the registry puts the function for it here."""


class HeadSupport:
    """To be placed before a model with a head: the loss, weights of other configurations, other vocabularies."""

    best_token, best_continuations = staticmethod(best_token), staticmethod(best_continuations)

    def decoding_step(self, state):
        """The flat list of a step behind a prompt, see `decoding_step.py`; None where `forward` has to be called."""
        return decoding_step(state)

    def prepacked_weights(self):
        """Scope in which the weights do not change, for faster inference on a CPU: see `cpu_inference`."""
        return prepacked_weights(self)

    def loss(self, hidden_states, labels, label_weights, label_smoothing: float, num_items_in_batch, skip_logits: bool):
        """Of states (B, T, D) the loss, see `weighted_cross_entropy`, and logits (B, T, V), or None to skip them."""
        bias = self.final_logits_bias[0]
        if skip_logits and gives_loss(self.lm_head):
            total = self.lm_head(hidden_states, bias, labels, label_weights, label_smoothing)
            return total / target_count(labels, num_items_in_batch), None
        logits = self.logits_of(hidden_states)
        smoothed = smoothing_target(bias) if label_smoothing else None
        loss = weighted_cross_entropy(logits, labels, label_weights, label_smoothing, num_items_in_batch, smoothed)
        return loss, None if skip_logits else logits

    def logits_at(self, positions: torch.Tensor, **inputs) -> torch.Tensor:
        """Logits (N, V) of N target positions alone, true in (B, T) bool; `inputs` as in `forward`, without labels."""
        hidden_states = self.model(**inputs, return_dict=True).last_hidden_state  # (B, T, D)
        return self.logits_of(hidden_states[positions])

    def adapt_state_dict(self, state_dict: dict[str, torch.Tensor], source_config) -> tuple[dict, set[str]]:
        """The weights of a trained model of another configuration, as this one loads them, and which are new here.

        The second value names this model's parameters that the result does not determine: those that `state_dict` has
        not, and tables with rows that it has not. Names and shapes that do not fit are left for the caller to refuse.
        """
        names = {name for name, _ in self.named_parameters()}
        return dict(state_dict), names - state_dict.keys()
