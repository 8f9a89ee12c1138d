"""`modelgauge bundle`, `unbundle` and `check`: sharing runs, and verifying them."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    cache_option,
    data_dir_option,
    dependency_option,
    offline_option,
    shared_options,
)
from modelgauge.cli.dataset_options import names_again
from modelgauge.cli.output_file import OUTPUT_PATH, OutputFile
from modelgauge.cli.program import FAILED
from modelgauge.errors import ModelGaugeError
from modelgauge.wording.phrases import counted, first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modelgauge.bundles.checking import BundleCheck, Scores
    from modelgauge.bundles.run_checks import RunCheck
    from modelgauge.cli.app import App
    from modelgauge.config.redaction import Redactor

_FILE = click.Path(dir_okay=False, path_type=Path)
_MOST_NAMED = 5

allowed_signers_option = click.option(
    "--allowed-signers",
    type=_FILE,
    metavar="FILE",
    help="Require a signature by somebody in this file, whose form `man ssh-keygen` describes.",
)


@click.command("bundle")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--output", required=True, type=OUTPUT_PATH, metavar="FILE", help="The bundle.")
@click.option(
    "--sign", "key", type=_FILE, metavar="KEY", help="Sign the bundle with this key, by ssh-keygen."
)
@click.option(
    "--redact", is_flag=True, help="Leave out prompts, answers, contexts, annotations and the cache rows."
)
@click.option(
    "--with-data",
    is_flag=True,
    help="Include the external data of the tests, if its declaration names a license.",
)
@data_dir_option
@cache_option
@shared_options
def bundle(
    app: App, /, *, runs: Sequence[str], output: Path, key: Path | None, redact: bool, with_data: bool
) -> None:
    """Write runs into one file for other people, with the cached answers that they used.

    RUN is as for `modelgauge show`. With the answers, the runs can be measured again without a paid call; `modelgauge
    unbundle` unpacks the file, `modelgauge check` checks it. Its manifest has the SHA-256 of all files; --sign proves
    who made it. A run that holds a known secret is refused, and cache rows that hold a secret are left out. Recipients
    have the external data of a test, fetch it, or give it with --dependency, unless you include it with --with-data.

    \b
    Examples:
      modelgauge bundle latest -o run.mgb
      modelgauge bundle latest -o run.mgb --with-data
      modelgauge bundle 20260131-120000-a1b2c3 -o run.mgb --sign ~/.ssh/id_ed25519
    """
    from modelgauge.bundles.bundling import bundle as made_bundle
    from modelgauge.bundles.signing import UNSIGNED
    from modelgauge.runs.naming import find_each

    if redact and with_data:
        raise click.UsageError(
            "--redact leaves out the texts that --with-data takes along: give one of them."
        )
    found = find_each(app.settings.data_dir, runs)
    kept = OutputFile(output, app.settings.data_dir, "--output")
    settings, secrets = app.settings, _all_secrets(app)
    made = made_bundle(
        found,
        settings.data_dir,
        kept.path,
        secrets,
        cache=settings.cache,
        key=key,
        redact=redact,
        with_data=with_data,
    )
    size = output.stat().st_size
    if app.as_json:
        app.show_json(
            {"bundle": str(output), "bytes": size, **made.model_dump(mode="json", exclude={"files"})}
        )
        return
    rows = made.cache_rows
    app.show(f"{output}  {counted(len(found), 'run')}, {counted(rows.kept, 'cache row')}, {size:,} bytes")
    if rows.missing:
        app.note(f"{counted(rows.missing, 'row')} that the runs used are not in the cache any more.")
    if rows.secret:
        app.note(f"{counted(rows.secret, 'row')} with a secret left out.")
    for data, why in made.data_left_out.items():
        app.note(f"Left out: the data {data}; {why}.")
    app.note(UNSIGNED if key is None else f"Signed with {key}.")


def _all_secrets(app: App) -> Redactor:
    """Return a redactor with the secrets of all installed plugins, as far as they can be found."""
    for registry in app.plugins.registries:
        for injection in (secret for entry in registry for secret in entry.injections):
            try:
                app.secrets.find(injection.secret_class().description())
            except ModelGaugeError as error:
                app.note(f"Warning: {error}")
    return app.secrets.redactor


@click.command("unbundle")
@click.argument("file", type=_FILE)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_PATH,
    metavar="FOLDER",
    help="The new folder.  [default: the name of the file without its ending]",
)
@allowed_signers_option
@shared_options
def unbundle(app: App, /, *, file: Path, output: Path | None, allowed_signers: Path | None) -> None:
    """Unpack a bundle into a new folder with its own cache; its answers never enter yours.

    The folder is the data folder of the runs. They do not count as yours: `resume` and `rescore` use the names in them
    only if you give them again. The answers of the bundle serve these runs only, and cost nothing. A bundle that is
    damaged, was changed, or is not safe to unpack leaves nothing behind.

    \b
    Examples:
      modelgauge unbundle run.mgb
      modelgauge unbundle run.mgb -o received --allowed-signers team_keys
    """
    from modelgauge.bundles.unbundling import unbundle as unpack

    folder = output or Path(file.stem if file.suffix else f"{file.name}.unpacked")
    manifest, signed_by = unpack(file, folder, allowed_signers)
    paths = [folder / "runs" / run for run in manifest.runs]
    if app.as_json:
        facts = manifest.model_dump(mode="json", exclude={"files"})
        app.show_json({"folder": str(folder), "signature": signed_by, **facts})
        return
    for path in paths:
        app.show(str(path))
    app.note(signed_by)


# --- check -----------------------------------------------------------------------------------------------------------


@click.command("check")
@click.argument("names", nargs=-1, required=True, metavar="RUN|BUNDLE...")
@allowed_signers_option
@click.option(
    "--rescore",
    is_flag=True,
    help="Measure the recorded answers again too. That runs the code of the test; nothing is paid.",
)
@names_again
@dependency_option
@offline_option
@data_dir_option
@shared_options
def check(
    app: App, /, *, names: Sequence[str], allowed_signers: Path | None, rescore: bool, **again: Any
) -> None:
    """Check that runs are complete and consistent: items, answers, annotations, measurements, counts and results.

    Each item has one record, with an answer to every prompt, the annotations that the test declares, and measurements;
    the counts are those of the items; the means of the measurements are the results. For a bundle, or a folder that
    `unbundle` made, the SHA-256 of all files is checked too. Each finding is a line, and makes the exit code 1. Items
    with redacted texts are listed, since nobody can check their answers.

    With --rescore, give names again if a run is not known to be yours, as for `modelgauge rescore`.

    \b
    Examples:
      modelgauge check latest
      modelgauge check run.mgb --allowed-signers team_keys
      modelgauge check 20260131-120000-a1b2c3 --rescore
    """
    from modelgauge.bundles.checking import check as checked

    scores = _rescorer(app, again) if rescore else None
    found = [checked(name, app.settings.data_dir, allowed_signers, scores) for name in names]
    if any(bundle.findings or any(run.findings for run in bundle.runs) for bundle in found):
        app.exit_code = FAILED
    lines = [line for bundle in found for line in _lines(bundle)]
    if not rescore:
        lines.append("Scores were not computed again: --rescore measures the recorded answers.")
    app.show_answer({"checked": [_as_json(bundle) for bundle in found]}, "\n".join(lines))


def _rescorer(app: App, again: dict[str, Any]) -> Scores:
    """Return a function that scores the answers of a run again."""
    from modelgauge.bundles.rescoring import check_scores
    from modelgauge.rerun.original import Names

    dependencies = again.pop("dependencies")
    options = {"dependencies": dependencies, "plugin_files": app.settings.plugins, "secrets": app.secrets}
    names = Names(**again)

    def scores(found: RunCheck, name: str) -> None:
        command = f"modelgauge check {shlex.quote(name)} --rescore"
        check_scores(found, app.settings.data_dir, names, command, **options)

    return scores


def _lines(checked: BundleCheck) -> Iterator[str]:
    """Format the problems, one line each."""
    for problem in checked.findings:
        yield f"{checked.name}: {problem}"
    for run in checked.runs:
        for finding in run.findings:
            yield f"{run.run.run_id}, {finding}"
        findings = counted(len(run.findings), "finding") if run.findings else "nothing wrong"
        yield f"{run.run.run_id}: {counted(run.items, 'item')}, {findings}"
        if run.redacted:
            named = first_few(run.redacted, _MOST_NAMED)
            number = counted(len(run.redacted), "item")
            yield f"  Not checked. Texts were taken out of {number}: {named}"
        for sentence in run.unchecked:
            yield f"  Not checked. {sentence}"
    if checked.signed_by is not None:
        yield checked.signed_by


def _as_json(checked: BundleCheck) -> dict[str, Any]:
    runs = [
        {
            "run_id": run.run.run_id,
            "items": run.items,
            "findings": [asdict(finding) for finding in run.findings],
            "redacted": run.redacted,
            "unchecked": run.unchecked,
        }
        for run in checked.runs
    ]
    return {"name": checked.name, "findings": checked.findings, "signature": checked.signed_by, "runs": runs}
