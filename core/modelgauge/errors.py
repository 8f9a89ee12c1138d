"""Every error that ModelGauge raises on purpose: one tree.

An error has two parts: the problem, and the fix (the command, the line or the argument that corrects it); the message
always ends with the fix. `exit_code` is what the command line exits with. Each class is also what callers of other
libraries catch: what was asked wrongly, an unreadable file included, is a `ValueError`, and arguments or a class of the
wrong form are a `TypeError` too. This module imports nothing, so that any layer can raise from it.
"""


class ModelGaugeError(Exception):
    """The root. `str(error)` is the problem followed by the fix.

    Args:
        problem: what is wrong, with the name, file and line concerned.
        fix: what the reader can do about it; the last sentence of the message.
    """

    exit_code = 70

    def __init__(self, problem: str, *, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(problem, fix)

    def __str__(self) -> str:
        return f"{self.problem} {self.fix}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.problem, self.fix))


def _rebuild(cls: type[ModelGaugeError], problem: str, fix: str) -> ModelGaugeError:
    error = cls.__new__(cls)
    ModelGaugeError.__init__(error, problem, fix=fix)
    return error


# --- what the user asked for cannot be done as asked: exit code 2 -----------------------------------------------------


class UsageError(ModelGaugeError, ValueError):
    """A wrong name, option, file or combination, found before the first call. It is a `ValueError`, too."""

    exit_code = 2


class UnknownNameError(UsageError):
    """No test, SUT, annotator, metric, plugin, run or secret has this name."""


class NameCollisionError(UsageError):
    """Two plugins claim one uid."""


class InvalidOptionError(UsageError):
    """A `?key=value` or a constructor argument that does not exist or does not convert."""


class ArgumentError(InvalidOptionError, TypeError):
    """A constructor does not take the arguments that it was called with; the message lists those that it takes."""


class InvalidDataError(UsageError):
    """A value that a data class refuses: an unknown field, a wrong type, a context that JSON would change."""


class MissingParameterError(InvalidDataError):
    """A metric needs a parameter that a test case lacks; the message names metric, parameter and case."""


class InputFileError(UsageError):
    """A file of the user cannot be read, or has the wrong content; the message names file and line."""


class DatasetConflictError(UsageError):
    """A data set has a newer version than that from which a new version was made; the message names both."""


class SettingsError(UsageError):
    """`modelgauge.toml`, `secrets.toml` or a `MODELGAUGE_*` variable is wrong."""


class MissingSecretError(UsageError):
    """A required secret was found nowhere."""


class IncompatibleError(UsageError):
    """A test asks for a capability that the SUT does not have."""


class PluginError(UsageError):
    """A plugin, or the target that it registered, cannot be loaded."""


class DefinitionError(UsageError, TypeError):
    """An author's class breaks the contract of its interface (a declared capability without its method, say)."""


# --- external data ----------------------------------------------------------------------------------------------------


class DependencyError(ModelGaugeError):
    """External data that a test declares is not available."""

    exit_code = 2


class DependencyMissingError(DependencyError):
    """External data is missing, and fetching is not allowed (`--offline`) or not possible."""


class DownloadError(DependencyError):
    """The server, the network or the disk failed while fetching."""


class ChecksumError(DependencyError):
    """The data is not the data that was declared or pinned."""


class UnsafeArchiveError(DependencyError):
    """An archive that is damaged, or that would write outside its folder or without bound."""


# --- files that runs write --------------------------------------------------------------------------------------------


class RecordError(UsageError):
    """A run, a journal or a record cannot be found or read."""


class BundleError(RecordError):
    """A bundle is damaged, differs from its manifest, or has no allowed signature."""


class MissingResultError(UsageError, KeyError):
    """A run has no result of this name; the message says why. It is a `KeyError`, too."""


class CacheError(ModelGaugeError):
    """The cache cannot be opened or written."""

    exit_code = 4


# --- while a run is going on ------------------------------------------------------------------------------------------


class RunStoppedError(ModelGaugeError):
    """The run ended early: fatal error, cap, disk, item source."""

    exit_code = 4


class NewRunNeededError(RunStoppedError):
    """The run cannot do what was asked; a new run with other options can, `resume` cannot."""


class CallError(ModelGaugeError):
    """One call of a SUT or an annotator failed; it fails its item, not the run.

    Args:
        problem: what is wrong.
        fix: what the reader can do about it.
        usage: the `Usage` of a SUT's answer that is refused; it was paid all the same, and counts.
    """

    exit_code = 3

    def __init__(self, problem: str, *, fix: str, usage: object = None) -> None:
        super().__init__(problem, fix=fix)
        self.usage = usage


class WorkerLostError(CallError):
    """All workers that worked on an item died."""


class CallTimeoutError(CallError):
    """A call took longer than its deadline."""


class InvalidResponseError(CallError):
    """A SUT or an annotator returned something that is not what its interface promises."""


class EmptyAnswerError(CallError):
    """Raised for an answer without text and without a single token of output. The call is retried."""


class MissingLogProbabilitiesError(CallError):
    """A SUT answered without the log-probabilities that it was asked for."""


class BlockedError(CallError):
    """Raised for an answer that a content filter withheld, in whole or in part (`SUTCompletion.blocked`)."""


class SingleCompletionError(CallError):
    """A system refuses to give several completions in one call; where its SUT has `completions = "auto"`, each is asked
    for by a call of its own."""


class RedactedAnswerError(CallError):
    """A recorded answer cannot be measured again: it held a secret, which was redacted."""


class MissingAnswerError(CallError):
    """A replayed SUT has no recorded answer for this prompt."""


class NotCachedError(CallError):
    """The cache has no answer to a call, in a run that uses only what is cached."""
