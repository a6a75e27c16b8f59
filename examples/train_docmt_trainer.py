"""A document model in DocMTTrainer: batches by token budget, exact resuming, the average of several checkpoints.

python examples/train_docmt_trainer.py --output runs/docmt_trainer --steps 300
"""

import argparse

from transformers import set_seed

from hf_docmt.data.documents import make_documents, sentences
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading import registry
from hf_docmt.training.arguments import DocMTTrainingArguments
from hf_docmt.training.checkpoints import average_weights, checkpoint_path, checkpoint_steps, steps_to_average
from hf_docmt.training.trainer import DocMTTrainer


def main(output: str, steps: int, documents: int) -> None:
    set_seed(1)

    # 1. Documents, vocabulary and a small model of windows of four sentences; see train_trainer.py.
    corpus = make_corpus(seed=1, train=documents, validation=documents // 10 + 1, test=1)
    train, validation, test = (make_documents(corpus[part], "en", "de") for part in ("train", "validation", "test"))
    texts = (text for row in train for lang in ("en", "de") for text in sentences(row, lang))
    tokenizer = train_tokenizer(texts, vocab_size=600)
    architecture = registry.get("concat")
    fields = {"vocab_size": len(tokenizer), "source_lang": "en", "target_lang": "de", "past_context": 3}
    config = architecture.config_class(d_model=128, encoder_layers=2, decoder_layers=2, **fields)

    # 2. Training. A batch has 2000 tokens; the loss is per target token, over all batches of an update.
    arguments = DocMTTrainingArguments(
        output_dir=f"{output}/checkpoints",
        max_tokens=2000,
        max_steps=steps,
        learning_rate=2e-3,
        lr_scheduler_type="inverse_sqrt",
        warmup_steps=min(200, steps // 2),
        eval_strategy="steps",
        eval_steps=max(steps // 3, 1),
        save_strategy="steps",
        save_steps=max(steps // 3, 1),
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        dataloader_pin_memory=False,
    )
    trainer = DocMTTrainer(
        model=architecture.model_class(config),
        args=arguments,
        train_dataset=architecture.examples(train, tokenizer, config),
        eval_dataset=architecture.examples(validation, tokenizer, config),
        data_collator=architecture.collator(config, tokenizer),
        processing_class=tokenizer,
    )
    trainer.train()  # train(resume_from_checkpoint=True) goes on after the last complete checkpoint

    # 3. The mean of the best checkpoint and those after it.
    there, best = checkpoint_steps(arguments.output_dir), trainer.state.best_global_step
    folders = [checkpoint_path(arguments.output_dir, step) for step in steps_to_average(there, best, arguments.average)]
    trainer.model.load_state_dict(average_weights(folders), strict=False)
    trainer.save_model(output)

    # 4. A translated document.
    source = sentences(test[0], "en")
    print(*map("\t".join, zip(source, trainer.model.translate_documents([source], tokenizer)[0])), sep="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--documents", type=int, default=1000)
    main(**vars(parser.parse_args()))
