"""The files of a new architecture, copies of those in `hub_cards/toy` under its own name."""

import re
from importlib.resources import files
from pathlib import Path

from hf_docmt.files import check_new_folder, write_text
from hf_docmt.loading import registry

REGISTRY = Path("hf_docmt/loading/registry.py")
FOLDERS = {  # of a checkout, for the files of the toy
    "configuration_toy.py": "modeling",
    "modeling_toy.py": "modeling",
    "toy.md.j2": "hub_cards/architectures",
    "test_toy.py": "tests/modeling",
}
PACKAGE = '''"""The architecture `toy`; importing the package registers it."""

from hf_docmt.loading.registry import Architecture, register_architecture

register_architecture(Architecture("toy", package=__name__))
'''


def write_architecture(name: str, package: Path | None = None) -> list[Path]:
    """Write configuration, model, card and tests of a new architecture, and register it. Returns the files written.

    They go into the checkout of this package that is the current folder, or into a new Python package.
    ValueError: a name that cannot be used, a file that exists, a current folder that is not a checkout.
    """
    if not re.fullmatch("[a-z][a-z0-9]*", name):
        raise ValueError(f"name {name!r}: expected lower-case letters and digits, beginning with a letter")
    if name in registry.ARCHITECTURES:
        raise ValueError(f"architecture {name!r} already exists; choose another name")
    texts = package_texts(name, package) if package else checkout_texts(name)
    for path in texts:
        if path != REGISTRY and path.exists():
            raise ValueError(f"{path} exists; choose another name, or remove the file")
    for path, text in texts.items():
        write_text(text, path)
    return list(texts)


def next_steps(name: str, package: Path | None = None) -> str:
    """The next steps, for a person."""
    if package is None:
        return (
            f"Run the tests: python -m pytest tests/modeling/test_{name}.py\n"
            "Then replace the example by your mechanism; see modeling/README.md."
        )
    variables = f"PYTHONPATH={package.parent} HF_DOCMT_PLUGINS={package.name}"
    return (
        f"Use it: {variables} docmt train demo_concat4 architecture={name} output_dir=runs/{name}\n"
        f"Run its tests by those of a checkout: PYTHONPATH={package.parent}:CHECKOUT/tests "
        f"python -m pytest -p conftest {package}/test_{name}.py"
    )


def checkout_texts(name: str) -> dict[Path, str]:
    """The files of the toy in a checkout, and the registry with a line for this name, in alphabetical order."""
    if not REGISTRY.is_file():
        raise ValueError(
            f"{Path.cwd()} is not a checkout of hf-docmt (it has no {REGISTRY}): change to one, or give the folder of "
            f"a new package: docmt new architecture {name} my_package"
        )
    texts = {Path(folder, file.replace("toy", name)): toy_text(file, name) for file, folder in FOLDERS.items()}
    registered = REGISTRY.read_text("utf-8")
    lines = list(re.finditer(r'^        Architecture\("(\w+)".*\n', registered, re.MULTILINE))
    place = next((line.start() for line in lines if line[1] > name), lines[-1].end())
    texts[REGISTRY] = f'{registered[:place]}        Architecture("{name}"),\n{registered[place:]}'
    return texts


def package_texts(name: str, package: Path) -> dict[Path, str]:
    """The files of the toy in a package of its own, which imports the modules of this one."""
    if not package.name.isidentifier():
        raise ValueError(f"{package}: expected a folder that can be imported as a Python package, such as my_package")
    check_new_folder(package)
    package.mkdir(parents=True, exist_ok=True)
    texts = {package / "__init__.py": PACKAGE.replace("toy", name)}
    for file in FOLDERS:
        text = re.sub(rf"^from \.(?!configuration_{name})", "from hf_docmt.modeling.", toy_text(file, name), flags=re.M)
        if file == "test_toy.py":
            text = text.replace("\nWINDOW", f"\nimport {package.name}  # noqa: F401  # registers it\n\nWINDOW", 1)
        texts[package / file.replace("toy.md", "card_toy.md").replace("toy", name)] = text
    return texts


def toy_text(file: str, name: str) -> str:
    """A file of the toy, for an architecture of this name."""
    text = files("hf_docmt.hub_cards").joinpath("toy", file).read_text("utf-8")
    return text.replace("toy", name).replace("Toy", name.capitalize())
