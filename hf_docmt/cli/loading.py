"""Models, systems and documents as the commands load them."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable

from hf_docmt.files import check_file

SEARCH = ("decoding_past_context", "strategy", "batch_size", "max_new_tokens", "chunk_sentences", "repairs")
NOT_FOR_SCORING = ("past_context", *SEARCH)
NOT_FOR_TRANSLATION = ("past_context", "strategy", "batch_size", "batch_tokens", "repairs")
NOT_FOR_JOBS = (*NOT_FOR_TRANSLATION, "max_new_tokens", "chunk_sentences", "prompt", "glossary")
OFTEN = gc.get_threshold()  # as Python runs its garbage collector
NOT_FOR_ATTENTION = (*SEARCH, "batch_tokens")


def check_model(name: str | None, *inputs: str | None, revision: str | None = None) -> None:
    """ValueError for a model that is neither a folder nor on the Hub, and for a missing input, before importing torch.

    None stands for a missing argument.
    """
    from hf_docmt.loading.hub_access import check_within_reach

    if name is not None and os.path.isfile(name):
        raise ValueError(f"{name} is a file, expected a model folder or a name on the Hub; give the model first")
    if name is not None:
        check_within_reach(name, revision)
    for path in inputs:
        if path is not None and not os.path.exists(path):
            check_file(path)


def model_of_command(name: str, device: str | None = None) -> tuple:
    """Model and tokenizer of a folder or Hub name; the model is on `device`, by default that of `default_device`."""
    check_model(name)
    import_transformers()
    from hf_docmt.loading import model_folders

    model, tokenizer = model_folders.load_model(name)
    return model.to(device or default_device()), tokenizer


def system_of_command(
    name: str,
    *,
    context: int | None = None,
    future_context: int | None = None,
    option_pairs: list[str] | None = None,
    excluded: tuple[str, ...] = NOT_FOR_SCORING,
    prompt_languages: Iterable[str | None] = (None, None),
    model_languages: Iterable[str | None] = (None, None),
    **options,
):
    """The system of a folder or Hub name, named by its folder, reading `context` sentences of past context.

    `future_context`: those after the current one. `option_pairs`: the texts KEY=VALUE of --option. `excluded`: options
    that --option does not take, since the command has a flag for them or they have no effect there.
    `prompt_languages`: source and target language that the prompt of a language model names, or whose codes a document
    model reads, unless --option says otherwise. `model_languages`: the same, and refused where they are not the
    model's. ValueError: options that do not fit the system.
    """
    check_model(name)
    import_transformers()
    from hf_docmt.evaluation.contrast import CHUNK_CONTEXT
    from hf_docmt.systems import System, kind_of, read_options, system_classes

    kind = kind_of(name)
    allowed = system_classes()[kind].options()
    if "strategy" in options and "strategy" not in allowed:
        raise ValueError(f"--strategy is for models of this package, got {name}; remove it")
    if "batch_size" not in allowed:  # always given by commands that translate
        options.pop("batch_size", None)
    pairs = read_options(option_pairs or (), kind, excluded)
    if "source_lang" in allowed:
        names = ("source_lang", "target_lang") * 2
        options |= {key: lang for key, lang in zip(names, (*prompt_languages, *model_languages)) if lang}
    if future_context is not None and "future_context" not in allowed:
        raise ValueError(f"--future-context is not for models of kind {kind}, got {name}; remove it")
    reach = {"past_context": context, "future_context": future_context}
    options |= {key: value for key, value in reach.items() if value is not None}
    system = System.load(name, device=default_device(), **options | pairs)
    if "past_context" not in options | pairs and system.reads_chunks:
        system.past_context = CHUNK_CONTEXT
    check_model_languages(system, model_languages)
    for key in ("separator", "context_sides"):
        if key in pairs and not system.context.past and not system.context.future:
            raise ValueError(f"--option {key} has no effect without context; add --context or remove the option")
    system.name = os.path.basename(os.path.abspath(name))
    return system


def check_model_languages(system, languages: Iterable[str | None]) -> None:
    """ValueError if the given languages are not those of the system."""
    if any(languages) and system.kind == "seq2seq":
        raise ValueError(
            "--source-lang and --target-lang are for models of this package and language models; for this model use "
            "--option src_lang=CODE --option tgt_lang=CODE"
        )
    own = system.document_languages if system.kind == "docmt" else languages
    for name, asked, language in zip(("source", "target"), languages, own):
        if asked not in (None, language):
            raise ValueError(
                f"--{name}-lang: got {asked!r}, but the model {system.name} is for {language!r}; remove it"
            )


def languages_of(system, asked: Iterable[str | None]) -> dict[str, str]:
    """The given languages, or those of the model."""
    languages = [code or own for code, own in zip(asked, system.document_languages)]
    if not all(languages):
        raise ValueError("the languages of the documents are missing: add --source-lang and --target-lang")
    return dict(zip(("source_lang", "target_lang"), languages))


def default_device() -> str:
    """The accelerator that torch sees, otherwise the CPU."""
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if accelerator is None else accelerator.type


def import_transformers() -> None:
    """Import torch and transformers, and turn off progress bars of loading and saving.

    Their objects stay until the end of the process, so that the garbage collector skips it: a third of the time
    that a command takes to start and to end.
    """
    is_first = "transformers.modeling_utils" not in sys.modules
    if is_first:
        gc.disable()
    from transformers import PreTrainedModel  # noqa: F401
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    if is_first:
        gc.freeze()
        gc.enable()
    gc.set_threshold(*OFTEN)
