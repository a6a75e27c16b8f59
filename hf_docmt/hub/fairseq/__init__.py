"""Checkpoints of models that were published with fairseq, as models of this package."""
