"""The scenes of the snapshots: recorded runs and the commands that show them."""

from dataclasses import dataclass
from pathlib import Path

RUNS = sorted(path.name for path in (Path(__file__).parent / "recordings" / "runs").iterdir())
# Names for the recorded runs, in the order in which they were made.
NAMES = [
    "capitals_good",
    "capitals_poor",
    "capitals_flaky",
    "capitals_broken",
    "capitals_killed",
    "capitals_capped",
    "strict_good",
    "strict_poor",
    "graded_good",
    "graded_poor",
    "graded_rich",
    "dialogues_rich",
    "judged_good",
    "hostile_good",
    "hostile_rich",
    "cut_good",
    "unmeasured_good",
    "unmeasured_poor",
    "named_good",
    "world_capitals_good",
    "world_capitals_small",
    "world_strict_good",
    "world_strict_small",
    "world_unmeasured_good",
    "world_unmeasured_small",
    "repeated_rich",
    "sampled_good",
    "goldens_good",
    "goldens_poor",
    "session_first",
    "session_second",
    "evaluated_first",
    "evaluated_second",
]
IDS = dict(zip(NAMES, RUNS, strict=True))


@dataclass(frozen=True)
class Scene:
    """A snapshot: commands that are shown at all widths, and commands that are shown at 80 columns."""

    name: str
    at_widths: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def show_run(name: str) -> Scene:
    run = IDS[name]
    return Scene(
        f"run_{name}",
        at_widths=(f"show {run}", f"show {run} --failures"),
        lines=(f"show {run} --items", f"show {run} --wrong --limit 2"),
    )


def hand_on_run(name: str) -> Scene:
    run = IDS[name]
    return Scene(
        f"files_{name}",
        lines=(
            f"show {run} --items --json",
            f"report {run} -o out/page.html",
            f"report {run} --redact -o out/redacted.html",
            f"export {run} --to csv -o out/csv",
            f"export {run} --to jsonl --table items --table measurements -o out/jsonl",
            f"check run_data/runs/{run}",
        ),
    )


def compare_runs(name: str, runs: str, *further: str, options: str = "") -> Scene:
    pair = " ".join(IDS[run] for run in runs.split())
    return Scene(
        f"compare_{name}",
        at_widths=(f"compare {pair} {options}".strip(), *(f"compare {pair} {one}" for one in further)),
        lines=(
            f"compare {pair} {options} --json",
            f"compare {pair} {options} --format github",
            f"compare {pair} {options} --flips 2 --fail-if-worse --junit out/gates.xml --html out/page.html",
        ),
    )


SCENES = [
    *map(show_run, NAMES),
    *map(
        hand_on_run,
        [
            "capitals_flaky",
            "capitals_broken",
            "capitals_capped",
            "strict_poor",
            "graded_poor",
            "dialogues_rich",
            "judged_good",
            "hostile_rich",
            "unmeasured_good",
            "repeated_rich",
            "goldens_poor",
            "session_first",
            "evaluated_second",
        ],
    ),
    compare_runs(
        "capitals",
        "capitals_good capitals_poor",
        "--group-by continent",
        "--margin 0.1 --require-not-worse 0.1",
        "--test permutation --alpha 0.4",
    ),
    compare_runs("failures", "capitals_good capitals_flaky", "--require-not-worse 0.1"),
    compare_runs("all_failed", "capitals_good capitals_broken"),
    compare_runs("graded", "graded_good graded_poor graded_rich", "--margin 0.2", "--test wilcoxon"),
    compare_runs("strict", "strict_good strict_poor", "--fail-if accuracy<0.9"),
    compare_runs("hostile", "hostile_good hostile_rich"),
    compare_runs("unmeasured", "unmeasured_good unmeasured_poor"),
    compare_runs("groups", "world_capitals_good world_capitals_small"),
    compare_runs("goldens", "goldens_good goldens_poor"),
    compare_runs("sessions", "session_first session_second"),
    compare_runs("session_with_evaluation", "session_first evaluated_second"),
    compare_runs("evaluated", "evaluated_first evaluated_second"),
    compare_runs("other_test", "capitals_good graded_good"),
    compare_runs("sampled", "capitals_good sampled_good"),
    compare_runs("killed", "capitals_good capitals_killed"),
    Scene(
        "runs",
        at_widths=("runs", "runs --last 3", "runs --test strict"),
        lines=("runs --json", "runs --sut nobody"),
    ),
    Scene("several_runs", at_widths=(f"show {IDS['capitals_good']}",), lines=("show latest", "show nothing")),
    Scene(
        "plan",
        at_widths=(
            f"plan --runs {IDS['capitals_good']} {IDS['capitals_poor']}",
            f"plan --runs {IDS['capitals_poor']} {IDS['capitals_good']} --effect 0.1",
            "plan --rate 0.6 --correlation 0.3 --effect 0.05",
        ),
    ),
]
