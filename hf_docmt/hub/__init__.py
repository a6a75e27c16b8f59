"""Model cards, export and conversion of pretrained models."""
