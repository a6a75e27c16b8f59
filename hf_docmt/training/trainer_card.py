"""The model card of a trained model: the model's own, with what the trainer knows."""

import yaml
from huggingface_hub import ModelCard

from hf_docmt.files import HUB_NAME
from hf_docmt.model_card import ModelCardText

PROCEDURE = "## Training procedure"


def trainer_card(draft: str, model, name: str) -> str:
    """The card of a model, or of a model with an adapter, by its name on the Hub.

    Of `draft`, what the trainer of transformers writes, the header's facts (data, licence, scores) and the section of
    the training are kept.
    """
    adapter = getattr(model, "peft_config", {}).get("default")
    text = ModelCardText(model.config, name, ["peft"] if adapter else None)
    fields = ModelCard(draft).data.to_dict()
    tags = [*text.metadata()["tags"], *(fields.get("tags") or [])]
    fields |= text.metadata() | {"tags": list(dict.fromkeys(tags))}
    if adapter:
        fields["library_name"] = "peft"
        if HUB_NAME.fullmatch(adapter.base_model_name_or_path or ""):
            fields["base_model"] = adapter.base_model_name_or_path
    if not any(index.get("results") for index in fields.get("model-index") or ()):
        fields.pop("model-index", None)
    header = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    _, found, procedure = draft.partition(PROCEDURE)
    return f"---\n{header}---\n\n{text.body()}\n\n{found}{procedure}"
