"""`modelgauge plan`: how many items a comparison of two systems needs, and what it can find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import data_dir_option, declared_options, shared_options, together
from modelgauge.cli.program import GroupedCommand
from modelgauge.comparison.planning.options import OPTIONS

if TYPE_CHECKING:
    from modelgauge.cli.app import App

_SYSTEMS = "What the systems are like"


@click.command("plan", cls=GroupedCommand)
@together(
    click.option(
        "--runs",
        nargs=2,
        metavar="A B",
        help="Two runs of one test, from which the assumptions are estimated: ids, folders, latest.",
    ),
    heading=_SYSTEMS,
)
@declared_options(OPTIONS, {"systems": _SYSTEMS, "goal": "What to find", "items": "Items and repeats"})
@data_dir_option
@shared_options
def plan(app: App, /, *, runs: tuple[str, str] | None, **options: Any) -> None:
    """Plan a comparison: how many items it needs, how many repeats, and which difference it can find.

    No SUT is asked. Two earlier runs show how much systems vary; without runs, give --rate for right and wrong, or
    --stddev for other numbers. With --effect, the table says how many items find it; with --items, or with runs, which
    difference these items find.

    \b
    Examples:
      modelgauge plan --rate 0.7 --correlation 0.5 --effect 0.05
      modelgauge plan --rate 0.7 --correlation 0.5 --items 500
      modelgauge plan --runs latest~1 latest --effect 0.02
      modelgauge plan --stddev 0.3 --effect 0.05 --comparisons 5 --failure-rate 0.02
    """
    from modelgauge.comparison.planning.plan import plan_comparison
    from modelgauge.reports.comparisons.plan import render_comparison_plan

    given = {name: value for name, value in options.items() if value is not None}
    found = plan_comparison(*(runs or ()), data_dir=app.settings.data_dir, **given)
    app.show_result(found, render_comparison_plan)
