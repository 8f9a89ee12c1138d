"""Docstrings and names: every argument is explained or none; functions are verbs, classes and modules are nouns."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from code_tree import core_files, functions_of, name_of, plugin_files, tree_of

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


# --- words ----------------------------------------------------------------------------------------------------

CLAUSES = {
    "How",
    "Likewise",
    "That",
    "Those",
    "What",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whose",
    "Why",
}
"""Openings of clauses. A class or an attribute is a noun phrase, a flag is "True if …"."""

ARTICLES = {"A", "All", "An", "Each", "Every", "It", "No", "One", "The", "This"}
"""Openings of noun phrases. A function is a verb in the imperative, such as "Return"."""

NOT_REWORDED = ("plugins/workbench/",)
"""Folders with older wording. Reword a folder and remove it here; never add one."""

NAMES_IN_OF = {
    "capabilities_of",
    "case_of",
    "instance_of",
    "measurement_of",
    "one_of",
    "pairs_of",
    "ratings_of",
}
"""Public names, and those that read like `isinstance`."""

NOT_RENAMED = (
    *NOT_REWORDED,
    "core/modelgauge/reports/",
    "core/modelgauge/interfaces/",
    "plugins/lm_eval/",
    "plugins/openai/",
)


def opening(docstring: str) -> str:
    return docstring.split(maxsplit=1)[0].strip(",.:;") if docstring.strip() else ""


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield each docstring with its owner; the docstring of an attribute has the attribute as its owner."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for before, statement in zip([node, *body], body, strict=False):
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield before, value.value


def is_verb(node: ast.AST) -> bool:
    """Return whether a docstring must begin with a verb: of functions, but not of properties and rules of the kit."""
    return (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("test_")
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    )


def misworded(file: Path) -> list[str]:
    """List the docstrings that begin with a clause, and those of functions that begin with an article."""
    return [
        f"{name_of(file)}: {text.strip().splitlines()[0]}"
        for node, text in docstrings(tree_of(file))
        if opening(text) in CLAUSES or (is_verb(node) and opening(text) in ARTICLES)
    ]


def test_docstrings_begin_with_verb_or_noun() -> None:
    files = [file for file in [*core_files(), *plugin_files()] if not name_of(file).startswith(NOT_REWORDED)]
    found = [line for file in files for line in misworded(file)]
    assert found == [], "begin functions with a verb (Return …), the others with a noun, flags with 'True if'"


def test_no_function_is_named_of() -> None:
    files = [file for file in [*core_files(), *plugin_files()] if not name_of(file).startswith(NOT_RENAMED)]
    named = {
        f"{name_of(file)}: {function.name}"
        for file in files
        for function in functions_of(file)
        if function.name.endswith("_of") and function.name not in NAMES_IN_OF
    }
    assert named == set()


def test_each_exception_is_needed() -> None:
    """Fail when a folder has been reworded but is still listed."""
    for folder in NOT_REWORDED:
        files = [file for file in plugin_files() if name_of(file).startswith(folder)]
        assert any(misworded(file) for file in files), (
            f"{folder} has been reworded: remove it from NOT_REWORDED"
        )


def test_clause_and_article_are_noticed() -> None:
    tree = ast.parse(
        'class C:\n    """What it is."""\n    n: int\n    """How many."""\n\n'
        '    def f(self):\n        """The number."""\n\n'
        '    @property\n    def p(self):\n        """The number."""\n'
    )
    found = [(opening(text), is_verb(node)) for node, text in docstrings(tree)]
    assert sorted(found) == [("How", False), ("The", False), ("The", True), ("What", False)]
