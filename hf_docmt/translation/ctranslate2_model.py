"""Models in CTranslate2's format that translate documents (extra `ctranslate2`)."""

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import ctranslate2
import torch
from huggingface_hub import snapshot_download
from transformers import GenerationConfig, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.modeling.generation_docmt import DocumentTranslation
from hf_docmt.remote_code import load_tokenizer
from hf_docmt.translation.ctranslate2_search import CTranslate2Translator

FOLDER = "ctranslate2"  # of the library's files, inside that of the model
COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}  # our name of a dtype: theirs


def load_ctranslate2_model(
    path: str | Path, device: str = "cpu", dtype: str | None = None, revision: str | None = None
) -> tuple["CTranslate2Model", PreTrainedTokenizerBase]:
    """Model and tokenizer of a folder or Hub name that `docmt export --ctranslate2` wrote.

    `dtype` is what it computes in (None: as its weights were saved). Raises ValueError for another folder, and for a
    dtype that the device does not have.

    >>> model, tokenizer = load_ctranslate2_model("runs/int8")
    >>> model.translate_documents([["Here is a lamp.", "It is old."]], tokenizer)
    [['Hier ist eine Lampe.', 'Sie ist alt.']]
    """
    registry.load_config(path, revision)  # which checks the name
    folder = Path(path) if Path(path).exists() else Path(snapshot_download(str(path), revision=revision))
    return CTranslate2Model(folder, device, dtype), load_tokenizer(path, revision)


class Hypotheses(NamedTuple):
    """Translations of one source, best first: their ids, and scores where they were asked for."""

    ids: list[list[int]]
    scores: list[float]


class CTranslate2Model(DocumentTranslation):
    """What the strategies need of a model: configuration, settings of generation, and translation of segments."""

    translator_class = CTranslate2Translator

    def __init__(self, folder: Path, device: str = "cpu", dtype: str | None = None):
        if not (folder / FOLDER / "model.bin").is_file():
            raise ValueError(
                f"{folder} holds no weights of CTranslate2; write such a folder with docmt export {folder} NEW_FOLDER "
                "--ctranslate2 int8"
            )
        self.config = registry.load_config(folder)
        self.generation_config = GenerationConfig.from_pretrained(folder)
        self.names: list[str] = json.loads((folder / FOLDER / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self.ids = {name: index for index, name in enumerate(self.names)}
        kind, _, index = device.partition(":")
        self.translator = ctranslate2.Translator(
            str(folder / FOLDER),
            device=kind,
            device_index=int(index or 0),
            compute_type=compute_type(dtype, kind),
            intra_threads=torch.get_num_threads(),
        )

    @property
    def engine(self) -> str:
        """The library, its version and what it computes in, for reports."""
        return f"ctranslate2 {ctranslate2.__version__}, {self.translator.compute_type}"

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        prompts: Sequence[Sequence[int]],
        *,
        end_ids: Sequence[int],
        suppressed_ids: Sequence[Sequence[int]] | None = None,
        **arguments,
    ) -> list[Hypotheses]:
        """Translations of one batch of sources, with forced ids in front and the end token behind.

        `prompts` are the decoder's start token, which is not given back, and forced ids; `suppressed_ids` are sequences
        that are not written; `arguments` are those of `ctranslate2.Translator.translate_batch`.
        """
        found = self.translator.translate_batch(
            [self._tokens(source) for source in sources],
            [self._tokens(prompt) for prompt in prompts],
            end_token=self._tokens(end_ids),
            suppress_sequences=[self._tokens(ids) for ids in suppressed_ids or ()] or None,
            max_input_length=0,
            min_decoding_length=0,
            return_end_token=True,
            **arguments,
        )
        return [Hypotheses([[self.ids[name] for name in one] for one in row.hypotheses], row.scores) for row in found]

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.names[index] for index in ids]

    # What a scope of inference asks of a torch model, see hf_docmt.modeling.search

    prepacked_weights = nullcontext

    def modules(self) -> Iterator:
        """No module of torch."""
        return iter(())


def compute_type(dtype: str | None, device: str) -> str:
    """CTranslate2's name of what is computed in; ValueError where the device does not have it."""
    if dtype is None:
        return "default"
    name, known = COMPUTE_TYPES.get(dtype, dtype), ctranslate2.get_supported_compute_types(device)
    if name not in known:
        names = {one: ours for ours, one in COMPUTE_TYPES.items()}
        allowed = ", ".join(sorted(names.get(one, one) for one in known))
        raise ValueError(f"dtype {dtype!r}: CTranslate2 computes on this {device} in {allowed}; choose one of them")
    return name
