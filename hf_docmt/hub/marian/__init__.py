"""Files that Marian itself writes, as models of this package."""
