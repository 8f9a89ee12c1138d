"""The Python of one page, as a process of its own: runs blocks that it is sent, all in the same names.

One JSON object a line on stdin, `{"source": …, "file": …}`, is answered by one on stdout, `{"printed": …,
"error": …}`.
"""

import json
import sys
import traceback
from contextlib import redirect_stdout
from io import StringIO


class Terminal(StringIO):
    """Takes what is printed, as a terminal of today does."""

    encoding = "utf-8"


def run(source: str, file: str, names: dict[str, object]) -> dict[str, str]:
    """Run a block; what it raises is told as a traceback."""
    printed, error = Terminal(), ""
    try:
        with redirect_stdout(printed):
            exec(compile(source, file, "exec"), names)
    except Exception:  # noqa: BLE001  whatever it is, the test shows it
        error = traceback.format_exc()
    return {"printed": printed.getvalue(), "error": error}


def main() -> None:
    sys.path[0] = ""  # as for somebody who types it: what lies in the folder can be imported
    names: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(**json.loads(line), names=names)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
