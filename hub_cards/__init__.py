"""Templates of the model cards."""
