"""Translation of corpora with a trained model."""
