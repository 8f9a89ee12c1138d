"""One use of an app whose functions are observed: its trace is recorded, and goes into its completion.

So it is cached with the answer, and stands in the record of the item. What a function becomes as a SUT is in
`function.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from modelgauge.data.responses import SUTCompletion
from modelgauge.data.spans import TRACE
from modelgauge.data.test_cases import RUNTIME_FIELDS
from modelgauge.spans import OpenSpan, OpenTrace, Sink, as_text, begin, collecting, inside, is_observed

_IN_METADATA = ("retrieval_context", "token_cost", "completion_time")
"""The runtime fields of a test case that a completion holds in its metadata."""


class Use:
    """One use of an app, which may begin in one thread and end in another.

    Args:
        uid: what the outermost span is called, where the app's own function is not observed.
        function: of the app.
        request: what it is asked.
    """

    def __init__(self, uid: str, function: Callable[..., Any], request: str) -> None:
        self._sink = Sink()
        self._uid, self._request = uid, request
        self._needs_root = not is_observed(function)
        self._root: OpenSpan | None = None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Record what the code inside calls."""
        with collecting(self._sink):
            if self._needs_root and self._root is None:
                self._root = begin(self._uid, None, lambda: {"prompt": self._request})
            with nullcontext() if self._root is None else inside(self._root):
                yield

    def ended(self, answer: Any) -> Any:
        """What the app answered, with its trace; as it is where nothing was observed, or it is no answer."""
        if self._root is not None:
            self._root.returned(answer)
            self._root.end(None)
        trace = next(iter(self._sink.traces), None)
        if trace is None or not isinstance(answer, str | SUTCompletion) or not self._tells(trace):
            return answer
        return _completion(answer, trace)

    def _tells(self, trace: OpenTrace) -> bool:
        """Whether something was observed, beside the span that stands for the use itself."""
        return self._root is None or len(trace.spans) > 1 or bool(trace.said()) or bool(trace.fields)


def _completion(answer: str | SUTCompletion, trace: OpenTrace) -> SUTCompletion:
    """The answer, with what the app said of its test case where a completion holds that, and the trace."""
    completion = SUTCompletion(answer) if isinstance(answer, str) else answer
    case = trace.given_case()
    said = trace.said() if case is None else {name: getattr(case, name) for name in RUNTIME_FIELDS}
    told_output = trace.fields.get("output") if isinstance(answer, str) else None
    output = as_text(told_output) if case is None else case.actual_output
    changed: dict[str, Any] = {} if output is None else {"text": output}
    if said.get("tools_called") is not None:
        changed["tool_calls"] = tuple(said["tools_called"])
    runtime = {name: said[name] for name in _IN_METADATA if said.get(name) is not None}
    metadata = {**completion.metadata, **runtime, TRACE: trace.frozen().model_dump(mode="json")}
    return completion.replaced(**changed, metadata=metadata)
