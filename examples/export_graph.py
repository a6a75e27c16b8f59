"""A model's graph for other programs, by `transformers.exporters`: torch.export's, ONNX or OpenVINO.

python examples/export_graph.py MODEL DOCUMENTS.jsonl FOLDER --format onnx

The graph is one forward pass: what a batch of the documents holds goes in (ids and masks of source, context and
target), logits (B, T, V) come out, for any number of rows and tokens. It is compared with the model on another batch.
`dynamo` needs only torch, `onnx` the packages onnx, onnxscript and onnxruntime, `openvino` openvino.
"""

import argparse

import torch
from transformers.exporters import AutoExportConfig, AutoHfExporter, ExportedModel

import hf_docmt
from hf_docmt.loading import registry


def batches(model, tokenizer, path: str) -> list[dict[str, torch.Tensor]]:
    """Two batches of the documents, as in training, with the same number of examples, at least two."""
    config = model.config
    documents = hf_docmt.read_documents(path=path, source_lang=config.source_lang, target_lang=config.target_lang)
    architecture = registry.for_config(config)
    examples = list(architecture.examples(documents, tokenizer, config))
    collate, half = architecture.collator(config, tokenizer), min(len(examples) // 2, 4)
    made = [collate(examples[:half]), collate(examples[-half:])]
    return [{name: batch[name] for name in batch if name not in ("labels", "label_weights")} for batch in made]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="folder or Hub name")
    parser.add_argument("documents", help="JSON lines with source and target, a few documents")
    parser.add_argument("folder", help="folder to write")
    parser.add_argument("--format", default="dynamo", choices=["dynamo", "onnx", "openvino"])
    options = parser.parse_args()

    model, tokenizer = hf_docmt.load_model(options.model)
    traced, other = batches(model, tokenizer, options.documents)
    config = AutoExportConfig.from_dict({"export_format": options.format, "dynamic": True})
    exporter = AutoHfExporter.from_config(config)
    exporter.export(model, traced | {"use_cache": False}, config).save_pretrained(options.folder)

    graph = ExportedModel.from_pretrained(options.folder, trust_remote_code=True)  # the folder that was just written
    with torch.no_grad():
        differences = graph(**other).logits - model(**other, use_cache=False).logits  # (B, T, V)
    difference = differences[other["decoder_attention_mask"].bool()].abs().max()  # of padding nothing is asked
    print(f"{options.folder}: largest difference of logits from the model {difference:.1e}")
    if not difference < 1e-3:
        raise SystemExit("the graph computes something else than the model")


if __name__ == "__main__":
    main()
