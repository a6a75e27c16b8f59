"""The fast way on a CPU: search, decoding state, step programs, kernels (C), int8 and packed weights, shortlists.

It depends on the layers of `modeling`, which do not depend on it. `hf_docmt.engine.generation.install` gives the models
of the package an `Engine`, which serves `generate`, encoders and losses inside a scope in which weights do not change;
the registry calls it when an architecture is first used.
"""
