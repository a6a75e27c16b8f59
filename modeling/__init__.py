"""Architectures: the files that travel to a Hub repository."""
