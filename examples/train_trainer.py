"""A document model in an unmodified Seq2SeqTrainer of transformers.

python examples/train_trainer.py --output runs/trainer --steps 300
"""

import argparse

from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

from hf_docmt.data.documents import make_documents, sentences
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading import registry


def main(output: str, steps: int, documents: int) -> None:
    set_seed(1)

    # 1. Documents: English and German, written by the built-in grammar. Read your own with read_documents().
    corpus = make_corpus(seed=1, train=documents, validation=documents // 10 + 1, test=1)
    train, validation, test = (make_documents(corpus[part], "en", "de") for part in ("train", "validation", "test"))

    # 2. A joint vocabulary.
    texts = [text for row in train for lang in ("en", "de") for text in sentences(row, lang)]
    tokenizer = train_tokenizer(texts, vocab_size=600)

    # 3. A small model that reads and writes windows of four sentences (s4to4).
    architecture = registry.get("concat")
    sizes = {"d_model": 128, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256}
    config = architecture.config_class(
        vocab_size=len(tokenizer), source_lang="en", target_lang="de", past_context=3, label_smoothing=0.1, **sizes
    )
    model = architecture.model_class(config)

    # 4. Examples and collator do the rest. The trainer must leave the examples whole. A model with a memory takes
    #    `docmt train`, or StreamTrainer, which carries the memory from sentence to sentence.
    #    With predict_with_generate it pads every prediction to generation_config.max_length, the limit of the model:
    #    generation_config=GenerationConfig(max_length=...) in the arguments sets a lower one.
    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=output,
            max_steps=steps,
            per_device_train_batch_size=32,
            learning_rate=2e-3,
            lr_scheduler_type="inverse_sqrt",
            warmup_steps=min(200, steps // 2),
            max_grad_norm=1.0,
            logging_steps=50,
            save_strategy="no",
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            use_cache=True,
        ),
        train_dataset=architecture.examples(train, tokenizer, config),
        eval_dataset=architecture.examples(validation, tokenizer, config),
        data_collator=architecture.collator(config, tokenizer),
        processing_class=tokenizer,
    )
    trainer.train()
    print(trainer.evaluate())

    # 5. A folder for AutoModelForSeq2SeqLM.from_pretrained(..., trust_remote_code=True), and a translated document.
    #    On the Hub trainer.push_to_hub() leaves transformers' draft of a card; model.push_to_hub(NAME), after it or
    #    instead of it, writes the real one.
    trainer.save_model(output)
    source = sentences(test[0], "en")
    for english, german in zip(source, model.translate_documents([source], tokenizer)[0], strict=True):
        print(f"{english}\t{german}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--documents", type=int, default=1000)
    main(**vars(parser.parse_args()))
