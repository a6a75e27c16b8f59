"""A trainer small enough for tests: built-in documents, a concatenation model of some thousand parameters."""

import torch
from transformers import TrainerCallback

from hf_docmt.data.readers import read_documents
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading import registry
from hf_docmt.training.arguments import DocMTTrainingArguments
from hf_docmt.training.trainer import DocMTTrainer
from support.tiny_run import SIZES, write_corpus_files


def make_training_data(folder):
    """Training examples, validation examples and tokenizer of the built-in corpus, written to `folder`."""
    write_corpus_files(folder)
    rows = {
        part: read_documents("jsonl", source_lang="en", target_lang="de", path=folder / f"{part}.jsonl")
        for part in ("train", "validation")
    }
    texts = [text for row in rows["train"] for pair in row["translation"] for text in pair.values()]
    tokenizer = train_tokenizer(texts, vocab_size=300)
    arch, config = registry.get("concat"), make_config(tokenizer)
    return (
        arch.examples(rows["train"], tokenizer, config),
        arch.examples(rows["validation"], tokenizer, config),
        tokenizer,
    )


def make_config(tokenizer, **fields):
    fields = {**SIZES, "past_context": 2, "segment_encoding": "learned", "label_smoothing": 0.1, **fields}
    return registry.get("concat").config_class(vocab_size=len(tokenizer), source_lang="en", target_lang="de", **fields)


def make_trainer(data, folder, callbacks=None, dropout=0.1, new_parameters=(), context_discount=0.5, **arguments):
    train, validation, tokenizer = data
    torch.manual_seed(5)
    config = make_config(tokenizer, dropout=dropout)
    arguments = {
        "max_tokens": 600,
        "max_steps": 8,
        "eval_strategy": "steps",
        "eval_steps": 2,
        "save_strategy": "steps",
        "save_steps": 2,
        "logging_steps": 1,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "inverse_sqrt",
        "warmup_steps": 4,
        "average": 1,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_loss",
        "greater_is_better": False,
        "dataloader_pin_memory": False,
        "use_cpu": True,
        **arguments,
    }
    return DocMTTrainer(
        model=registry.get("concat").model_class(config),
        args=DocMTTrainingArguments(output_dir=str(folder), **arguments),
        train_dataset=train,
        eval_dataset=validation,
        data_collator=registry.get("concat").collator(config, tokenizer, context_discount=context_discount),
        processing_class=tokenizer,
        new_parameters=new_parameters,
        callbacks=callbacks,
    )


class Stop(TrainerCallback):
    """Ends training as an interruption does, in the middle of things."""

    def __init__(self, step):
        self.step = step

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            raise InterruptedError


def losses(trainer):
    return [(log["step"], log["loss"]) for log in trainer.state.log_history if "loss" in log]


def validation_losses(trainer):
    return [(log["step"], log["eval_loss"]) for log in trainer.state.log_history if "eval_loss" in log]
