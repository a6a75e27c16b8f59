"""Training recipes, one file per published system, over the shared bases in `base/`."""
