"""Public names of a package that are loaded when they are first used, so that importing the package stays quick."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_IMPORT = re.compile(r"^    from (\S+) import (?:\(\s*)?(\w+) as (\w+)", re.MULTILINE)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package (PEP 562).

    The names are those that the package imports for type checkers: `from MODULE import NAME as NAME` under
    `if TYPE_CHECKING`. They are read from its source, so that each is written once.

    Args:
        package: its `__name__`.
    """
    spec: Any = sys.modules[package].__spec__
    source = spec.loader.get_data(spec.origin).decode()  # every loader has it, that of pytest too
    home_of = {name: (module, original) for module, original, name in _IMPORT.findall(source)}
    public = sorted(home_of)

    def load(name: str) -> Any:
        if name not in home_of:
            raise import_module("modelgauge.wording.did_you_mean").missing_name(package, name)
        module, original = home_of[name]
        value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: [*public], public
