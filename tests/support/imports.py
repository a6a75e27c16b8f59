"""What Python files import, read from their syntax trees: at module level and inside functions."""

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

PATH = re.compile(r"""["'](hf_docmt[\w.]*:\w+)["']""")  # "package.module:name", what registry.load imports


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements of the tree and what holds some, without the expressions, which are most of its nodes."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, field, ()):
            yield node
            yield from statements(node)


def imported_names(tree: ast.AST, module: str, is_package: bool = False) -> set[str]:
    """Full names of what is imported anywhere in the tree; `from x import y` counts as x.y."""
    names = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join(parts + ([node.module] if node.module else []))
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def import_graph(sources: Mapping[str, str], packages: set[str]) -> dict[str, set[str]]:
    """The modules that each module imports, {module: modules}, of those in `sources`, {module: text of the file}.

    `packages` are the modules that are an `__init__.py`. Imports inside functions and the paths that `registry.load`
    imports count as well. A module does not import the packages it is in.
    """
    graph = {}
    for module, text in sources.items():
        names = imported_names(ast.parse(text), module, module in packages)
        names |= {path.replace(":", ".") for path in PATH.findall(text)}
        graph[module] = {imported for name in names if (imported := module_of(name, sources))} - {module}
    return graph


def module_of(name: str, modules: Mapping[str, str]) -> str:
    """The module that holds `name`, the longest one that begins it; empty for a name of none of them."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def import_cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle of imports, its first module repeated at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []
