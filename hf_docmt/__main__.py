"""`python -m hf_docmt` is the command `docmt`."""

from hf_docmt.cli import run

if __name__ == "__main__":  # and not where it is imported by a process that reads
    run()
