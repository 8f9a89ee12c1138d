"""Rules about a whole plugin: what loading it and calling its registration hooks does."""

from collections.abc import Iterator

from modelgauge.testing.plugin_subject import PluginSubject
from modelgauge.testing.rule import NotApplicableError, Note, problem, remark, rule

_GROSS_SECONDS = 0.25
_GROSS_RATIO = 3.0
_LAZY = 'Register targets as texts ("my_plugin.sut:MySUT"), and import it only in the modules that they name'


@rule("loads", "The plugin can be imported, and its hooks are as specified.")
def loads(plugin: PluginSubject) -> Iterator[Note]:
    if plugin.failure is not None:
        message, fix = plugin.failure
        yield problem(message, fix=fix)


@rule(
    "imports",
    "Registering imports no SDK: nothing but the plugin's own light modules and the standard library.",
)
def imports(plugin: PluginSubject) -> Iterator[Note]:
    found = plugin.registration
    if not found["foreign"]:
        return
    roots = [modules[0] for _, modules in sorted(found["foreign"].items())]
    count = sum(map(len, found["foreign"].values())) - len(roots)
    more = f" and {count} modules of theirs" if count else ""
    along = [name for name in found["along"] if not name.endswith(("register", ".py"))]
    through = f" They may come with {', '.join(along[:5])}." if along else ""
    yield problem(f"Registering imports {', '.join(roots)}{more}.{through}", fix=f"{_LAZY}.")


@rule("import-cost", "Registering takes little time beside what modelgauge itself takes to import.")
def import_cost(plugin: PluginSubject) -> Iterator[Note]:
    found = plugin.registration
    seconds, base = found["seconds"], found["base_seconds"]
    told = f"{seconds * 1000:.0f} ms, {seconds / base:.2g} times what `import modelgauge.plugins.hookspecs` takes"
    gross = seconds > _GROSS_SECONDS and seconds > _GROSS_RATIO * base
    if gross and found["foreign"]:
        raise NotApplicableError(f"{told}: see imports")
    if gross:
        yield problem(
            f"Registering takes {told}.",
            fix=f"Every command pays for it. {_LAZY}; compute nothing at import.",
        )
    else:
        yield remark(f"{told}.")


@rule(
    "side-effects",
    "Registering opens no connection, starts no process, and writes, prints and configures nothing.",
)
def side_effects(plugin: PluginSubject) -> Iterator[Note]:
    for act in plugin.registration["acts"]:
        yield problem(
            f"Registering {act}.",
            fix="Do it where it is needed: in evaluate, in open(), or in make_test_items.",
        )


RULES = (loads, imports, import_cost, side_effects)
