"""The public names: sorted, importable, and loaded only when they are used."""

import compileall
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import modelgauge


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_all_is_sorted_and_has_no_repeats():
    assert modelgauge.__all__ == sorted(set(modelgauge.__all__))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = modelgauge.no_such_name


def test_importing_the_package_imports_nothing_else():
    loaded = run_python(
        "import sys; before = set(sys.modules); import modelgauge\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - {'modelgauge', *sys.stdlib_module_names}))\n"
        "print(sorted(name for name in sys.modules if name.startswith('modelgauge.')))"
    )
    assert loaded.splitlines() == ["[]", "['modelgauge.wording', 'modelgauge.wording.lazy_names']"]


def test_an_installation_without_sources_has_all_names(tmp_path):
    copy = tmp_path / "modelgauge"
    shutil.copytree(Path(modelgauge.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert compileall.compile_dir(copy, quiet=1, legacy=True)
    for source in copy.rglob("*.py"):
        source.unlink()
    found = run_python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import modelgauge\n"
        "print(modelgauge.__file__); print(modelgauge.__all__)"
    )
    assert found.splitlines() == [str(copy / "__init__.pyc"), str(modelgauge.__all__)]


def test_hookimpl_imports_no_pydantic_and_no_numpy():
    loaded = run_python(
        "import sys; from modelgauge import hookimpl\n"
        "print([one for one in ('pydantic', 'numpy', 'aiohttp', 'diskcache', 'click') if one in sys.modules])"
    )
    assert loaded == "[]"


def test_data_classes_import_no_numpy():
    loaded = run_python(
        "import sys; from modelgauge import TestItem, PromptResponseTest, PromptResponseSUT, FunctionSUT\n"
        "print([name for name in ('numpy', 'aiohttp', 'diskcache', 'click') if name in sys.modules])"
    )
    assert loaded == "[]"


def test_a_worker_process_imports_no_numpy():
    loaded = run_python("import sys, modelgauge.workers.serving; print('numpy' in sys.modules)")
    assert loaded == "False"
