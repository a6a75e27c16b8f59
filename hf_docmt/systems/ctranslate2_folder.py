"""Encoder-decoder models in CTranslate2's own format, such as Marian and NLLB, as systems (extra `ctranslate2`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PreTrainedConfig, PreTrainedTokenizerBase

from hf_docmt.files import read_json
from hf_docmt.loading.model_files import CONFIG
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.modeling.text_splitting import Sentence
from hf_docmt.systems.ctranslate2_model import CTranslate2Weights
from hf_docmt.systems.items import SuiteItem
from hf_docmt.systems.model_system import Answer, EncodedInput
from hf_docmt.systems.seq2seq import Seq2SeqSystem, until_end

SEARCH = ("max_new_tokens", "num_beams", "length_penalty")


class CTranslate2System(Seq2SeqSystem):
    """A folder that `ct2-transformers-converter` wrote, with the files of the tokenizer in it (`--copy_files`).

    Options are those of `Seq2SeqSystem`; of arguments of `generate` it takes `num_beams` and `length_penalty`. Beam
    search ends with `num_beams` finished translations (`early_stopping=True` in transformers), and Marian's padding
    token has no probability. ValueError: other arguments, a target that ends in a language code (mBART-25).
    """

    kind = "ctranslate2"
    auto_class = None
    default_dtype = "auto"

    def __init__(
        self, model: "TokenizerWeights", tokenizer: PreTrainedTokenizerBase, name: str | None = None, **options
    ):
        super().__init__(model, tokenizer, name, **options)
        if unknown := sorted(self.generate_kwargs.keys() - SEARCH):
            raise ValueError(f"{unknown[0]} is not among the settings that CTranslate2 takes here: {', '.join(SEARCH)}")
        if len(self.collate.around_target[1]) != 1:
            raise ValueError(f"{self.name}: its targets do not end in one end token; CTranslate2 cannot score them")

    @classmethod
    def options(cls) -> dict[str, type]:
        return Seq2SeqSystem.options()

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        return "model_type" not in config and {"decoder_start_token", "eos_token", "unk_token"} <= config.keys()

    @classmethod
    def load(cls, name: str, *, dtype: str, device: str, **options) -> "CTranslate2System":
        """`dtype` is what it computes in; auto: as its weights were saved."""
        for argument in ("attn_implementation", "revision"):
            if (value := options.pop(argument, None)) is not None:
                raise ValueError(f"{name}: {argument} is for models of transformers, got {value!r}; omit it")
        tokenizer = load_tokenizer(name)
        return cls(TokenizerWeights(Path(name), tokenizer, dtype, device), tokenizer, str(name), **options)

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        choices = self.choices(items)
        examples = [example for choice in choices for example in choice.examples]
        targets = [self.collate.target(example) for example in examples]
        results = self.model.translator.score_batch(
            [self.model.token_names(self.collate.source(example)) for example in examples],
            [self.model.token_names(ids[:-1]) for ids, _ in targets],  # the end token is its own
            max_batch_size=self.scored_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        scores = iter(list(result.log_probs[start:stop]) for result, (_, (start, stop)) in zip(results, targets))
        different = [[next(scores) for _ in choice.examples] for choice in choices]
        return [[values[row] for row in choice.rows] for values, choice in zip(different, choices)]

    def describe(self) -> dict:
        return super().describe() | {"architecture": self.model.engine_name}

    def word_fits(self, source: str, translation: str) -> None:
        """Unknown: it gives no attention."""

    @property
    def search(self) -> dict:
        return super().search | {"engine": self.model.engine_name}

    def fingerprint(self) -> str:
        return f"{super().fingerprint()[:6]}{self.model.digest[:6]}"

    def generate(self, jobs: Sequence[EncodedInput], sentences: int) -> list[Answer]:
        """As `Seq2SeqSystem`'s."""
        settings, separator, eos = self.generate_kwargs, self.collate.separator, self.tokenizer.eos_token_id
        ends = [eos, *separator] if len(separator) == 1 else [eos]
        forced = len(jobs[0][1]) - 1  # CTranslate2 puts the start token before them
        penalty = settings.get("length_penalty", 1.0)
        results = self.model.translate(
            [source for source, _ in jobs],
            [prefix[1:] for _, prefix in jobs],
            end_ids=ends,
            beam_size=settings.get("num_beams", 1),
            length_penalty=penalty,
            return_scores=self.scores,
            max_decoding_length=forced + settings["max_new_tokens"],
        )
        rows = [hypotheses[0][forced:] for hypotheses, _ in results]
        texts = [until_end(ids, ends, separator) for ids in rows]
        decoded = [self.tokenizer.decode(text, skip_special_tokens=True) for text in texts]
        if self.scores:
            found = [(scores[0] * len(hypotheses[0]) ** penalty) for hypotheses, scores in results]
            scores = [total / max(1, len(ids)) for total, ids in zip(found, rows)]
            decoded = [Sentence(text, score=score) for text, score in zip(decoded, scores)]
        return [(text, len(own) < len(ids)) for text, own, ids in zip(decoded, texts, rows)]


class TokenizerWeights(CTranslate2Weights):
    """The weights in a folder of the library, with the tokenizer's token names."""

    def __init__(self, folder: Path, tokenizer: PreTrainedTokenizerBase, dtype: str | None, device: str):
        super().__init__(folder, device, dtype)
        self.tokenizer = tokenizer
        own: dict[str, Any] = read_json(folder / CONFIG)
        start, end = tokenizer.convert_tokens_to_ids([own["decoder_start_token"], own["eos_token"]])
        self.config = PreTrainedConfig(decoder_start_token_id=start, name_or_path=str(folder))
        self.generation_config = GenerationConfig(decoder_start_token_id=start, eos_token_id=end, num_beams=1)

    def token_names(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.convert_ids_to_tokens(list(ids))

    def token_ids(self, names: Sequence[str]) -> list[int]:
        return self.tokenizer.convert_tokens_to_ids(list(names))
