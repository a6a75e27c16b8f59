"""Cards that saving and pushing a model write, made from its configuration alone."""

import inspect
import logging
import re

import pytest
import torch
from huggingface_hub import HfApi, ModelCard
from support.tiny_models import build, context_fields, word_tokenizer
from transformers.modelcard import TrainingSummary
from transformers.utils import PushToHubMixin
from transformers.utils.hub import create_and_tag_model_card

from hf_docmt.loading import registry
from hf_docmt.loading.model_card import EXAMPLES, LANGUAGE_CODE, ModelCardText, is_draft, version_ranges
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration
from hf_docmt.modeling.pipeline_docmt import DocumentTranslationPipeline

CONTEXT = {"past_context": 1}
MODELS = context_fields(1)
OWN = "---\nlicense: mit\n---\n\n# My card\n"


def card_on(hub, name="someone/model"):
    return hub.repositories[name].files()["README.md"].decode()


def code_blocks(card):
    return re.findall(r"```python\n(.*?)```", card, re.DOTALL)


@pytest.mark.parametrize(
    ("position", "words"), [("relative", "self-attention, the same beyond 7 tokens"), ("absolute", "absolute.")]
)
def test_card_of_windows_that_see_all(tmp_path, position, words):
    build("window", **CONTEXT, window=7, sees_all=True, position=position).save_pretrained(tmp_path)
    text = " ".join((tmp_path / "README.md").read_text().split())
    assert "sees the whole segment" in text and words in text and "on either side" not in text


@pytest.mark.parametrize("architecture", MODELS)
def test_saved_card_is_whole(architecture, tmp_path):
    """Title, what it is, how it is called, reach, limits, citation; a header that huggingface_hub reads."""
    model = build(architecture, **MODELS[architecture])
    model.save_pretrained(tmp_path)
    text = (tmp_path / "README.md").read_text()
    data = ModelCard(text).data.to_dict()
    assert data["language"] == ["en", "de"] and data["library_name"] == "transformers"
    assert f"docmt-{architecture}" in data["tags"] and data["widget"]
    headings = re.findall(r"^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", text), re.MULTILINE)
    assert headings == [f"docmt-{architecture}", "Use", "Context", "Limits", "Citation"]
    assert model.config.context_reach() in text and text.count("@") >= 1
    assert f"It was tested with {version_ranges()}." in " ".join(text.split())
    assert not re.search(r"None|More [Ii]nformation|\{\{|\{%", re.sub(r"(?ms)^```.*?^```$", "", text))
    for block in code_blocks(text):
        compile(block, architecture, "exec")


@pytest.mark.parametrize("architecture", MODELS)
def test_context_by_hand_equals_documents(architecture, caplog, capsys):
    """The last block of a card, as it stands, prints the translation that `translate_documents` gives, unwarned."""
    logging.Logger.warning_once.cache_clear()
    caplog.set_level(logging.WARNING)
    model, tokenizer = build(architecture, **MODELS[architecture]), word_tokenizer()
    model.generation_config.max_new_tokens = 9
    document = ["w7 w8 w9", "w10 w11"]
    block = code_blocks(str(ModelCardText(model.config)))[-1]
    exec(block, {"model": model, "tokenizer": tokenizer, "document": document})
    assert "no context" not in caplog.text
    last = re.sub(r"</?s>|<pad>|.*<sep>", "", capsys.readouterr().out.splitlines()[-1])
    options = {"repairs": "none"} if registry.get(architecture).reads_segments else {}
    assert last.split() == model.translate_documents([document], tokenizer, **options)[0][-1].split()


def test_codes_of_pretrained_families():
    model = build("concat", source_lang="eng_Latn", target_lang="zh_CN")
    card = ModelCardText(model.config)
    assert card.metadata()["language"] == ["eng", "zh"] and card.example() == EXAMPLES["eng"]
    assert "source language: eng_Latn, target language: zh_CN" in str(card)
    for code in ("x\n# y", "english", "[a](b)", ""):
        assert LANGUAGE_CODE.fullmatch(code) is None


def test_languages_of_a_model_with_codes():
    """What the configuration does not say stands in the calls."""
    fields = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"}
    codes = {"eng_Latn": 28, "deu_Latn": 29}
    model = build("concat", **fields, language_ids=codes, source_lang="eng_Latn", target_lang=None)
    text = str(ModelCardText(model.config))
    assert 'translate_documents([document], tokenizer, target_lang="deu_Latn")' in text
    assert "from 2 codes" in " ".join(text.split())
    assert text.count('target_lang="deu_Latn"') == 2 and "source_lang=" not in text


def test_model_with_codes_of_its_target_alone():
    """As multilingual Marian: the calls give no source language, which such a model refuses."""
    fields = {"source_format": "[target_lang] X </s>", "source_lang": None}
    model = build("concat", **fields, language_ids={"deu": 28, "fra": 29}, target_lang="fra")
    text = str(ModelCardText(model.config))
    assert "source_lang=" not in text and "target_lang=" not in text
    assert "Choose languages with `target_lang`, from 2 codes." in " ".join(text.split())


def test_base_model_is_named():
    model = build("concat", base_model="Helsinki-NLP/opus-mt-en-de")
    assert ModelCardText(model.config).metadata()["base_model"] == "Helsinki-NLP/opus-mt-en-de"
    model.config.name_or_path = "someone/first"  # of a folder by this name
    assert ModelCardText(model.config).metadata()["base_model"] == "Helsinki-NLP/opus-mt-en-de"
    model.config._commit_hash = "0" * 40  # of the Hub
    assert ModelCardText(model.config, "someone/second").metadata()["base_model"] == "someone/first"
    assert ModelCardText(model.config, "someone/first").metadata()["base_model"] == "Helsinki-NLP/opus-mt-en-de"
    assert "base_model" not in ModelCardText(build("concat").config).metadata()


def test_card_of_somebody_stays(tmp_path):
    model = build("concat")
    model.save_pretrained(tmp_path)
    model.config.target_lang = "fr"
    model.save_pretrained(tmp_path)
    assert "target language: fr" in (tmp_path / "README.md").read_text()  # nobody wrote the first one
    (tmp_path / "README.md").write_text(OWN)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == OWN
    for other in ("Übersetzer".encode("latin-1"), OWN.encode("utf-16")):
        (tmp_path / "README.md").write_bytes(other)
        model.save_pretrained(tmp_path)
        assert (tmp_path / "README.md").read_bytes() == other
    (tmp_path / "README.md").unlink()
    (tmp_path / "README.md").symlink_to(tmp_path / "nowhere" / "README.md")
    model.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").is_symlink()


def test_arguments_of_saving_stand_in_the_order_of_transformers(tmp_path):
    model = build("concat")
    weights = {name: torch.ones_like(tensor) for name, tensor in model.state_dict().items()}
    model.save_pretrained(tmp_path, True, weights)
    assert (type(model).from_pretrained(tmp_path).model.shared.weight == 1).all() and (tmp_path / "README.md").exists()


@pytest.mark.parametrize("way", ["push_to_hub", "save_pretrained", "pipeline"])
def test_pushed_card_is_the_real_one(hub, tmp_path, way):
    """No way uploads the template of transformers, and a card that somebody wrote stays."""
    model = build("caching", past_context=1)
    pipe = DocumentTranslationPipeline(model, word_tokenizer(), device="cpu")
    name = {"repo_id": "someone/model"}
    pushes = {
        "push_to_hub": lambda: model.push_to_hub(**name),
        "pipeline": lambda: pipe.push_to_hub(**name),
        "save_pretrained": lambda: model.save_pretrained(tmp_path / "folder", push_to_hub=True, **name),
    }
    pushes[way]()
    assert 'name = "someone/model"' in card_on(hub) and "# someone/model" in card_on(hub)
    assert "More Information Needed" not in card_on(hub)
    model.config.target_lang = "fr"
    pushes[way]()
    assert "target language: fr" in card_on(hub)
    hub.repositories["someone/model"].files()["README.md"] = OWN.encode()
    pushes["pipeline" if way == "pipeline" else "push_to_hub"]()
    assert "# My card" in card_on(hub)


def test_drafts_of_transformers_are_known(hub):
    """The template of its `push_to_hub`, and what its trainer writes; they are not what somebody wrote."""
    HfApi(endpoint=hub.endpoint).create_repo("someone/model")
    template = create_and_tag_model_card("someone/model")
    draft = TrainingSummary("name", hyperparameters={}, eval_lines=[]).to_model_card()
    assert is_draft(str(template)) and is_draft(draft) and not is_draft(OWN)


def test_signature_of_transformers():
    """The one method of transformers' own that saving steps into."""
    parameters = inspect.signature(PushToHubMixin._upload_modified_files).parameters
    assert list(parameters)[:4] == ["self", "working_dir", "repo_id", "files_timestamps"]
    own = inspect.signature(DocMTForConditionalGeneration._upload_modified_files).parameters
    assert list(own)[:3] == list(parameters)[:3]


def test_no_card_for_an_adapter_inside_a_model(tmp_path):
    """transformers saves such a model without its own weights."""
    model = build()
    model._hf_peft_config_loaded = True
    model.write_card(tmp_path)
    assert not any(tmp_path.iterdir())
