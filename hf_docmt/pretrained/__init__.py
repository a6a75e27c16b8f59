"""Document models from pretrained sentence-level ones: Marian, BART, mBART, M2M-100 (NLLB)."""
