"""`--plugin FILE_OR_MODULE`: plugins of people who have no package yet.

A file becomes a module whose name is its resolved path, so that its classes say where they come from.
`discovery.py` calls its hooks.
"""

import os
import sys
from importlib import import_module, invalidate_caches
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType

from modelgauge.config.import_by_name import describe
from modelgauge.config.settings import names_a_file
from modelgauge.errors import PluginError
from modelgauge.files.regular import is_file, real_path

HOOK_EXAMPLE = """Give it at least one hook, for example:

    from modelgauge import hookimpl
    @hookimpl
    def modelgauge_register_tests(register): register("my_test", MyTest)"""


class _PlainFile(SourceFileLoader):
    """A loader that compiles the file each time: a byte-code file beside it could be out of date by a second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def module_name(plugin: str) -> str:
    """Return the module name for `--plugin`: the resolved path of a file, the name of a module."""
    if names_a_file(plugin) or is_file(Path(plugin)):
        return str(real_path(Path(plugin).expanduser()))
    return plugin


def load_local_plugin(plugin: str) -> ModuleType:
    """Import a file or a module.

    It can import the modules beside the file, or in the working directory: that folder goes to the end of
    `sys.path`, where it shadows nothing. A file is executed each time.

    Raises:
        PluginError: it is not there, or raises when imported; the message names file and line.
    """
    if module_name(plugin) != plugin or names_a_file(plugin):
        return _load_file(plugin)
    _make_importable(Path.cwd())
    try:
        return import_module(plugin)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{plugin}.".startswith(f"{error.name}."):
            raise local_failure(plugin, error) from error
        raise PluginError(
            f"--plugin {plugin}: there is no file and no module of that name.",
            fix="Give the path of a Python file, or a module that can be imported from here.",
        ) from error
    except (Exception, SystemExit) as error:
        raise local_failure(plugin, error) from error


def local_failure(plugin: str, error: BaseException) -> PluginError:
    """Make the error of a local plugin that raised, with the line in its file."""
    if isinstance(error, SyntaxError):
        where, cause = (error.filename or plugin, error.lineno), f"{type(error).__name__}: {error.msg}"
    else:
        where, cause = _last_line(plugin, error), describe(error)
    file, line = where
    place = f"{file}, line {line}" if line else file
    return PluginError(f"--plugin {place}: {cause}.", fix="Correct the file, or leave it out.")


def _load_file(plugin: str) -> ModuleType:
    name = module_name(plugin)
    path = Path(name)
    if not is_file(path):
        what = "this is a folder" if path.is_dir() else "there is no such file"
        raise PluginError(f"--plugin {plugin}: {what}.", fix="Give the path of a Python file.")
    _make_importable(path.parent)
    loader = _PlainFile(name, name)
    spec = ModuleSpec(name, loader, origin=name)
    spec.has_location = True
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # while it runs too: dataclasses and pydantic look their module up
    try:
        loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        if isinstance(error, KeyboardInterrupt):
            raise
        raise local_failure(name, error) from error
    return module


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        invalidate_caches()


def _last_line(plugin: str, error: BaseException) -> tuple[str, int | None]:
    """Return the innermost line of the plugin's own file in a traceback."""
    module = sys.modules.get(plugin)
    file = plugin if names_a_file(plugin) else str(getattr(module, "__file__", plugin))
    line = None
    trace = error.__traceback__
    while trace is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == os.path.abspath(file):  # noqa: PTH100  no links
            line = trace.tb_lineno
        trace = trace.tb_next
    return file, line
