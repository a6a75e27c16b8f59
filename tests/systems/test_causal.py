"""Language models as systems: prompts, scores of answers, translation N in N out, bad input."""

from dataclasses import replace

import pytest
import torch
from support.errors import refused
from support.pretrained_models import randomised
from support.systems import DOCUMENTS, ITEMS, LANGUAGES, assert_close, item, pieces, text
from transformers import GPT2Config, GPT2LMHeadModel

from hf_docmt.systems import CausalSystem, Prompt
from hf_docmt.systems.causal import DEFAULT


def gpt2(tokenizer):
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 256, "bos_token_id": 2, "eos_token_id": 3}
    return randomised(GPT2LMHeadModel(GPT2Config(**sizes, vocab_size=len(tokenizer))))


def continuation(model, tokenizer, prompt, answer):
    """Log-probabilities of the tokens that follow the prompt's, one row."""
    start, ids = len(pieces(tokenizer, prompt)), pieces(tokenizer, prompt + answer)
    assert ids[:start] == pieces(tokenizer, prompt)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    return [torch.log_softmax(logits[t - 1], 0)[ids[t]].item() for t in range(start, len(ids))]


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("past", [0, 2])
def test_causal_equals_one_candidate_at_a_time(llama, tokenizer, kind, past):
    model = llama if kind == "llama" else gpt2(tokenizer)
    expected = []
    for one in ITEMS:
        prompt = "Translate from English to German.\n\n"
        pairs = list(zip(one.source, one.target_context))
        for source, target in pairs[max(0, len(pairs) - past) :]:
            if source or target:
                prompt += f"English: {source}\nGerman: {target}\n"
        prompt += f"English: {one.source[-1]}\nGerman:"
        expected.append([continuation(model, tokenizer, prompt, f" {answer}\n") for answer in one.candidates])
    for budget in (1, 500):
        system = CausalSystem(model, tokenizer, past_context=past, batch_tokens=budget, **LANGUAGES)
        assert_close(system.token_log_probabilities(ITEMS), expected)
    assert_close(system.token_log_probabilities(ITEMS[::-1])[::-1], expected)
    texts = system.token_texts(ITEMS)
    assert [[len(row) for row in rows] for rows in texts] == [[len(row) for row in rows] for rows in expected]
    assert "".join(texts[0][0]).strip() == ITEMS[0].candidates[0]


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("past", [0, 1])
def test_causal_translation(llama, tokenizer, monkeypatch, side, past):
    """N in, N out; equal to greedy decoding of each prompt alone, up to the line break; padding does not matter."""
    monkeypatch.setattr(tokenizer, "padding_side", side)
    found = {}
    for size in (1, 3):
        system = CausalSystem(llama, tokenizer, past_context=past, batch_size=size, max_new_tokens=8, **LANGUAGES)
        found[size] = system.translate(DOCUMENTS)
    assert found[1] == found[3]
    assert [len(document) for document in found[1]] == [4, 0, 1, 2]
    assert found[1][0][1] == "" and found[1][2] == [""]
    source, done = DOCUMENTS[3], []
    for index, sentence in enumerate(source):
        prompt = "Translate from English to German.\n\n"
        if past and index:
            prompt += f"English: {source[index - 1]}\nGerman: {done[index - 1]}\n"
        ids = pieces(tokenizer, prompt + f"English: {sentence}\nGerman:")
        start = len(ids)
        with torch.no_grad():
            while len(ids) < start + 8 and ids[-1] != 3 and "\n" not in tokenizer.decode(ids[start:]):
                ids.append(int(llama(torch.tensor([ids])).logits[0, -1].argmax()))
        answer = tokenizer.decode(ids[start:], skip_special_tokens=True).split("\n")[0]
        done.append(" ".join(answer.splitlines()).strip())
    assert found[1][3] == done


def test_prompt_template(llama, tokenizer):
    prompt = Prompt("{{task}} {context}[{source}]", "<{source}>", stop=";")
    assert not prompt.target_context and prompt.languages == set()
    assert CausalSystem(llama, tokenizer, prompt=prompt, past_context=1).target_context == "none"
    assert CausalSystem(llama, tokenizer, past_context=1, **LANGUAGES).target_context == "reference"
    assert prompt.fill(["a\nb", " ", "{c}"], [], None, None) == "{task} <a b>[{c}]"
    both = Prompt(DEFAULT.template, "<{source}|{target}>")
    assert both.fill(["", "a", "b"], ["", "x"], "E", "G") == "Translate from E to G.\n\n<a|x>E: b\nG:"
    refused("prompt: unknown field 'text', expected context, glossary, source, source_lang, ", Prompt, "{text}")
    refused("prompt, context: {source} is missing", Prompt, "{source}", "{target}")
    refused("prompt: .*write {{ and }} for braces", Prompt, "{source")
    refused("stop is empty", Prompt, "{source}", stop="")


def test_bad_causal(llama, tokenizer, monkeypatch):
    refused("the prompt names {source_lang}, but it is not given", CausalSystem, llama, tokenizer, target_lang="German")
    refused("'json', expected plain, chat, turns or auto", CausalSystem, llama, tokenizer, format="json", **LANGUAGES)
    with pytest.raises(ValueError, match="suite:5: .* tokens with the prompt, but the model has positions for 256"):
        long = item(5, context=0, source=(text(1, 300),))
        CausalSystem(llama, tokenizer, **LANGUAGES).token_log_probabilities([long])
    with pytest.raises(ValueError, match="document 0, sentence 1: .* positions for 256; give less context"):
        CausalSystem(llama, tokenizer, **LANGUAGES).translate([["", text(1, 300)]])
    monkeypatch.setattr(tokenizer, "chat_template", "{{ messages[0]['content'] }}")
    glued = CausalSystem(llama, tokenizer, format="chat", prompt=Prompt("{context}{source}", "{source}"))
    with pytest.raises(ValueError, match="item suite:1: the tokens of the prompt change when 'd' follows"):
        glued.token_log_probabilities([replace(item(1), source=("Hun",), target_context=(), candidates=("d",))])
