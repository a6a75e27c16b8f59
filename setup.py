"""The compiled primitives of decoding, built where a C compiler is there; setup.cfg declares all the rest."""

from setuptools import Extension, setup

kernels = Extension(
    "hf_docmt.modeling._cpu_kernels",
    sources=["modeling/cpu_kernels.c"],
    depends=["modeling/cpu_products.h", "modeling/cpu_search.h", "modeling/cpu_threads.h"],
    extra_compile_args=["-O3"],
    optional=True,  # what is missing without them is speed alone
)
setup(ext_modules=[kernels])
