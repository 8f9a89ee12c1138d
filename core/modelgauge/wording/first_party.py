"""The plugins of ModelGauge's own repository: an error about a name that is not there says how to install one."""

from importlib import import_module
from typing import NamedTuple


class FirstParty(NamedTuple):
    """Names that a first-party plugin adds, and its folder in a checkout."""

    kind: str
    prefix: str
    folder: str

    @property
    def distribution(self) -> str:
        return f"modelgauge-plugin-{self.folder.rpartition('/')[2].replace('_', '-')}"


FIRST_PARTY = (
    FirstParty("test", "demo_", "demo_plugins/demo_tests"),
    FirstParty("sut", "demo_", "demo_plugins/demo_suts"),
    FirstParty("annotator", "demo_", "demo_plugins/demo_annotators"),
    FirstParty("test", "bbh", "plugins/standard_tests"),
    FirstParty("test", "gsm8k", "plugins/standard_tests"),
    FirstParty("test", "lm_eval/", "plugins/lm_eval"),
    FirstParty("sut", "openai/", "plugins/openai"),
    FirstParty("command", "serve", "plugins/workbench"),
    FirstParty("command", "mlflow", "plugins/mlflow"),
    FirstParty("executor", "ray", "plugins/ray"),
    FirstParty("cache", "postgres", "plugins/postgresql"),
    FirstParty("cache", "redis", "plugins/redis"),
)


def how_to_install(kind: str, name: str) -> str:
    """Return a sentence on the first-party plugin that may have a name; empty if none has such names, or it is there.

    Args:
        kind: a kind of object, "command", "executor" or "cache".
        name: that is not there.
    """
    for plugin in FIRST_PARTY:
        if plugin.kind == kind and name.startswith(plugin.prefix) and not _is_installed(plugin.distribution):
            return (
                f"It may be in {plugin.distribution}, which is not installed: `pip install . ./{plugin.folder}` "
                "in a checkout of ModelGauge. "
            )
    return ""


def _is_installed(distribution: str) -> bool:
    metadata = import_module("importlib.metadata")  # which costs more than all that most commands do
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
