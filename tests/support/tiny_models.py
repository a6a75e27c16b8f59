"""Models, a tokenizer and documents small enough for tests, built in code."""

import copy
import io
import pickle
import random

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from hf_docmt.data.documents import make_documents
from hf_docmt.loading import registry
from hf_docmt.modeling.configuration_docmt import DocMTConfig
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>", "<sep>", "<bod>")
PAD, UNK, BOS, EOS, SEP, BOD = range(6)
WORDS = tuple(f"w{number}" for number in range(6, 30))  # word w7 has id 7
SENTENCES = {  # one row of three sentences in the source, two and a half in the target
    "input_ids": torch.tensor([[7, SEP, 8, 9, SEP, 10, 11, EOS]]),
    "decoder_input_ids": torch.tensor([[2, 9, 11, SEP, 12, 14, SEP, 13]]),
}
SIZES = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 64,
    "dropout": 0.0,
    "init_std": 0.3,
    "source_lang": "en",
    "target_lang": "de",
}


def context_fields(past_context: int = 2, **special: dict) -> dict[str, dict]:
    """Fields of every registered architecture with which it reads context; `special` has more of single ones."""
    fields = {}
    for name, entry in registry.ARCHITECTURES.items():
        fields[name] = ({} if entry.carries_state else {"past_context": past_context}) | special.get(name, {})
    return fields


def word_tokenizer() -> PreTrainedTokenizerFast:
    """One token for every word of `WORDS`, no subwords."""
    backend = Tokenizer(models.WordLevel({token: id for id, token in enumerate(SPECIAL + WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", EOS)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        sep_token="<sep>",
        extra_special_tokens=["<bod>"],
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )


def build(architecture: str = "concat", seed: int = 0, **fields):
    """A model with random weights, in evaluation mode, and the random state after it, whether it was built before."""
    key = f"{architecture} {seed} {torch.get_default_device()} {fields}"
    torch.manual_seed(seed)
    if key not in _BUILT:
        arch = registry.get(architecture)
        _BUILT[key] = Copies(perturb(arch.model_class(arch.config_class(**SIZES | fields)))), torch.get_rng_state()
    copies, state = _BUILT[key]
    torch.set_rng_state(state)
    return copies.make()


class Copies:
    """Copies of a model, as by `copy.deepcopy`, in a fifth of its time: all but the tensors is pickled once."""

    def __init__(self, model: torch.nn.Module):
        self.tensors: list[torch.Tensor] = []
        written = io.BytesIO()
        pickler = pickle.Pickler(written)
        pickler.persistent_id = self._number
        pickler.dump(model)
        self.pickled = written.getvalue()

    def _number(self, value) -> int | None:
        if not isinstance(value, torch.Tensor):
            return None
        self.tensors.append(value)
        return len(self.tensors) - 1

    def make(self) -> torch.nn.Module:
        unpickler = pickle.Unpickler(io.BytesIO(self.pickled))
        unpickler.persistent_load = copy.deepcopy(self.tensors).__getitem__
        return unpickler.load()


_BUILT: dict[str, tuple[Copies, torch.Tensor]] = {}


@torch.no_grad()
def perturb(model):
    """Random values where the initial ones are zeros or ones, and ends often enough to be generated."""
    for name, parameter in model.named_parameters():
        if "norm" in name or name.endswith("bias"):
            parameter.add_(torch.randn_like(parameter) * 0.1)
        if name.endswith(("shared.weight", "embed_tokens.weight")):
            parameter.mul_(1.5 / parameter.norm(dim=1, keepdim=True).clamp(min=0.1))  # no word wins by its length
    model.final_logits_bias.normal_(std=0.2)
    model.final_logits_bias[0, [PAD, UNK, BOS, BOD]] -= 5
    model.final_logits_bias[0, EOS] += 1
    return model.eval()


def plain_model(model, **changed) -> DocMTForConditionalGeneration:
    """The plain backbone with the weights that both have, and with some other fields."""
    known = DocMTConfig()
    values = {name: value for name, value in model.config.to_dict().items() if hasattr(known, name)}
    plain = DocMTForConditionalGeneration(DocMTConfig(**values | changed)).eval()
    shapes = {name: value.shape for name, value in plain.state_dict().items()}
    weights = {name: value for name, value in model.state_dict().items() if shapes.get(name) == value.shape}
    plain.load_state_dict(weights, strict=not changed)
    return plain


def random_text(lengths: list[int], seed: int = 0) -> list[str]:
    """Sentences of so many words each."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=length)) for length in lengths]


def long_batch(source_words: int, target_words: int) -> dict:
    """Two rows, longer than a block of attention, of sentences of about so many words; the second one has padding."""
    draw = torch.Generator().manual_seed(0)
    source, target = (torch.randint(6, 30, (2, length), generator=draw) for length in (170, 150))
    source[:, 9::source_words], target[:, 11::target_words] = SEP, SEP
    source[:, -1] = target[:, -1] = EOS
    masks = [torch.ones_like(ids) for ids in (source, target)]
    masks[0][1, 120:], masks[1][1, 101:] = 0, 0
    labels = target.masked_fill(masks[1] == 0, -100)
    return {"input_ids": source, "attention_mask": masks[0], "decoder_attention_mask": masks[1], "labels": labels}


def documents_of(*documents: tuple[list[str], list[str]]):
    """Pairs of source and target sentences as the documents of a corpus."""
    key = str(documents)
    if key not in _CORPORA:
        rows = [
            {"doc_id": f"d{number}", "translation": [{"en": en, "de": de} for en, de in zip(source, target)]}
            for number, (source, target) in enumerate(documents)
        ]
        _CORPORA[key] = make_documents(rows, "en", "de")
    return _CORPORA[key]


_CORPORA: dict[str, Dataset] = {}


def source_rows(*documents: list[str]) -> list[dict]:
    """Documents of source sentences as rows of a corpus."""
    return [
        {"doc_id": f"d{number}", "translation": [{"en": sentence} for sentence in document]}
        for number, document in enumerate(documents)
    ]


def write_model(folder, max_new_tokens: int = 4):
    """A folder with a model of windows and its tokenizer."""
    model = build(past_context=1)
    model.generation_config.max_new_tokens = max_new_tokens
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return folder
