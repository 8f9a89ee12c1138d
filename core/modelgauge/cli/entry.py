"""The entry point of the `modelgauge` command: it imports the rest where Ctrl-C is caught."""

import sys


def main() -> None:
    """Run a command line, and exit; Ctrl-C while the modules are imported ends it without a traceback too."""
    try:
        from modelgauge.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
