"""Peak memory of commands on answers of 10 MB: it grows with what is in flight, not with the number of answers.

Run by hand: uv run python benchmarks/long_answers.py [20 100]
"""

import subprocess
import sys
from pathlib import Path

from common import header, scratch

PLUGIN = """
from modelgauge import PromptResponseSUT, PromptResponseTest, SUTCompletion, SUTResponse, TestItem, hookimpl

class Numbered(PromptResponseTest):
    def __init__(self, uid, number: int):
        super().__init__(uid)
        self.number = number

    def make_test_items(self, dependencies):
        return (TestItem(f"question {number}") for number in range(self.number))

    def measure_quality(self, item):
        return {"length": len(item.text)}

class Long(PromptResponseSUT[str, str]):
    max_concurrency = 4

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return f"{request} " * (10_000_000 // (len(request) + 1))

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])

@hookimpl
def modelgauge_register_tests(register):
    register("numbered", Numbered)

@hookimpl
def modelgauge_register_suts(register):
    register("long", Long)
"""
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def peak(folder: Path, *arguments: str) -> float:
    """Run a command, and return its peak in MB."""
    command = [sys.executable, "-m", "modelgauge", *arguments]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *command], cwd=folder, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def main() -> None:
    numbers = sys.argv[1:] or ["20", "100"]
    header("command", *(f"{number} answers" for number in numbers))
    peaks: dict[str, list[float]] = {}
    for number in numbers:
        with scratch() as folder:
            (folder / "long.py").write_text(PLUGIN, encoding="utf-8")
            run = ("run-test", "--plugin", "long.py", "--test", f"numbered?number={number}", "--sut", "long")
            commands = {
                "run-test --json": (*run, "--json"),
                "run-test --output-file, from the cache": (*run, "--output-file", "out.json"),
                "report": ("report", "latest", "-o", "report.html"),
                "rescore": ("rescore", "latest", "--plugin", "long.py"),
            }
            for name, arguments in commands.items():
                peaks.setdefault(name, []).append(peak(folder, *arguments))
    for name, each in peaks.items():
        print(f"| {name} | {' | '.join(f'{megabytes:.0f} MB' for megabytes in each)} |")


if __name__ == "__main__":
    main()
