"""Trust: the names that a caller must give again to repeat a run that may be somebody else's."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from modelgauge.config.settings import TRUSTED
from modelgauge.data.results import GIVEN
from modelgauge.errors import RecordError
from modelgauge.files.regular import real_path
from modelgauge.rerun.original import NEW_RUN, Names, OriginalRun


def check_names(run: OriginalRun, names: Names, verb: str, command: str = "") -> None:
    """Refuse a run that may be somebody else's, unless the caller gives the names that it would use.

    Anybody may have written its manifest, and its SUT and judge would get the user's prompts and keys.

    Args:
        run: that is done again.
        names: those that the caller gives.
        verb: `resume` or `rescore`.
        command: that is given again with the names; by default the verb, on the run's folder.

    Raises:
        RecordError: a name is not given again, or is another; the message lists all.
    """
    described, folder = run.described, run.folder
    is_other = names.dataset is not None and run.file is None
    if verb == "resume" and (is_other or set(names.metrics) - set(described.inputs.metrics)):
        raise RecordError(f"Run {folder.run_id} was begun with other metrics, or no data set.", fix=NEW_RUN)
    if run.is_own:
        return
    if verb == "resume" and (folder.rescores() is not None or described.sut_uid == GIVEN):
        return  # which is refused for what it is
    needed = list(_needed_options(run, names, verb))
    lacking = _options(option for *option, is_given in needed if not is_given)
    trust = f"To trust all that lies there:\n  export {TRUSTED}={shlex.quote(str(real_path(folder.path)))}"
    whose = f"Run {folder.run_id} is not known to be your own"
    if any(option == "--dataset" for option, *_ in needed) and described.dataset is None:
        raise RecordError(
            f"{whose}, and does not say what its data set held.", fix=f"Start a new run. {trust}"
        )
    if lacking:
        trust = "" if command else f"\n{trust}"
        own_command = f"modelgauge {verb} {shlex.quote(str(folder.path))}"
        again = f"{command or own_command} {_options(option for *option, _ in needed)}"
        raise RecordError(
            f"{whose}. It names {lacking}: this is used only if you give it yourself.",
            fix=f"If you trust what it names, give it again:\n  {again}{trust}",
        )


def _options(named: Iterable[Sequence[str]]) -> str:
    return " ".join(f"{option} {shlex.quote(value)}" for option, value in named)


def _needed_options(run: OriginalRun, names: Names, verb: str) -> Iterator[tuple[str, str, bool]]:
    """Return the options for the names used from a run, and whether the caller gives them.

    A bare name of a test or metric means what is installed here, so that nothing of a stranger's is in it. For a data
    set and for data another path will do: their content must be that of the run.
    """

    def is_given(value: object, name: str) -> bool:
        # An object is the caller's, and a rescore measures by whatever the caller names.
        return value is not None and (verb == "rescore" or not isinstance(value, str) or value == name)

    described, inputs = run.described, run.described.inputs
    if names.plugins is not None:
        known = {_file_name(plugin) for plugin in names.plugins}
        yield from (
            ("--plugin", plugin, _file_name(plugin) in known) for plugin in dict.fromkeys(inputs.plugins)
        )
    if verb == "resume":
        yield "--sut", described.sut_uid, is_given(names.sut, described.sut_uid)
    if run.file is not None and names.test in (None, described.test_uid):
        yield "--dataset", run.file, names.dataset is not None
        for metric in filter(_has_parts, inputs.metrics):
            yield "--metric", metric, metric in names.metrics or (verb == "rescore" and bool(names.metrics))
    elif _has_parts(described.test_uid):
        yield "--test", described.test_uid, is_given(names.test, described.test_uid)
    if inputs.judge is not None:
        yield "--judge", inputs.judge, is_given(names.judge, inputs.judge)
    if (cache := described.options.get("cache")) is not None and not run.folder.is_bundled():
        yield "--cache", cache, names.cache is not None
    for key, path in run.local_data().items():
        yield "--dependency", f"{key}={path}", key in (names.dependencies or {})


def _has_parts(name: str) -> bool:
    return "?" in name or "/" in name


def _file_name(plugin: str) -> str:
    """Return the file name of a plugin, by which plugins are compared because the file may have moved since the run."""
    return plugin.replace("\\", "/").rpartition("/")[2]
