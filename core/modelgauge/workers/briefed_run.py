"""The run that a brief describes: its works, with the objects that manifests name. Each must equal the driver's."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from modelgauge.api import Runner
from modelgauge.config.entry_points import DISTRIBUTION
from modelgauge.config.run_options import OPTIONS, RunOptions
from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import load_settings
from modelgauge.dependencies.store import DependencyStore
from modelgauge.engine.executors.messages import Brief
from modelgauge.engine.executors.remote_work import hash_file
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.manifest import list_versions
from modelgauge.engine.work import Work
from modelgauge.errors import RunStoppedError
from modelgauge.metrics.judges import judging_by_default
from modelgauge.plugins.resolution import Resolver
from modelgauge.rerun.original import Names, OriginalRun

_SAME = "Install the same version everywhere."


class BriefedRun(NamedTuple):
    """The works of a run, and its options."""

    works: list[Work]
    options: RunOptions


def briefed_run(brief: Brief) -> BriefedRun:
    """Make the objects of all works, each named object once.

    Raises:
        ModelGaugeError: one cannot be made, or is not what the driver has.
    """
    if brief.path is not None:
        sys.path[:] = brief.path
    _check_files(brief.files)
    _check_versions(brief.works[0])
    originals = [
        OriginalRun(RunFolder(Path(folder)), work)
        for folder, work in zip(brief.folders, brief.works, strict=True)
    ]
    runner = _runner(brief, originals[0])
    resolver = runner.resolver()
    works = []
    with judging_by_default(originals[0].described.inputs.judge):
        for original, answers in zip(originals, brief.answers, strict=True):
            works.append(_work(original, answers, runner, resolver))
    for original, work in zip(originals, works, strict=True):
        original.check_unchanged(work, runner.options.redactor)
    return BriefedRun(works, replace(runner.options, retry_failed=brief.retry_failed))


def _runner(brief: Brief, original: OriginalRun) -> Runner:
    described = original.described
    settings = load_settings(plugins=described.inputs.plugins, data_dir=brief.data_dir)
    recorded = described.run_options()
    options = {
        name: getattr(recorded, name) for name in OPTIONS if name not in ("data_dir", "runs_dir", "cache")
    }
    return Runner(
        brief.data_dir,
        settings=settings,
        secrets=SecretStore(file=settings.secrets_file, handed_down=brief.secrets),
        **{**options, "cache": brief.cache, "executor": "local", "workers": None, "progress": False},
    )


def _work(original: OriginalRun, answers: str | None, runner: Runner, resolver: Resolver) -> Work:
    described = original.described
    data = DependencyStore(  # of this test alone: files and pins of others are not of its data
        runner.options.data_dir / "dependencies",
        offline=runner.settings.offline,
        overrides={name: Path(file) for name, file in original.local_data().items()},
        pins=original.pins,
    )
    resolver = replace(resolver, dependencies=data)
    goldens = original.goldens(Names())
    test = described.test_uid if goldens is None else goldens.test(runner.plugins(), runner.secrets)
    if answers is None:
        made = resolver.works([test], [described.sut_uid])[0]
        return replace(made, answer_source=replace(made.answer_source, label=described.sut_label))
    return resolver.answered(test, original.recorded_answers(RunFolder(Path(answers))))


# --- whether all is as the driver has it ------------------------------------------------------------------------------


def _check_files(files: dict[str, str]) -> None:
    for file, digest in files.items():
        if (here := hash_file(Path(file))) != digest:
            raise RunStoppedError(
                f"its plugin file {file} is not the driver's (SHA-256 here: {here:.12}; there: {digest:.12}).",
                fix="Put the same file under the same path everywhere.",
            )


def _check_versions(manifest: Mapping[str, Any]) -> None:
    there = {DISTRIBUTION: manifest.get("modelgauge"), **manifest.get("plugins", {})}
    here = list_versions(there)
    for name, version in there.items():
        if here[name] != version:
            has = f"{name} {here[name]}" if here[name] else f"no {name}"
            raise RunStoppedError(f"it has {has}, the driver has {version}.", fix=_SAME)
