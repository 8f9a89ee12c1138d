"""The intervals that evalstats chooses (`method="auto"`) for the graded scores of comparisons.py, on the same samples.

Run by hand in an environment of its own, since evalstats is no dependency: pip install "evalstats==0.3.*", then
python benchmarks/evalstats_intervals.py [samples]
"""

import sys
import warnings

import numpy as np
from evalstats.config import resolve_auto_analyze_methods
from evalstats.core.paired import pairwise_differences
from graded_scores import CASES, SIZES, drawn


def main() -> None:
    warnings.simplefilter("ignore")
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print("| scores | n | method | coverage (width) |\n| --- | --- | --- | --- |")
    for name in CASES:
        for n in SIZES:
            method, _ = resolve_auto_analyze_methods("likert" if "stars" in name else "bounded_01", n, False)
            pairs, truth = drawn(name, n, samples)
            found = [
                pairwise_differences(np.stack([after, before]), 0, 1, method=method, score_range=(0.0, 1.0))
                for before, after in pairs
            ]
            held = np.mean([each.ci_low - 1e-9 <= truth <= each.ci_high + 1e-9 for each in found])
            width = np.mean([min(each.ci_high, 1) - max(each.ci_low, -1) for each in found])
            print(f"| {name} | {n} | {method} | {held:.3f} ({width:.3f}) |", flush=True)


if __name__ == "__main__":
    main()
