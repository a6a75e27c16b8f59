"""One training run: from a recipe to a model folder."""

import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

from accelerate import PartialState
from datasets import Dataset
from transformers import (
    EarlyStoppingCallback,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    set_seed,
)
from transformers.trainer_callback import TrainerState

from hf_docmt.data.augmentation import AugmentedExamples
from hf_docmt.data.examples import Examples
from hf_docmt.data.tokenized_documents import cached_documents
from hf_docmt.files import check_writable_folder
from hf_docmt.loading import registry
from hf_docmt.loading.pretrained import has_new_separators
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.modeling.fingerprints import add_tokenizer_fingerprint
from hf_docmt.training.arguments import DocMTTrainingArguments, training_arguments
from hf_docmt.training.checkpoints import (
    average_weights,
    checkpoint_path,
    checkpoint_steps,
    save_whole,
    saved_state,
    steps_to_average,
)
from hf_docmt.training.initialization import (
    build_model,
    model_config,
    new_tokenizer,
    recipe_origin,
    train_only,
    untrained_parameters,
)
from hf_docmt.training.low_rank_adaptation import add_adapter, is_adapted, save_adapter, save_base
from hf_docmt.training.recipe import Recipe, check_examples
from hf_docmt.training.recipe_sections import DecodingRecipe, TokenizerRecipe
from hf_docmt.training.run_folder import RECIPE, run_folder, write_facts
from hf_docmt.training.stream_trainer import StreamTrainer
from hf_docmt.training.trainer import DocMTTrainer

AUGMENTATION = ("coword_dropout", "dynamic_context", "target_noise")
BEAM_SEARCH = ("length_penalty", "early_stopping")  # settings that transformers saves only with several beams
CACHE = ".docmt_cache"  # folder next to that of the run, for documents, tokenizers and tokens


def train(recipe: Recipe, resume: bool = False) -> Path:
    """Train what the recipe says and return its `output_dir`, a model folder.

    The folder holds the model (the mean of the best checkpoint and those after it), the tokenizer, `recipe.yaml`,
    `training.json` (facts of the run) and `checkpoints`. In a run of several processes (`torchrun`,
    `accelerate launch`) all of them call this. `resume` goes on after the last complete checkpoint of an interrupted
    run of the same recipe.

    Raises `ValueError` for an output folder in use, a run that cannot be resumed, and unusable data or checkpoints;
    `OSError` where a file cannot be written.

    >>> data = ["data.train.path=runs/corpus/train.jsonl", "data.validation.path=runs/corpus/validation.jsonl"]
    >>> sizes = ["training.max_steps=1", "model.d_model=16"]
    >>> recipe = load_recipe("demo_sentence", [*data, *sizes, "output_dir=runs/new"])
    >>> print(train(recipe))
    runs/new
    """
    output = Path(recipe.output_dir)
    arguments = training_arguments(recipe)  # joins the group of processes
    processes = PartialState()
    with run_folder(output, recipe, resume) if processes.is_main_process else ExitStack() as removal:
        processes.wait_for_everyone()
        _train(recipe, arguments, removal)
        processes.wait_for_everyone()
    return output


def _train(recipe: Recipe, arguments: DocMTTrainingArguments, removal: ExitStack) -> None:
    """Train the model; from the first update on the folder is not for `removal` any more."""
    output, processes = Path(recipe.output_dir), PartialState()
    documents = {part: read_part(recipe, part) for part in ("train", "validation")}
    set_seed(recipe.seed)  # a converted model draws its new parameters
    origin, tokenizer = recipe_origin(recipe) if recipe.init_from else (None, None)
    with processes.main_process_first():
        tokenizer = run_tokenizer(recipe, output, documents["train"], tokenizer)
    trainer = make_trainer(recipe, arguments, documents, tokenizer, origin=origin)
    del origin  # a second model would be in memory throughout
    if recipe.peft and trainer.is_fsdp_enabled:
        raise ValueError("peft: adapters are not trained with sharded parameters; launch without FSDP")
    start, checkpoint = time.monotonic(), trainer.last_checkpoint()
    resumed = saved_state(checkpoint) if checkpoint else None
    if resumed is None or not is_finished(resumed):
        try:
            with redirect_stdout(sys.stderr):  # trackers print
                trainer.train(resume_from_checkpoint=checkpoint)
        finally:
            if trainer.state.global_step:
                removal.pop_all()
    if processes.is_main_process:
        steps = checkpoint_steps(arguments.output_dir)
        state = saved_state(checkpoint_path(arguments.output_dir, steps[-1]))
        averaged = save_average(recipe, trainer.model, state, arguments.output_dir)
        add_tokenizer_fingerprint(output, tokenizer)
        session = {
            "seconds": round(time.monotonic() - start, 1),
            "resumed_from_step": resumed and resumed.global_step,
            "averaged_steps": averaged,
        }
        write_facts(output, session | training_facts(trainer, state))


def cache_folder(recipe: Recipe) -> Path:
    """The folder for what is made of the data of a run."""
    try:
        folder = check_writable_folder(recipe.data.cache or Path(recipe.output_dir).absolute().parent / CACHE)
    except ValueError as error:
        raise ValueError(f"data.cache: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def read_part(recipe: Recipe, part: str) -> Dataset:
    """The documents of `train`, `validation` or `test`, in the cache of the run."""
    languages = {"source_lang": recipe.data.source_lang, "target_lang": recipe.data.target_lang}
    return cached_documents(cache_folder(recipe), **languages, **getattr(recipe.data, part))


def run_tokenizer(
    recipe: Recipe, output: Path, documents: Dataset, origin: PreTrainedTokenizerBase | None
) -> PreTrainedTokenizerBase:
    """The tokenizer of the run: saved in the output folder by the first process, loaded by all and when resuming.

    The recipe is saved after it: a folder that has the recipe has the whole tokenizer.
    """
    if not (output / RECIPE).exists():
        tokenizer = origin or new_tokenizer(recipe.tokenizer or TokenizerRecipe(), documents, cache_folder(recipe))
        tokenizer.save_pretrained(output)
        recipe.save(output / RECIPE)
    return load_tokenizer(output)


def make_trainer(
    recipe: Recipe,
    arguments: DocMTTrainingArguments,
    documents: dict[str, Dataset],
    tokenizer: PreTrainedTokenizerBase,
    origin: PreTrainedModel | None = None,
) -> DocMTTrainer:
    """Config, examples, model and trainer of a run; `documents` has the parts `train` and `validation`.

    Raises `ValueError` for weights of `origin` that the model does not have, and for a decoding strategy or settings of
    a second stage that do not fit the model.
    """
    config = model_config(recipe, tokenizer, origin and origin.config)
    architecture = registry.for_config(config)
    check_examples(recipe.training, config)
    resolutions = {"train": recipe.training.resolutions}  # a loss of validation is always that of the model's view
    with PartialState().main_process_first():  # which tokenizes
        examples = {
            part: architecture.examples(
                rows, tokenizer, config, resolutions=resolutions.get(part), num_proc=recipe.data.num_proc
            )
            for part, rows in documents.items()
        }
    _fill_in_lengths(config, examples["train"])
    collate = architecture.collator(config, tokenizer, context_discount=recipe.training.context_discount)
    for part, rows in examples.items():
        check_positions(config, rows, collate, f"data.{part}")
    untrained = untrained_parameters(recipe, origin) if origin is not None else frozenset()  # neutral already
    set_seed(recipe.seed)
    model, new_parameters = build_model(config, origin, recipe.training.neutral_start and not untrained)
    new_parameters |= untrained
    _set_decoding(model, recipe.decoding)
    if recipe.peft:
        with PartialState().main_process_first():
            base = save_base(model, origin, recipe.init_from, tokenizer, Path(recipe.output_dir))
        model, new_parameters = add_adapter(model, recipe.peft, base)
    for name in recipe.training.second_stage_settings if not new_parameters else ():
        if name == "neutral_start" and not recipe.peft and has_new_separators(config, origin.config):
            continue
        reason = (
            "no module is fully trained next to the adapter"
            if recipe.peft
            else "the checkpoint of init_from has all parameters of this model, so that no parameter is new"
        )
        raise ValueError(f"training.{name}: {reason}; remove it")
    if recipe.training.freeze:
        train_only(model, new_parameters)
    patience, train = recipe.training.patience, examples["train"]
    augmentation = {name: getattr(recipe.training, name) for name in AUGMENTATION}
    if any(augmentation.values()):
        train = AugmentedExamples(train, tokenizer, **augmentation, seed=recipe.seed)
    return (StreamTrainer if architecture.carries_state else DocMTTrainer)(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=examples["validation"],
        data_collator=collate,
        processing_class=tokenizer,
        new_parameters=new_parameters,
        data_name=f"data.train ({', '.join(str(v) for name, v in recipe.data.train.items() if name != 'format')})",
        callbacks=[EarlyStoppingCallback(patience)] if patience else None,
    )


def check_positions(config: PreTrainedConfig, examples: Examples, collate: Callable, data_name: str) -> None:
    """ValueError for an example that is longer than the learned positions of the model.

    Sentences that are context elsewhere are examples themselves.
    """
    if config.position_type != "learned" or not len(examples):
        return
    for column, (side, name) in enumerate((("source", "input_ids"), ("target", "decoder_input_ids"))):
        longest = examples[int(examples.side_lengths[:, column].argmax())]
        length = collate([longest])[name].shape[1]
        if length > config.max_position_embeddings:
            raise ValueError(
                f"{data_name}: document {longest['doc_id']!r} has an example of {length} {side} tokens, the model has "
                f"learned positions for {config.max_position_embeddings}; use shorter chunks or windows "
                "(model.chunk_tokens, model.past_context), or remove the sentence"
            )


def is_finished(state: TrainerState) -> bool:
    """Whether training had come to its end, by the number of updates or by patience, when the state was saved."""
    return state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]


def save_average(recipe: Recipe, model: PreTrainedModel, state: TrainerState, checkpoints: str) -> list[int]:
    """Save the mean of the best checkpoint and those after it as the run's model; returns their steps.

    For adapters it is the mean of the matrices A and of B separately, not of their products.
    """
    steps = steps_to_average(checkpoint_steps(checkpoints), state.best_global_step, recipe.training.average)
    folders = [checkpoint_path(checkpoints, step) for step in steps]
    weights = average_weights(folders)
    if recipe.peft:
        save_adapter(model, weights, recipe.output_dir)
        return steps
    model = registry.for_config(model.config).model_class.from_pretrained(folders[0])  # the trainer's may be sharded
    model.load_state_dict(weights, strict=False)
    save_whole(model, recipe.output_dir)
    return steps


def training_facts(trainer: DocMTTrainer, state: TrainerState) -> dict[str, Any]:
    """Facts about the training for model cards and reports; losses are per target token, in nats."""
    arguments, lengths = trainer.args, trainer.train_dataset.lengths
    trained = trainer.model.num_parameters(only_trainable=True)
    updates = math.ceil(len(trainer.get_train_dataloader()) / arguments.gradient_accumulation_steps)
    return {
        "steps": state.global_step,
        "epochs": round(state.epoch, 3),
        "best_step": state.best_global_step,
        "best_validation_loss": state.best_metric,
        "parameters": trainer.model.num_parameters() - (trained if is_adapted(trainer.model) else 0),
        "trained_parameters": trained,
        "tokens_per_update": round(float(lengths.sum()) / updates),
        "processes": arguments.world_size,
        "device": arguments.device.type,
        "precision": "bf16" if arguments.bf16 else "fp32",
        "losses": [[log["step"], log["loss"]] for log in state.log_history if "loss" in log],
        "validation_losses": [[log["step"], log["eval_loss"]] for log in state.log_history if "eval_loss" in log],
    }


def _fill_in_lengths(config: PreTrainedConfig, examples: Examples) -> None:
    """Set what the config leaves open and the training data tell.

    `segment_shift` becomes the average length of a source sentence in tokens, the separator included, rounded up;
    `length_ratio` the average number of source tokens per target token.
    """
    if getattr(config, "segment_encoding", None) == "shift" and config.segment_shift is None:
        config.segment_shift = math.ceil(examples.mean_source_length)
    if getattr(config, "length_ratio", 1.0) is None:
        config.length_ratio = round(examples.mean_length_ratio, 4)


def _set_decoding(model: PreTrainedModel, decoding: DecodingRecipe) -> None:
    """Set what `translate_documents` and `generate` do by default."""
    model.config.strategy, model.config.decoding_past_context = decoding.strategy, decoding.past_context
    key = "strategy"
    try:
        model.check_strategy(model.default_strategy())
        key = "past_context"
        model.check_search(model.default_strategy(), decoding.past_context)
    except ValueError as error:
        raise ValueError(f"decoding.{key}: {error}") from error
    search = model.generation_config  # of init_from, if there is one
    search.num_beams = decoding.num_beams
    search.max_new_tokens = decoding.max_new_tokens or search.max_new_tokens
    if decoding.num_beams > 1:
        search.length_penalty = decoding.length_penalty
        if decoding.early_stopping is not None:
            search.early_stopping = decoding.early_stopping
    else:
        for name in BEAM_SEARCH:
            setattr(search, name, getattr(GenerationConfig(), name))
    try:
        search.validate(strict=True)  # as saving does it, after hours
    except ValueError as error:
        raise ValueError(f"decoding: {error}") from error
