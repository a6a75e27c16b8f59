"""Encoder-decoder models in CTranslate2's own format, such as Marian and NLLB, as systems (extra `ctranslate2`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import GenerationConfig, PreTrainedConfig, PreTrainedTokenizerBase

from hf_docmt.files import parse_json
from hf_docmt.messages import install_command
from hf_docmt.remote_code import load_tokenizer
from hf_docmt.store import file_digest
from hf_docmt.systems.items import SuiteItem
from hf_docmt.systems.model_system import Answer, Job
from hf_docmt.systems.seq2seq import Seq2SeqSystem, until_end

WEIGHTS = "model.bin"
SEARCH = ("max_new_tokens", "num_beams", "length_penalty")


class CTranslate2System(Seq2SeqSystem):
    """A folder that `ct2-transformers-converter` wrote, with the files of the tokenizer in it (`--copy_files`).

    Options are those of `Seq2SeqSystem`; of arguments of `generate` it takes `num_beams` and `length_penalty`. Beam
    search ends when as many translations as beams are finished (`early_stopping=True` in transformers), and Marian's
    token of padding has no probability. ValueError: other arguments, a target that ends in a language code (mBART-25).
    """

    kind = "ctranslate2"
    auto_class = None
    default_dtype = "auto"

    def __init__(self, model: "Weights", tokenizer: PreTrainedTokenizerBase, name: str | None = None, **options):
        super().__init__(model, tokenizer, name, **options)
        if unknown := sorted(self.generate_kwargs.keys() - SEARCH):
            raise ValueError(f"{unknown[0]} is not among the settings that CTranslate2 takes here: {', '.join(SEARCH)}")
        if len(self.collate.target_tokens.after) != 1:
            raise ValueError(f"{self.name}: its targets do not end in one end token; CTranslate2 cannot score them")

    @classmethod
    def options(cls) -> dict[str, type]:
        return Seq2SeqSystem.options()

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        return "model_type" not in config and {"decoder_start_token", "eos_token", "unk_token"} <= config.keys()

    @classmethod
    def load(cls, name: str, *, dtype: torch.dtype | None, device: str, **options) -> "CTranslate2System":
        """`dtype` is what it computes in; None: as its weights were saved."""
        for argument in ("attn_implementation", "revision"):
            if (value := options.pop(argument, None)) is not None:
                raise ValueError(f"{name}: {argument} is for models of transformers, got {value!r}; leave it out")
        tokenizer = load_tokenizer(name)
        return cls(Weights(Path(name), tokenizer, dtype, device), tokenizer, str(name), **options)

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        choices = self.choices(items)
        examples = [example for choice in choices for example in choice.examples]
        targets = [self.collate.target(example) for example in examples]
        results = self.model.translator.score_batch(
            [self._tokens(self.collate.source(example)) for example in examples],
            [self._tokens(ids[:-1]) for ids, _ in targets],  # the end token is its own
            max_batch_size=self.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        scores = iter(list(result.log_probs[start:stop]) for result, (_, (start, stop)) in zip(results, targets))
        different = [[next(scores) for _ in choice.examples] for choice in choices]
        return [[values[row] for row in choice.rows] for values, choice in zip(different, choices)]

    def describe(self) -> dict:
        facts = super().describe()
        return {key: value for key, value in facts.items() if key != "parameters"} | {"architecture": self.model.engine}

    @property
    def search(self) -> dict:
        return super().search | {"engine": self.model.engine}

    def fingerprint(self) -> str:
        return f"{super().fingerprint()[:6]}{self.model.digest[:6]}"

    def generate(self, jobs: Sequence[Job], sentences: int = 1) -> list[Answer]:
        """As `Seq2SeqSystem`'s."""
        settings, separator, eos = self.generate_kwargs, self.collate.separator, self.tokenizer.eos_token_id
        ends = [eos, *separator] if len(separator) == 1 else [eos]
        forced = len(jobs[0][1]) - 1  # CTranslate2 puts the start token before them
        results = self.model.translator.translate_batch(
            [self._tokens(source) for source, _ in jobs],
            [self._tokens(prefix[1:]) for _, prefix in jobs],
            beam_size=settings.get("num_beams", 1),
            length_penalty=settings.get("length_penalty", 1.0),
            max_decoding_length=forced + settings["max_new_tokens"],
            max_input_length=0,
            min_decoding_length=0,
            end_token=self._tokens(ends),
            return_end_token=True,
        )
        rows = [self.tokenizer.convert_tokens_to_ids(result.hypotheses[0][forced:]) for result in results]
        texts = [until_end(ids, ends, separator) for ids in rows]
        return [
            (self.tokenizer.decode(text, skip_special_tokens=True), len(text) < len(ids))
            for text, ids in zip(texts, rows)
        ]

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.convert_ids_to_tokens(list(ids))


class Weights(nn.Module):
    """The library's translator, and what is read of a model beside it; no parameters of torch."""

    def __init__(self, folder: Path, tokenizer: PreTrainedTokenizerBase, dtype: torch.dtype | None, device: str):
        super().__init__()
        try:
            import ctranslate2
        except ImportError as error:
            raise ValueError(f"{folder} needs CTranslate2: {install_command('ctranslate2')}") from error
        own: dict[str, Any] = parse_json((folder / "config.json").read_text("utf-8"), folder / "config.json")
        ids = {key: tokenizer.convert_tokens_to_ids(own[f"{key}_token"]) for key in ("decoder_start", "eos")}
        self.config = PreTrainedConfig(decoder_start_token_id=ids["decoder_start"], name_or_path=str(folder))
        self.generation_config = GenerationConfig(
            decoder_start_token_id=ids["decoder_start"], eos_token_id=ids["eos"], num_beams=1
        )
        kind, _, index = device.partition(":")
        try:
            self.translator = ctranslate2.Translator(
                str(folder),
                device=kind,
                device_index=int(index or 0),
                compute_type="default" if dtype is None else str(dtype).removeprefix("torch."),
                intra_threads=torch.get_num_threads(),
            )
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"cannot load a model of CTranslate2 from {folder}: {error}") from error
        self.engine = f"ctranslate2 {ctranslate2.__version__}, {self.translator.compute_type}"
        self.digest = file_digest(folder / WEIGHTS)
