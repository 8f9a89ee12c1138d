"""Public names of a package that are loaded when they are first used, so that importing the package stays quick."""

import dis
import sys
from collections.abc import Callable
from importlib import import_module
from types import CodeType
from typing import Any

_OURS = __name__.partition(".")[0] + "."


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package (PEP 562).

    The names are those that the package imports for type checkers: `from MODULE import NAME as NAME` under
    `if TYPE_CHECKING`. They are read from the code of the package, which calls this, so that each is written once.

    Args:
        package: its `__name__`.
    """
    home_of = _imports(sys._getframe(1).f_code)  # noqa: SLF001  there without any source too: .pyc files, archives
    public = sorted(home_of)

    def load(name: str) -> Any:
        if name not in home_of:
            raise import_module("modelgauge.wording.did_you_mean").missing_name(package, name)
        module, original = home_of[name]
        value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: [*public], public


def _imports(code: CodeType) -> dict[str, tuple[str, str]]:
    """Map each name that a package imports for type checkers to its module, and its name there."""
    home_of, module, original = {}, "", ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            module = instruction.argval
        elif instruction.opname == "IMPORT_FROM":
            original = instruction.argval
        elif instruction.opname == "STORE_NAME" and original:
            if module.startswith(_OURS) and module != __name__:  # this module is imported for real
                home_of[instruction.argval] = module, original
            original = ""
    return home_of
