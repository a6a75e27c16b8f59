"""How plain `generate` gets its context, for models of one sequence, of separate context and of a memory."""

from .model_card import ModelCardText, sentences

HEROLD = """@inproceedings{herold-ney-2023-improving,
  title = {Improving Long Context Document-Level Machine Translation},
  author = {Herold, Christian and Ney, Hermann},
  booktitle = {Proceedings of the 4th Workshop on Computational Approaches to Discourse (CODI 2023)},
  year = {2023},
  url = {https://aclanthology.org/2023.codi-1.15}
}"""
FEI = """@inproceedings{fei-etal-2022-routing,
  title = {Routing Based Context Selection for Document-Level Neural Machine Translation},
  author = {Fei, Weilun and Jian, Ping and Zhu, Xiaoguang and Lin, Yi},
  year = {2022}
}"""


class SegmentCard(ModelCardText):
    """For models that read several sentences as one sequence."""

    def reads_context(self):
        return self.config.view == "chunk" or super().reads_context()

    def context_code(self):
        bod = "tokenizer.convert_ids_to_tokens(model.config.bod_token_id) + " if self.config.use_bod else ""
        return (
            f"text = {bod}tokenizer.sep_token.join(document)\n"
            'inputs = tokenizer(text, split_special_tokens=False, return_tensors="pt")\n'
            "print(tokenizer.decode(model.generate(**inputs)[0]))"
        )

    def context_note(self):
        both = self.config.context_sides == "both"
        return (
            "Plain `generate` reads what it is given. One sentence alone has no context; several stand in one text, "
            "with the tokenizer's separator between them, and "
            + ("so do their translations:" if both else "the last one is translated:")
        )

    def view_description(self) -> str:
        """What a segment is, as a sentence; empty for a model without context."""
        config = self.config
        if config.view == "chunk":
            return f"It translates parts of a document, of at most {config.chunk_tokens} target tokens each, at once."
        if not self.reads_context():
            return ""
        sides = "in source and target" if config.context_sides == "both" else "in the source only"
        return (
            f"It translates the current sentence inside a window with {sentences(config.past_context)} before it and "
            f"{sentences(config.future_context)} after it, {sides}."
        )


class ContextCard(ModelCardText):
    """For models to which context sentences are inputs of their own."""

    def context_code(self):
        offset, current, other = (-1, 1, 0) if self.config.past_context else (1, 0, 1)
        sentence, is_target = f"document[{other}]", ""
        if self.config.context_sides == "target":
            sentence = f"model.translate_documents([[{sentence}]], tokenizer)[0][0]"
            is_target = "    context_is_target=torch.tensor([[True]]),\n"
        return (
            "import torch\n\n"
            f'context = tokenizer([{sentence}], return_tensors="pt")\n'
            f'inputs = tokenizer(document[{current}], return_tensors="pt")\n'
            "output = model.generate(\n"
            "    **inputs,\n"
            '    context_input_ids=context["input_ids"][None],  # (batch, sentences, tokens)\n'
            '    context_attention_mask=context["attention_mask"][None],\n'
            f"    context_offsets=torch.tensor([[{offset}]]),  # how many sentences away\n"
            f"{is_target})\n"
            "print(tokenizer.decode(output[0]))"
        )

    def context_note(self):
        sides = {
            "source": "sentences of the source",
            "target": "earlier translations",
            "both": "sentences of the source and, with `context_is_target` true, earlier translations",
        }
        return (
            f"Plain `generate` takes context as inputs of their own, {sides[self.config.context_sides]}. Without them "
            "it translates one sentence alone."
        )


class MemoryCard(ModelCardText):
    """For models that carry a memory from sentence to sentence."""

    def reads_context(self):
        return True

    def context_code(self):
        return (
            "import torch\n\n"
            'memory = {"document_start": None}  # nothing was read before\n'
            "for sentence in document:\n"
            '    inputs = tokenizer(sentence, return_tensors="pt")\n'
            "    output = model.generate(**inputs, **memory)\n"
            "    print(tokenizer.decode(output[0]))\n"
            "    with torch.no_grad():  # what was read and written goes into the memory, without </s>\n"
            "        memory = model.memory_after(model(**inputs, **memory, decoder_input_ids=output[:, :-1]))"
        )

    def context_note(self):
        return (
            "Plain `generate` takes the memory of the sentences before; without it a document begins. For sentences as "
            "they come (chat, subtitles) there is `model.translate_stream(sentences, tokenizer)`. By hand:"
        )
