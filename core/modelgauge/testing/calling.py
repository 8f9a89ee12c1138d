"""Asking a SUT or an annotator for real, through the engine, twice: once paid and once from the cache."""

import tempfile
from pathlib import Path
from typing import Any

from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import load_settings
from modelgauge.data.prompts import SUTOptions, TextPrompt
from modelgauge.data.records import TestRecord
from modelgauge.errors import MissingSecretError
from modelgauge.interfaces.capabilities import AcceptsChatPrompt, AcceptsTextPrompt
from modelgauge.interfaces.sut import PromptResponseSUT, capabilities_of
from modelgauge.plugins.discovery import Plugins
from modelgauge.testing.fakes import FakeSUT, FakeTest
from modelgauge.testing.rule import NotApplicableError
from modelgauge.testing.samples import PLAIN, chat_samples
from modelgauge.testing.subjects import CallableSubject
from modelgauge.testing.trial import quiet_runner

_BRIEF = SUTOptions(max_tokens=32)


def ask_twice(subject: CallableSubject) -> tuple[TestRecord, TestRecord]:
    """Two runs of one brief question; the second finds what the first was told.

    Raises:
        NotApplicableError: a secret is missing.
    """
    secrets = SecretStore(file=load_settings().secrets_file)
    secrets.redactor = subject.canaries.redactor  # so that findings are free of the real ones too
    try:
        made = subject.make(secrets)
    except MissingSecretError as error:
        raise NotApplicableError(str(error)) from error
    sut, test = _asking(made)
    with tempfile.TemporaryDirectory(prefix="modelgauge-check-", ignore_cleanup_errors=True) as folder:
        first, second = (_run(Path(folder), subject.plugins(), secrets, test, sut) for _ in range(2))
    return first, second


def _asking(made: Any) -> tuple[PromptResponseSUT[Any, Any], FakeTest]:
    if not isinstance(made, PromptResponseSUT):
        return FakeSUT("fake_sut"), FakeTest("conformance", [PLAIN], annotators={"annotation": made})
    has = capabilities_of(made)
    takes_text = AcceptsTextPrompt in has
    prompt: Any = TextPrompt(PLAIN, _BRIEF) if takes_text else chat_samples()[0].prompt.with_options(_BRIEF)
    return made, FakeTest(
        "conformance", [prompt], requires=[AcceptsTextPrompt if takes_text else AcceptsChatPrompt]
    )


def _run(
    folder: Path, plugins: Plugins, secrets: SecretStore, test: FakeTest, sut: PromptResponseSUT[Any, Any]
) -> TestRecord:
    runner = quiet_runner(folder, plugins, caching=True, secrets=secrets)
    (record,) = runner.run(test, sut)
    items = tuple(record.iter_items())  # read before the folder is gone
    return record.with_items(lambda: items)
