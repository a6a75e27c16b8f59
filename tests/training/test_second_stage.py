"""Second stages: a mechanism added to a trained model, frozen parameters, Marian, checkpoints that are refused."""

import json
import shutil

import pytest
import torch
from support import language_models
from support.errors import refused
from support.pretrained_models import context_inputs
from support.tiny_run import SIZES, facts, recipe_mapping, same_course, train_until
from transformers import BertConfig, BertModel, GenerationConfig, MarianConfig, MarianMTModel

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.pretrained import from_sentence_model
from hf_docmt.training.checkpoints import read_weights
from hf_docmt.training.initialization import build_model, model_config, recipe_origin
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train

torch.set_num_threads(1)


def test_two_stages(corpus, tmp_path, sentence_model):
    origin = sentence_model[0]
    recipe = second_stage(
        corpus, tmp_path / "run", origin, "training.new_learning_rate=0.1", "training.learning_rate=1e-9"
    )
    folder = train(recipe)
    model, _ = model_folders.load_model(folder)
    old = read_weights(origin)
    now = {name: tensor for name, tensor in read_weights(folder).items()}
    assert model.config.past_context == 2 and model.config.d_model == SIZES["d_model"]
    assert (folder / "tokenizer.json").read_text() == (origin / "tokenizer.json").read_text()
    assert {name for name in now if name not in old} == {"model.encoder.segment_encoding.embedding.weight"}
    for name, tensor in old.items():  # the old parameters hardly move with their own learning rate
        torch.testing.assert_close(now[name], tensor, atol=1e-6, rtol=0)
    for option in ("new_learning_rate=0.1", "freeze=true"):
        again = second_stage(corpus, tmp_path / "none", folder, f"training.{option}")
        refused(f"training.{option.split('=')[0]}: the checkpoint of init_from has all parameters", train, again)


def of_architecture(corpus, output, origin, architecture, *overrides, model=None, **training):
    """The recipe of a second stage that adds an architecture's mechanism and trains it alone by default."""
    mapping = recipe_mapping(corpus, output, **{"freeze": True, "learning_rate": 0.1} | training)
    mapping |= {"architecture": architecture, "init_from": str(origin), "tokenizer": None, "model": model or {}}
    return parse_recipe(mapping, overrides)


def second_stage(corpus, output, origin, *overrides):
    """The recipe of one that adds context and learned sentence positions, and trains all."""
    training = {"freeze": False, "learning_rate": 2e-3, "max_steps": 3}
    model = {"past_context": 2, "segment_encoding": "learned"}
    return of_architecture(corpus, output, origin, "concat", *overrides, model=model, **training)


@pytest.mark.parametrize("architecture", ["caching", "han", "routing", "memory"])
def test_neutral_start(corpus, sentence_model, tmp_path, architecture):
    """Before training, sentences with context get the logits of the sentence-level model; drawn weights change them."""
    recipe = of_architecture(corpus, tmp_path / "run", sentence_model[0], architecture)
    origin, tokenizer = recipe_origin(recipe)
    config = model_config(recipe, tokenizer, origin.config)
    ids = torch.randint(10, 60, (2, 7), generator=torch.Generator().manual_seed(1))
    expected = origin.eval()(input_ids=ids, labels=ids.flip(1)).logits
    for neutral in (True, False):
        torch.manual_seed(1)
        model = build_model(config, origin, neutral)[0].eval()
        logits = model(input_ids=ids, labels=ids.flip(1), **context_inputs(model, 2)).logits
        assert torch.allclose(logits, expected, atol=1e-4) == neutral


@pytest.mark.parametrize("architecture", ["concat", "lst", "gtransformer"])
def test_separators_that_are_new_start_neutral(corpus, sentence_model, tmp_path, architecture):
    """Also where no parameter is new."""
    folder = train(windows(corpus, tmp_path / "run", sentence_model[0], architecture))
    weights, config = read_weights(folder)["model.shared.weight"], model_folders.load_model(folder)[0].config
    ends = weights[config.eos_token_id], weights[config.decoder_start_token_id]
    torch.testing.assert_close(weights[config.sep_token_id], sum(ends) / 2, atol=1e-6, rtol=0)


def test_separators_that_are_not_new(corpus, sentence_model, tmp_path):
    """Those of a model that has read segments, or of one that will read none, are left, and nothing else is new."""
    segments = train(windows(corpus, tmp_path / "segments", sentence_model[0], neutral_start=False))
    for origin, context in ((sentence_model[0], 0), (segments, 2)):
        again = windows(corpus, tmp_path / "none", origin, past_context=context)
        refused("training.neutral_start: the checkpoint of init_from has all parameters", train, again)


def windows(corpus, output, origin, architecture="concat", past_context=1, **options):
    """The recipe of one that reads windows, and hardly learns."""
    settings = {"freeze": False, "neutral_start": True, "learning_rate": 1e-9} | options
    model = {"past_context": past_context} | ({"global_layers": 1} if architecture == "gtransformer" else {})
    return of_architecture(corpus, output, origin, architecture, model=model, **settings)


def test_a_memory_without_residual_does_not_start_neutral(corpus, sentence_model, tmp_path):
    memory = of_architecture(corpus, tmp_path / "run", sentence_model[0], "memory", "model.memory_residual=none")
    origin, tokenizer = recipe_origin(memory)
    config = model_config(memory, tokenizer, origin.config)
    refused("memory_residual='none' replaces .* use 'add'", build_model, config, origin, neutral=True)


def test_neutral_start_undoes_no_mechanism(corpus, sentence_model, tmp_path):
    doct = of_architecture(corpus, tmp_path / "doct", sentence_model[0], "doct")
    origin, tokenizer = recipe_origin(doct)
    config = model_config(doct, tokenizer, origin.config)
    trained, _ = build_model(config, origin)
    first = r"model\.decoder\.layers\.0\.context\.attn\.attn\.k_proj\.bias"
    refused(
        rf"not a sentence-level model but one with a mechanism \({first}\)", build_model, config, trained, neutral=True
    )


@pytest.mark.parametrize("architecture", ["doct", "han", "routing", "memory"])
def test_frozen_first_stage(corpus, tmp_path, sentence_model, architecture):
    """After averaging, and with weight decay, what is old is the same bit for bit, and what is new is not."""
    origin = sentence_model[0]
    options = {"max_steps": 4, "eval_steps": 1, "average": 3, "weight_decay": 0.1}
    options |= {"stream": {"documents": 4}} if architecture == "memory" else {}
    folder = train(of_architecture(corpus, tmp_path / "run", origin, architecture, **options))
    assert len(facts(folder)["averaged_steps"]) > 1 or facts(folder)["best_step"] == 4
    model, _ = model_folders.load_model(folder)
    old, now = read_weights(origin), read_weights(folder)
    assert all(torch.equal(now.pop(name), tensor) for name, tensor in old.items()) and now
    assert all(parameter.requires_grad for parameter in model.parameters()), "free again when it is loaded"
    reported = facts(folder)
    assert reported["trained_parameters"] == sum(tensor.numel() for tensor in now.values()) < reported["parameters"]
    torch.manual_seed(3)  # of the recipe
    start = registry.get(architecture).model_class(model.config).state_dict()
    assert not any(torch.equal(start[name], tensor) for name, tensor in now.items())


def test_frozen_first_stage_resumed(corpus, tmp_path, sentence_model):
    origin = sentence_model[0]
    straight = train(of_architecture(corpus, tmp_path / "straight", origin, "doct", max_steps=4, eval_steps=2))
    recipe = of_architecture(corpus, tmp_path / "broken", origin, "doct", max_steps=4, eval_steps=2)
    train_until(recipe, batches=3)
    assert same_course(straight, train(recipe, resume=True))
    free = of_architecture(corpus, tmp_path / "free", straight, "doct", max_steps=2, eval_steps=2, freeze=False)
    before, after = read_weights(straight), read_weights(train(free))
    assert not any(torch.equal(after[name], tensor) for name, tensor in before.items() if name.endswith("fc1.weight"))


def test_context_of_a_first_stage(corpus, tmp_path, sentence_model):
    """A sentence-level model's own lack of context is not that of a model that encodes context sentences separately."""
    model, tokenizer = model_folders.load_model(sentence_model[0])
    assert (model.config.past_context, model.config.context_sides) == (0, "both")
    for architecture, context in {"doct": (2, 0), "han": (3, 0), "routing": (1, 1), "multiencoder": (1, 0)}.items():
        recipe = of_architecture(corpus, tmp_path, sentence_model[0], architecture)
        config = model_config(recipe, tokenizer, model.config)
        assert (config.past_context, config.future_context) == context and config.d_model == model.config.d_model


def test_settings_that_follow_from_another(corpus, tmp_path, sentence_model):
    """With another shortening than the first stage had, what is left open takes the value of the new one."""
    _, tokenizer = model_folders.load_model(sentence_model[0])
    origin = registry.get("caching").config_class(**SIZES, shortening="grouping", shortening_size=4)
    recipe = of_architecture(corpus, tmp_path, sentence_model[0], "caching")
    assert model_config(recipe, tokenizer, origin).shortening_size == 4
    recipe.model = {"shortening": "none"}
    plain = model_config(recipe, tokenizer, origin)
    assert (plain.shortening_size, plain.include_current, plain.encoder_gradient) == (None, False, False)
    recipe.model = {"shortening": "selecting"}
    other = model_config(recipe, tokenizer, origin)
    assert (other.shortening_size, other.include_current, other.shortening_gradient) == (10, True, 1)


@pytest.fixture
def marian(corpus, tmp_path):
    """The folder of a sentence-level model of another package."""
    texts = (corpus / "train.jsonl").read_text().splitlines()
    tokenizer = train_tokenizer(texts, vocab_size=300)
    config = MarianConfig(
        **SIZES, vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=3, decoder_start_token_id=0, num_beams=2
    )
    torch.manual_seed(0)
    MarianMTModel(config).save_pretrained(tmp_path / "marian")
    tokenizer.save_pretrained(tmp_path / "marian")
    return tmp_path / "marian"


@pytest.mark.parametrize("beams", [1, 2])
def test_search_of_the_origin(corpus, tmp_path, marian, beams):
    """A run starts from Marian; what is for several beams alone does not stand beside one, where it is not saved."""
    settings = GenerationConfig.from_pretrained(marian)
    settings.update(num_beams=4, length_penalty=0.6, early_stopping=True)
    settings.save_pretrained(marian)
    decoding = ("decoding.num_beams=2", "decoding.length_penalty=0.8") if beams == 2 else ("decoding.num_beams=1",)
    folder = train(second_stage(corpus, tmp_path / "run", marian, "training.new_learning_rate=0.1", *decoding))
    config = model_folders.load_model(folder)[0].config
    assert config.decoder_start_token_id == 0 and config.segment_encoding == "learned" and facts(folder)["steps"] == 3
    search = GenerationConfig.from_pretrained(folder)
    values = (search.num_beams, search.length_penalty, search.early_stopping)
    assert values == ((2, 0.8, True) if beams == 2 else (1, None, None))


def test_longest_translation(corpus, tmp_path, marian):
    """It is that of the recipe, in all strategies, unless a call says another."""
    options = ("training.new_learning_rate=0.1", "decoding.num_beams=1", "decoding.max_new_tokens=2")
    model, tokenizer = model_folders.load_model(train(second_stage(corpus, tmp_path / "run", marian, *options)))
    model.generation_config.suppress_tokens = [3]  # no translation ends by itself
    for settings, longest in (({}, 2), ({"max_new_tokens": 5}, 5)):
        (translated,) = model.translate_documents([["w7 w8 w9"] * 2], tokenizer, "sentence", **settings)
        lengths = {len(tokenizer(text, add_special_tokens=False).input_ids) for text in translated}
        assert lengths <= {longest - 1, longest}


def test_search_that_cannot_be_saved(corpus, tmp_path, marian):
    """It is refused before the first update, not when the first checkpoint is saved."""
    file = marian / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"num_return_sequences": 4, "num_beams": 4}))
    with pytest.raises(ValueError, match="^decoding: .*num_return_sequences"):
        train(second_stage(corpus, tmp_path / "run", marian, "decoding.num_beams=1"))


def test_mechanism_added_to_marian(corpus, tmp_path, marian):
    """It starts neutral, drawn from the recipe's seed, also where that is not asked for; is new, and trained alone."""
    folder, asked = (
        train(of_architecture(corpus, tmp_path / name, marian, "doct", max_steps=2, eval_steps=2, **options))
        for name, options in (("run", {}), ("asked", {"neutral_start": True}))
    )
    old, now = read_weights(marian), read_weights(folder)
    assert all(torch.equal(read_weights(asked)[name], tensor) for name, tensor in now.items())
    assert all(torch.equal(weight, now[name]) for name, weight in old.items() if name in now)
    gates = [weight for name, weight in now.items() if name.endswith("state_gate.weight")]
    assert all(gate.any() for gate in gates), "zeros have learned"
    assert facts(folder)["trained_parameters"] == sum(now[name].numel() for name in now.keys() - old.keys())
    other = second_stage(corpus, tmp_path / "other", marian, "model.d_model=8")
    refused("init_from: d_model: got 8, but the pretrained weights need 16; omit it$", train, other)


def test_unusable_checkpoints(corpus, tmp_path, sentence_model):
    def start(folder, *overrides):
        train(second_stage(corpus, tmp_path / "run", folder, *overrides))

    refused("init_from: .*nowhere has no config.json; give the folder of a trained model", start, tmp_path / "nowhere")
    bert = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=30)
    BertModel(bert).save_pretrained(tmp_path / "bert")
    refused("init_from: .*'bert'.*marian", start, tmp_path / "bert")
    sizes = r"weights of other sizes \(.* and \d+ more\).*d_model 16 there, 8 here.*: remove the sizes"
    refused(sizes, start, sentence_model[0], "model.d_model=8")
    refused(r"^model: dropout must be in \[0, 1\), got 1.5", start, sentence_model[0], "model.dropout=1.5")

    broken = shutil.copytree(sentence_model[0], tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refused("init_from: .*broken", start, broken)
    (broken / "config.json").write_text("{")
    refused("init_from: .*not a valid JSON file", start, broken)

    learned = train(second_stage(corpus, tmp_path / "learned", sentence_model[0]))
    encodings = "weights that this model has not .*segment_encoding 'learned' there, 'sinusoidal' here"
    refused(encodings, start, learned, "model.segment_encoding=sinusoidal")
    assert not (tmp_path / "run").exists(), "nothing is left of a run that could not start"


@pytest.mark.parametrize(("family", "target_lang"), [("nllb", "fra_Latn"), ("mbart", "fr_XX")])
def test_other_language_in_a_second_stage(corpus, tmp_path, family, target_lang):
    """Plain `generate` and the tokenizer write the recipe's languages, not those of the first stage."""
    sentence = language_models.sentence_model(family, tmp_path)
    languages = {"source_lang": sentence.source_lang, "target_lang": sentence.target_lang}
    model, tokenizer = from_sentence_model(sentence.model, tokenizer=sentence.tokenizer, **languages)
    model.save_pretrained(tmp_path / "first")
    tokenizer.save_pretrained(tmp_path / "first")
    recipe = of_architecture(corpus, tmp_path / "run", tmp_path / "first", "memory")
    recipe.data.source_lang, recipe.data.target_lang = sentence.source_lang, target_lang
    origin, tokenizer = recipe_origin(recipe)
    assert (tokenizer.src_lang, tokenizer.tgt_lang) == (sentence.source_lang, target_lang)
    model, _ = build_model(model_config(recipe, tokenizer, origin.config), origin)
    code = tokenizer.convert_tokens_to_ids(target_lang)
    own = "decoder_start_token_id" if family == "mbart" else "forced_bos_token_id"
    assert getattr(model.generation_config, own) == code != getattr(origin.generation_config, own)
    recipe.data.target_lang = "french"
    refused("target_lang='french' is not one of the", recipe_origin, recipe)
