"""The compiled kernels of decoding, built where there is a C compiler; setup.cfg declares everything else."""

import os

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

kernels = Extension(
    "hf_docmt.engine._cpu_kernels",
    sources=["hf_docmt/engine/cpu_kernels.c"],
    depends=[f"hf_docmt/engine/cpu_{name}.h" for name in ("products", "search", "threads", "vectors", "wide")],
    extra_compile_args=["-O3"],
    optional=True,  # without them everything works, only slower
)
is_pure = os.environ.get("HF_DOCMT_PURE", "0") != "0"  # a wheel without kernels, for every platform


class Wheel(bdist_wheel):
    """A wheel for every Python 3 of the platform: the kernels are loaded by ctypes and know nothing of Python."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return (python, abi, platform) if self.root_is_pure else ("py3", "none", platform)


setup(ext_modules=[] if is_pure else [kernels], cmdclass={"bdist_wheel": Wheel})
