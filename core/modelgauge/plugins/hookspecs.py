"""The plugin manual: every hook that a plugin can implement, with an example of each.

A plugin is a module with functions of these names, marked `@hookimpl`. An installed package announces it by
an entry point, a file of your own is loaded by `--plugin FILE`:

    [project.entry-points.modelgauge]
    my_plugin = "my_plugin.register"

A hook takes the arguments that it needs, by the names below. Plugins are loaded and called one by one. A plugin that
raises is reported by `modelgauge plugins`, registers nothing, and affects no other. Keep the module light: what it
imports, every command pays for. That is what targets like `"my_plugin.sut:MySUT"` are for: they are imported when they
are first made. How hooks are found and called is in `discovery.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

    from modelgauge.data.item_records import TestItemExceptionRecord, TestItemRecord
    from modelgauge.data.records import TestRecord
    from modelgauge.plugins.registry import Register

PROJECT_NAME = "modelgauge"

hookspec = HookspecMarker(PROJECT_NAME)
hookimpl = HookimplMarker(PROJECT_NAME)


@hookspec
def modelgauge_register_tests(register: Register) -> None:
    """Register tests: subclasses of `PromptResponseTest`.

    Args:
        register: `register(uid, target, *args, **kwargs)`, once for each test. The target is a class or
            `"module:Class"`, and is made as `target(uid, *args, **kwargs)`. A uid has no white space and no `?`. A uid
            that two plugins register is an error when it is used. After `register.group(name, uids)`, `--test name`
            measures all of these tests, and shows their mean too.

    Example:
        @hookimpl
        def modelgauge_register_tests(register):
            for language in ("en", "fr"):
                register(f"my_trivia_{language}", "my_plugin.trivia:Trivia", language=language)
            register.group("my_trivia", ["my_trivia_en", "my_trivia_fr"])
    """


@hookspec
def modelgauge_register_suts(register: Register) -> None:
    """Register SUTs (systems under test), and providers of them: subclasses of `PromptResponseSUT`.

    Args:
        register: `register(uid, target, *args, **kwargs)` as for tests. After `register.provider(prefix, target,
            **kwargs)`, the name `prefix/any-model` is made as `target(uid, model="any-model", **kwargs)`; tests have
            providers too. `names="module:function"` returns the names that complete behind `prefix/`. A secret
            is given as `InjectSecret`, and the constructor receives an instance. `?key=value` after a name overrides
            arguments other than secrets.

    Example:
        @hookimpl
        def modelgauge_register_suts(register):
            register("my_sut", "my_plugin.sut:MySUT", temperature=0)
            register("my_api", "my_plugin.sut:MyAPI", api_key=InjectSecret("my_plugin.sut:MyKey"))
            register.provider("acme", "my_plugin.sut:MyAPI", api_key=InjectSecret("my_plugin.sut:MyKey"))
    """


@hookspec
def modelgauge_register_annotators(register: Register) -> None:
    """Register annotators: subclasses of `CompletionAnnotator`, which tests then name by their uid.

    Args:
        register: as for SUTs.

    Example:
        @hookimpl
        def modelgauge_register_annotators(register):
            register("my_toxicity", "my_plugin.toxicity:Toxicity", threshold=0.5)
    """


@hookspec
def modelgauge_register_metrics(register: Register) -> None:
    """Register metrics: annotators whose annotation is a `Score`, with a threshold and a direction.

    Args:
        register: as for SUTs.

    Example:
        @hookimpl
        def modelgauge_register_metrics(register):
            register("my_politeness", "my_plugin.metrics:Politeness")
    """


@hookspec
def modelgauge_register_commands(cli: click.Group, settings: Mapping[str, Any]) -> None:
    """Add commands to `modelgauge`.

    Args:
        cli: the click group of the program. Import click and your commands inside the hook: it is called only
            where commands matter.
        settings: what the user wrote for the plugin in `modelgauge.toml`, under `[plugin.NAME]`: empty if nothing. NAME
            is that of the entry point; of a file, its name without `.py`. Nothing is checked: refuse a key that you do
            not know.

    Example:
        @hookimpl
        def modelgauge_register_commands(cli):
            from my_plugin.commands import leaderboard
            cli.add_command(leaderboard)
    """


@hookspec
def modelgauge_run_started(run: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Called when a run begins: one test on one SUT, before the first call.

    An exception here is reported and does not break the run; the same holds for the two hooks below. Be quick: the run
    waits. It is not called for sessions of pytest.

    Args:
        run: its manifest, as in `run.json`: `run_id`, `invocation_id`, `test_uid`, `sut_uid` and more.
        settings: see `modelgauge_register_commands`.

    Example:
        @hookimpl
        def modelgauge_run_started(run):
            print("started", run["run_id"], file=sys.stderr)
    """


@hookspec
def modelgauge_item_finished(
    run_id: str, record: TestItemRecord | TestItemExceptionRecord, settings: Mapping[str, Any]
) -> None:
    """Called when a test item is done: measured, or recorded as failed. Items finish in any order.

    Args:
        run_id: the run that it belongs to.
        record: a `TestItemRecord` with its measurements, or a `TestItemExceptionRecord`.
        settings: see `modelgauge_register_commands`.

    Example:
        @hookimpl
        def modelgauge_item_finished(record):
            if hasattr(record, "error_type"):
                my_alerts.send(record.message)
    """


@hookspec
def modelgauge_run_finished(record: TestRecord, settings: Mapping[str, Any]) -> None:
    """Called when a run is over: finished, stopped or cancelled. Its files are written.

    It is called in a thread, so that other runs of the command go on while you send the record somewhere. A run that is
    resumed ends once more, with the same `run_id`. A session of pytest is a run too.

    Args:
        record: its `TestRecord`; `record.folder` has its files.
        settings: see `modelgauge_register_commands`.

    Example:
        @hookimpl
        def modelgauge_run_finished(record, settings):
            my_tracker.log(settings["project"], record.run_id, record.result)
    """
