"""`docmt convert`: a pretrained model of any architecture by one command."""

import json
import shutil

import pytest
from support.marian_files import OPTIONS, parameters, spm_file, write_npz
from support.pretrained_models import sentence_model

from hf_docmt.loading import model_folders


def test_sentence_model(run, nllb, tmp_path):
    languages = ("--source-lang", "eng_Latn", "--target-lang", "fra_Latn")
    source, folder = shutil.copytree(nllb, tmp_path / "nllb"), tmp_path / "document"
    (source / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    code, out, err = run(
        "convert", source, folder, "--architecture", "caching", "past_context=2", "dropout=0.3", *languages
    )
    assert code == 0 and out == f"{folder}\n", err
    model, tokenizer = model_folders.load_model(folder)
    config = model.config
    assert (config.model_type, config.past_context, config.dropout) == ("docmt-caching", 2, 0.3)
    assert (config.source_lang, config.target_lang, tokenizer.src_lang) == ("eng_Latn", "fra_Latn", "eng_Latn")
    assert model.generation_config.forced_bos_token_id == tokenizer.convert_tokens_to_ids("fra_Latn")
    assert json.loads(run("info", folder, "--json")[1])["architecture"] == "caching"
    card = (folder / "README.md").read_text()
    assert "license: cc-by-nc-4.0\n" in card and "has not been trained on documents" in card


@pytest.mark.parametrize("given", [(), ("--source-lang", "eng_Latn"), ("--target-lang", "deu_Latn")])
def test_both_languages_are_asked_for(run, nllb, tmp_path, given):
    """With codes that many know as examples; nothing is written."""
    code, out, err = run("convert", nllb, tmp_path / "new", *given)
    missing = [flag for flag in ("--source-lang", "--target-lang") if flag not in given]
    assert code == 1 and out == "" and f"give {' and '.join(missing)}, codes such as 'eng_Latn', 'deu_Latn'" in err
    assert err.count("\n") == 1 and not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("past_context",), "'past_context': expected KEY=VALUE, a field of the configuration"),
        (("past_contxt=2",), "past_contxt: not a field of ConcatConfig; did you mean 'past_context'"),
        (("past_context=two",), "past_context"),
        (("source_lang=eng_Latn",), "give languages as --source-lang"),
        (("--architecture", "cachng"), "; did you mean 'caching'?"),
        (("--source-lang", "english"), "source_lang='english'"),
        (("--data", "folder"), "a fairseq checkpoint needs --data and --subwords"),
        (("--data", "d", "--subwords", "s", "--architecture", "lst"), "--architecture is not for fairseq checkpoints"),
        (("past_context=2", "--data", "d", "--subwords", "s"), "fairseq checkpoints take no fields"),
        (("--interpolate-positions",), "interpolate_positions stretches learned positions"),
        (("--vocab", "v.spm", "--data", "d"), "--data is not for Marian files; remove it"),
    ],
)
def test_bad_arguments(run, nllb, tmp_path, arguments, message):
    code, _, err = run("convert", nllb, tmp_path / "new", *arguments)
    assert code == 1 and message in err and err.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.filterwarnings("error:Recommended")
def test_file_of_marian(run, tmp_path):
    """With one or two vocabularies; a file without one is refused. No warning tells of sacremoses."""
    model = write_npz(tmp_path / "model.npz", OPTIONS, parameters(OPTIONS, (60, 60)))
    vocab = spm_file(tmp_path)
    code, out, err = run("convert", model, tmp_path / "new", "--vocab", vocab, "past_context=1", "--target-lang", "pt")
    assert code == 0 and out == f"{tmp_path / 'new'}\n", err
    config = model_folders.load_model(tmp_path / "new")[0].config
    assert (config.past_context, config.decoder_autoregression, config.target_lang) == (1, "ssru", "pt")
    code, _, err = run("convert", model, tmp_path / "other")
    assert code == 1 and "model.npz: a Marian file needs its SentencePiece model; add --vocab" in err


@pytest.mark.parametrize("family", ["marian", "bart", "m2m_100"])
def test_models_that_are_not_converted(run, tmp_path, family):
    sentence_model(family).save_pretrained(tmp_path)
    code, out, err = run("info", tmp_path)
    assert code == 1 and out == "" and err.startswith(f"docmt: {tmp_path}") and err.count("\n") == 1
    assert f"unknown architecture '{family}'" in err and "`docmt convert MODEL NEW_FOLDER --architecture NAME`" in err
