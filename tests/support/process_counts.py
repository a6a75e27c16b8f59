"""Training of every architecture in one process, or shared by two: plainly (DDP) or with sharded parameters (FSDP2).

    python -m torch.distributed.run --nproc_per_node 2 -m support.process_counts FOLDER fsdp

writes FOLDER/losses.json. Accelerate shards on accelerators only; here it is told that two CPU processes are such.
"""

import json
import os
import sys
from pathlib import Path

import torch
from accelerate.state import AcceleratorState, DistributedType, PartialState

from hf_docmt.loading import registry
from hf_docmt.training.arguments import DocMTTrainingArguments
from hf_docmt.training.checkpoints import average_weights
from hf_docmt.training.initialization import train_only
from hf_docmt.training.stream_trainer import StreamTrainer
from hf_docmt.training.trainer import DocMTTrainer
from support.tiny_models import build, documents_of, random_text, word_tokenizer

CASES = {  # architecture and fields; "frozen" = only these parameters are trained
    "concat": {"past_context": 2, "segment_encoding": "learned"},
    "concat, untied": {"tie_word_embeddings": False, "share_encoder_decoder_embeddings": False},
    "doct": {},
    "window": {"past_context": 2, "window": 2},
    "lst": {"view": "chunk"},
    "caching": {"past_context": 2},
    "multiencoder": {"past_context": 2},
    "multiencoder, frozen": {"past_context": 2},
    "routing": {"past_context": 2},
    "han": {"past_context": 2, "context_sides": "both"},
    "memory": {"memory_size": 3},
}
ALONE = "alone"
EVEN = 180  # tokens of a batch with which an epoch of one process has an even number of them
SHARDED = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
}


def make_trainer(case: str, folder: Path, processes: int, **arguments) -> DocMTTrainer:
    """A trainer of three updates, of two batches each: of one process, or one of each of two.

    The batches are those of two processes; with `shared=False` those of the processes there are.
    """
    architecture = registry.get(case.split(",")[0])
    model, tokenizer = build(architecture.name, **CASES[case]), word_tokenizer()
    if "frozen" in case:
        train_only(model, [name for name, _ in model.named_parameters() if "context" in name])
    lengths = [[3 + (number + sentence) % 5 for sentence in range(2 + number % 3)] for number in range(12)]
    documents = documents_of(*((random_text(of, seed), random_text(of, seed + 99)) for seed, of in enumerate(lengths)))
    examples = architecture.examples(documents, tokenizer, model.config)
    alone, shared = processes == 1, arguments.pop("shared", True)
    arguments = {
        "max_steps": 3,
        "eval_strategy": "steps",
        "eval_steps": 1,
        "save_strategy": "steps",
        "save_steps": 1,
        "logging_steps": 1,
        "learning_rate": 0.01,
        "max_tokens": 150,
        "stream_documents": 6 if alone else 3,
        "stream_window": 3,
        "max_grad_norm": 1.0,
        "gradient_accumulation_steps": 2 if alone and not architecture.carries_state else 1,
        "report_to": "none",
        "dataloader_pin_memory": False,
        "use_cpu": True,
        **arguments,
    }
    trainer = (StreamTrainer if architecture.carries_state else DocMTTrainer)(
        model=model,
        args=DocMTTrainingArguments(str(folder / case.replace(", ", "-")), **arguments),
        train_dataset=examples,
        eval_dataset=examples,
        data_collator=architecture.collator(model.config, tokenizer),
        processing_class=tokenizer,
    )
    if shared and not architecture.carries_state:
        trainer.batch_processes = 2
    return trainer


def course(trainer: DocMTTrainer) -> dict[str, list[float]]:
    logs = trainer.state.log_history
    return {key: [log[key] for log in logs if key in log] for key in ("loss", "eval_loss")}


def train_all(folder: Path, processes: int) -> dict[str, dict]:
    """Losses of every case, of training without a break and of resuming, and the sum of the averaged weights."""
    courses = {}
    for case in CASES:
        trainer = make_trainer(case, folder, processes)
        trainer.train()
        courses[case] = course(trainer)
        resumed = make_trainer(case, folder, processes)
        checkpoint = f"{resumed.args.output_dir}/checkpoint-2"
        resumed.train(resume_from_checkpoint=checkpoint)
        courses[case]["resumed"] = course(resumed)
        weights = average_weights(f"{resumed.args.output_dir}/checkpoint-{step}" for step in (2, 3))
        courses[case]["weights"] = sum(tensor.double().abs().sum().item() for tensor in weights.values())
    return courses


def count_cpus_as_accelerators() -> None:
    """FSDP2 of accelerate begins where processes with an accelerator each are found."""
    original = AcceleratorState.__init__

    def make(self, *args, **kwargs):
        if PartialState._shared_state["distributed_type"] == DistributedType.MULTI_CPU:
            PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
        original(self, *args, **kwargs)

    AcceleratorState.__init__ = make


def main(folder: Path, kind: str) -> None:
    torch.set_num_threads(1)
    PartialState(cpu=True)
    if kind == "fsdp":
        os.environ |= SHARDED
        count_cpus_as_accelerators()
    courses = train_all(folder, PartialState().num_processes)
    if kind == "ddp":  # a run of one process goes on
        trainer = make_trainer("concat", folder / ALONE, 2, shared=False, max_tokens=EVEN)
        trainer.train(resume_from_checkpoint=f"{trainer.args.output_dir}/checkpoint-2")
        courses[ALONE] = course(trainer)
    if PartialState().is_main_process:
        (folder / "losses.json").write_text(json.dumps(courses))
    PartialState().wait_for_everyone()
    PartialState().destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
