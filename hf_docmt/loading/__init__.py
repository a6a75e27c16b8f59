"""Model folders: architectures by name, loading, adapters, cards, pretrained weights."""
