"""The state that all commands share: settings, secrets and plugins, each loaded when needed, and output.

One `App` serves one invocation; click hands it to the commands as the context's object.
"""

from __future__ import annotations

import json
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import Settings, load_settings
from modelgauge.documents.terminal import Style, as_list, as_text, holds_unicode
from modelgauge.wording.visible import visible, visible_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TextIO

    from pydantic import BaseModel

    from modelgauge.api import Runner
    from modelgauge.documents.document import Block, TableColumn
    from modelgauge.engine.planning import Plan
    from modelgauge.plugins.discovery import Plugins
    from modelgauge.runs.recorded_run import RecordedRun


Result = TypeVar("Result", bound="BaseModel")

_IN_MEMORY = 1 << 24  # bytes of JSON; more is kept in a temporary file until all of it can be printed
COMPLETION = "_MODELGAUGE_COMPLETE"
"""The environment variable by which the script of a shell asks what can stand at the cursor."""


class App:
    """The state of one invocation.

    Args:
        args: the command line behind the program's name.

    Attributes:
        local_plugins: what `--plugin` named, wherever it stood.
        debug: whether errors come with their traceback.
        exit_code: what the program ends with unless an error ends it.
        run_file: the path and the text of the file of `modelgauge run`; None without one.
        plugin_commands: the commands that plugins add; None until they are asked for.
        given: the settings that options of the command line named; None if one was not given.
        stdout: where `--json` writes; None without it.
    """

    def __init__(self, args: Sequence[str] = ()) -> None:
        self.args = tuple(args)
        self.local_plugins: list[str] = []
        self.debug = False
        self.exit_code = 0
        self.given: dict[str, Any] = {}
        self.stdout: TextIO | None = None
        self.run_file: dict[str, str] | None = None
        self.plugin_commands: dict[str, click.Command] | None = None

    # --- what commands work with ----------------------------------------------------------------

    def configure(self, **given: Any) -> None:
        """Let options of the command line override settings; the settings are read again on their next use."""
        self.given |= given
        vars(self).pop("settings", None)

    def add_plugins(self, plugins: Iterable[str]) -> None:
        """Load local plugins too, also where the command itself is a plugin's, for which others were loaded already."""
        self.local_plugins.extend(plugins)
        vars(self).pop("plugins", None)
        self.configure()

    @cached_property
    def settings(self) -> Settings:
        """The settings of the file, the environment and the command line.

        Raises:
            SettingsError, InvalidOptionError: see `load_settings`.
        """
        return load_settings(plugins=self.local_plugins or None, **self.given)

    @cached_property
    def secrets(self) -> SecretStore:
        """The secrets of the environment and of the settings' file."""
        return SecretStore(file=self.settings.secrets_file)

    @cached_property
    def plugins(self) -> Plugins:
        """The plugins that are installed, or named by `--plugin` and the settings; loaded once.

        Raises:
            PluginError: a local plugin does not work.
        """
        from modelgauge.plugins.discovery import discover

        return discover(self.settings.plugins, settings=self.settings)

    def runner(self, **options: Any) -> Runner:
        """Return a `Runner` with the settings, secrets and plugins of this invocation."""
        from modelgauge.api import Runner

        return Runner(**self.runner_arguments(), **options)

    def runner_arguments(self) -> dict[str, Any]:
        """Return the arguments common to every `Runner` of this invocation; its data folder is from the settings."""
        return {
            "settings": self.settings,
            "plugins": self.plugins,
            "secrets": self.secrets,
            "command": ["modelgauge", *map(self.redact, self.args)],
        }

    def redact(self, text: str) -> str:
        """Remove all secrets known so far from a text."""
        return self._known_secrets.redact(text)

    def redact_json(self, value: Any) -> Any:
        """JSON data without the secrets that are known so far."""
        return self._known_secrets.redactor.redact_json(value)

    @property
    def _known_secrets(self) -> SecretStore:
        """The store of secrets; before it is wanted, those of the environment."""
        known: SecretStore = vars(self).get("secrets") or self._environment
        return known

    @cached_property
    def _environment(self) -> SecretStore:
        return SecretStore()

    @property
    def as_json(self) -> bool:
        """True if `--json` was given: stdout takes one JSON object."""
        return self.stdout is not None

    # --- what commands show ---------------------------------------------------------------------

    def show(self, text: str) -> None:
        """Print a text to stdout, control characters as escapes."""
        click.echo(visible(self.redact(text)))

    def note(self, text: str) -> None:
        """Print a text to stderr, apart from the output on stdout that programs read."""
        click.echo(visible(self.redact(text)), err=True)

    def fail(self, text: str, exit_code: int = 1) -> None:
        """Print a text to stderr, and let the command end with an exit code, unless it has another already."""
        self.note(text)
        self.exit_code = self.exit_code or exit_code

    def open_in_browser(self, address: str) -> None:
        """Open a page in the browser, or say that there is none."""
        import webbrowser

        if not webbrowser.open(address):
            self.note(f"No browser was found. The page is at {address}")

    def show_json(self, value: object) -> None:
        """Print one JSON object to stdout.

        Args:
            value: JSON data.
        """
        self._show_json_text(
            json.dumps(self.redact_json(value), indent=2, ensure_ascii=False, allow_nan=False)
        )
        click.echo(file=self.stdout)

    def show_answer(self, facts: Mapping[str, Any], text: str) -> None:
        """Print what a command did: one JSON object with `--json`, else a text."""
        if self.as_json:
            self.show_json(facts)
        else:
            self.show(text)

    def show_result(self, found: Result, document_of: Callable[[Result], Iterable[Block]]) -> None:
        """Print what was computed: its JSON with `--json`, else the document that a function makes of it."""
        if self.as_json:
            self.show_json(found.model_dump(mode="json"))
        else:
            self.show_document(document_of(found))

    def show_document(self, document: Iterable[Block]) -> None:
        """Print a document to stdout, as wide as the terminal."""
        click.echo(as_text(document, Style.of(sys.stdout), self.redact), color=True)

    def show_pieces(self, pieces: Iterable[str]) -> None:
        """Print redacted JSON text to stdout: all of it, or nothing if a piece fails. It may be larger than memory."""
        from tempfile import SpooledTemporaryFile

        with SpooledTemporaryFile(
            _IN_MEMORY, "w+", encoding="utf-8", errors="surrogatepass", newline=""
        ) as whole:
            for piece in pieces:
                whole.write(piece)
            whole.seek(0)
            for line in whole:
                self._show_json_text(line)
        click.echo(file=self.stdout)

    def _show_json_text(self, text: str) -> None:
        shown = visible_json if holds_unicode(self.stdout or sys.stdout) else _ascii_json
        click.echo(shown(text), nl=False, file=self.stdout)

    def show_list(self, *columns: TableColumn, empty: str = "") -> None:
        """Print columns to stdout, as wide as the terminal.

        Args:
            columns: of equal length.
            empty: the text where there are no rows.
        """
        table = as_list(columns, Style.of(sys.stdout), self.redact)
        click.echo(table or visible(self.redact(empty)))

    def show_report(
        self,
        runs: Sequence[RecordedRun],
        *,
        shown_by: str,
        details: bool = False,
        differences: Sequence[str] = (),
    ) -> None:
        """Print the tables of runs; `show` has every row, however many there are.

        Args:
            runs: at least one.
            shown_by: the command.
            details: whether the report of each of several runs follows their table.
            differences: what differs between SUTs, in words.
        """
        from modelgauge.reports.runs_report import runs_document

        most_rows = None if shown_by == "show" else 20
        self.show_document(
            runs_document(
                runs, shown_by=shown_by, details=details, differences=differences, most_rows=most_rows
            )
        )

    def show_plans(self, plans: Sequence[Plan], *, more: Mapping[str, Any] | None = None) -> None:
        """Print what runs would take; `more` is part of the JSON."""
        if self.as_json:
            self.show_json({"plans": [plan.model_dump(mode="json") for plan in plans], **(more or {})})
            return
        from modelgauge.reports.plans import plans_document

        self.show_document(plans_document(plans))


def _ascii_json(text: str) -> str:
    """JSON text with all characters beyond ASCII as escapes; they occur in strings only."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


pass_app = click.make_pass_decorator(App)
