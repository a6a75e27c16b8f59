"""A sentence-level MarianMT made document-level: converted, fine-tuned whole and by LoRA; accuracy before and after.

python examples/sentence_to_document.py --output runs/sentence_to_document

Nothing is downloaded: the MarianMT is trained here, by transformers alone, on the sentences of the built-in corpus. Put
the folder of a real Opus-MT in its place, and your documents in that of the corpus. LoRA needs pip install '.[peft]'.
"""

import argparse
import json
from io import BytesIO
from pathlib import Path

import sentencepiece
from transformers import (
    DataCollatorForSeq2Seq,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    set_seed,
)

import hf_docmt
from hf_docmt.data.documents import sentences
from hf_docmt.data.synthetic.corpus import CHANCE
from hf_docmt.evaluation.contrast import contrast_report
from hf_docmt.files import check_new_folder
from hf_docmt.reports.tables import write_table
from hf_docmt.systems import DocMTSystem
from hf_docmt.training.recipe import parse_recipe

ARCHITECTURES = {  # context of each: three sentences on either side, or a memory of all previous ones
    "concat": {"past_context": 3, "segment_encoding": "learned"},
    "caching": {"past_context": 3, "context_sides": "both"},
    "memory": {"memory_sides": "both"},
}
LORA = {"target_modules": ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"], "rank": 16, "alpha": 32}
RATES = {  # learning rates of both ways to fine-tune: of pretrained parameters or LoRA, of the mechanism
    "full": {"learning_rate": 2e-3, "new_learning_rate": 2e-3},
    "lora": {"learning_rate": 2e-3, "new_learning_rate": 4e-3},
}


def main(output: str, architectures: list[str], documents: int, items: int, steps: list[int], seed: int) -> None:
    folder = check_new_folder(output)
    sizes = {"train": documents, "validation": documents // 20 + 1, "test": 1, "suite_items": items}
    hf_docmt.write_corpus(folder / "corpus", seed=seed, **sizes)
    train_sentence_model(folder, steps[0], seed)
    accuracy: dict[str, dict[str, float]] = {}
    for architecture in architectures:
        accuracy |= before_and_after(folder, architecture, steps[1], seed)
        (folder / "accuracy.json").write_text(json.dumps(accuracy, indent=1) + "\n", encoding="utf-8")
    rows = [[name, *(f"{found[suite]:.1f}" for suite in CHANCE)] for name, found in accuracy.items()]
    chance = ["chance", *(f"{100 * share:.1f}" for share in CHANCE.values())]
    print(write_table([["accuracy (%)", *CHANCE], chance, *rows]))


def train_sentence_model(folder: Path, steps: int, seed: int) -> None:
    """A MarianMT with the tokenizer and the configuration that Opus-MT has, but small; saved in `folder / "marian"`."""
    set_seed(seed)
    rows = hf_docmt.read_documents(path=folder / "corpus" / "train.jsonl", source_lang="en", target_lang="de")
    pairs = [pair for row in rows for pair in zip(sentences(row, "en"), sentences(row, "de"), strict=True)]
    tokenizer = marian_tokenizer(folder / "marian", [text for pair in pairs for text in pair])
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIZES.items()}
    special = {"pad_token_id": tokenizer.pad_token_id, "decoder_start_token_id": tokenizer.pad_token_id}
    special |= {"eos_token_id": tokenizer.eos_token_id, "forced_eos_token_id": tokenizer.eos_token_id}
    model = MarianMTModel(
        MarianConfig(vocab_size=len(tokenizer), d_model=128, init_std=0.08, dropout=0.0, **sides, **special)
    )
    model.generation_config.bad_words_ids = [[tokenizer.pad_token_id]]
    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=str(folder / "marian"),
            max_steps=steps,
            per_device_train_batch_size=128,
            learning_rate=2e-3,
            lr_scheduler_type="linear",
            warmup_steps=steps // 10,
            max_grad_norm=1.0,
            logging_steps=100,
            save_strategy="no",
            report_to="none",
            dataloader_pin_memory=False,
        ),
        train_dataset=[dict(tokenizer(source, text_target=target)) for source, target in pairs],
        data_collator=DataCollatorForSeq2Seq(tokenizer, model),
        processing_class=tokenizer,
    )
    trainer.train()
    trainer.save_model(folder / "marian")


SIZES = {"layers": 2, "attention_heads": 4, "ffn_dim": 256}  # of encoder and decoder


def marian_tokenizer(folder: Path, texts: list[str]) -> MarianTokenizer:
    """One SentencePiece model for both languages, `</s>` and `<unk>` in front of its pieces, `<pad>` after them."""
    folder.mkdir(parents=True)
    trained = BytesIO()
    settings = {"model_type": "bpe", "vocab_size": min(1200, 100 + len(texts)), "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=trained, minloglevel=2, **settings
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
    words = [pieces.id_to_piece(number) for number in range(len(pieces))]
    words = ["</s>", "<unk>", *(word for word in words if word not in ("</s>", "<unk>", "<s>")), "<pad>"]
    vocab = folder / "vocab.json"
    vocab.write_text(json.dumps({word: number for number, word in enumerate(words)}), encoding="utf-8")
    models = [folder / name for name in ("source.spm", "target.spm")]
    for path in models:
        path.write_bytes(trained.getvalue())
    return MarianTokenizer(*map(str, models), str(vocab), source_lang="en", target_lang="de")


def before_and_after(folder: Path, architecture: str, steps: int, seed: int) -> dict[str, dict[str, float]]:
    """Accuracies of the converted model, and of both ways to fine-tune it."""
    converted, languages = folder / architecture / "converted", {"source_lang": "en", "target_lang": "de"}
    fields = ARCHITECTURES[architecture] | languages
    hf_docmt.convert_sentence_model(folder / "marian", converted, architecture=architecture, **fields)
    accuracy = {architecture: accuracy_by_phenomenon(converted, folder / "corpus")}
    for way in RATES:
        trained = hf_docmt.train(fine_tuning(folder, architecture, way, steps, seed))
        accuracy[f"{architecture}, {way}"] = accuracy_by_phenomenon(trained, folder / "corpus")
    return accuracy


def fine_tuning(folder: Path, architecture: str, way: str, steps: int, seed: int):
    """The recipe that fine-tunes a model: MarianMT whole, converted by the recipe, or the converted one by LoRA."""
    parts = {name: {"format": "jsonl", "path": str(folder / "corpus" / f"{name}.jsonl")} for name in PARTS}
    training = {"max_tokens": 2000, "max_steps": steps, "scheduler": "linear", "warmup_steps": steps // 10}
    training |= {"label_smoothing": 0.0, "clip": 1.0, "eval_steps": steps, "average": 0, **RATES[way]}
    training |= {"stream": {"documents": 8, "window": 4}} if architecture == "memory" else {}
    recipe = {
        "seed": seed,
        "output_dir": str(folder / architecture / way),
        "architecture": architecture,
        "model": ARCHITECTURES[architecture],
        "init_from": str(folder / "marian" if way == "full" else folder / architecture / "converted"),
        "peft": LORA if way == "lora" else None,
        "data": {"source_lang": "en", "target_lang": "de", "cache": str(folder / "cache"), **parts},
        "training": training,
        "decoding": {"num_beams": 1},
    }
    return parse_recipe(recipe)


PARTS = ("train", "validation")


def accuracy_by_phenomenon(model_folder: Path, corpus: Path) -> dict[str, float]:
    """Accuracy in percent on every contrastive suite of the corpus."""
    model, tokenizer = hf_docmt.load_model(model_folder)
    system = DocMTSystem(model, tokenizer, model_folder.name)
    found = contrast_report(system, [corpus / f"{suite}.json" for suite in CHANCE]).results
    return {result.dataset: result.value for result in found if result.metric == "accuracy"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--architectures", nargs="+", choices=ARCHITECTURES, default=[*ARCHITECTURES])
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--items", type=int, default=30, help="current sentences in a suite")
    parser.add_argument(
        "--steps", type=int, nargs=2, default=[900, 1200], help="of sentence-level training, of each tuning"
    )
    parser.add_argument("--seed", type=int, default=1)
    main(**vars(parser.parse_args()))
