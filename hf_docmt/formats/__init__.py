"""Documents with markup, in and out: a class and a file for each format, which registers itself as readers do.

A new format is one new file here with one subclass of `DocumentFormat`.
"""
