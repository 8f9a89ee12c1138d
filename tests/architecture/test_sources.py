"""Rules that keep the code readable: sizes, names of modules, and where imports stand."""

import ast
import re
from graphlib import TopologicalSorter

import grimp
from code_tree import CORE, core_files, functions_of, name_of, plugin_files, script_files, tree_of

LONGEST_FUNCTION, LONGEST_FILE = 60, 400
SAY_NOTHING = {"helpers", "misc", "util", "utils"}
LATE_IMPORT = re.compile(r'import_module\("(modelgauge\.[\w.]+)"')
EXEMPTION = re.compile(r"# (?:noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])(?P<reason>.*)")
DECODING = {
    "core/modelgauge/data/item_records.py",  # has the function
    "core/modelgauge/engine/run_files/lines.py",  # reads journals
    "core/modelgauge/engine/run_files/journal.py",  # reads what it is about to write
    "core/modelgauge/engine/earlier_run.py",  # gets lines from the driver
    "core/modelgauge/engine/executors/remote_work.py",  # gets lines from workers
    "core/modelgauge/runs/record_files.py",  # reads files of --output-file
    "plugins/workbench/modelgauge_workbench/datasets/table.py",  # reads a record without its secrets
}
"""Files that decode records of items. All others get them from `ItemRecords`, `ItemFrame` or `JournalLines`."""

FILES = [*core_files(), *plugin_files(), *script_files()]


def test_the_rules_see_the_code() -> None:
    assert len(core_files()) > 80
    assert len(plugin_files()) > 15


def test_files_and_functions_are_short() -> None:
    lines = {name_of(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {name: length for name, length in lines.items() if length > LONGEST_FILE} == {}
    long = {
        f"{name_of(file)}:{function.lineno} {function.name}": length
        for file in FILES
        for function in functions_of(file)
        if (length := function.end_lineno - function.lineno + 1) > LONGEST_FUNCTION
    }
    assert long == {}


def test_modules_say_what_they_hold() -> None:
    undocumented = [
        name_of(file) for file in FILES if tree_of(file).body and not ast.get_docstring(tree_of(file))
    ]
    assert undocumented == []
    vague = [name_of(file) for file in FILES if {file.stem, file.parent.name} & SAY_NOTHING]
    assert vague == []


def test_no_bare_except() -> None:
    bare = [
        f"{name_of(file)}:{node.lineno}"
        for file in FILES
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert bare == []


def test_users_are_not_validated_by_assert() -> None:
    asserts = [
        f"{name_of(file)}:{node.lineno}"
        for file in [*core_files(), *plugin_files()]
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Assert)
    ]
    assert asserts == []


def test_functions_import_nothing_outside_of_the_command_line() -> None:
    inside = [
        f"{name_of(file)}:{node.lineno}"
        for file in core_files()
        if CORE / "cli" not in file.parents and file.name != "__init__.py"
        for function in functions_of(file)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert inside == []


def test_folders_are_worth_having() -> None:
    """A folder from three modules on: two files do not need one."""
    packages = [file.parent for file in core_files() if file.name == "__init__.py" and file.parent != CORE]
    small = {
        name_of(package): len(modules)
        for package in packages
        if len(modules := [path for path in package.iterdir() if path.suffix == ".py" or path.is_dir()]) < 3
    }
    assert small == {}


def test_no_modules_import_each_other() -> None:
    graph = grimp.build_graph("modelgauge", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    for file in core_files():  # also when they are first used
        module = ".".join(file.relative_to(CORE.parent).with_suffix("").parts).removesuffix(".__init__")
        imports[module] |= set(LATE_IMPORT.findall(file.read_text(encoding="utf-8")))
    assert list(TopologicalSorter(imports).static_order())  # raises a CycleError that names them


def test_lint_exemptions_carry_a_reason() -> None:
    """Behind the exemption, or on the line above: without one, nobody knows when it can go."""
    unexplained = []
    for file in FILES:
        before = ""
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            exemption = EXEMPTION.search(line)
            if exemption and not exemption["reason"].strip(" #") and not before.strip().startswith("#"):
                unexplained.append(f"{name_of(file)}:{number}")
            before = line
    assert unexplained == []


def test_no_remark_tears_a_statement_apart() -> None:
    """Behind a short line a remark makes the formatter break the statement: it stands on the line above instead."""
    torn = [
        f"{name_of(file)}:{number}"
        for file in FILES
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if re.match(r"\s*[])}]+:?  # (?!noqa|type:|fmt:)", line)
    ]
    assert torn == []


def test_a_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for file in core_files():
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name_of(file))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_variables_say_what_they_are() -> None:
    """`for record in records`, not `for one in records`; `one` stands only beside `other`."""
    vague = []
    for file in (*core_files(), *plugin_files()):
        names = [node for node in ast.walk(tree_of(file)) if isinstance(node, ast.Name) and node.id == "one"]
        tuples = [node.elts for node in ast.walk(tree_of(file)) if isinstance(node, ast.Tuple)]
        pairs = [parts for parts in tuples if "other" in {getattr(part, "id", None) for part in parts}]
        beside = {id(part) for parts in pairs for part in parts}
        made = [node for node in names if isinstance(node.ctx, ast.Store) and id(node) not in beside]
        vague += [f"{name_of(file)}:{node.lineno}" for node in made]
    assert vague == []


def test_records_of_items_are_decoded_in_few_places() -> None:
    decoding = {name_of(file) for file in FILES if "item_from_json(" in file.read_text(encoding="utf-8")}
    assert decoding == DECODING
