"""A study of two tiny systems on a few documents of the built-in corpus."""

VALUES = {
    "title": "Two tiny systems",
    "output_dir": "runs",
    "seeds": [1, 2],
    "prepare": {"corpus": "docmt corpus {output_dir}/corpus --train 40 --validation 6 --test 6 --suite-items 2"},
    "recipe": {
        "base": "demo_sentence",
        "model": {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32},
        "data": {
            "num_proc": 1,
            "train": {"format": "jsonl", "path": "runs/corpus/train.jsonl"},
            "validation": {"format": "jsonl", "path": "runs/corpus/validation.jsonl"},
            "test": None,
        },
        "training": {"max_steps": 4, "eval_steps": 2, "max_tokens": 500, "warmup_steps": 2, "log_steps": 2},
        "tokenizer": {"model": "bpe", "vocab_size": 400},
    },
    "systems": {
        "sentence": {},
        "concat2": {"init_from": "sentence", "tokenizer": None, "model": {"past_context": 1}},
    },
    "evaluations": {
        "bleu": [
            "docmt translate {model} {output_dir}/corpus/test.jsonl -o {work}/test.jsonl --max-new-tokens 20",
            "docmt evaluate {work}/test.jsonl {output_dir}/corpus/test.jsonl --source-lang en --target-lang de "
            "--by index -o {report}",
        ],
        "accuracy": {
            "commands": ["docmt contrast {model} {output_dir}/corpus/deixis.json --conditions true,empty -o {report}"],
            "systems": ["concat2"],
        },
    },
    "tables": {
        "scores": {
            "title": "Scores of two systems.",
            "baseline": "sentence",
            "columns": {
                "parameters": {"fact": "parameters", "digits": 0},
                "s-BLEU": {"evaluation": "bleu", "metric": "s-BLEU"},
                "deixis": {"evaluation": "accuracy", "metric": "accuracy"},
            },
        }
    },
    "figures": {"distance": {"evaluation": "accuracy"}},
    "budgets": {"short": {"seeds": [3], "recipe": {"training": {"max_steps": 2}}}},
}
