"""A model card beside every saved and every pushed model."""

import os
from pathlib import Path

from .model_card import ModelCardText, is_draft


class CardSaving:
    """To be placed before `PreTrainedModel`: `save_pretrained` and `push_to_hub` write the card of the configuration.

    A README.md that somebody wrote stays as it is, in the folder as on the Hub; one of this class, or a template of
    transformers, is written anew (see `is_draft`).
    """

    card_class: type[ModelCardText] = ModelCardText

    def save_pretrained(
        self, save_directory, is_main_process: bool = True, state_dict=None, push_to_hub: bool = False, **kwargs
    ):
        """As in transformers, and the card; that of an adapter is not this model's, and is left to peft."""
        kwargs |= {"is_main_process": is_main_process, "state_dict": state_dict, "push_to_hub": push_to_hub}
        super().save_pretrained(save_directory, **kwargs)
        if is_main_process and not push_to_hub and not getattr(self, "_hf_peft_config_loaded", False):
            self.write_card(save_directory)

    def _upload_modified_files(self, working_dir, repo_id, *args, **kwargs):
        """transformers has written the card of the repository, or its own template."""
        self.write_card(working_dir, repo_id)
        return super()._upload_modified_files(working_dir, repo_id, *args, **kwargs)

    def write_card(self, folder, name: str | None = None) -> None:
        """Write README.md, unless there is one that somebody wrote."""
        path = Path(folder) / "README.md"
        if not os.path.lexists(path) or path.is_file() and is_draft(path.read_text(encoding="utf-8", errors="replace")):
            path.write_text(str(self.card_class(self.config, name)), encoding="utf-8")
