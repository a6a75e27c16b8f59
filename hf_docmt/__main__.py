"""`python -m hf_docmt` is the command `docmt`."""

from hf_docmt.cli import main

main()
