"""Files of Marian as document models: logits of a reading of our own in numpy, refusals, damaged files."""

import io
import os
import random
import struct
import zipfile

import numpy as np
import pytest
import torch
from support.errors import refused
from support.fuzzed_files import damaged
from support.marian_files import (
    NORM_BEFORE,
    OPTIONS,
    SELF_ATTENTION,
    TEXT,
    marian_logits,
    parameters,
    rounded,
    spm_file,
    write_bin,
    write_npz,
)

from hf_docmt.hub.marian_conversion import convert_marian_file
from hf_docmt.hub.marian_file import read_model_file
from hf_docmt.loading import model_folders

SOURCE, TARGET = [7, 20, 31, 5, 0], [9, 14, 3, 11, 28, 0]
TWO_TABLES = {"tied-embeddings-all": False, "tied-embeddings": True}
DAMAGED = int(os.environ.get("HF_DOCMT_DAMAGED_FILES", "100"))


@pytest.fixture(scope="module")
def vocab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocab")
    return [spm_file(folder, "source"), spm_file(folder, "target", TEXT[2:])]


def logits_of(model, source=SOURCE, target=TARGET):
    ids = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
    with torch.no_grad():
        return model(torch.tensor([source]), decoder_input_ids=ids).logits[0]


@pytest.mark.parametrize(
    ("changed", "learned"),
    [
        ({}, 0),
        (SELF_ATTENTION | {"enc-depth": 3, "dec-depth": 1}, 0),
        (NORM_BEFORE | {"transformer-ffn-activation": "swish"}, 0),
        (NORM_BEFORE | SELF_ATTENTION | {"transformer-ffn-activation": "gelu"}, 0),
        (SELF_ATTENTION, 40),
        (TWO_TABLES, 0),
        (TWO_TABLES | {"tied-embeddings": False}, 0),
    ],
    ids=["ssru", "attention", "norm_before", "norm_before_attention", "learned", "two_tables", "untied"],
)
def test_logits(tmp_path, vocab, changed, learned):
    """Those of Marian's Transformer in numpy, from both kinds of files, for source and target vocabularies."""
    options = OPTIONS | changed
    two = not options["tied-embeddings-all"]
    weights = parameters(options, (60, 50) if two else (60, 60), learned)
    expected = marian_logits(options, weights, SOURCE, TARGET)
    for write, name in ((write_npz, "model.npz"), (write_bin, "model.bin")):
        path = write(tmp_path / name, options, weights)
        model, tokenizer = convert_marian_file(path, vocab=vocab if two else vocab[:1], past_context=1)
        found = logits_of(model)[:, : expected.shape[1]].double().numpy()
        np.testing.assert_allclose(found, expected, atol=2e-5)
        assert model.config.pad_token_id == 60 and tokenizer.sep_token_id == 61
        assert not logits_of(model)[:, 60].gt(-900).any()  # padding is never written


@pytest.mark.parametrize("kind", [0x4101, 0x10001])
def test_int8(tmp_path, vocab, kind):
    """Matrices in int8, transposed but for the embeddings, with multipliers of activations beside them."""
    weights = parameters(OPTIONS, (60, 60))
    path = write_bin(tmp_path / "model.intgemm.alphas.bin", OPTIONS, weights, int8=kind)
    model, _ = convert_marian_file(path, vocab=vocab[:1])
    expected = marian_logits(OPTIONS, rounded(weights), SOURCE, TARGET)
    np.testing.assert_allclose(logits_of(model)[:, :60].double().numpy(), expected, atol=2e-5)


def test_folder(tmp_path, vocab):
    """Written, loaded, and translating documents as before; the mechanism of the architecture is new and neutral."""
    path = write_npz(tmp_path / "model.npz", OPTIONS, parameters(OPTIONS, (60, 60)))
    fields = {"source_lang": "en", "target_lang": "pt", "past_context": 1}
    model, tokenizer = convert_marian_file(path, tmp_path / "new", vocab=vocab[:1], architecture="doct", **fields)
    loaded, again = model_folders.load_model(tmp_path / "new")
    documents = [["the old camera", "now it is off"]]
    found = loaded.translate_documents(documents, again, max_new_tokens=8)
    assert found == model.translate_documents(documents, tokenizer, max_new_tokens=8)
    assert (loaded.config.target_lang, loaded.config.decoder_autoregression) == ("pt", "ssru")
    assert torch.equal(logits_of(loaded.train()), logits_of(loaded.eval()))  # no dropout but where it is asked for
    fields["dropout"] = 0.1
    assert convert_marian_file(path, vocab=vocab[:1], **fields)[0].config.dropout == 0.1
    assert torch.equal(logits_of(loaded), logits_of(model))
    assert tokenizer("the camera")["input_ids"][-1] == 0
    assert tokenizer.decode(tokenizer("a câmera")["input_ids"], skip_special_tokens=True) == "a câmera"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"type": "s2s"}, "type is 's2s', expected transformer; of Marian only Transformers are converted"),
        ({"dec-cell": "gru"}, "dec-cell is 'gru', expected ssru; of recurrent decoders only those of SSRU"),
        ({"transformer-decoder-autoreg": "average-attention"}, "autoreg is 'average-attention', expected self-att"),
        ({"transformer-postprocess": "dhn"}, r"are \('', 'hn', ''\) without dropout, expected"),
        ({"transformer-postprocess-emb": "r"}, "transformer-postprocess-emb is 'r'"),
        ({"right-left": True}, "right-left is 'true', expected false"),
        ({"transformer-heads": 3}, "transformer-heads is 3, expected a divisor of 16"),
        ({"transformer-heads": "x"}, "transformer-heads is 'x', expected a whole number from 1"),
        ({"enc-depth": 999999}, "enc-depth is 999999, which the parameters are too few for"),
        ({"enc-depth": 3}, "expected a matrix encoder_l3_self_Wq, found none"),
        ({"dec-depth": 1}, "parameters of no model of this package: decoder_l2"),
        ({"transformer-ffn-activation": "sigmoid"}, "transformer-ffn-activation is 'sigmoid', expected relu or swish"),
    ],
)
def test_other_models(tmp_path, vocab, changed, message):
    path = write_npz(tmp_path / "model.npz", OPTIONS | changed, parameters(OPTIONS, (60, 60)))
    refused(message, convert_marian_file, path, tmp_path / "new", vocab=vocab[:1])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("Wemb", np.full((60, 16), np.nan, np.float32), "Wemb has values that are not finite numbers"),
        ("Wemb", np.zeros((60, 16), np.int32), "Wemb has values that are not finite numbers"),
        ("encoder_l1_ffn_b1", np.zeros((1, 7), np.float32), r"fc1.bias: .*\(\[7\]\) .*\(\[24\]\)"),
        ("extra", np.zeros((1, 7), np.float32), "parameters of no model of this package: extra"),
        ("special:model.yml", np.zeros(1 << 17, np.int8) + 32, "has 131072 bytes, expected at most 65536"),
        ("special:model.yml", np.frombuffer(b"- a\n", np.int8), "special:model.yml holds no options"),
        ("special:model.yml", np.frombuffer(b"a: [\n", np.int8), "special:model.yml is not YAML"),
    ],
)
def test_other_parameters(tmp_path, vocab, name, values, message):
    weights = parameters(OPTIONS, (60, 60))
    path = write_npz(tmp_path / "model.npz", OPTIONS, weights)
    content = {array: values for array, values in np.load(path).items()} | {name: values}
    np.savez(path, **content)
    refused(message, convert_marian_file, path, vocab=vocab[:1])


def test_arranged_for_one_processor(tmp_path, vocab):
    path = write_bin(tmp_path / "model.bin", OPTIONS, parameters(OPTIONS, (60, 60)), int8=0x12001)
    with pytest.raises(ValueError, match="is of type 0x12001, expected one of .* intgemm8, which fit every processor"):
        convert_marian_file(path, vocab=vocab[:1])


def test_sizes_before_memory(tmp_path):
    """A shape of more values than there are bytes, a packed archive, an array that its header makes huge."""
    header = struct.pack("<QQ", 1, 1) + struct.pack("<4Q", 2, 0x404, 2, 256) + b"W\0" + struct.pack("<2i", 2**30, 2**30)
    (tmp_path / "model.bin").write_bytes(header + struct.pack("<Q", 0) + bytes(256))
    with pytest.raises(ValueError, match=r"W of shape \(1073741824, 1073741824\) needs \d+ bytes, it has 256"):
        read_model_file(tmp_path / "model.bin")
    with zipfile.ZipFile(tmp_path / "packed.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("W.npy", bytes(1 << 20))
    refused("W.npy is packed or encrypted", read_model_file, tmp_path / "packed.npz")
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 4)})
    with zipfile.ZipFile(tmp_path / "large.npz", "w") as archive:
        archive.writestr("W.npy", array.getvalue())
    refused("large.npz: not a model file of Marian, or a damaged one", read_model_file, tmp_path / "large.npz")


def test_vocabularies(tmp_path, vocab):
    path = write_npz(tmp_path / "model.npz", OPTIONS, parameters(OPTIONS, (20, 20)))
    with pytest.raises(ValueError, match=r"\d+ pieces, but the model has embeddings of 20; give the vocabulary"):
        convert_marian_file(path, vocab=vocab[:1])
    refused("vocab: got 0 files, expected one for both languages, or two", convert_marian_file, path, vocab=[])
    (tmp_path / "vocab.yml").write_text("a: 0\n")
    with pytest.raises(ValueError, match="vocab.yml: cannot be read as a SentencePiece model.*convert_marian_to_pytor"):
        convert_marian_file(path, vocab=[tmp_path / "vocab.yml"])


@pytest.mark.parametrize("kind", ["npz", "bin", "int8"])
def test_damaged_files(tmp_path, kind):
    """Every file is read or refused by a ValueError; as many as HF_DOCMT_DAMAGED_FILES says, else 100."""
    draw, weights = random.Random(kind), parameters(OPTIONS, (60, 60))
    path = tmp_path / ("model.npz" if kind == "npz" else "model.bin")
    write = write_npz if kind == "npz" else write_bin
    content = write(path, OPTIONS, weights, **({"int8": 0x4101} if kind == "int8" else {})).read_bytes()
    refused = 0
    for _ in range(DAMAGED):
        data = damaged(content, draw)
        if draw.random() < 0.5:  # near the headers, where it matters
            places = [draw.randrange(min(8000, len(content))) for _ in range(3)]
            data = bytearray(content)
            for place in places:
                data[place] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        path.write_bytes(data)
        try:
            read_model_file(path)
        except ValueError as error:
            refused += str(path) in str(error)
    assert refused > DAMAGED // 3
