"""Public names of a package that are loaded when they are first used, so that importing the package stays quick."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    package: str, names_of: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package (PEP 562).

    Type checkers do not run this: for them, the package imports the same names under `if TYPE_CHECKING`.

    Args:
        package: its `__name__`.
        names_of: for each module, its public names, with spaces between them.
    """
    home_of = {name: module for module, names in names_of.items() for name in names.split()}
    public = sorted(home_of)

    def load(name: str) -> Any:
        if name not in home_of:
            raise import_module("modelgauge.wording.did_you_mean").missing_name(package, name)
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: [*public], public
