"""What it costs to start: importing the library, and with 100 plugins `modelgauge --help`, `list`, a run of ten items
from the cache, and a Tab in a shell.

Run by hand: uv run python benchmarks/startup.py
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from common import scratch

RUNS = 9
PLUGINS = 100

_HEAVY = ("numpy", "pydantic", "aiohttp", "openai", "diskcache", "tqdm", "rich", "asyncio")

_REGISTER = """
from modelgauge import hookimpl

@hookimpl
def modelgauge_register_suts(register):
    register("sut_{number}", "plugin_{number}.sut:MySUT")

@hookimpl
def modelgauge_register_tests(register):
    register("test_{number}", "plugin_{number}.test:MyTest")
"""


def install_plugins(folder: Path) -> None:
    """As many small distributions as a large installation has."""
    for number in range(PLUGINS):
        package = folder / f"plugin_{number}"
        package.mkdir()
        (package / "__init__.py").write_text("", encoding="utf-8")
        (package / "register.py").write_text(_REGISTER.format(number=number), encoding="utf-8")
        info = folder / f"plugin_{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: plugin-{number}\nVersion: 1.0\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(
            f"[modelgauge]\nplugin_{number} = plugin_{number}.register\n", encoding="utf-8"
        )


def seconds(arguments: Sequence[str], path: Path | None = None, **more: str) -> float:
    """Median wall time of a Python process."""
    env = {**os.environ, **({"PYTHONPATH": str(path)} if path else {}), **more}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, not at each start
    times = []
    for _ in range(RUNS + 1):
        begun = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, env=env, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])  # the first compiles


def heavy_modules(arguments: str, path: Path) -> list[str]:
    """Which of the heavy modules a command imports."""
    code = (
        f"import sys\nsys.argv = {arguments.split()!r}\nfrom modelgauge.cli.main import main\n"
        f"try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {_HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    env = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run([sys.executable, "-c", code], check=True, env=env, capture_output=True, text=True)
    return [done.stderr.strip().splitlines()[-1]]


def main() -> None:
    bare = seconds(["-c", "pass"])
    print("| what | median | over a bare interpreter | limit |\n| --- | --- | --- | --- |")
    print(f"| python -c pass | {1000 * bare:.0f} ms | | |")
    loaded = seconds(["-c", "import modelgauge"])
    print(f"| import modelgauge | {1000 * loaded:.0f} ms | {1000 * (loaded - bare):.0f} ms | 60 ms |")
    hook = seconds(["-c", "from modelgauge import hookimpl"])
    print(f"| from modelgauge import hookimpl | {1000 * hook:.0f} ms | {1000 * (hook - bare):.0f} ms | |")
    with scratch() as folder:
        install_plugins(folder)
        cached_run = f"run-test --sut demo_yes_no --test demo_01 --data-dir {folder}"
        for command, limit in (("--help", "250 ms"), ("list", "500 ms"), (cached_run, "")):
            took = seconds(["-m", "modelgauge", *command.split()], folder)
            heavy = heavy_modules(f"modelgauge {command}", folder)
            name = f"modelgauge {command.partition(' --data-dir')[0]}, {PLUGINS} plugins"
            print(
                f"| {name} | {1000 * took:.0f} ms | {1000 * (took - bare):.0f} ms | {limit} | imports of heavy: {heavy}"
            )
        line = "modelgauge run-test --test test_9"
        asked = {"_MODELGAUGE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": "3"}
        took = seconds(["-m", "modelgauge"], folder, **asked)
        print(
            f"| {line} Tab, {PLUGINS} plugins | {1000 * took:.0f} ms | {1000 * (took - bare):.0f} ms | 300 ms |"
        )


if __name__ == "__main__":
    main()
