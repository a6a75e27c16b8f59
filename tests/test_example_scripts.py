"""Every example runs, every recipe describes a model, and so does every override that a recipe names."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support import recipe_files
from support.processes import run_python
from support.tiny_models import build, word_tokenizer, write_model
from support.tiny_run import write_corpus_files

from hf_docmt.data.documents import write_documents
from hf_docmt.data.readers import get_reader, read_documents
from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.adapters import merge_adapter
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.recipe_sections import TokenizerRecipe

ROOT = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(ROOT.glob("train_*.py"))  # test_gpu_report.py tests the other one
PAST = {
    "concat2": 1,
    "concat4": 3,
    "gtransformer4": 3,
    "han": 3,
    "windows": 3,
    "elided": 3,
}  # context sentences by the end of a name
MAKA = ("sentence", "single", "multi", "tokens", "sentencecache", "max", "avg", "linear", "grouping", "selecting")
PAST |= {system: 1 for system in MAKA if system != "sentence"}
HEROLD = ("sentence", "concat2", "concat1000", "lst", "window")
FENG = ("ted", "news", "europarl")
FEI = {  # what a recipe says of context beside the sentence-level one of the same data
    "sentence": {"past_context": 0},
    "routing_online": {"past_context": 1, "future_context": 0},
    "routing_offline": {"past_context": 1, "future_context": 1},
    "doct": {"past_context": 2, "context_layers": 1, "selection": "none"},
    "doct_selection": {"past_context": 2, "context_layers": 1, "selection": "routing"},
}
FEI_DATA = ("zhen_ted", "ende_ted", "ende_news", "ende_europarl")
PAST |= {system.split("_")[-1]: fields["past_context"] for system, fields in FEI.items()}
SYSTEMS = ("base", "s4to4", "s4to4_cd", "s4to4_cd_shift_pers", "s4to4_cd_lrn_pers", "s4to4_cd_sin_pers_pse")


@pytest.fixture(scope="module")
def elided_verbs():
    return runpy.run_path(str(ROOT / "corpora" / "elided_verbs.py"))


def config_of(recipe):
    return registry.get(recipe.architecture).config_class(**recipe.model)


def test_all_recipes_are_there():
    names = {f"lupo2023_{pair}_{system}" for pair in ("enru", "ende") for system in SYSTEMS}
    names |= {f"lupo2023_ende_high_{system}" for system in SYSTEMS[:3]}
    names |= {f"lupo2023_enru_s4to4_{system}" for system in ("pers", "cd_pers", "cd_lrn_pse128")}
    names |= {f"herold2023_{task}_{system}" for task in ("news", "ted", "os") for system in HEROLD}
    names |= {f"feng2022_{task}_{system}" for task in FENG for system in ("sentence", "memory")}
    names |= {f"maka2024_iwslt17_{pair}_{system}" for pair in ("ende", "enfr") for system in MAKA}
    names |= {f"fei2022_{data}_{system}" for data in FEI_DATA for system in FEI}
    names |= {"bao2021_ted_gtransformer", "miculicich2018_zhen_ted_han", "miculicich2018_zhen_ted_sentence"}
    names |= {f"{data}_{system}" for data in ("demo", "ende_docs") for system in ("sentence", "concat4")}
    names |= {"ende_docs_gtransformer4", "ende_docs_elided", "enpt_docs_windows"}
    assert recipe_files.SYSTEMS.keys() == names
    assert len(recipe_files.ALL) + len(recipe_files.BASES) <= 40


@pytest.mark.parametrize("name", recipe_files.SYSTEMS)
def test_recipe(name):
    recipe = recipe_files.load(name)
    config = config_of(recipe)
    assert config.past_context == (3 if "_s4to4" in name else PAST.get(name.split("_")[-1], 0))
    for part in filter(None, (recipe.data.train, recipe.data.validation, recipe.data.test)):
        assert {"format", *get_reader(part["format"]).arguments()} >= part.keys()
    assert recipe.output_dir.split("/")[1] in (name, name.removeprefix("demo_"))
    initial = {"lupo2023": "fairseq_0.9", "bao2021": "fairseq_0.9"}
    initial |= dict.fromkeys(["herold2023", "maka2024", "fei2022", "miculicich2018"], "fairseq")
    assert config.init == initial.get(name.split("_")[0], "normal")
    assert recipe.training.stop_on == ("undiscounted" if re.match("lupo2023_ende.*_cd", name) else "discounted")
    if name.startswith("lupo2023"):
        assert (config.d_model, config.encoder_layers, config.dropout) == (512, 6, 0.3)
        assert recipe.training.context_discount == (0.01 if "_cd" in name else 1.0)
        assert recipe.training.learning_rate == (9e-4 if "_cd" in name else 1e-3)
        assert recipe.training.budget == "fairseq"
        assert recipe.training.max_tokens * recipe.training.accumulation == (32000 if "enru" in name else 16000)


@pytest.mark.parametrize(
    ("stem", "rows"), [("lupo2023_enru_s4to4", 14), ("lupo2023_enru_s4to4_cd", 11), ("lupo2023_ende_s4to4_cd", 8)]
)
def test_rows_of_the_paper_by_overrides(stem, rows):
    """The rows of Tables 1 to 3 beside base, s4to4 and s4to4+CD, as the header of the recipe names them."""
    path = ROOT / "recipes" / f"{stem}.yaml"
    found = re.findall(r"^#   (?!docmt)(\S.*?) +(model\..+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    encodings = {"shift": "shift", "1hot": "onehot", "sin": "sinusoidal", "lrn": "learned"}
    configs = set()
    for label, overrides in found:
        config = config_of(load_recipe(path, overrides.split()))
        encoding, *more = label.split()
        assert config.segment_encoding == encodings[encoding]
        assert config.persistent == ("pers" in more) and config.pse_dim == (4 if "PSE" in more else 0)
        assert config.segment_shift == ((8 if "enru" in stem else 21) if encoding == "shift" else None)
        configs.add(config.to_json_string())
    assert len(configs) == rows


def test_concatenation_with_relative_positions():
    """A row of Herold and Ney (2023), table 4, as the header of the recipe names it."""
    path = ROOT / "recipes" / "herold2023_news_concat1000.yaml"
    overrides = re.search(r"^#   (architecture=.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    recipe = load_recipe(path, overrides)
    config = config_of(recipe)
    assert (recipe.architecture, config.position, config.window, config.sees_all) == ("window", "relative", 20, True)
    assert config.view == "chunk" and config.context_reach() == "chunks of up to 1000 target tokens, source and target"


@pytest.mark.parametrize("stem", SYSTEMS[3:])
@pytest.mark.parametrize("pair", ["enru", "ende"])
def test_recipes_that_are_such_rows(pair, stem):
    """The command of a system and the override in the header of s4to4_cd are the same system."""
    folder = ROOT / "recipes"
    label = {"shift_pers": "shift pers", "lrn_pers": "lrn pers", "sin_pers_pse": "sin pers PSE"}[stem[9:]]
    base = folder / f"lupo2023_{pair}_s4to4_cd.yaml"
    overrides = re.search(rf"^#   {label} +(model\..+)$", base.read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    recipe = recipe_files.load(f"lupo2023_{pair}_{stem}")
    assert load_recipe(base, [*overrides, f"output_dir={recipe.output_dir}"]) == recipe


@pytest.mark.parametrize("name", [name for name in recipe_files.SYSTEMS if name.startswith("herold2023")])
def test_recipes_of_herold_and_ney(name):
    """Appendix A.2, and section 4.2 for the strategies."""
    recipe, (_, task, system) = recipe_files.load(name), name.split("_")
    config, training = config_of(recipe), recipe.training
    assert recipe.architecture == (system if system in ("lst", "window") else "concat")
    assert (config.dropout, training.label_smoothing) == ((0.1, 0.1) if task == "os" else (0.3, 0.2))
    assert recipe.tokenizer.vocab_size == (32000 if task == "os" else 15000)
    assert (recipe.decoding.num_beams, recipe.decoding.length_penalty, training.average) == (12, 1.0, 0)
    strategies = {"sentence": "sentence", "window": "sequential"}
    assert recipe.decoding.strategy == strategies.get(system, "full")
    assert config.view == ("window" if system in ("sentence", "concat2") else "chunk") and config.chunk_tokens == 1000
    assert config.use_bod == (system != "sentence")


@pytest.mark.parametrize("task", FENG)
def test_recipes_of_feng(task):
    """Section 4.2: two stages, the second one with two learning rates."""
    first, second = (recipe_files.load(f"feng2022_{task}_{system}") for system in ("sentence", "memory"))
    assert second.init_from == first.output_dir and second.data == first.data
    assert (first.training.learning_rate, first.training.warmup_steps) == (5e-4, 4000)
    assert first.tokenizer.vocab_size == 30000
    assert (second.training.new_learning_rate, second.training.learning_rate) == (3e-4, 6e-5)
    assert second.training.warmup_steps == (1000 if task == "ted" else 2000)
    dropouts = tuple(config_of(recipe).dropout for recipe in (first, second))
    assert dropouts == ((0.1, 0.1) if task == "europarl" else (0.3, 0.2))
    config = config_of(second)
    assert (config.memory_size, config.layers_with_memory("encoder"), config.memory_sides) == (16, [5], "both")
    assert second.training.stream.memory_gradient == 2 and first.training.patience == second.training.patience == 5
    assert (first.decoding.num_beams, second.decoding.num_beams, second.decoding.strategy) == (5, 5, "stream")
    for override in ("model.memory_layers=[0,1]", "model.memory_sides=source", "training.stream.window=1"):
        config_of(recipe_files.load(f"feng2022_{task}_memory", override))


@pytest.mark.parametrize("system", MAKA)
@pytest.mark.parametrize("pair", ["ende", "enfr"])
def test_recipes_of_maka(pair, system):
    """Table 4, section 5.2, and other sizes of the context by the overrides that a recipe names."""
    name = f"maka2024_iwslt17_{pair}_{system}"
    recipe = recipe_files.load(name)
    config, training = config_of(recipe), recipe.training
    others = {"sentence": "concat", "single": "concat", "multi": "multiencoder"}
    assert recipe.architecture == others.get(system, "caching")
    assert (config.d_model, config.encoder_layers, config.encoder_ffn_dim, config.dropout) == (512, 6, 2048, 0.3)
    assert (training.learning_rate, training.warmup_steps) == (5e-4, 2500)
    assert (training.weight_decay, training.clip) == (1e-4, 0.1)
    assert (training.accumulation, training.patience, training.average, recipe.seed) == (8, 5, 0, 42)
    assert recipe.decoding.num_beams == 5 and len(recipe.data.validation["source"]) == 4
    if system != "sentence":
        assert config.context_sides == "source" and recipe.decoding.strategy == "sliding"
    overrides = re.findall(r"%  (model\.past_context=.+)$", recipe_files.header(name), re.MULTILINE)
    sizes = {recipe_files.load(name, *line.split()).model["past_context"] for line in overrides}
    assert sizes == (set() if system == "sentence" else {2, 3, 10} if pair == "ende" else {2, 3})


def changes(recipe, other):
    """Keys in which two recipes differ, those of training and decoding in full."""
    one, two = (made.to_dict() for made in (recipe, other))
    for made in (one, two):
        made |= made.pop("training") | made.pop("decoding")
    return {key for key in one if one[key] != two[key]}


@pytest.mark.parametrize("system", FEI)
@pytest.mark.parametrize("data", FEI_DATA)
def test_recipes_of_fei(data, system):
    """Section 5.2; the rows of Table 3 differ in what they read, in steps, and in tokens for as many sentences."""
    first, recipe = (recipe_files.load(f"fei2022_{data}_{name}") for name in ("sentence", system))
    sizes = {name: value for name, value in recipe.model.items() if name not in FEI[system]}
    assert sizes == {name: value for name, value in first.model.items() if name != "past_context"}
    assert recipe.model == sizes | FEI[system]
    config, training = config_of(recipe), recipe.training
    small = data == "zhen_ted"
    assert (config.d_model, config.encoder_ffn_dim, config.decoder_ffn_dim) == (
        (256, 512, 512) if small else (512, 2048, 2048)
    )
    assert (config.encoder_layers, config.decoder_layers) == ((4, 4) if small else (6, 6))
    assert (config.encoder_attention_heads, config.decoder_attention_heads, config.dropout) == (8, 8, 0.1)
    assert (training.warmup_steps, training.adam_betas) == (8000, (0.9, 0.98))
    assert (training.budget, training.max_tokens * training.accumulation) == ("fairseq_current", 25000)
    if system != "sentence":
        two_steps = {"init_from", "tokenizer", "freeze"} if "doct" in system else set()
        assert changes(recipe, first) == {"output_dir", "architecture", "model", "strategy"} | two_steps
        assert recipe.decoding.strategy == "sliding"


@pytest.mark.parametrize("data", FEI_DATA)
def test_steps_of_document_transformers(data):
    """A first stage fits into the second and leaves something to learn; in one step it is as routing is trained."""
    first = recipe_files.load(f"fei2022_{data}_sentence")
    for system in ("doct", "doct_selection"):
        recipe = recipe_files.load(f"fei2022_{data}_{system}")
        assert recipe.init_from == first.output_dir and recipe.training.freeze
        with torch.device("meta"):
            models = [registry.get(one.architecture).model_class(config_of(one)) for one in (first, recipe)]
        before, after = ({name: value.shape for name, value in model.state_dict().items()} for model in models)
        assert before.items() < after.items()
        alone = recipe_files.load(f"fei2022_{data}_{system}", "init_from=null", "training.freeze=false")
        assert alone.tokenizer is None and TokenizerRecipe() == first.tokenizer
        other = recipe_files.load(f"fei2022_{data}_routing_offline")
        assert changes(alone, other) == {"output_dir", "architecture", "model", "tokenizer"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 80 and f"python examples/{path.name}" in text.split('"""')[1]
    done = run_python(path, "--output", tmp_path / "model", "--steps", 3, "--documents", 12)
    assert done.returncode == 0, done.stderr
    translated = [line for line in done.stdout.splitlines() if "\t" in line]
    assert len(translated) >= 6, "the sentences of one document of the corpus"
    model, tokenizer = model_folders.load_model(tmp_path / "model")
    assert model.config.past_context == 3 and model.config.use_cache
    assert len(model.translate_documents([["Hello."]], tokenizer, num_beams=1, max_new_tokens=3)[0]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dynamo", "onnx", "openvino"])
def test_exported_graph(form, tmp_path):
    """transformers' exporters take a model with context as inputs of its own; the script runs the written graph."""
    if form != "dynamo":
        pytest.importorskip({"onnx": "onnxscript"}.get(form, form))
    build("caching", past_context=2, shortening="grouping").save_pretrained(tmp_path / "model")
    word_tokenizer().save_pretrained(tmp_path / "model")
    documents = write_corpus_files(tmp_path) / "train.jsonl"
    done = run_python(ROOT / "export_graph.py", tmp_path / "model", documents, tmp_path / "graph", "--format", form)
    assert done.returncode == 0, done.stderr
    assert re.search(r"graph: largest difference of logits from the model \d\.\de[-+]\d\d\n$", done.stdout)
    assert (tmp_path / "graph" / "export.json").is_file()


def test_agreement_pairs(tmp_path, monkeypatch, capsys):
    """Genders of Portuguese sentences, the two halves of the nouns, counts of translations, and the whole script."""
    script = runpy.run_path(str(ROOT / "agreement_pairs.py"))
    of_noun, of_predicate = script["gender_of_noun"], script["gender_of_predicate"]
    nouns = ["Encontramos a porta.", "Falaram do relógio!", "Eu gosto dessa caixa.", "Vi uma", "Compramos leite."]
    assert [of_noun(sentence) for sentence in nouns] == ["feminine", "masculine", "feminine", None, None]
    assert list(map(of_predicate, ["Ela é nova.", "Estava sujo!", "É grande.", ""])) == [
        "feminine",
        "masculine",
        None,
        None,
    ]
    halves = [{first for first, _ in script["pairs"](part)} for part in script["PARTS"]]
    assert halves[0].isdisjoint(halves[1]) and len(halves[0]) == len(halves[1])
    counted = script["count"](
        [["Vi a mesa.", "-"], ["Vi o carro.", "-"], ["Vi leite.", "-"]], ["É nova.", "É nova.", "-"]
    )
    assert counted == {"masculine": [0, 1], "feminine": [1, 1]}
    model = str(write_model(tmp_path / "model"))
    monkeypatch.setattr("sys.argv", ["agreement_pairs.py", model, "--part", "dev"])
    script["main"]()
    printed = json.loads(capsys.readouterr().out)
    assert printed[model].keys() == {"alone", "behind the first"}


def test_weights_of_the_document_level_model(tmp_path):
    """They fit a model of the size that they adapt, and change what it computes."""
    pytest.importorskip("peft")
    folder = ROOT / "enpt_adapter"
    config = registry.get("concat").config_class.from_pretrained(folder)
    torch.manual_seed(0)
    model = registry.get("concat").model_class(config).eval()
    ids = torch.tensor([[5, config.sep_token_id, 7, config.eos_token_id]])
    with torch.no_grad():
        before = model(input_ids=ids, decoder_input_ids=ids).logits
        merged = merge_adapter(model, "runs/real/sentence", folder)
        after = merged(input_ids=ids, decoder_input_ids=ids).logits
    assert torch.isfinite(after).all() and not torch.allclose(before, after, atol=0.01)
    assert (config.past_context, merged.generation_config.num_beams) == (3, 4)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


@pytest.mark.slow
@pytest.mark.network
def test_real_document_level_model(tmp_path):
    """`make real` with the packages of this process; "it" gets the gender of nouns that training did not have."""
    command = [
        "make",
        "real",
        "--directory",
        ROOT.parent,
        "--old-file",
        ".venv/demo",
        f"BIN={Path(sys.executable).parent}",
    ]
    subprocess.run(command, check=True, timeout=600)
    script = runpy.run_path(str(ROOT / "agreement_pairs.py"))
    counts = script["agreement"](str(ROOT.parent / "runs" / "real" / "en-pt"), "test")["behind the first"].values()
    assert sum(right for right, _ in counts) > 0.9 * sum(pairs for _, pairs in counts)


@pytest.fixture(scope="module")
def agreement():
    return runpy.run_path(str(ROOT / "agreement_corpus.py"))


@pytest.mark.parametrize(
    ("alone", "named", "expected"),
    [
        ("Foi roubado ontem.", "A maçã foi roubada ontem.", ("Foi roubada ontem.", "a", "maçã")),
        ("Ela está cheia.", "O balde está cheio.", ("Ele está cheio.", "o", "balde")),
        (
            "Eu acho que eles são novos.",
            "Eu acho que as meias são novas.",
            ("Eu acho que elas são novas.", "as", "meias"),
        ),
        ("É velho.", "A maçã está velha.", None),
        ("É velho.", "Maçãs são velhas.", None),
    ],
)
def test_agreement_by_a_noun(agreement, alone, named, expected):
    assert agreement["without_noun"](alone, named) == expected


@pytest.mark.parametrize(
    ("translation", "feminine"),
    [
        ("Nós os compramos.", "Nós as compramos."),
        ("Não consigo encontrá-lo.", "Não consigo encontrá-la."),
        ("Há uma aranha nele.", "Há uma aranha nela."),
        ("O que você acha disso?", None),
    ],
)
def test_pronouns_of_objects(agreement, translation, feminine):
    assert agreement["object_pronoun"](translation, "a") == feminine
    assert feminine is None or agreement["object_pronoun"](feminine, "o") == translation


def test_agreement_corpus(agreement, tmp_path, monkeypatch):
    """By a teacher that knows two genders: pronouns follow the noun, and nothing of the test pairs is trained on."""

    class Teacher:
        def translate(self, documents):
            return [[self.sentence(document[0])] for document in documents]

        def sentence(self, english):
            """Apple and battery are feminine nouns; the rest of a sentence is always the same."""
            noun = re.search(r"\bthe (apple|battery|pencil|museum|candle|kite)(?:e?s|ies)?\b", english, re.IGNORECASE)
            feminine = noun is not None and noun[1] in ("apple", "battery")
            many = re.search(r"\b(they|them|were|are)\b", english) is not None
            rest = f"estava visto{'s' * many}.".replace("visto", "vista" if feminine else "visto")
            return f"{'oa'[feminine]}{'s' * many} {noun[1]} {rest}".capitalize() if noun else rest.capitalize()

    monkeypatch.setattr("hf_docmt.load_system", lambda *_, **__: Teacher())
    monkeypatch.setattr("sys.argv", ["agreement_corpus.py", "-", str(tmp_path), "--copies", "3"])
    agreement["main"]()
    documents = [json.loads(line)["translation"] for line in (tmp_path / "train.jsonl").read_text("utf-8").splitlines()]
    forms = {"apple": set(), "pencil": set()}
    for document in documents:
        sentences = [pair["pt"] for pair in document]
        for noun in forms:
            if any(f" {noun} " in each for each in sentences):
                forms[noun] |= {each for each in sentences if re.match("Estavam? vist", each)}
    assert "Estava vista." in forms["apple"] and "Estava visto." in forms["pencil"]
    assert "Estava vista." not in forms["pencil"]
    pairs = runpy.run_path(str(ROOT / "agreement_pairs.py"))
    assert not set(agreement["NOUNS"]) & set(pairs["NOUNS"])
    lines = agreement["lines"]
    assert not {frame.format("{}") for frame in pairs["FRAMES"]} & set(lines(agreement["FIRST"]))
    assert not set(pairs["PREDICATES"]) & {frame.format("It") for frame in lines(agreement["PREDICATES"])}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I know him.", ("I do.", "know", " him")),
        ("Yes, she loved it, Phoebe!", ("Yes, she did, Phoebe!", "love", " it")),
        ("I don't understand.", ("I don't.", "understand", "")),
        ("Oh, they'll come.", ("Oh, they will.", "come", "")),
        ("- Did you really believe that?", ("- Did you?", "believe", " that")),
        ("She cries.", ("She does.", "cry", "")),
        ("Can't you hear it?", ("Can't you?", "hear", " it")),
        ("They've seen him.", ("They have.", "see", " him")),
        ("I hurt him.", None),  # now, or then?
        ("The house is old.", None),
        ("I think you should go home before it is too late.", None),
    ],
)
def test_sentences_without_verb_phrase(elided_verbs, sentence, expected):
    assert elided_verbs["without_verb_phrase"](sentence) == expected
    first = elided_verbs["without_verb_phrase"](sentence, elided_verbs["FIRST_RULES"])
    assert first == (None if sentence[:4] in ("She ", "Can'", "They") else expected)


@pytest.mark.parametrize(
    ("said", "answer", "by_first_rules", "kept"),
    [
        ("Do you want tea?|Willst du Tee?", "I want tea.|Ich will Tee.", True, True),
        ("Do you want to go?|Willst du gehen?", "I want a mocha.|Ich will einen Mokka.", True, False),
        ("Do you want tea?|Willst du Tee?", "I never want that.|Ich will das nie.", True, False),
        ("Do you want tea?|Willst du Tee?", "I should want that.|Das sollte ich wollen.", False, True),
    ],
)
def test_what_an_elided_sentence_may_lose(elided_verbs, said, answer, by_first_rules, kept):
    """Only words that the sentences before have, in both languages, and no negation."""
    others = [[("I want it.", "Ich will es."), ("You want it.", "Du willst es.")]] * 3
    for first_rules, expected in ((True, by_first_rules), (False, kept)):
        documents = [[tuple(said.split("|")), tuple(answer.split("|"))], *others]
        windows = elided_verbs["ElidedVerbs"](documents, first_rules=first_rules).windows()
        assert any(window[-1][1] == answer.split("|")[1] for window in windows) == expected


def test_stems_of_german_verbs(elided_verbs):
    forms = "glauben glaube glaubst glaubt glaubte geglaubt|wissen weiß wusste|verstehst verstanden|gehe ging gegangen"
    stems = [{elided_verbs["german_stem"](form) for form in group.split()} for group in forms.split("|")]
    assert [len(found) for found in stems] == [1, 1, 1, 1] and len(set.union(*stems)) == 4


def test_windows_of_elided_verbs(elided_verbs, tmp_path, monkeypatch):
    """Behind a sentence before that has the verb, or else behind one of another document."""
    near = [("Do you trust me?", "Vertraust du mir?"), ("Oh.", "Oh."), ("I trust you.", "Ich vertraue dir.")]
    far = [("Well.", "Nun."), ("I trusted him.", "Ich vertraute ihm.")]
    others = [[("Never trust a cat.", "Vertraue nie einer Katze."), ("Go.", "Geh.")] for _ in range(4)]
    documents = [near, far, *others, [("I trusted the old cat with it.", "Ich vertraute ihr.")]]
    windows = list(elided_verbs["ElidedVerbs"](documents).windows())
    own = [window for window in windows if window[-1] == ("I do.", "Ich vertraue dir.")]
    assert own == [[*near[:2], ("I do.", "Ich vertraue dir.")]] * elided_verbs["COPIES"]
    borrowed = [window for window in windows if window[-1] == ("I did.", "Ich vertraute ihm.")]
    asked = [window for window in windows if window[-1] == ("Do you?", "Vertraust du mir?")]
    assert len(borrowed) == 7 and len(asked) == 6  # those of other documents
    assert len(windows) == len(own) + 7 + 6  # "the old cat" could not be known
    assert all(any("trust" in source.lower() for source, _ in window[:-1]) for window in borrowed)
    assert not any(far[0] in window for window in borrowed)
    rows = [
        {"doc_id": str(number), "translation": [{"en": source, "de": target} for source, target in document]}
        for number, document in enumerate(documents)
    ]
    write_documents(rows, tmp_path / "documents.jsonl")
    monkeypatch.setattr("sys.argv", ["elided_verbs.py", str(tmp_path / "documents.jsonl"), str(tmp_path / "out.jsonl")])
    elided_verbs["main"]()
    written = read_documents(path=tmp_path / "out.jsonl", source_lang="en", target_lang="de")
    pairs = [[(pair["en"], pair["de"]) for pair in row["translation"]] for row in written]
    assert pairs == list(map(list, windows))


def test_corpus_of_the_studies(tmp_path, monkeypatch, capsys):
    """Documents of the three sources in their formats; other text than in the studies is an error."""
    script, sources = runpy.run_path(str(ROOT / "corpora" / "ende_docs.py")), tmp_path / "sources"
    turns = [{"speaker": "agent", "source": "Hi.", "target": "Hallo."}]
    turns += [{"speaker": "customer", "source": "Guten  Tag.", "target": "Hello."}]
    texts = {
        "msctd_ende/english_{}.txt": "One.\r\nTwo.\r\nThree.\r\n",
        "bcontrast/{}.json": json.dumps({"dlg-a": turns}),
    }
    texts |= {
        "msctd_ende/german_{}.txt": "Eins.\r\nZwei.\r\nDrei.\r\n",
        "msctd_ende/image_index_{}.txt": "[0, 1]\n[2]\n",
    }
    for corpus in ("IWSLT2017", "NC-2016", "Europarl7"):
        texts[f"maruf2019/{corpus}/concatenated_en2de_{{}}_en.txt"] = "<d>\nA  talk. \n"
        texts[f"maruf2019/{corpus}/concatenated_en2de_{{}}_de.txt"] = "<d>\nEin Vortrag.\n"
    files = {name.format(split): text for name, text in texts.items() for split in ("train", "dev", "test")}
    for name, text in files.items():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_bytes(text.encode())
    monkeypatch.setattr("sys.argv", ["ende_docs.py", str(tmp_path / "data"), "--sources", str(sources)])
    with pytest.raises(SystemExit, match="a source differs"):
        script["main"]()
    assert "ende_docs/train.jsonl: 6 documents, NOT as in the studies" in capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "data/ende_docs/train.jsonl").read_text("utf-8").splitlines()]
    ids = "msctd-train-0000 msctd-train-0001 bcontrast-train-dlg-a maruf2019-iwslt2017-dev-000"
    assert [row["id"] for row in rows[:4]] == ids.split()
    assert [(row["source"], row["target"]) for row in rows[1:4]] == [
        (["Three."], ["Drei."]),
        (["Hi.", "Hello."], ["Hallo.", "Guten Tag."]),
        (["A talk."], ["Ein Vortrag."]),
    ]
    (sources / "bcontrast" / "dev.json").unlink()
    with pytest.raises(SystemExit, match="dev.json"):
        script["main"]()
