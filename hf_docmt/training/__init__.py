"""Training of document translation models."""
