"""Agreement of attention with the words that annotators marked in SCAT (Yin et al. 2021)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hf_docmt import __version__
from hf_docmt.analysis.rationale_attention import ATTENTIONS, STEPS, forced_attention
from hf_docmt.analysis.scat import ScatExample
from hf_docmt.data.examples import check_choices
from hf_docmt.evaluation.systems.forced_decoding import ForcedDecoding
from hf_docmt.reports.signature import Signature


@dataclass(frozen=True)
class Agreement:
    """Agreement of attention with the words that annotators marked; all values are fractions of 1.

    `values` (examples, 1 + heads, 1 + len(at)): for averaged weights and every head, the share of weight on marked
    words and the precision at each k. `chance` (examples, 1 + len(at)): the values of equal weights and a random order.
    """

    ids: tuple[str, ...]
    values: np.ndarray
    chance: np.ndarray
    at: tuple[int, ...]
    heads: tuple[str, ...]
    unused: dict[str, int]  # examples without a value, by reason
    signature: Signature


def rationale_agreement(
    system: ForcedDecoding,
    examples: Sequence[ScatExample],
    *,
    attention: str = "decoder",
    step: str = "writes",
    at: Sequence[int] = (1, 5),
    batch_size: int = 8,
) -> Agreement:
    """Attention from marked pronouns to marked words, with forced references.

    `attention` is that of the `encoder` (source pronoun to source), `cross` (target pronoun to source) or of the
    `decoder` (target pronoun to the target before it); in the published files nearly all marked words are on the target
    side. In the decoder `step` is the step that `writes` the pronoun, or the one that `reads` it. A whole context line
    is one context sentence, since its sentence borders are lost; a system without past context gets none.

    For every marked pronoun the weights of its tokens are averaged. The share is of all weight, special tokens
    included; for the precision words are ranked by the sum of their tokens' weights. The pronoun's own word is neither
    marked nor ranked. The value of an example is the mean over its pronouns.
    ValueError: a system that gives no attention weights, no example with a marked pronoun and a marked word in reach,
    an example with more tokens than the model has positions.
    """
    check_choices(attention=(attention, tuple(ATTENTIONS)), step=(step, STEPS))
    check_attention(system)
    ids, found, unused, heads = [], [], Counter(), ()
    for example, forced in forced_attention(system, examples, attention, step, batch_size):
        heads = forced.heads()
        values = [forced.pronoun(number, attention, at) for number, word in enumerate(forced.queries) if word.pronoun]
        useful = [value for value in values if value is not None]
        if useful:
            ids.append(example.example_id)
            found.append(np.mean(useful, axis=0))
        else:
            unused["no marked word in reach" if values else "no marked pronoun"] += 1
    if not found:
        raise ValueError(
            f"no example has a marked pronoun from which {attention} attention could go to a marked word: "
            f"{dict(unused)}; choose another attention, or give other examples"
        )
    values = np.array(found)
    signature = {
        "attention": attention,
        "step": "reads" if attention == "encoder" else step,
        "words": "letters" if system.tokenizer.is_fast else "between blanks",
        "context": "one sentence" if system.past_context else "none",
        "version": __version__,
    }
    return Agreement(tuple(ids), values[:, :-1], values[:, -1], tuple(at), heads, dict(unused), Signature.of(signature))


def check_attention(system: ForcedDecoding) -> None:
    """ValueError unless the system joins context and sentence, and its model runs with eager attention."""
    if not isinstance(system, ForcedDecoding):
        raise ValueError(f"{system.name}: attention can be compared for encoder-decoder systems only")
    if getattr(system, "carries_state", False):
        raise ValueError(
            f"{system.name} reads one sentence at a time, so no attention goes from one to another; docmt analyze "
            "memory-maps shows what its memory does"
        )
    if getattr(system, "separate_context", False):
        raise ValueError(
            f"{system.name} reads context sentences separately, so they are not in the segment that attention is "
            "measured in; compare a model that joins them"
        )
    implementation = system.model.config._attn_implementation
    if implementation != "eager":
        raise ValueError(
            f"{system.name}: attn_implementation is {implementation!r}, which gives no weights; load the system with "
            "attn_implementation='eager', or call model.set_attn_implementation('eager')"
        )
