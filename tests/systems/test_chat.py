"""Language models with chat templates: scores of answers, earlier turns, chunks as numbered lines, prompts."""

from dataclasses import replace

import pytest
import torch
from support.chat_models import TEMPLATES, byte_tokenizer, causal_model
from support.errors import refused
from support.systems import DOCUMENTS, ITEMS, LANGUAGES, assert_close, item, pieces

from hf_docmt.data.glossary import Glossary
from hf_docmt.systems import CausalSystem, Prompt
from hf_docmt.systems.chats import answer_frame
from hf_docmt.systems.prompts import glossary_text, language_name, numbered_lines, read_prompt

CODES = {"source_lang": "en", "target_lang": "de"}
ASKED = (
    "Translate the following text from {} into {}. Answer with the translation alone; keep its lines and their "
    "numbers, if it has any.\n\n{}"
)
USER = {"gemma": "<start_of_turn>user\n{}<end_of_turn>\n", "qwen": "<|im_start|>user\n{}<|im_end|>\n"}
ANSWER = {"gemma": "<start_of_turn>model\n{}<end_of_turn>\n", "qwen": "<|im_start|>assistant\n{}<|im_end|>\n"}
BEGINNING = {"gemma": "<s>", "qwen": ""}
OPENING = {"gemma": "<start_of_turn>model\n", "qwen": "<|im_start|>assistant\n<think>\n\n</think>\n\n"}
END = {"gemma": "<end_of_turn>", "qwen": "<|im_end|>"}


def chat(template, turns, source, names=("English", "German")):
    """The prompt by hand."""
    text = BEGINNING[template]
    for before, translation in turns:
        text += USER[template].format(ASKED.format(*names, before)) + ANSWER[template].format(translation)
    return text + USER[template].format(ASKED.format(*names, source)) + OPENING[template]


def forced(model, tokenizer, prompt, answer):
    """The definition: one full forward of prompt and answer, in double precision, without a cache."""
    start, ids = len(pieces(tokenizer, prompt)), pieces(tokenizer, prompt + answer)
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].double()
    return [torch.log_softmax(logits[t - 1], 0)[ids[t]].item() for t in range(start, len(ids))]


@pytest.mark.parametrize("template", ["gemma", "qwen"])
@pytest.mark.parametrize("name", ["llama", "gemma", "qwen", "gpt2", "mamba"])
def test_answers_end_as_the_template_ends_them(name, template):
    """Every candidate by a forward of its own; a window of 8 tokens, no keys and values (Mamba), any batch."""
    model, tokenizer, expected = causal_model(name), byte_tokenizer(TEMPLATES[template]), []
    for one in ITEMS[:4]:
        first = max(0, len(one.target_context) - 2)
        pairs = [pair for pair in list(zip(one.source, one.target_context))[first:] if all(pair)]
        prompt = chat(template, pairs, one.source[-1])
        expected.append([forced(model, tokenizer, prompt, answer + END[template]) for answer in one.candidates])
    for budget in (1, 9000):
        system = CausalSystem(model, tokenizer, past_context=2, format="turns", batch_tokens=budget, **CODES)
        assert_close(system.token_log_probabilities(ITEMS[:4]), expected)
    assert system.token_texts(ITEMS[:1])[0][0][-1] == END[template]
    assert system.target_context == "reference"


@pytest.mark.parametrize(
    ("template", "before", "end", "text"),
    [
        (TEMPLATES["gemma"], "", "<end_of_turn>", ""),
        (TEMPLATES["qwen"], "", "<|im_end|>", ""),
        ("{% for m in messages %}{% if m.role == 'user' %}[I]{{ m.content }}[/I]{% else %} {{ m.content }}</s>"
         "{% endif %}{% endfor %}", " ", "</s>", ""),  # in the manner of Mistral
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n---\n{% endfor %}", "", "\n---\n", "\n---"),
        ("{% for m in messages %}{{ m.content }}\n{% endfor %}", "", "</s>", ""),
        ("{{ messages[0].content }}", "", "</s>", ""),
    ],
)  # fmt: skip
def test_frames_of_answers_in_templates(template, before, end, text):
    """In scores the blanks before it and what ends it; in translation it stops there, at a token or a text."""
    tokenizer = byte_tokenizer(template)
    frame = answer_frame(tokenizer, [2])
    assert (frame.before, tokenizer.decode(frame.end), frame.end_text) == (before, end, text)
    system = CausalSystem(causal_model("llama"), tokenizer, format="chat", prompt="{source} ->")
    answer = before + "Hund" + end
    one = replace(item(1, context=0), candidates=("Hund",))
    assert "".join(system.token_texts([one])[0][0]) == answer
    written = tokenizer(answer + "more", add_special_tokens=False)["input_ids"]

    def generate(input_ids, eos_token_id, **settings):
        assert settings.get("stop_strings", "") == text and (text or frame.end[-1] in eos_token_id)
        return torch.cat([input_ids, torch.tensor([written])], dim=1)

    system.model.generate = generate
    assert system.translate_with_repairs([["dog"]])[0] == [["Hund"]]


@pytest.mark.parametrize("name", ["llama", "mamba"])
def test_prompts_are_read_once(name):
    """In one row, whatever the number of candidates and items that share it; logits where answers are scored."""
    model, tokenizer, calls = causal_model(name), byte_tokenizer(TEMPLATES["qwen"]), []
    system, one = CausalSystem(model, tokenizer, format="turns", **CODES), item(1, context=0, candidates=5)
    prompt = len(pieces(tokenizer, chat("qwen", [], one.source[-1])))
    longest = max(len(pieces(tokenizer, answer + END["qwen"])) for answer in one.candidates)

    def watch(_, arguments, inputs, output):
        calls.append((tuple(inputs["input_ids"].shape), tuple(output.logits.shape[:2])))

    model.register_forward_hook(watch, with_kwargs=True)
    scores = system.token_log_probabilities([one, one])
    assert scores[0] == scores[1]
    answers = ((5, longest), (5, longest))
    rows = ((5, prompt - 1 + longest), (5, longest))
    assert calls == ([((1, prompt - 1), (1, 1)), answers] if name == "llama" else [rows])


@pytest.mark.parametrize("template", ["gemma", "qwen"])
@pytest.mark.parametrize("past", [0, 2])
def test_context_is_earlier_turns(template, past):
    """Sentence by sentence with `generate` by hand; the answer ends at the template's end of turn."""
    model, tokenizer = causal_model("llama"), byte_tokenizer(TEMPLATES[template])
    with torch.no_grad():
        model.lm_head.weight[pieces(tokenizer, END[template])] *= 3  # which it writes now and then
    end, expected = pieces(tokenizer, END[template]), []
    for document in DOCUMENTS:
        done = []
        for sentence in document:
            if not sentence.strip():
                continue
            turns = [turn for turn in done[max(0, len(done) - past) :] if turn[1]] if past else []
            ids = torch.tensor([pieces(tokenizer, chat(template, turns, sentence))])
            options = {"do_sample": False, "max_new_tokens": 24, "eos_token_id": [2, *end], "pad_token_id": 0}
            answer = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, ids.shape[1] :].tolist()
            text = tokenizer.decode(answer, skip_special_tokens=True)
            done.append((sentence, " ".join(text.splitlines()).strip(), answer[-1] in (2, *end)))
            done[-1] = done[-1][:2]
        answers = iter(done)
        expected.append([next(answers)[1] if sentence.strip() else "" for sentence in document])
    for size in (1, 3):
        options = {"past_context": past, "batch_size": size, "max_new_tokens": 24, "format": "auto", **CODES}
        system = CausalSystem(model, tokenizer, **options)
        translations, repairs = system.translate_with_repairs(DOCUMENTS)
        assert translations == expected and any(map(any, expected))
        assert {repair["kind"] for repaired in repairs for repair in repaired} <= {"length"}
    assert system.search == {
        "beams": 1, **({"past_context": past} if past else {}), **CODES, "format": "turns",
        "prompt": ASKED.format("{source_language}", "{target_language}", "{source}").join(["{glossary}", ""]),
    }  # fmt: skip


def scripted(answers, template="gemma", **options):
    """A system whose answer to a prompt is what the function says of the text of the last message; and the prompts."""
    tokenizer = byte_tokenizer(TEMPLATES[template] if template else None)
    system, prompts = CausalSystem(causal_model("llama"), tokenizer, **CODES, **options), []

    def generate(jobs, sentences):
        texts = [tokenizer.decode(ids, skip_special_tokens=False) for ids, _ in jobs]
        prompts.extend((text, sentences) for text in texts)
        return [(answers(text), True) for text in texts]

    system.generate = generate
    return system, prompts


def last_source(prompt):
    """The source of the last message of a chat, or of a plain prompt."""
    if "<start_of_turn>" in prompt:
        return prompt.rpartition("<start_of_turn>user\n")[2].partition("<end_of_turn>")[0].rpartition("\n\n")[2]
    return prompt.rpartition("English: ")[2].removesuffix("\nGerman:")


DOCUMENT = ["One.", "", "Two.", "Three.", "Four.", "Five."]


def test_chunks_are_numbered_lines():
    """N lines in, N out; context is one earlier turn of numbered lines; the rest is a sentence alone."""
    system, prompts = scripted(lambda text: f"Sure:\n{last_source(text).upper()}", chunk_sentences=2, format="auto")
    translations, repairs = system.translate_with_repairs([DOCUMENT, ["Only."]])
    assert translations == [["ONE.", "", "TWO.", "THREE.", "FOUR.", "Sure: FIVE."], ["Sure: ONLY."]]
    assert repairs == [[], []]
    assert sorted((last_source(text), count) for text, count in prompts) == [
        ("1. One.\n2. Two.", 2), ("1. Three.\n2. Four.", 2), ("Five.", 1), ("Only.", 1),
    ]  # fmt: skip
    assert system.search["chunk_sentences"] == 2
    system, prompts = scripted(lambda text: last_source(text).upper(), chunk_sentences=2, past_context=3, format="auto")
    assert system.translate([DOCUMENT]) == [["ONE.", "", "TWO.", "THREE.", "FOUR.", "FIVE."]]
    texts = [text for text, _ in prompts]
    assert texts[1] == chat("gemma", [("1. One.\n2. Two.", "1. ONE.\n2. TWO.")], "1. Three.\n2. Four.")
    single = [(source, source.upper()) for source in ("Two.", "Three.", "Four.")]
    assert texts[2] == chat("gemma", single, "Five.")
    system, prompts = scripted(lambda text: last_source(text).upper(), chunk_sentences=0, format="auto")
    assert system.translate([DOCUMENT]) == [["ONE.", "", "TWO.", "THREE.", "FOUR.", "FIVE."]]
    assert [count for _, count in prompts] == [5]


@pytest.mark.parametrize("template", ["gemma", None])
def test_chunks_with_another_number_of_lines(template):
    """Translated in halves, which is counted."""

    def answers(text):
        source = last_source(text)
        if source.startswith("1. One."):
            return "1. Eins und zwei."
        return "1. Drei.\n3. Vier." if source.startswith("1. Three.") else source.lower()

    system, prompts = scripted(answers, template, chunk_sentences=2, past_context=1, format="auto")
    translations, (repairs,) = system.translate_with_repairs([DOCUMENT])
    assert translations == [["one.", "", "two.", "three.", "four.", "five."]]
    assert [(repair["sentence"], repair["kind"]) for repair in repairs] == [(0, "retry"), (3, "retry")]
    assert repairs[0]["detail"] == "an answer of 1 line for 2 numbered ones: translated in halves"
    assert len(prompts) == 7
    if template is None:
        assert prompts[2][0].endswith("English: One.\nGerman: one.\nEnglish: Two.\nGerman:")


def test_lines_as_they_were_written():
    system, prompts = scripted(lambda text: "Eins.\n\nZwei.", chunk_sentences=0, repairs="none", format="auto")
    translations, repairs = system.translate_with_repairs([DOCUMENT, ["A.", "B."], [" "]])
    assert translations == [["Eins.", "Zwei."], ["Eins.", "Zwei."], [""]]
    assert repairs[1:] == [[], []] and system.search["repairs"] == "none"
    assert repairs[0] == [{"sentence": 0, "kind": "misaligned", "detail": "2 sentences for 5: left as written"}]
    assert [last_source(text) for text, _ in prompts] == ["A.\nB.", "One.\nTwo.\nThree.\nFour.\nFive."]


def test_plain_chunks_stop_at_a_blank_line(monkeypatch):
    """Limits are for a sentence; a sentence alone stops at a line break."""
    tokenizer, seen = byte_tokenizer(), []
    system = CausalSystem(causal_model("llama"), tokenizer, chunk_sentences=2, max_new_tokens=7, **LANGUAGES)

    def generate(input_ids, **settings):
        seen.append((settings["stop_strings"], settings["max_new_tokens"]))
        text = " 1. Eins.\n2. Zwei.\n\n3. no" if settings["stop_strings"] == "\n\n" else " Drei.\nno"
        return torch.cat([input_ids, torch.tensor([pieces(tokenizer, text)])], dim=1)

    monkeypatch.setattr(system.model, "generate", generate)
    assert system.translate_with_repairs([["One.", "Two.", "Three."]]) == ([["Eins.", "Zwei.", "Drei."]], [[]])
    assert sorted(seen) == [("\n", 7), ("\n\n", 14)]


def test_glossary_and_template():
    """Terms that stand in the chunk, as whole words; context in its place in a plain prompt and a chat message."""
    glossary = [("Lamp", "Leuchte"), ("Lamp", "Funzel", True), ("art", "Kunst"), ("moon", "Erde", True)]
    template = "{glossary}Context:\n{context}English: {source}\nGerman:"
    for format in (None, "gemma"):
        options = {"prompt": template, "glossary": glossary, "past_context": 1, "format": "auto"}
        system, prompts = scripted(lambda text: "Ja.", format, **options)
        system.translate([["Lamps, a party.", "Moons."]])
        terms = "Use these translations of terms:\n"
        first = f"{terms}Lamp = Leuchte (not Funzel)\n\nContext:\nEnglish: Lamps, a party.\nGerman:"
        second = f"{terms}moon: not Erde\n\nContext:\nEnglish: Lamps, a party.\nGerman: Ja.\nEnglish: Moons.\nGerman:"
        whole = [first, second]
        if format:
            whole = ["<s>" + USER["gemma"].format(text) + OPENING["gemma"] for text in whole]
        assert [text for text, _ in prompts] == whole
        assert len(system.search["glossary"]) == 12 and system.search["prompt"] == template
    assert glossary_text(Glossary(glossary, "en", "de"), "Nothing") == glossary_text(None, "Lamp") == ""


def test_names_of_languages_and_numbers_of_lines():
    assert [language_name(code) for code in ("en", "deu_Latn", "zh_TW", "Plattdeutsch", None)] == [
        "English", "German (deu_Latn)", "Chinese (zh_TW)", "Plattdeutsch", None,
    ]  # fmt: skip
    assert numbered_lines("Here:\n 1) a b \n\n2: c", 2) == ["a b", "c"]
    assert numbered_lines("**1.** a\n**2.** c\n\nNote: **c** is formal.\nTrue.", 2) == ["a", "c"]
    assert numbered_lines("1. a\n2. c\nNote", 2) is None and numbered_lines("", 1) is None
    for wrong in ("1. a", "1. a\n2. b\n3. c", "1. a\nb", "2. a\n1. b", "a\nb", "", "1. a\n2."):
        assert numbered_lines(wrong, 2) is None


def test_bad_prompts_and_chunks(tmp_path):
    refused("the prompt is empty", Prompt, " \n")
    refused("prompt: {source} is missing", Prompt, "Translate {context}")
    refused("prompt: unknown field 'sorce', expected context, glossary, source, ", Prompt, "{sorce}{source}")
    refused("{context} 2 times", Prompt, "{context}{context}{source}")
    refused("prompt: .*write {{ and }} for braces", Prompt, "{source")
    assert Prompt("{{context}} {source}").fill(["a"], [], None, None) == "{context} a"
    for content, words in (("", "the file is empty"), ("\n", "is empty"), ("Hello", "{source} is missing")):
        (tmp_path / "prompt.txt").write_text(content)
        refused(words, read_prompt, tmp_path / "prompt.txt")
    (tmp_path / "prompt.txt").write_text("{source} =\n")
    assert read_prompt(tmp_path / "prompt.txt") == "{source} ="
    for template, words in (("{{ raise_exception('no roles') }}", "fails .no roles"), ("{% for %}", "fails ")):
        strict = {**CODES, "format": "turns"}
        refused(words, CausalSystem, causal_model("llama"), byte_tokenizer(template), **strict)
    model, tokenizer, chatty = causal_model("llama"), byte_tokenizer(), byte_tokenizer(TEMPLATES["gemma"])
    for words, used, options in (
        ("the prompt names {target_lang}, but it is not given; give a code", chatty,
         {"source_lang": "en", "format": "auto"}),
        ("the prompt has no {context}, and the format is 'plain'", tokenizer,
         {"prompt": "{source}", "past_context": 1}),
        ("the prompt has no {glossary}", tokenizer, {**CODES, "glossary": [("a", "b")]}),
        ("chunk_sentences is -1, expected", tokenizer, {**CODES, "chunk_sentences": -1}),
        ("repairs must be one of all, none, got 'some'", tokenizer, {**CODES, "repairs": "some"}),
        ("repairs='none' is for chunks without context", tokenizer, {**CODES, "repairs": "none"}),
        ("format is 'turns', but .* has no chat template", tokenizer, {**CODES, "format": "turns"}),
    ):  # fmt: skip
        refused(words, CausalSystem, model, used, **options)
