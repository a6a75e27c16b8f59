"""The compiled primitives of decoding, built where a C compiler is there; setup.cfg declares all the rest."""

from setuptools import Extension, setup

kernels = Extension(
    "hf_docmt.engine._cpu_kernels",
    sources=["hf_docmt/engine/cpu_kernels.c"],
    depends=[f"hf_docmt/engine/{name}.h" for name in ("cpu_products", "cpu_search", "cpu_threads")],
    extra_compile_args=["-O3"],
    optional=True,  # what is missing without them is speed alone
)
setup(ext_modules=[kernels])
