"""The warning of `generate` on a model that reads context as inputs of its own and gets none."""

from transformers.utils import logging

logger = logging.get_logger(__name__)

BY_HAND = {  # the argument of `generate` -> how to give it
    "context_input_ids": (
        'context = tokenizer(["The sentence before."], return_tensors="pt"); '
        'model.generate(**tokenizer("This one.", return_tensors="pt"), context_input_ids=context.input_ids[None], '
        "context_attention_mask=context.attention_mask[None], context_offsets=torch.tensor([[-1]]))"
    ),
    "document_start": (
        "for translation in model.translate_stream(sentences, tokenizer): ..., which carries the memory from one "
        "sentence to the next"
    ),
}


def warn_without_context(model, arguments: dict) -> None:
    """Warn once where the arguments of `generate` have none of `model.context_arguments`, in which the context comes.

    One of them that is None says that there is none on purpose. Encoder outputs have read theirs.
    """
    names, config = model.context_arguments, model.config
    if not names or "encoder_outputs" in arguments or any(name in arguments for name in names):
        return
    if names[0] == "context_input_ids" and not config.past_context and not config.future_context:
        return
    logger.warning_once(
        f"{type(model).__name__}.generate got no context: a sentence is translated as if it stood alone. Documents: "
        'model.translate_documents([["The sentence before.", "This one."]], tokenizer). By hand: '
        f"{BY_HAND[names[0]]}. For sentences without context say {names[0]}=None."
    )
