"""Files as Marian writes them, of random small models, and Marian's Transformer in plain numpy.

Written from Marian's own `transformer.h`, `cells.h` and `binary.cpp`, apart from the package's reader.
"""

import struct
from pathlib import Path

import numpy as np
import sentencepiece
import yaml

TEXT = ["the old camera was expensive", "now it is switched off", "a câmera antiga era cara", "agora está desligada"]
OPTIONS = {
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 2,
    "dim-emb": 16,
    "transformer-heads": 4,
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "relu",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-decoder-autoreg": "rnn",
    "transformer-tied-layers": [],
    "transformer-guided-alignment-layer": "last",
    "dec-cell": "ssru",
    "tied-embeddings": False,
    "tied-embeddings-all": True,
    "right-left": False,
    "version": "v1.12.0",
}
SELF_ATTENTION = {"transformer-decoder-autoreg": "self-attention"}
NORM_BEFORE = {
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-postprocess-top": "n",
    "transformer-postprocess-emb": "nd",
}


def spm_file(folder: Path, name: str = "vocab", texts=TEXT) -> Path:
    """A SentencePiece model with Marian's ids: `</s>` 0, `<unk>` 1, no others."""
    settings = {"vocab_size": 60, "bos_id": -1, "eos_id": 0, "unk_id": 1, "minloglevel": 2, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 20), model_prefix=str(folder / name), **settings
    )
    return (folder / f"{name}.model").rename(folder / f"{name}.spm")


def parameters(options: dict, rows: tuple[int, int], learned: int = 0, seed: int = 0) -> dict[str, np.ndarray]:
    """Random parameters by Marian's names; `rows` of the tables of source and target, `learned` positions."""
    draw, dim, ffn = np.random.default_rng(seed), options["dim-emb"], options["transformer-dim-ffn"]
    weights = {}

    def matrix(name, *shape):
        weights[name] = draw.normal(0, 0.4, shape).astype(np.float32)

    def norm(name, suffix):
        weights[f"{name}_ln_scale{suffix}"] = draw.normal(1, 0.2, (1, dim)).astype(np.float32)
        matrix(f"{name}_ln_bias{suffix}", 1, dim)

    def attention(name):
        for letter in "qkvo":
            matrix(f"{name}_W{letter}", dim, dim), matrix(f"{name}_b{letter}", 1, dim)
        norm(f"{name}_Wo", pre)

    pre = "_pre" if "n" in options["transformer-preprocess"] else ""
    if options["tied-embeddings-all"]:
        matrix("Wemb", rows[0], dim)
    else:
        matrix("encoder_Wemb", rows[0], dim), matrix("decoder_Wemb", rows[1], dim)
        if not options["tied-embeddings"]:
            matrix("decoder_ff_logit_out_Wt", rows[1], dim)
    matrix("decoder_ff_logit_out_b", 1, rows[1])
    if learned:
        matrix("Wpos", learned, dim)
    for side in ("encoder", "decoder"):
        if "n" in options["transformer-postprocess-emb"]:
            norm(f"{side}_emb", "_pre")
        if "n" in options["transformer-postprocess-top"]:
            norm(f"{side}_top", "")
        for number in range(1, options[f"{side[:3]}-depth"] + 1):
            name = f"{side}_l{number}"
            if side == "decoder" and options["transformer-decoder-autoreg"] == "rnn":
                matrix(f"{name}_rnn_W", dim, dim), matrix(f"{name}_rnn_Wf", dim, dim), matrix(f"{name}_rnn_bf", 1, dim)
                norm(f"{name}_rnn" if pre else f"{name}_rnn_ffn", pre)
            else:
                attention(f"{name}_self")
            if side == "decoder":
                attention(f"{name}_context")
            matrix(f"{name}_ffn_W1", dim, ffn), matrix(f"{name}_ffn_b1", 1, ffn)
            matrix(f"{name}_ffn_W2", ffn, dim), matrix(f"{name}_ffn_b2", 1, dim)
            norm(f"{name}_ffn_ffn", pre)
    return weights


def write_npz(path: Path, options: dict, weights: dict[str, np.ndarray]) -> Path:
    text = np.frombuffer(yaml.safe_dump(options).encode() + b"\0", np.int8)
    np.savez(path, **weights, **{"special:model.yml": text})
    return path


def write_bin(path: Path, options: dict, weights: dict[str, np.ndarray], int8: int | None = None) -> Path:
    """A container of float32, or with matrices W and Wemb in int8 of this type number, with alphas."""
    items = []
    for name, values in weights.items():
        if int8 and values.shape[0] > 1 and ("_W" in name or name == "Wemb"):
            items.append((name, int8, values.shape, quantized(name, values)))
            items.append((f"{name}_QuantMultA", 0x404, (1, 1), struct.pack("<f", 9.0)))
        else:
            items.append((name, 0x404, values.shape, values.tobytes()))
    text = yaml.safe_dump(options).encode() + b"\0"
    items.append(("special:model.yml", 0x101, (len(text),), text))
    items = [(name, kind, shape, data + bytes(-len(data) % 256)) for name, kind, shape, data in items]
    head = struct.pack("<QQ", 1, len(items))
    head += b"".join(struct.pack("<4Q", len(n.encode()) + 1, k, len(s), len(d)) for n, k, s, d in items)
    head += b"".join(name.encode() + b"\0" for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", padding) + bytes(padding) + b"".join(data for *_, data in items))
    return path


def multiplier(values: np.ndarray) -> np.float32:
    return np.float32(127 / np.abs(values).max())


def quantized(name: str, values: np.ndarray) -> bytes:
    integers = np.clip(np.rint(values * multiplier(values)), -127, 127).astype(np.int8)
    return (integers if name == "Wemb" else integers.T).tobytes() + multiplier(values).tobytes()


def rounded(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What int8 leaves of the parameters that `write_bin` quantizes."""
    return {
        name: np.rint(values * multiplier(values)).astype(np.float32) / multiplier(values)
        if values.shape[0] > 1 and ("_W" in name or name == "Wemb")
        else values
        for name, values in weights.items()
    }


def marian_logits(options: dict, weights: dict[str, np.ndarray], source: list[int], target: list[int]) -> np.ndarray:
    """Logits (T, V) in float64 behind a vector of zeros and the target ids but the last."""
    w = {name: values.astype(np.float64) for name, values in weights.items()}
    steps = ("preprocess", "postprocess", "postprocess-emb", "postprocess-top")
    pre, post, emb, top = (options[f"transformer-{step}"].replace("d", "") for step in steps)
    heads = options["transformer-heads"]

    def norm(x, name, suffix=""):
        centred = x - x.mean(-1, keepdims=True)
        scale = w[f"{name}_ln_scale{suffix}"] / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        return centred * scale + w[f"{name}_ln_bias{suffix}"]

    def before(x, name):
        return norm(x, name, "_pre") if pre == "n" else x

    def after(x, output, name):
        return norm(x + output, name) if post == "an" else x + output

    def affine(x, name, letter):
        return x @ w[f"{name}_W{letter}"] + w[f"{name}_b{letter}"]

    def attention(x, name, memory=None, causal=False):
        inputs = before(x, f"{name}_Wo")
        memory = inputs if memory is None else memory
        query, key, value = affine(inputs, name, "q"), affine(memory, name, "k"), affine(memory, name, "v")
        columns = np.split(np.arange(query.shape[1]), heads)
        outputs = []
        for part in columns:
            scores = query[:, part] @ key[:, part].T / np.sqrt(len(part))
            if causal:
                scores = np.where(np.tri(len(x)) > 0, scores, -1e9)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            outputs.append(scores / scores.sum(-1, keepdims=True) @ value[:, part])
        return after(x, affine(np.concatenate(outputs, 1), name, "o"), f"{name}_Wo")

    def recurrence(x, name):
        inputs, state, outputs = before(x, name), 0.0, []
        for vector in inputs:
            gate = 1 / (1 + np.exp(-(vector @ w[f"{name}_Wf"] + w[f"{name}_bf"][0])))
            state = gate * state + (1 - gate) * (vector @ w[f"{name}_W"])
            outputs.append(np.maximum(state, 0))
        return after(x, np.stack(outputs), f"{name}_ffn")

    def feed_forward(x, name):
        inner = affine(before(x, f"{name}_ffn"), name, "1")
        sigmoid = {"relu": inner > 0, "swish": 1 / (1 + np.exp(-inner)), "gelu": 1 / (1 + np.exp(-1.702 * inner))}
        return after(x, affine(inner * sigmoid[options["transformer-ffn-activation"]], name, "2"), f"{name}_ffn")

    def embedded(vectors, side):
        length, dim = vectors.shape
        if "Wpos" in w:
            x = vectors + w["Wpos"][:length]
        else:
            frequencies = 1e-4 ** (np.arange(dim // 2) / (dim // 2 - 1))
            angles = np.arange(length)[:, None] * frequencies
            x = np.sqrt(dim) * vectors + np.concatenate([np.sin(angles), np.cos(angles)], 1)
        return norm(x, f"{side}_emb", "_pre") if emb == "n" else x

    source_table, target_table = (w.get("Wemb", w.get(f"{side}_Wemb")) for side in ("encoder", "decoder"))
    memory = embedded(source_table[source], "encoder")
    for number in range(1, options["enc-depth"] + 1):
        memory = feed_forward(attention(memory, f"encoder_l{number}_self"), f"encoder_l{number}_ffn")
    memory = norm(memory, "encoder_top") if top == "n" else memory
    x = embedded(np.concatenate([np.zeros((1, source_table.shape[1])), target_table[target[:-1]]]), "decoder")
    for number in range(1, options["dec-depth"] + 1):
        name = f"decoder_l{number}"
        recurrent = options["transformer-decoder-autoreg"] == "rnn"
        x = recurrence(x, f"{name}_rnn") if recurrent else attention(x, f"{name}_self", causal=True)
        x = feed_forward(attention(x, f"{name}_context", memory), f"{name}_ffn")
    x = norm(x, "decoder_top") if top == "n" else x
    return x @ w.get("decoder_ff_logit_out_Wt", target_table).T + w["decoder_ff_logit_out_b"]
