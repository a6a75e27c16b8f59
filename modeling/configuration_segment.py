"""Configuration shared by the architectures that read and write several sentences as one sequence."""

from .configuration_docmt import DocMTConfig


class SegmentConfig(DocMTConfig):
    """What one sequence is, on both sides `s1 <sep> s2 ... <sep> sK </s>`.

    `view` is `window` (the current sentence with `past_context` sentences before and `future_context` after it, sKtoK
    with K = past_context + 1; no context = one sentence) or `chunk` (a part of a document of at most `chunk_tokens`
    target tokens, Herold and Ney 2023, section 3.1). `context_sides` is `both`, or `source` for a target that holds
    the current sentence alone.
    """

    view: str = "window"
    past_context: int = 0
    future_context: int = 0
    chunk_tokens: int = 1000
    context_sides: str = "both"

    def validate(self):
        super().validate()
        self.one_of("view", ("window", "chunk"))
        self.one_of("context_sides", ("both", "source"))
        for name in ("past_context", "future_context"):
            self.whole_number(name)
        if self.chunk_tokens < 1:
            raise ValueError(f"chunk_tokens must be >= 1, got {self.chunk_tokens}.")
        if self.view == "chunk" and (self.past_context or self.future_context):
            raise ValueError(
                f"view='chunk' takes its context from the chunk; got past_context={self.past_context}, "
                f"future_context={self.future_context}: set both to 0 or use view='window'."
            )
        if self.view == "chunk" and self.context_sides == "source":
            raise ValueError("view='chunk' translates all its sentences; use context_sides='both'.")

    def context_reach(self):
        if self.view == "chunk":
            return f"chunks of up to {self.chunk_tokens} target tokens, source and target"
        return self.sentence_reach()

    @property
    def longest_translation(self) -> int:
        """As in the base class; twice the tokens of a chunk where positions go on without end."""
        if self.view == "chunk" and self.position_type != "learned":
            return max(self.max_position_embeddings, 2 * self.chunk_tokens)
        return self.max_position_embeddings

    @property
    def window_size(self) -> int:
        """K, the largest number of sentences of one window."""
        return self.past_context + 1 + self.future_context


__all__ = ["SegmentConfig"]
