"""Training speed: token-budget batches against a MarianMTModel in Seq2SeqTrainer with random batches of fixed size."""

import itertools
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.bench.epoch import SMOOTHING, our_trainer, peer_trainer, train_epoch
from hf_docmt.bench.marian import build_pair
from hf_docmt.bench.timing import SIDES, alternate, bench_result, check_at_least, check_positive, make_row
from hf_docmt.data.documents import make_documents, sentences
from hf_docmt.data.readers import read_documents
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.data.tokenizers import train_tokenizer

SMALL = {
    "d_model": 256,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
}
VIEWS = {"sentences": 0, "windows of four": 3}  # name: sentences of past context
TARGET = 1.5  # ratio that every case has to reach


def bench_train(
    repeats: int = 5,
    *,
    documents: str | Path | int = 150,
    source_lang: str = "en",
    target_lang: str = "de",
    max_tokens: int = 4000,
    sizes: Mapping[str, int] = SMALL,
    vocab_size: int = 8000,
    seed: int = 1,
) -> dict:
    """Target tokens a second on the CPU, ours in `DocMTTrainer` and Marian in an unmodified `Seq2SeqTrainer`.

    A measurement is one epoch of `Trainer.train` over the same examples: sentences, then windows of four sentences.
    Ours come in batches of like length of at most `max_tokens` source and target tokens, padding included. The peer's
    are random, of as many examples as give the same number of updates, so that an update has the same number of real
    target tokens on both sides; only real ones are counted. Sizes, first weights, dropout, label smoothing and
    optimiser are equal. `ours_padding` and `peer_padding` are tokens with padding over tokens.

    `documents` is a JSON-lines file, or the number of documents of the built-in corpus. The tokenizer is trained on
    them; the models have `vocab_size` tokens whether the corpus fills them or not. Returns `rows`, `checks`,
    `setting`. Raises `ValueError` for bad arguments and files.
    """
    check_positive(repeats=repeats, max_tokens=max_tokens, vocab_size=vocab_size)
    languages = (source_lang, target_lang)
    rows = bench_documents(documents, *languages)
    texts = (text for row in rows for lang in languages for text in sentences(row, lang))
    tokenizer = train_tokenizer(texts, vocab_size=vocab_size)
    results = []
    for name, past_context in VIEWS.items():
        fields = {"source_lang": source_lang, "target_lang": target_lang, "past_context": past_context}
        models = build_pair(sizes, vocab_size, seed, label_smoothing=SMOOTHING, **fields)
        results.append(compare(name, rows, tokenizer, models, max_tokens, repeats))
    checks = [check_at_least(f"{row['case']}: ratio", row["ratio"], TARGET) for row in results]
    origin = f"{documents} of the built-in corpus" if isinstance(documents, int) else str(documents)
    setting = {"documents": origin, "max_tokens": max_tokens, "label_smoothing": SMOOTHING, "repeats": repeats}
    return bench_result(results, checks, **setting, vocab_size=vocab_size, seed=seed, sizes=dict(sizes))


def compare(
    case: str,
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    models: tuple[PreTrainedModel, PreTrainedModel],
    max_tokens: int,
    repeats: int,
) -> dict:
    """One row: both models see all examples once in every measurement, each time in another order."""
    ours, peer = models
    architecture = registry.for_config(ours.config)
    examples = architecture.examples(documents, tokenizer, ours.config)
    collator = architecture.collator(ours.config, tokenizer)
    updates = len(TokenBudgetBatchSampler(examples.side_lengths, max_tokens))
    batch_size = max(1, round(len(examples) / updates))
    seeds = {side: itertools.count(1) for side in SIDES}
    epochs = {}
    with tempfile.TemporaryDirectory() as folder:
        trainers = {
            "ours": partial(our_trainer, ours, examples, collator, max_tokens, folder),
            "peer": partial(peer_trainer, peer, examples, collator, tokenizer, batch_size, folder),
        }

        def seconds_of_epoch(side: str) -> float:
            epochs[side] = train_epoch(trainers[side](next(seeds[side])))
            return epochs[side].seconds

        seconds = alternate({side: partial(seconds_of_epoch, side) for side in SIDES}, repeats)
    tokens = {side: epochs[side].target_tokens for side in SIDES}
    if tokens["ours"] != tokens["peer"]:
        raise RuntimeError(f"both sides must see the same target tokens, got {tokens}")
    more = {f"{side}_padding": epochs[side].padding for side in SIDES}
    more |= {f"{side}_tokens_per_update": tokens[side] / epochs[side].updates for side in SIDES}
    return make_row(case, "target tokens/s", tokens, seconds, **more, target_tokens=tokens["ours"])


def bench_documents(documents: str | Path | int, source_lang: str, target_lang: str) -> Dataset:
    """The documents of a JSON-lines file, or so many of the built-in corpus (English to German)."""
    if isinstance(documents, str | Path):
        return read_documents("jsonl", path=documents, source_lang=source_lang, target_lang=target_lang)
    check_positive(documents=documents)
    if (source_lang, target_lang) != ("en", "de"):
        raise ValueError(
            f"the built-in corpus is en to de, got {source_lang} to {target_lang}; give a file as documents"
        )
    return make_documents(make_corpus(train=documents, validation=0, test=0)["train"], "en", "de")
