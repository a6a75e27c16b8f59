"""The tokens around the sentences of a sequence, and what is refused."""

import pytest
from support.errors import refused

from hf_docmt.modeling.configuration_docmt import DocMTConfig

CODES = {"eng_Latn": 10, "deu_Latn": 11, "zho_Hans": 12, "zho_Hant": 13}
M2M = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>", "language_ids": CODES}
MBART = {"source_format": "X </s> [source_lang]", "target_format": "[target_lang] X </s>", "language_ids": CODES}


def test_default():
    found = DocMTConfig().sequence_format()
    assert found.source([7, 8]) == found.translation([7, 8]) == [7, 8, 3]
    assert (found.start, found.target_before) == (2, [])


def test_codes():
    found = DocMTConfig(**M2M).sequence_format("eng_Latn", "deu_Latn")
    assert found.source([7]) == [10, 7, 3] and found.translation([7]) == [11, 7, 3]
    assert (found.start, found.target_before) == (2, [11])
    found = DocMTConfig(**MBART).sequence_format("eng_Latn", "deu_Latn")
    assert found.source([7]) == [7, 3, 10] and found.translation([7]) == [7, 3, 11]
    assert (found.start, found.target_before) == (11, [])


def test_configuration_names_the_default():
    config = DocMTConfig(**MBART, source_lang="eng_Latn", target_lang="deu_Latn")
    assert config.sequence_format().source([7]) == [7, 3, 10]
    assert config.decoder_start_token_id == 11
    assert config.sequence_format(target_lang="zho_Hans").start == 12


def test_code_in_front_of_the_source():
    config = DocMTConfig(source_format="[target_lang] X </s>", language_ids={"deu": 9})
    found = config.sequence_format(target_lang="deu")
    assert found.source([7]) == [9, 7, 3] and found.target_before == []
    refused("no codes for this side.*omit source_lang", config.sequence_format, "eng", "deu")


def test_bart():
    found = DocMTConfig(source_format="<s> X </s>", target_format="<start> <s> X </s>").sequence_format()
    assert found.source([7]) == [2, 7, 3] and found.target_before == [2]


@pytest.mark.parametrize(
    ("languages", "message"),
    [
        ((None, "deu_Latn"), "source_lang is missing: this model reads .* one of its 4 codes"),
        (("eng_Latn", None), "target_lang is missing"),
        (("eng_Latn", "deu_Latt"), "target_lang='deu_Latt' .*did you mean 'deu_Latn'"),
        (("en", "deu_Latn"), "source_lang='en' .*did you mean 'eng_Latn'"),
        (("eng_Latn", "zh-CN"), "did you mean 'zho_Hans' or 'zho_Hant'"),
        (("eng_Latn", "xx"), "not one of the 4 language codes of this model; give one such as 'deu_Latn'"),
    ],
)
def test_refused_languages(languages, message):
    with pytest.raises(ValueError, match=message):
        DocMTConfig(**M2M).sequence_format(*languages)


def test_a_model_without_codes_knows_its_own():
    config = DocMTConfig(source_lang="en", target_lang="de")
    assert config.sequence_format("en", "de") == config.sequence_format()
    refused("source_lang='fr': .* its configuration says 'en'", config.sequence_format, "fr")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source_format": "X"}, "source_format must have </s> after"),
        ({"source_format": "</s>"}, "source_format must be the sentences X among"),
        ({"source_format": "<cls> X </s>"}, "source_format must be the sentences X among tokens of"),
        ({"target_format": "X </s>"}, "target_format must begin with the token that the decoder starts with"),
        ({"target_format": "[target_lang] <start> X </s>"}, "target_format must begin"),
        ({"target_format": "<start> [target_lang] X </s>"}, "language_ids must give an id to every language code"),
        ({**M2M, "source_lang": "en"}, "source_lang='en' is not one of the 4 language codes"),
        ({**M2M, "language_ids": {"eng_Latn": 99}, "vocab_size": 50}, "language_ids must have ids below vocab_size=50"),
        ({**M2M, "language_ids": {"eng_Latn": True}}, "language_ids must have ids below .*, got True for 'eng_Latn'"),
    ],
)
def test_refused_configurations(fields, message):
    refused(message, DocMTConfig, **fields)
