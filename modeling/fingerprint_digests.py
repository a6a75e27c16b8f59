"""Parts of fingerprints: fields of settings, the ids of a tokenizer and how it cuts texts."""

import hashlib
import json
import re

FIELD = "fingerprints"  # of config.json
BLOCK = 512  # words of 8 bytes of weights that have one sum
FREE = {  # fields of config.json that may be changed by hand: the weights do not depend on them
    "activation_dropout", "attention_dropout", "base_model", "decoding_past_context", "dropout", "init", "init_std",
    "label_smoothing", "source_lang", "strategy", "target_lang", "use_cache",
}  # fmt: skip
SAMPLE = 1024  # tokens of a vocabulary that are tokenized again
ROLES = ("pad", "unk", "bos", "eos", "sep")
PROBES = [
    "The quick brown fox jumps over 12,345 lazy dogs; doesn't it?  Yes - 67.8 % of them (e-mail: a_b@c.org)!",
    "Größe, façade, niño, Øre, ŁÓDŹ, İstanbul, e\u0301t\u00e9 \ufb01n \uff21\uff22 ½ ™ “so” «là» …\tnext\nline",
    "Быстрая лиса. Ταχεία αλεπού. שועל מהיר. ثعلب سريع. तेज़ लोमड़ी। 快い狐、素早い。 빠른 여우 สุนัข 🦊",
]


def told(what: str, name: str) -> str:
    """The message for what differs from its fingerprint."""
    return (
        f"{what} have changed since they were saved: damaged, or of another model. Copy the folder again; if you "
        f"changed them on purpose, remove {name!r} from {FIELD} in its config.json."
    )


def digest(values) -> str:
    """A short name of what JSON can hold."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def tokenizer_fingerprint(tokenizer) -> str:
    """The fingerprint of the ids of all tokens, and of fixed texts and a sample of tokens, in pairs; and back."""
    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    names = hashlib.sha256("\n".join(tokens).encode("utf-8", "surrogatepass")).hexdigest()
    sample = tokens[:: len(tokens) // SAMPLE + 1]
    ids = [vocabulary[token] for token in sample]
    texts = [re.sub("[▁Ġ]", " ", first + second) for first, second in zip(sample, sample[1:] + sample[:1])]
    plain = {"add_special_tokens": False, "verbose": False}
    found = [tokenizer([*PROBES, *texts], **plain)["input_ids"], tokenizer(text_target=PROBES, **plain)["input_ids"]]
    read = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return digest([names, ids, found, read, [getattr(tokenizer, f"{role}_token_id", None) for role in ROLES]])
