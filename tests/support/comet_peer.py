"""A tiny random COMET checkpoint, and scores of JSON lines by its parts alone. Run by a Python that has unbabel-comet.

comet-env/bin/python tests/comet_peer.py FOLDER INPUT...  # writes FOLDER/checkpoints/model.ckpt, INPUT.scores
"""

import json
import sys
from pathlib import Path

import torch
import yaml
from comet.models import RegressionMetric
from pytorch_lightning import Trainer
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizerFast

POSITIONS = 26  # of the encoder, as XLM-R counts them: 514 for the 510 subwords that COMET reads


def main(folder: Path, inputs: list[Path]) -> None:
    model = build(folder)
    for path in inputs:
        items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        with torch.no_grad():
            Path(f"{path}.scores").write_text(json.dumps([score(model, item) for item in items]))


def build(folder: Path) -> RegressionMetric:
    """A model that pools by average over a mix of layers, as wmt22-comet-da; subwords are single characters."""
    torch.manual_seed(0)
    words = ["<s>", "<pad>", "</s>", "<unk>", *map(chr, range(ord("a"), ord("z") + 1))]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\S"), "removed", invert=True)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    XLMRobertaTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = XLMRobertaConfig(vocab_size=40, max_position_embeddings=POSITIONS, initializer_range=0.5, **sizes)
    XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    model = RegressionMetric(pretrained_model=str(folder), layer_norm=False, hidden_sizes=[12, 6]).eval()
    for weights in [*model.estimator.parameters(), *model.layerwise_attention.parameters()]:
        torch.nn.init.normal_(weights, std=0.5)
    trainer = Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    trainer.strategy.connect(model)
    trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt", weights_only=True)
    (folder / "hparams.yaml").write_text(yaml.safe_dump(dict(model.hparams)))
    return model


def score(model: RegressionMetric, item: dict) -> float:
    """One item alone: as many sentences as COMET reads uncut on all sides, the last one of them embedded."""
    sides = [item[side] for side in ("src", "mt", "ref")]
    size = next(size for size in range(len(sides[0]), 0, -1) if not any(cut(model, side[-size:]) for side in sides))
    src, mt, ref = (embed(model, side[-size:]) for side in sides)
    features = torch.cat([mt, ref, mt * ref, (mt - ref).abs(), mt * src, (mt - src).abs()])
    return model.estimator.ff(features).item()


def cut(model: RegressionMetric, sentences: list[str]) -> bool:
    text = " </s> ".join(sentences)
    whole = model.encoder.tokenizer(text)["input_ids"]
    return model.encoder.prepare_sample([text])["input_ids"][0].tolist() != whole


def embed(model: RegressionMetric, sentences: list[str]) -> torch.Tensor:
    """Mean over <s>, the last sentence and its </s>, of the weighted layers: (hidden,)."""
    characters = [[ord(character) - ord("a") + 4 for character in text if character != " "] for text in sentences]
    ids = [0] + [token for sentence in characters for token in [*sentence, 2]]
    outputs = model.encoder.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    weights = torch.stack(list(model.layerwise_attention.scalar_parameters)).softmax(0)  # (layers, 1)
    layers = torch.stack(outputs.hidden_states)[:, 0]  # (layers, tokens, hidden)
    mixed = model.layerwise_attention.gamma * (weights[..., None] * layers).sum(0)  # (tokens, hidden)
    return torch.cat([mixed[:1], mixed[-1 - len(characters[-1]) :]]).mean(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
