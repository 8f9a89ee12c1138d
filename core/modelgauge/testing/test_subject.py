"""A test as rules see it: its data, its items, and how it measures replies of every kind."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from modelgauge.dependencies import DependencyStore
from modelgauge.errors import DependencyError, InputFileError
from modelgauge.testing.collecting import Collected, collect
from modelgauge.testing.rule import NotApplicableError
from modelgauge.testing.subjects import ObjectSubject
from modelgauge.testing.trial import Trial, run_trial


class TestSubject(ObjectSubject):
    """A test.

    Args:
        store: where its data is; nothing is fetched.
        elsewhere: gives the items of this test as another process makes them; None where there is no such
            process.
        stand_ins: annotators to use instead of the test's own.
        options: see `ObjectSubject`.
    """

    __test__ = False

    def __init__(
        self,
        *args: Any,
        store: DependencyStore,
        elsewhere: Callable[[str], Mapping[str, Any] | None] | None = None,
        stand_ins: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._store = store
        self._elsewhere = elsewhere
        self.stand_ins = dict(stand_ins or {})

    @cached_property
    def _data(self) -> dict[str, Path] | str:
        """Where its data is, or what is missing and where to get it."""
        try:
            found = self._store.resolve_all(self.sound.uid, self.sound.get_dependencies())
        except (DependencyError, InputFileError) as error:
            said = " ".join(str(error).split())
            return f"{said} `modelgauge dependencies fetch --test {self.name}` fetches what is on the web."
        return {key: one.path for key, one in found.items()}

    @property
    def missing_data(self) -> str | None:
        """What it lacks, and where to get it; None where all its data is on this machine."""
        return self._data if isinstance(self._data, str) else None

    @property
    def data(self) -> dict[str, Path]:
        """Where its data is.

        Raises:
            NotApplicableError: it is not on this machine.
        """
        if isinstance(self._data, str):
            raise NotApplicableError("its data is missing: see items")
        return self._data

    def data_if_ready(self) -> dict[str, Path] | None:
        """Where its data is; None where its items cannot be made here, whatever the reason."""
        try:
            return self.data
        except Exception:  # noqa: BLE001  the rules about this test report it, and no other test is to suffer
            return None

    @cached_property
    def collected(self) -> Collected:
        """Its items."""
        return collect(self.made, self.data)

    @cached_property
    def collected_again(self) -> Collected:
        """Its items once more, made by another object."""
        return collect(self.make(), self.data)

    @property
    def elsewhere(self) -> Mapping[str, Any] | None:
        """Its items as another process makes them; None where the object was given."""
        return None if self._elsewhere is None else self._elsewhere(self.name)

    @property
    def items(self) -> Sequence[Any]:
        """Its items.

        Raises:
            NotApplicableError: there are none, which another rule reports.
        """
        if not self.collected.items:
            raise NotApplicableError("it makes no items")
        return self.collected.items

    @cached_property
    def trial(self) -> Trial:
        """What it makes of replies of every kind.

        Raises:
            NotApplicableError: its annotators would have to be called, and `call` does not allow it.
        """
        annotators = {**self.made.get_annotators(), **self.stand_ins}
        named = [one for one in annotators.values() if isinstance(one, str)]
        if any(name not in self.plugins().of_annotator(name) for name in named):
            raise NotApplicableError("see annotators")
        if annotators and not self.call and set(annotators) != set(self.stand_ins):
            raise NotApplicableError(
                f"it reads annotations of {', '.join(annotators)}, and annotators are called only with --call"
            )
        return run_trial(self.made, self.items, annotators, self.plugins())
