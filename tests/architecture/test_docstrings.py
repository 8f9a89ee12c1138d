"""Where a docstring explains arguments, it explains all of them, each on a line of its own."""

import ast
import inspect
import re
from collections.abc import Iterator

from code_tree import core_files, name_of, plugin_files, tree_of

SECTION = re.compile(r"^(?:Args|Attributes|Class attributes):\n((?:(?: .*)?\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \w+)*): ", re.MULTILINE)
OWN = {"self", "cls"}


def explained(docstring: str) -> set[str]:
    """The names that a docstring has an entry for."""
    entries = [name for text in SECTION.findall(docstring + "\n") for name in ENTRY.findall(text)]
    return {name.lstrip("*") for entry in entries for name in entry.split(", ")}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """What a function is called with; of `*args` and `**kwargs` another docstring tells."""
    given = function.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg not in OWN]


def arguments(node: ast.AST) -> list[str]:
    """What a function, a method or a class is called with."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return parameters(node)
    if not isinstance(node, ast.ClassDef):
        return []
    made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    return [name for one in made for name in parameters(one)] if made else [*fields(node)]


def fields(node: ast.ClassDef) -> Iterator[str]:
    """The fields of a dataclass or model that a caller can give."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            of_class = ast.unparse(one.annotation).startswith("ClassVar")
            made_inside = one.value is not None and "init=False" in ast.unparse(one.value)
            if not (of_class or made_inside or one.target.id.startswith("_")):
                yield one.target.id


def test_arguments_are_explained_all_or_none() -> None:
    unexplained = {}
    for file in [*core_files(), *plugin_files()]:
        for node in ast.walk(tree_of(file)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            docstring = inspect.cleandoc(ast.get_docstring(node) or "")
            if node.name.startswith("_") or not re.search(r"^Args:$", docstring, re.MULTILINE):
                continue
            missing = [name for name in arguments(node) if name not in explained(docstring)]
            if missing:
                unexplained[f"{name_of(file)}:{node.lineno} {node.name}"] = missing
    assert unexplained == {}


def test_an_argument_within_the_text_of_another_is_noticed() -> None:
    reflowed = (
        "Read.\n\nArgs:\n    a: one. b: two.\n    c, d: more\n        e: none.\n\nRaises:\n    f: never.\n"
    )
    assert explained(reflowed) == {"a", "c", "d"}
