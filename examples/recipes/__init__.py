"""Training recipes, one file per published system."""
