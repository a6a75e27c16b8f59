"""The pipeline "document-translation": what goes in comes out in the same form, as translate_documents has it."""

import pytest
import torch
from datasets import Dataset
from support.errors import refused
from support.tiny_models import build, word_tokenizer
from transformers import pipeline

from hf_docmt.modeling.pipeline_docmt import DocumentTranslationPipeline

DOCUMENTS = [["w7 w9 w8", "w20 w11"], ["w12 w13", "w14", "w7 w25 w28"]]
TEXT = "w7 w9 . W20 w11\n\n  w12 w13\r\n"
SETTINGS = {"max_new_tokens": 4, "no_repeat_ngram_size": 2}


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer()


@pytest.fixture(scope="module")
def doct():
    model = build("doct", past_context=1)
    model.final_logits_bias.zero_()  # no sentence ends early
    return model


@pytest.fixture(scope="module")
def pipe(doct, tokenizer):
    return pipeline("document-translation", model=doct, tokenizer=tokenizer, device="cpu", num_beams=2, **SETTINGS)


def expected(pipe, documents=DOCUMENTS, **settings):
    return pipe.model.translate_documents(documents, pipe.tokenizer, **({"num_beams": 2} | SETTINGS | settings))


def test_form_of_the_input(pipe):
    assert isinstance(pipe, DocumentTranslationPipeline)
    whole = expected(pipe)
    assert whole != expected(pipe, strategy="sentence")
    assert pipe(DOCUMENTS) == whole
    assert pipe(tuple(map(tuple, DOCUMENTS))) == whole
    assert pipe(DOCUMENTS[1]) == whole[1]
    assert pipe([]) == [] and pipe([[]]) == [[]]


def test_text(pipe):
    """One document, over its paragraphs; white space comes back as it was."""
    first, second, third = expected(pipe, [["w7 w9 .", "W20 w11", "w12 w13"]])[0]
    assert pipe(TEXT) == f"{first} {second}\n\n  {third}\r\n"
    assert pipe("") == "" and pipe("\n \n") == "\n \n"


def test_settings_of_a_call(pipe):
    assert pipe(DOCUMENTS, strategy="sentence", num_beams=1) == expected(pipe, strategy="sentence", num_beams=1)
    assert pipe(DOCUMENTS) == expected(pipe)  # for that call alone


def test_iterators(pipe):
    """Texts or documents, read and translated some at a time."""
    whole, taken = expected(pipe), []

    def documents():
        for document in [*DOCUMENTS, TEXT, *DOCUMENTS]:
            taken.append(document)
            yield document

    translations = pipe(documents(), batch_size=2)
    assert not taken
    assert next(translations) == whole[0]
    assert len(taken) == 2
    assert list(translations) == [whole[1], pipe(TEXT), *whole]
    column = Dataset.from_dict({"text": [TEXT, "w20 w11"]})["text"]
    assert list(pipe(column)) == [pipe(TEXT), pipe("w20 w11")]


def test_stream(tokenizer, pipe):
    model = build("memory", memory_size=2)
    memory = pipeline("document-translation", model=model, tokenizer=tokenizer, device="cpu", batch_size=4, **SETTINGS)
    assert list(memory.stream(iter(DOCUMENTS[1]))) == memory(DOCUMENTS[1])
    refused("'stream', got 'sentence'", memory.stream, DOCUMENTS[1], strategy="sentence")
    refused("use translate_documents", pipe.stream, DOCUMENTS[1])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"text": TEXT}, "got a dict; of a data set give one column"),
        (3, "got a int"),
        ([DOCUMENTS[0], TEXT], "each a list of sentences; got a plain string"),
        ([DOCUMENTS[0], ["a", 3]], "sentence 1 of document 1 must be a string, got int"),
        (iter([TEXT, None]), "document 1 must be a list of sentences, got NoneType"),
    ],
)
def test_other_inputs(pipe, inputs, message):
    with pytest.raises(ValueError, match=message):
        list(pipe(inputs))


def test_wrong_settings(pipe):
    refused(r"return_report: .* use model.translate_documents", pipe, TEXT, return_report=True)
    refused("strategy must be one of", pipe, TEXT, strategy="telepathy")
    for size, message in ((0, "at least 1, got 0"), (-1, "at least 1, got -1"), ("4", "a whole number, got '4'")):
        for inputs in (iter([TEXT]), DOCUMENTS):  # of an iterator before it is asked for a document
            refused(f"batch_size must be {message}", pipe, inputs, batch_size=size)


def test_more_sentences_than_the_text(pipe, monkeypatch):
    monkeypatch.setattr(pipe.model, "translate_documents", lambda *_, **__: [["one"]])
    refused("1 sentences for a text of 3: omit repairs='none'", pipe, TEXT)


def test_config(doct, tmp_path):
    """What the configuration says does not change by what `pipeline` makes of it."""
    pipelines = doct.config.custom_pipelines
    doct.config.custom_pipelines["document-translation"]["pt"] = (torch.nn.Linear,)
    assert doct.config.custom_pipelines == pipelines == doct.config.to_dict()["custom_pipelines"]
    doct.config.save_pretrained(tmp_path)
    assert type(doct.config).from_pretrained(tmp_path).to_dict() == doct.config.to_dict()
