"""The options of functions as keyword arguments, which `generate.py` writes for type checkers and editors.

A type checker cannot derive them from the fields that declare the options.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING

from modelgauge.comparison.options import CompareOptions, PlanOptions
from modelgauge.config.options import options_in
from modelgauge.config.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Collection

_RUNS = """\
\"\"\"The options of a run as keyword arguments. `docs/generate.py` writes them from the fields of `RunOptions`.\"\"\"

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from modelgauge.data.prompts import SUTOptions
"""
_COMPARISONS = """\
\"\"\"The options of comparisons and plans as keyword arguments. `docs/generate.py` writes them from `options.py`.\"\"\"

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from modelgauge.comparison.options import Allowed
"""
_WIDTH = 120


def of_runs() -> str:
    """Return the module with the options of a run, without those for which functions have parameters of their own."""
    return "\n\n".join(
        [_RUNS, _keywords(RunOptions, "The options of a run.", {"data_dir", "max_test_items"})]
    )


def of_comparisons() -> str:
    """Return the module with the options of comparisons and plans."""
    compared = _keywords(CompareOptions, "The options of a comparison.")
    return "\n\n".join([_COMPARISONS, compared, _keywords(PlanOptions, "The options of a plan.")])


def _keywords(kind: type, docstring: str, without: Collection[str] = ()) -> str:
    """Return the source of a TypedDict with the options that a dataclass declares."""
    types = _types_in(kind)
    lines = [f"class {kind.__name__}Dict(TypedDict, total=False):", f'    """{docstring}"""', ""]
    for name, option in options_in(kind).items():
        if name not in without:
            lines += [f"    {name}: {types[name]}", *_docstring(option.help)]
    return "\n".join([*lines, ""])


def _docstring(text: str) -> list[str]:
    """Return a docstring as lines of source, the closing quotes on a line of their own if one does not suffice."""
    quoted = f'"""{text}"""'
    if len(quoted) <= _WIDTH - 10 - 4:
        return [f"    {quoted}"]
    return [*(f"    {line}" for line in textwrap.wrap(f'"""{text}', _WIDTH - 4)), '    """']


def _types_in(kind: type) -> dict[str, str]:
    """Return the types of the fields of a class as its source has them; of a tuple, what a caller may give for it."""
    source = textwrap.dedent(inspect.getsource(kind))
    fields = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.AnnAssign)]
    return {ast.unparse(node.target): _type_of_keyword(source, node.annotation) for node in fields}


def _type_of_keyword(source: str, annotation: ast.expr) -> str:
    match annotation:
        case ast.Constant(value=str(quoted)):  # a class that is imported for type checkers only
            return quoted
        case ast.Subscript(ast.Name("tuple"), ast.Tuple([part, ast.Constant(value=ellipsis)])) if (
            ellipsis is ...
        ):
            one = ast.unparse(part)
            return f"{one} | Sequence[{one}]"
    return ast.get_source_segment(source, annotation) or ""
