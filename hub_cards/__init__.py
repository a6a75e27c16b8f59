"""Text of the model cards."""
