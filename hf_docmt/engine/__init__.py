"""The fast way on a CPU: search, decoding state, step programs, kernels (C), int8 and packed weights, shortlists.

It knows the layers of `modeling`, which know nothing of it. `hf_docmt.engine.generation.install` gives the models of
the package an `Engine`, which serves `generate`, encoders and losses inside a scope in which weights do not change; the
registry does it when an architecture is first asked for.
"""
