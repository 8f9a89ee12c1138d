"""Checks of a plugin, or of one object, for authors.

The promises are functions in `plugin_checks`, `object_checks` and `item_checks`. Nothing here imports pytest;
`conformance` returns cases for its `parametrize`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from modelgauge.config.settings import load_settings
from modelgauge.dependencies.store import DependencyStore
from modelgauge.errors import UsageError
from modelgauge.interfaces.annotator import Annotator
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.plugins.construction import Kind, Registration, ResolvedName
from modelgauge.plugins.discovery import discover
from modelgauge.plugins.registry import Registry
from modelgauge.testing import item_checks, object_checks, plugin_checks
from modelgauge.testing.plugin_checks import Plugin
from modelgauge.testing.report import Case, Report, rule_id
from modelgauge.testing.subject import INTERFACES, Subject, attempt
from modelgauge.wording.phrases import a_thing, capitalized, with_article

_EXAMPLE_MODEL = "example-model"
_installed_plugins = cache(discover)
_OF_REQUESTS = ("requests", "cacheable", "deterministic", "distinct", "responses", "calls")


def _rules(module: ModuleType, *, but: Sequence[str] = ()) -> list[Callable[[Any], str | None]]:
    found = [value for name, value in vars(module).items() if name.startswith("test_")]
    return [rule for rule in found if rule_id(rule) not in but]


RULES = {
    "plugin": _rules(plugin_checks),
    "test": [*_rules(object_checks, but=_OF_REQUESTS), *_rules(item_checks)],
    "sut": _rules(object_checks),
    "annotator": _rules(object_checks, but=["distinct"]),
    "metric": _rules(object_checks, but=["distinct"]),
}


def check_plugin(
    name: str,
    *,
    local: Sequence[str] = (),
    examples: Sequence[str] = (),
    call: bool = False,
    data_dir: str | Path | None = None,
) -> Report:
    """Check every promise of a plugin: in its own tests, or by `modelgauge plugins check`.

    Args:
        name: a distribution, one of its entry points, or the path of a local plugin.
        local: local plugins to load in addition to installed plugins; `name` may be one of them.
        examples: names to check, for providers (`acme/small-model`) and for uids that need options.
        call: ask SUTs and annotators for real, which may cost money: a brief prompt for each, and the
            annotators of tests. A provider is asked only for the models that `examples` name.
        data_dir: where fetched data is; what the settings say when None. Nothing is fetched.

    Raises:
        UnknownNameError: there is no such plugin.
        UsageError: an example is not a name of the plugin.
    """
    cases = conformance(name, local=local, examples=examples, call=call, data_dir=data_dir)["argvalues"]
    return Report(name, [case.finding() for case in cases])


def conformance(
    name: str,
    *,
    local: Sequence[str] = (),
    examples: Sequence[str] = (),
    call: bool = False,
    data_dir: str | Path | None = None,
) -> dict[str, Any]:
    """Return the checks of a plugin as arguments of `pytest.mark.parametrize`, a test for each rule.

    In the tests of a plugin:

        @pytest.mark.parametrize(**conformance("my-plugin"))
        def test_conformance(case):
            case.check()

    Arguments and errors are those of `check_plugin`. Rules run when their tests do, so that collecting them
    stays quick.
    """
    plugin = Plugin(name, local)
    subjects: list[Subject] = []

    @cache  # one process for all tests of the plugin
    def items_elsewhere() -> dict[str, Any]:
        tests = [subject for subject in subjects if subject.kind == "test"]
        found = [(test.name, attempt(partial(getattr, test, "data")).value) for test in tests]
        return plugin.items_elsewhere(
            {name: data.value.there for name, data in found if data and not data.error}
        )

    make = partial(
        Subject,
        plugins=plugin.plugins,
        store=_store(data_dir),
        call=call,
        items_elsewhere=lambda name: items_elsewhere().get(name),
    )
    for entry in (entry for registry in plugin.plugins.registries for entry in registry):
        if entry.distribution == plugin.distribution:
            alone = Registry(entry.kind)  # names are resolved as if no other plugin claimed them
            alone.add([entry])
            given = [example for example in examples if example in alone]
            made_up = f"{entry.uid}/{_EXAMPLE_MODEL}" if entry.is_provider else entry.uid
            is_example = entry.is_provider and not given
            subjects.extend(
                make(entry.kind, uid, alone.resolve(uid), is_example=is_example) for uid in given or [made_up]
            )
    for example in set(examples) - {subject.name for subject in subjects}:
        raise UsageError(
            f"{example!r} is not a name of {plugin.name}.",
            fix="Give PROVIDER/MODEL or UID?key=value of what it registers.",
        )
    everything: list[Any] = [plugin, *subjects]
    cases = [Case(rule, subject) for subject in everything for rule in RULES[subject.kind]]
    return {"argnames": "case", "argvalues": cases, "ids": [case.id for case in cases]}


def check_sut(sut: PromptResponseSUT[Any, Any], *, call: bool = False) -> Report:
    """Check the promises of a SUT.

    Args:
        sut: the object, made with any secrets.
        call: ask it one brief prompt, which may cost money.
    """
    return _check_object("sut", sut, call=call)


def check_annotator(annotator: Annotator, *, call: bool = False) -> Report:
    """Check the promises of an annotator or a metric; for the arguments see `check_sut`."""
    return _check_object("annotator", annotator, call=call)


def check_test(
    test: PromptResponseTest,
    *,
    annotators: Mapping[str, Annotator] | None = None,
    call: bool = False,
    data_dir: str | Path | None = None,
) -> Report:
    """Check the promises of a test; no SUT is needed.

    Args:
        test: the object.
        annotators: to use instead of the test's own, such as `FakeAnnotator`, by the test's names.
        call: call its own annotators, which may cost money.
        data_dir: where fetched data is.
    """
    return _check_object("test", test, call=call, data_dir=data_dir, annotators=annotators or {})


def list_rules() -> list[tuple[str, str, tuple[str, ...]]]:
    """List each rule's id, its promise, and the kinds of objects that it checks."""
    rules = dict.fromkeys(rule for rules in RULES.values() for rule in rules)
    return [
        (rule_id(rule), str(rule.__doc__), tuple(kind for kind, rules in RULES.items() if rule in rules))
        for rule in rules
    ]


def _check_object(kind: Kind, given: Any, data_dir: str | Path | None = None, **options: Any) -> Report:
    if not isinstance(given, INTERFACES[kind]):
        raise UsageError(
            f"{capitalized(a_thing(given))} is not {with_article(INTERFACES[kind].__name__)}.",
            fix="Give the object, not its class or uid.",
        )
    entry = Registration(kind, given.uid, lambda uid: given, (), {}, distribution="")  # noqa: ARG005  it has its uid
    resolved = ResolvedName(entry, given.uid)
    subject = Subject(kind, given.uid, resolved, _installed_plugins(), _store(data_dir), **options)
    return Report(given.uid, [Case(rule, subject).finding() for rule in RULES[kind]])


def _store(data_dir: str | Path | None) -> DependencyStore:
    """Return the store of fetched data; if there is none yet, a folder that is removed when the process exits."""
    folder = Path(data_dir) if data_dir is not None else load_settings().data_dir
    if data_dir is None and not folder.is_dir():
        return DependencyStore(Path(_scratch().name), offline=True)
    return DependencyStore(folder / "dependencies", offline=True)


@cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="modelgauge-check-", ignore_cleanup_errors=True)
