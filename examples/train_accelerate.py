"""A document model in a plain training loop with Accelerate; torchrun or accelerate launch starts many processes.

python examples/train_accelerate.py --output runs/accelerate --steps 300
"""

import argparse
import itertools

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device, set_seed
from torch.utils.data import DataLoader

from hf_docmt.data.documents import make_documents, sentences
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading import registry


def main(output: str, steps: int, documents: int, accumulation: int = 2) -> None:
    accelerator = Accelerator(cpu=not torch.accelerator.is_available())
    set_seed(1)
    # 1. Documents, vocabulary and a small model of windows of four sentences; see train_trainer.py.
    corpus = make_corpus(seed=1, train=documents, validation=1, test=1)
    train, test = make_documents(corpus["train"], "en", "de"), make_documents(corpus["test"], "en", "de")
    texts = (text for row in train for lang in ("en", "de") for text in sentences(row, lang))
    tokenizer = train_tokenizer(texts, vocab_size=600)
    architecture = registry.get("concat")
    fields = {"vocab_size": len(tokenizer), "source_lang": "en", "target_lang": "de", "past_context": 3}
    config = architecture.config_class(d_model=128, encoder_layers=2, decoder_layers=2, **fields)
    model = architecture.model_class(config)

    # 2. Batches by token budget. The sampler gives every process its own batches: the loader is not prepared.
    examples = architecture.examples(train, tokenizer, config)
    process = {"rank": accelerator.process_index, "world_size": accelerator.num_processes}
    sampler = TokenBudgetBatchSampler(examples.side_lengths, max_tokens=2000, seed=1, **process)
    loader = DataLoader(examples, batch_sampler=sampler, collate_fn=architecture.collator(config, tokenizer))

    # 3. Optimiser and model, wrapped for the machine.
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98)))

    # 4. Updates: the loss is divided by the target tokens of all their batches, in all processes.
    batches = endless(loader)
    for step in range(1, steps + 1):
        update = [send_to_device(batch, accelerator.device) for batch in itertools.islice(batches, accumulation)]
        tokens = accelerator.reduce(sum((batch["labels"] != -100).sum() for batch in update))
        total = 0.0
        for batch in update:
            loss = model(**batch, num_items_in_batch=tokens).loss
            accelerator.backward(loss * accelerator.num_processes)  # gradients are averaged over processes
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 or step == steps:
            accelerator.print(f"step {step}  loss {accelerator.reduce(total).item():.4f}")

    # 5. A folder for AutoModelForSeq2SeqLM.from_pretrained(..., trust_remote_code=True), and a translated document.
    model = accelerator.unwrap_model(model)
    if accelerator.is_main_process:
        model.save_pretrained(output)
        tokenizer.save_pretrained(output)
        source = sentences(test[0], "en")
        print(*map("\t".join, zip(source, model.translate_documents([source], tokenizer)[0])), sep="\n")


def endless(loader: DataLoader):
    """Batches, epoch after epoch."""
    for epoch in itertools.count():
        loader.batch_sampler.set_epoch(epoch)
        yield from loader


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--documents", type=int, default=1000)
    main(**vars(parser.parse_args()))
