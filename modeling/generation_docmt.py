"""Translation of whole documents: N sentences in, N out."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import zip_longest
from numbers import Integral

from .fingerprint_digests import tokenizer_fingerprint, told
from .text_splitting import Sentence, check_unicode, known_target
from .translation_jobs import (
    LOOKING_BACK,
    STRATEGIES,
    BaseTranslator,
    candidate_sentences,
    model_name,
    read_document,
    translated_sentences,
)


class DocumentTranslation:
    """`translate_documents` and `translate_stream` of a model with `generate`, by the strategies of a translator."""

    translator_class: type[BaseTranslator]
    tokenizer_fingerprint: str | None = None  # of the folder, until a tokenizer was compared with it

    def translate_documents(
        self,
        documents: list[list[str]],
        tokenizer,
        strategy: str | None = None,
        batch_size: int = 16,
        max_sentence_tokens: int = 256,
        return_report: bool = False,
        past_context: int | None = None,
        repairs: str = "all",
        alignment: str | None = None,
        batch_tokens: int | None = None,
        source_lang: str | None = None,
        target_lang: str | None = None,
        nbest: int | None = None,
        targets: Sequence[Sequence[str | None]] | None = None,
        return_scores: bool = False,
        **generate_kwargs,
    ):
        """Translate documents, lists of sentences; every list that comes back is as long as the one that went in.

        Strategies (Lupo et al. 2023, section 2; Herold and Ney 2023, section 3.4):
        `sentence` - every sentence alone;
        `sliding` - every window is translated whole and its current sentence kept;
        `sequential` (SD) - sentence by sentence, with earlier translations as the forced target prefix;
        `full` (FSD) - parts of the document that do not overlap, each translated at once;
        `chunk_sequential` - the parts of `full` sentence by sentence, for models of chunks: cheaper than `sequential`,
        but it reads future sentences of the part and nothing before it;
        `stream` - sentence by sentence with a state carried along, for models that have one.
        The default is the one the model was trained for. Blank sentences stay empty and are not context. A sentence of
        more than `max_sentence_tokens` tokens is translated in parts, and where a translation has another number of
        separators than its source, its sentences are translated again: one by one inside the part after `full`, by
        `sentence` after `sliding`. Separators in the translation of a sentence alone are taken out.

        `past_context` (k) is how many sentences before the current one `sliding` and `sequential` read, at most as many
        as in training; for a model of chunks any number, and by default of `sequential` as many as fit into
        `config.chunk_tokens` source tokens with the current one. `repairs="none"` translates nothing again: after
        `full` a document has the lines that the model wrote, **which may be more or fewer than its sentences**, after
        `sliding` every sentence is the text after the last separator. `alignment` is that of window models;
        `source_lang` and `target_lang` are codes of `config.language_ids`; by default these are the configuration's.

        `targets` are known translations, a list for each document with None for sentences to translate; a
        `Sentence` has its own. They are returned unchanged, and are context for the others if the strategy reads
        translations: as forced prefix, if it reaches that far, or as state.

        `batch_size` counts rows of a batch: sentences, segments, or documents whose next sentences are translated
        together. With `batch_tokens`, segments and sentences that do not wait for each other are in batches of at most
        this number of source tokens, padding included, instead. `generate_kwargs` go to `generate`; without
        `max_new_tokens` a sentence may get twice its source tokens and 32 more. With `return_report`, a second list
        holds for every document its repairs, see `DocumentState`; with `nbest`, a last one holds for every sentence
        this number of translations among the `num_beams`, the most probable first (fewer where others of its segment
        have other numbers of separators). With `return_scores` every translation that is not known is a `Sentence`
        whose `score` is the mean log-probability of its tokens, its end included. Several threads may translate with
        one model, and in training mode; meanwhile no thread may change its weights.

        Raises `ValueError` for a strategy that is unknown or not this model's, for settings that do not fit them, for
        languages that are missing or unknown, and for documents that are not lists of texts; `NonFiniteScoresError`,
        a `ValueError`, with the index of the document where the model's scores are NaN or infinite.

        >>> model.translate_documents([["Hello .", "She sleeps ."]], tokenizer, num_beams=4)
        [['Hallo .', 'Sie schläft .']]
        """
        strategy = strategy or self.default_strategy()
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}.")
        documents = with_targets(checked_documents(documents), targets)
        counts = {"batch_size": batch_size, "max_sentence_tokens": max_sentence_tokens}
        check_counts(**counts, batch_tokens=batch_tokens, nbest=nbest)
        check_generation(generate_kwargs)
        self.check_strategy(strategy)
        self.check_tokenizer(tokenizer)
        if past_context is None and strategy in LOOKING_BACK:
            past_context = self.config.decoding_past_context
        self.check_search(strategy, past_context, repairs)
        translator = self.translator_class(self, batch_size, generate_kwargs, (source_lang, target_lang))
        translator.batch_tokens = batch_tokens
        has_pairs = any(getattr(sentence, "context", ()) for document in documents for sentence in document)
        if has_pairs and not translator.reads_pairs(self.config, strategy):
            raise ValueError(
                f"strategy {strategy!r} of this model reads no pairs of a sentence and its translation as context: "
                "use a model that writes the translations of its context (concat, window), or omit them."
            )
        beams = translator.settings.num_beams or 1
        if nbest is not None and nbest > beams:
            raise ValueError(f"nbest={nbest}: a search with num_beams={beams} finds fewer; raise num_beams.")
        translator.keeps_candidates, translator.keeps_scores = nbest is not None, return_scores
        limit = translator.sentence_limit(max_sentence_tokens)
        read = partial(
            read_document, tokenizer=tokenizer, max_sentence_tokens=limit, reads_known=strategy != "sentence"
        )
        states = [read(document, number=number) for number, document in enumerate(documents)]
        with self.search_alignment(alignment):
            translator.translate(states, strategy, past_context, repairs)
        translations = [translated_sentences(state, tokenizer) for state in states]
        if not return_report and nbest is None:
            return translations
        reports = [[state.report() for state in states]] if return_report else []
        candidates = [] if nbest is None else [[candidate_sentences(state, tokenizer, nbest) for state in states]]
        return translations, *reports, *candidates

    def translate_stream(self, sentences: Iterable[str], tokenizer, **settings):
        """Translations of sentences as they come, see `StreamTranslation`; ValueError without a memory."""
        raise ValueError("translate_stream needs a model that carries a state: use translate_documents with this one.")

    def check_tokenizer(self, tokenizer) -> None:
        """ValueError for another tokenizer than that of the model's folder; the first one that comes is compared."""
        expected = self.tokenizer_fingerprint
        if expected is not None and tokenizer_fingerprint(tokenizer) != expected:
            raise ValueError(told(f"{model_name(self)}: the ids of the tokenizer", "tokenizer"))
        self.tokenizer_fingerprint = None

    def default_strategy(self) -> str:
        """The strategy of the configuration, or the one that fits how the model was trained."""
        return self.config.strategy or self.translator_class.default_strategy(self.config)

    def check_strategy(self, strategy: str) -> None:
        """Raise `ValueError` for a strategy that is not this model's."""
        self.translator_class.check_strategy(self.config, strategy)

    def check_search(self, strategy: str, past_context: int | None = None, repairs: str = "all") -> None:
        """Raise `ValueError` for settings of `translate_documents` that do not fit the strategy or the model."""
        self.translator_class.check_search(self.config, strategy, past_context, repairs)

    def search_alignment(self, alignment: str | None) -> AbstractContextManager:
        """Scope in which a model aligns target tokens to the source by this; `ValueError` for one that does not."""
        if alignment is not None:
            raise ValueError(
                f"alignment={alignment!r} is for window models, which align target tokens to the source; this one "
                "attends to all of it: omit it."
            )
        return nullcontext()


def checked_documents(documents: Iterable) -> list:
    """The documents in a list. ValueError for anything but lists of sentences, and for sentences that are not text."""
    if isinstance(documents, Mapping) or not isinstance(documents, Iterable):
        raise ValueError(
            f"documents must be a list of documents, each a list of sentences; got {type(documents).__name__}."
        )
    documents = list(documents)
    if any(isinstance(document, str) for document in documents):
        raise ValueError("documents must be a list of documents, each a list of sentences; got a plain string.")
    for number, document in enumerate(documents):
        if isinstance(document, Mapping) or not hasattr(document, "__getitem__"):
            raise ValueError(f"document {number} must be a list of sentences, got {type(document).__name__}.")
        for index, sentence in enumerate(document):
            if not isinstance(sentence, str):
                kind = type(sentence).__name__
                raise ValueError(f"sentence {index} of document {number} must be a string, got {kind}.")
            check_unicode(sentence, f"sentence {index} of document {number}")
            check_unicode(known_target(sentence) or "", f"the target of sentence {index} of document {number}")
    return documents


def with_targets(documents: list, targets: Sequence[Sequence[str | None]] | None) -> list:
    """The documents with these known translations. ValueError: others than one for each sentence, a text or None."""
    if targets is None:
        return documents
    expected, got = list(map(len, documents)), [len(own) if isinstance(own, list | tuple) else None for own in targets]
    if got != expected:
        number = next((n for n, pair in enumerate(zip_longest(got, expected)) if pair[0] != pair[1]))
        raise ValueError(
            f"targets must have a list for each document and in it a text or None for each sentence, {len(expected)} "
            f"documents; got {len(got)}, and other lengths from document {number} on."
        )
    joined = [
        [text if target is None else Sentence(text, target) for text, target in zip(document, own)]
        for document, own in zip(documents, targets)
    ]
    if other := next((each for own in targets for each in own if each is not None and not isinstance(each, str)), None):
        raise ValueError(f"targets must be texts or None, got {type(other).__name__}.")
    return checked_documents(joined)


def check_counts(**counts: int | None) -> None:
    """ValueError for an argument that is neither a whole number of at least 1 nor None."""
    for name, count in counts.items():
        if count is None and name in ("batch_tokens", "nbest"):
            continue
        if not isinstance(count, Integral) or isinstance(count, bool):
            raise ValueError(f"{name} must be a whole number, got {count!r}.")
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")


def check_generation(generate_kwargs: dict) -> None:
    """ValueError for arguments of `generate` that cannot hold for every sentence of a document."""
    if generate_kwargs.get("num_return_sequences", 1) != 1:
        raise ValueError("a sentence has one translation: leave num_return_sequences at 1.")
    if given := sorted({"inputs", "input_ids", "decoder_input_ids", "encoder_outputs"} & generate_kwargs.keys()):
        raise ValueError(f"{given[0]} is made from the documents: omit it, or call generate.")
    if asked := sorted({"glossary", "formality", "consistent"} & generate_kwargs.keys()):
        raise ValueError(f"{asked[0]} needs the package hf-docmt: pass it to hf_docmt.translate_corpus or load_system.")
    if "max_length" in generate_kwargs:
        raise ValueError("max_length also counts the forced prefix: give max_new_tokens instead.")
