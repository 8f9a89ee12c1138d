"""`"module:Class"`: what a plugin registers, so that nothing is imported before it is needed.

This module has the syntax and the import, with errors that name the cause. The registry knows who registered a
target, and its arguments.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from modelgauge.errors import PluginError
from modelgauge.wording.did_you_mean import did_you_mean


def check_target(target: object, *, owner: str) -> None:
    """Refuse what cannot be a target, without importing anything.

    Args:
        target: a class, another callable, or `"module:Class"`.
        owner: who names the target, for the error.

    Raises:
        PluginError: it is none of these.
    """
    if isinstance(target, str):
        module, separator, attribute = target.rpartition(":")
        if not (separator and module.strip() and attribute.strip()):
            raise PluginError(f"{owner}: {target!r} is not a target.", fix='Write it as "module:Class".')
    elif not callable(target):
        raise PluginError(
            f"{owner}: {type(target).__name__} {target!r} is not a target.",
            fix='Give the class itself, or "module:Class".',
        )


def import_target(target: str, *, owner: str, distribution: str = "") -> Any:
    """Import `"module:Class"` and return the class; `"module:Outer.Inner"` reaches inside.

    Args:
        target: module and attribute. The module may be a file that was loaded by `--plugin`.
        owner: what the target is wanted for, for the error.
        distribution: who registered it, for the error.

    Raises:
        PluginError: the import fails, whatever the reason, or the module has no such attribute.
    """
    check_target(target, owner=owner)
    module_name, _, path = target.rpartition(":")
    by = f" (from {distribution})" if distribution else ""
    try:
        value: Any = import_module(module_name)
    except (Exception, SystemExit) as error:
        problem = f"{owner}{by}: importing {module_name!r} failed: {describe(error)}."
        raise PluginError(problem, fix=_fix_for_import(error, module_name, distribution)) from error
    for attribute in path.split("."):
        parent = value
        try:
            value = getattr(parent, attribute)
        except AttributeError as error:
            problem = f"{owner}{by}: {module_name!r} has no {path!r}."
            suggestion = did_you_mean(attribute, (name for name in vars(parent) if not name.startswith("_")))
            raise PluginError(problem, fix=f"{suggestion}Correct the target {target!r}.") from error
    return value


def describe(error: BaseException) -> str:
    """`"ValueError: text"` on one line, without a closing full stop."""
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _fix_for_import(error: BaseException, module_name: str, distribution: str) -> str:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is None:
        return "`modelgauge plugins` lists what is installed; ask its author, or install another version."
    root = missing.partition(".")[0]
    if root == module_name.partition(".")[0]:
        where = "" if Path(distribution).is_absolute() else f", or reinstall {distribution or 'its package'}"
        return f"Correct the target{where}."
    return f"Install the package that provides it, usually: `pip install {root}`."
