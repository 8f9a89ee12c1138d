"""Making a bundle: the files of runs as they are written elsewhere, and the cache rows that the runs used."""

import gzip
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelgauge.bundles.cache_rows import CachePlace, keys_in, write_rows
from modelgauge.bundles.data_files import DataFiles
from modelgauge.bundles.manifest import (
    ROWS,
    SIGNED_BY,
    BundleManifest,
    RowCounts,
    describe,
)
from modelgauge.bundles.signing import sign
from modelgauge.config.redaction import Redactor
from modelgauge.data.annotations import Interaction, SUTCompletionAnnotations
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import Digests, PromptWithContext, TestItem, hex_digest
from modelgauge.data.responses import SUTCompletion
from modelgauge.engine.run_files.folder import (
    BUNDLE,
    JOURNAL,
    MANIFEST,
    RECORD,
    RUNS,
    TOTALS,
    RunFolder,
)
from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.engine.run_files.journal import make_line
from modelgauge.engine.run_files.lines import JournalLines
from modelgauge.engine.run_files.manifest import SIGNATURE
from modelgauge.engine.totals import read_totals
from modelgauge.errors import BundleError, UsageError
from modelgauge.files.scratch import scratch_folder

_COMPRESSED, _STORED = 6, 0
_MOST = 190  # bytes for each packed byte: what unpacks to 200 times its size is refused as a bomb
_NO_ERROR_TEXTS: dict[str, Any] = {"message": "", "traceback": "", "traces": ()}


def bundle(
    runs: Sequence[RunFolder],
    data_dir: Path,
    output: Path,
    redactor: Redactor,
    *,
    cache: str | None = None,
    key: Path | None = None,
    redact: bool = False,
    with_data: bool = False,
) -> BundleManifest:
    """Write runs and the cache rows that they used into one file; the same runs give the same bytes.

    Args:
        runs: at least one.
        data_dir: of the user; its cache is looked in for runs that lie in no data folder.
        output: the file, which appears whole or not at all.
        redactor: knows the secrets.
        cache: the user's cache, where that is not in a data folder: a folder, or a URL.
        key: signs it, by `ssh-keygen`; None for an unsigned bundle.
        redact: whether prompts, answers, contexts, annotations and the messages of errors are left out, and the rows.
        with_data: whether external data is taken along, as far as its license is declared.

    Raises:
        BundleError: a run is going on, two have one id, or a secret stands in one of the files.
        RecordError: a file of a run is damaged.
        UsageError: it cannot be signed, or the output is a device, a pipe, a link or a folder.
    """
    if output.is_symlink() or (output.exists() and not output.is_file()):
        raise UsageError(f"{output} is not a plain file.", fix="Name a new file: -o run.mgb")
    with scratch_folder(output.parent, output.name) as scratch:
        folder = scratch / "contents"
        folder.mkdir()
        made = _Contents(folder, redactor, TextRemover().without_texts if redact else None, (cache, data_dir))
        data = DataFiles(folder, data_dir)
        for run in sorted(runs, key=lambda run: run.run_id):
            made.add(run)
            if with_data:
                data.add(run, made.get_owner(run), made.data[run.run_id])
        rows = RowCounts()
        if not redact:
            rows = write_rows(folder / ROWS, made.keys, redactor)
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        manifest = BundleManifest(
            runs=tuple(made.data),
            data=made.data,
            redacted=redact,
            cache_rows=rows,
            data_left_out=data.left_out,
            files={name: describe(folder / name) for name in names},
        )
        (folder / BUNDLE).write_text(manifest.text(), encoding="ascii", newline="\n")
        signature = []
        if key is not None:
            sign(folder, key)
            signature = [SIGNED_BY]
        _pack(scratch / "packed", folder, [BUNDLE, *signature, *names])
        (scratch / "packed").replace(output)
    return manifest


class _Contents:
    """The files of runs as they stand in a bundle.

    Args:
        folder: gets them.
        redactor: knows the secrets.
        remove: takes the texts out of an item's record; None if they stay.
        own: the user's cache.

    Attributes:
        keys: of all calls that the runs took, by the caches that they may have used.
        data: the versions of each run's data.
    """

    def __init__(
        self,
        folder: Path,
        redactor: Redactor,
        remove: Callable[[ItemRecord], ItemRecord] | None,
        own: CachePlace,
    ) -> None:
        self._folder, self._redactor, self._remove, self._own = folder, redactor, remove, own
        self.keys: dict[tuple[CachePlace, ...], set[str]] = {}
        self.data: dict[str, dict[str, str]] = {}

    def add(self, run: RunFolder) -> None:
        """Add the files of a run."""
        _check(run, self.data)
        path = self._folder / RUNS / run.run_id
        path.mkdir(parents=True)
        manifest = {name: value for name, value in run.read_manifest().items() if name != SIGNATURE}
        self._write(path / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        if (run.path / RECORD).exists():
            record = run.read_record()
            if self._remove is not None and record.failure is not None:
                record = record.replaced(failure=record.failure.replaced(message="", traceback=""))
            self._write(path / RECORD, record.model_dump_json(indent=2) + "\n")
        if (totals := read_totals(run)) is not None:
            self._write(path / TOTALS, totals.model_dump_json() + "\n")
        with (path / JOURNAL).open("w", encoding="utf-8", newline="\n") as journal:
            for number, line in enumerate(self._lines(run), start=1):
                self._check_secrets(line, f"{run.journal}, line {number}")
                journal.write(line)
        versions = manifest.get("dependency_versions")
        found = versions if isinstance(versions, Mapping) else {}
        self.data[run.run_id] = {str(name): str(version) for name, version in found.items()}

    @staticmethod
    def get_owner(run: RunFolder) -> str:
        """Return the name of a run's test without options, which owns its data."""
        return str(run.read_manifest().get("test_uid")).partition("?")[0]

    def _lines(self, run: RunFolder) -> Iterator[str]:
        """Yield the lines of a journal for the bundle, recording the keys in them."""
        keys = self.keys.setdefault(self._list_caches(run), set())
        for line in JournalLines(run.journal):
            record = line.record()
            keys.update(keys_in(record))
            if self._remove is None:
                yield line.line.decode("utf-8")
            else:
                yield make_line(self._remove(record), "", str)[1].decode("utf-8")

    def _list_caches(self, run: RunFolder) -> tuple[CachePlace, ...]:
        """Return the caches that a run may have used. A run from a bundle may name any keys, so it gets no others."""
        beside = (None, run.path.parent.parent)
        if run.is_bundled():
            return (beside,)
        return (self._own, beside) if run.path.parent.name == RUNS else (self._own,)

    def _write(self, path: Path, text: str) -> None:
        self._check_secrets(text, str(path.relative_to(self._folder)))
        path.write_text(text, encoding="utf-8", newline="\n")

    def _check_secrets(self, text: str, where: str) -> None:
        if self._redactor.redact_json_text(text) != text:
            named = " and ".join(self._redactor.names_in(text)) or "of a URL"
            raise BundleError(
                f"{where}: the secret {named} stands there, so no bundle is made.",
                fix="Run the same command again that made the run: a secret that ModelGauge knows is taken out of all "
                "that it writes. Or leave texts out of the bundle: --redact",
            )


def _check(run: RunFolder, others: Mapping[str, object]) -> None:
    if run.run_id in others:
        raise BundleError(f"Two of the runs have the id {run.run_id}.", fix="Make a bundle of each.")
    if (why := why_no_run_id(run.run_id)) is not None:
        raise BundleError(
            f"The folder of the run {run.path} cannot go into a bundle: its name {why}.",
            fix="Rename it, then bundle it.",
        )
    if run.is_going_on():
        raise BundleError(
            f"The run {run.run_id} is still in progress.", fix="Wait for its end, or stop it by Ctrl-C."
        )


def _pack(file: Path, folder: Path, names: Sequence[str]) -> None:
    """Write files into a gzipped tar archive, without a time, an owner or anything else that may differ."""
    size = sum((folder / name).stat().st_size for name in names)
    for level in (_COMPRESSED, _STORED):
        with (
            file.open("wb") as raw,
            gzip.GzipFile("", "wb", level, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = (folder / name).stat().st_size
                with (folder / name).open("rb") as content:
                    archive.addfile(member, content)
        if size <= _MOST * file.stat().st_size:
            return


# --- without texts: ids, measurements, which prompts are equal, options, tokens and kinds of errors stay ------------


class TextRemover:
    """Puts marks in place of texts: equal marks for equal prompts, which share one answer."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def without_texts(self, record: ItemRecord) -> ItemRecord:
        """Return the record of an item without its texts. Its digests still identify the item."""
        item = record.test_item
        digests = Digests(id=hex_digest(str(item.id)), item=hex_digest(item.model_dump_json()))
        prompts = tuple([self._prompt(prompt) for prompt in item.prompts])
        own = dict(zip(map(id, item.prompts), prompts, strict=True))
        kept: dict[str, Any] = {
            "test_item": TestItem(prompts, id=item.id),
            "interactions": tuple(
                [
                    _bare(interaction, own.get(id(interaction.prompt)) or self._prompt(interaction.prompt))
                    for interaction in record.interactions
                ]
            ),
            "digests": record.digests or digests,
            "failures": tuple([failure.replaced(**_NO_ERROR_TEXTS) for failure in record.failures]),
            "redacted": True,
        }
        return record.replaced(**kept)

    def _prompt(self, prompt: PromptWithContext) -> PromptWithContext:
        return PromptWithContext(prompt.prompt.with_texts(self._mark), prompt.source_id)

    def _mark(self, text: str) -> str:
        return f"[text {self._numbers.setdefault(hex_digest(text), len(self._numbers) + 1)}]"


def _bare(interaction: Interaction, prompt: PromptWithContext) -> Interaction:
    """Return an interaction without texts, and without the keys of its calls, from which short texts could be
    guessed.
    """
    completions = tuple(
        [
            SUTCompletionAnnotations(
                completion=SUTCompletion(
                    "", finish_reason=each.completion.finish_reason, blocked=each.completion.blocked
                ),
                annotations=dict.fromkeys(each.annotations),
            )
            for each in interaction.response.completions
        ]
    )
    response = interaction.response.replaced(completions=completions)
    return interaction.replaced(prompt=prompt, response=response, key=None, annotation_keys=(), other_keys=())
