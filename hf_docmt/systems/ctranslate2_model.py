"""Weights in CTranslate2's format (extra `ctranslate2`): they translate, but are not a torch model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import GenerationConfig

from hf_docmt.engine.generation_fields import HARMLESS, READ, RECORDED, effective_settings
from hf_docmt.journal import file_digest
from hf_docmt.loading import model_folders
from hf_docmt.messages import install_command
from hf_docmt.modeling.fingerprints import check_fingerprints
from hf_docmt.modeling.generation_docmt import DocumentTranslation
from hf_docmt.modeling.translation_jobs import Job, Output
from hf_docmt.systems.prompted_translator import PromptedTranslator

FOLDER = "ctranslate2"  # of the library's files, inside that of a model of this package
WEIGHTS = "model.bin"
COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}  # our name of a dtype: theirs
SUPPORTED = {  # values that ask for nothing
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "bad_words_ids": None,
    "min_new_tokens": 0,
}
WITHOUT_EFFECT = ("use_cache", "cache_implementation", "renormalize_logits")  # scores are renormalized always


class CTranslate2Weights(nn.Module):
    """A translator of the library after ids of tokens; `dtype` is what it computes in (None, auto: as saved).

    A subclass names tokens in `token_names` and `token_ids`. ValueError: the library is not installed, a folder that it
    cannot read, a dtype that the device does not have.
    """

    def __init__(self, folder: Path, device: str = "cpu", dtype: str | None = None):
        super().__init__()
        try:
            import ctranslate2
        except ImportError as error:
            raise ValueError(f"{folder} needs CTranslate2: {install_command('ctranslate2')}") from error
        kind, _, index = device.partition(":")
        computed = "default" if dtype in (None, "auto") else COMPUTE_TYPES.get(dtype, dtype)
        try:
            self.translator = ctranslate2.Translator(
                str(folder),
                device=kind,
                device_index=int(index or 0),
                compute_type=computed,
                intra_threads=torch.get_num_threads(),
            )
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"cannot load a model of CTranslate2 from {folder}: {error}") from error
        self.engine_name = f"ctranslate2 {ctranslate2.__version__}, {self.translator.compute_type}"  # for reports
        self.file = folder / WEIGHTS

    @property
    def digest(self) -> str:
        """The fingerprint of the file of weights."""
        return file_digest(self.file)

    def token_names(self, ids: Sequence[int]) -> list[str]:
        """The names of tokens in the library's vocabulary."""
        raise NotImplementedError

    def token_ids(self, names: Sequence[str]) -> list[int]:
        """Their ids."""
        raise NotImplementedError

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        *,
        end_ids: Sequence[int],
        suppressed_ids: Sequence[Sequence[int]] = (),
        fewest: int = 0,
        **arguments: Any,
    ) -> list[tuple[list[list[int]], list[float]]]:
        """Translations of one batch of sources, with forced ids before and the end token after them.

        `prefixes` are forced ids, after the decoder's start token unless the folder names it. `suppressed_ids` are not
        written, `fewest` is the least number of ids, with the forced ones; `arguments` are those of `translate_batch`.
        Returns for each source the ids of its translations, best first, and their scores if requested.
        """
        results = self.translator.translate_batch(
            [self.token_names(source) for source in sources],
            [self.token_names(prefix) for prefix in prefixes],
            end_token=self.token_names(end_ids),
            suppress_sequences=[self.token_names(ids) for ids in suppressed_ids] or None,
            max_input_length=0,
            min_decoding_length=fewest,
            return_end_token=True,
            **arguments,
        )
        return [([self.token_ids(names) for names in result.hypotheses], result.scores) for result in results]


class CTranslate2Translator(PromptedTranslator):
    """The strategies of models that read segments, decoded by a `CTranslate2Model` instead of `generate`.

    Limits of tokens, forced prefixes and repairs are those of `generate`. Departures of CTranslate2: beam search ends
    with `num_beams` finished translations (`early_stopping=True` in transformers), and after a
    forced prefix only its first beam may end at once; the prefix is read token by token, in `chunk_sequential` again
    for every sentence. Greedy search gives what `generate` gives.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        check_search(self.settings, self.generate_kwargs)
        self.positions = self.config.max_position_embeddings  # of either side, sines included
        self.beams = self.settings.num_beams or 1
        self.length_penalty = 1.0 if self.settings.length_penalty is None else self.settings.length_penalty

    def search(self, jobs: Sequence[Job], ends: list[int], at_once: int) -> list[Output]:
        """Outputs of one batch. Each row ends after its own number of tokens, so that no other row changes it."""
        prompts = [[self.start, *job.prefix] for job in jobs]
        limits = [self.token_limits([job.length], len(prompt))[0] for job, prompt in zip(jobs, prompts)]
        longest = max(len(prompt) - 1 + limit for prompt, limit in zip(prompts, limits))
        outputs = []
        for job, prompt, limit, (ids, total) in zip(jobs, prompts, limits, self.best(jobs, prompts, ends, longest)):
            if len(ids) > limit and self.beams > 1:  # it took more than it gets
                ((ids, total),) = self.best([job], [prompt], ends, len(prompt) - 1 + limit)
            is_finished = bool(ids) and ids[-1] in ends and len(ids) <= limit
            has_sum = self.keeps_scores and len(ids) <= limit and self.sep not in ids[:-1]  # of one sentence
            sums = [0.0, *[total] * len(ids)] if has_sum else ()
            outputs.append(Output(ids[:-1] if is_finished else ids[:limit], is_finished, sums))
        return outputs

    def best(
        self, jobs: Sequence[Job], prompts: list[list[int]], ends: list[int], length: int
    ) -> list[tuple[list[int], float]]:
        """The best translation of each job after its prompt, with its end token where it has one, and its sum.

        CTranslate2 divides the score of a translation by its length with the prompt; as in transformers it is the
        length without it here, by which the finished translations are compared again.
        """
        values = {name: getattr(self.settings, name) for name in SUPPORTED}
        values = {name: value for name, value in values.items() if value not in (None, SUPPORTED[name])}
        fewest = values.pop("min_new_tokens", 0)
        if fewest and len({len(prompt) for prompt in prompts}) > 1:  # CTranslate2 counts the prompt, the same for all
            return [self.best([job], [prompt], ends, length)[0] for job, prompt in zip(jobs, prompts)]
        has_prompt = any(len(prompt) > 1 for prompt in prompts)
        compared = self.beams > 1 and has_prompt and self.length_penalty != 0
        results = self.model.translate(
            [job.source for job in jobs],
            prompts,
            end_ids=ends,
            suppressed_ids=values.pop("bad_words_ids", ()),
            fewest=fewest and len(prompts[0]) - 1 + fewest,
            max_decoding_length=length,
            beam_size=self.beams,
            length_penalty=self.length_penalty,
            num_hypotheses=self.beams if compared else 1,
            return_scores=compared or self.keeps_scores,
            **values,
        )
        best = []
        for prompt, (hypotheses, scores) in zip(prompts, results):
            found = [(ids[len(prompt) - 1 :], len(ids)) for ids in hypotheses]
            totals = [score * size**self.length_penalty for score, (_, size) in zip(scores, found)] or [0.0]
            ranks = [total / len(ids) ** self.length_penalty for total, (ids, _) in zip(totals, found)]
            chosen = ranks.index(max(ranks)) if compared else 0
            best.append((found[chosen][0], totals[chosen]))
        return best


def check_search(settings: GenerationConfig, arguments: dict) -> None:
    """ValueError for generation settings that CTranslate2 does not have, and for arguments that are objects."""
    others = effective_settings(settings, {*READ, *HARMLESS, *RECORDED, *SUPPORTED, *WITHOUT_EFFECT})
    for name in [*others, *arguments]:
        value = others[name] if name in others else type(arguments[name]).__name__
        raise ValueError(
            f"{name}={value!r} is a setting of generation that engine ctranslate2 does not have; omit it, or "
            "translate without this engine"
        )


class CTranslate2Model(DocumentTranslation, CTranslate2Weights):
    """A document model that `docmt export --ctranslate2` wrote: what the strategies need of a model.

    >>> model = CTranslate2Model(Path("runs/int8"))
    >>> model.translate_documents([["Here is a lamp.", "It is old."]], tokenizer)
    [['Hier ist eine Lampe.', 'Sie ist alt.']]
    """

    translator_class = CTranslate2Translator

    def __init__(self, folder: Path, device: str = "cpu", dtype: str | None = None):
        if not (folder / FOLDER / WEIGHTS).is_file():
            raise ValueError(
                f"{folder} holds no weights of CTranslate2; write such a folder with docmt export {folder} NEW_FOLDER "
                "--ctranslate2 int8"
            )
        super().__init__(folder / FOLDER, device, dtype)
        self.config = model_folders.load_config(folder)
        self.tokenizer_fingerprint = check_fingerprints(folder, type(self.config))
        self.generation_config = GenerationConfig.from_pretrained(folder)
        self.names: list[str] = json.loads((folder / FOLDER / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self.ids = {name: index for index, name in enumerate(self.names)}

    def token_names(self, ids: Sequence[int]) -> list[str]:
        return [self.names[index] for index in ids]

    def token_ids(self, names: Sequence[str]) -> list[int]:
        return [self.ids[name] for name in names]
