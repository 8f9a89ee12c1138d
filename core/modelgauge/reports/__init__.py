"""What people read of runs and comparisons: pages of HTML; tables, JUnit XML and JSON for terminals and programs.

The names below are loaded on use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.reports.pages.charts import Axis as Axis
    from modelgauge.reports.pages.charts import axis_ruler as axis_ruler
    from modelgauge.reports.pages.charts import histogram as histogram
    from modelgauge.reports.pages.charts import interval_bar as interval_bar
    from modelgauge.reports.pages.item_data import ItemTable as ItemTable
    from modelgauge.reports.pages.pages import write_comparison as write_comparison
    from modelgauge.reports.pages.pages import write_page as write_page
    from modelgauge.reports.pages.plots import over_time as over_time
    from modelgauge.reports.pages.plots import reliability as reliability
    from modelgauge.reports.pages.plots import steps as steps
    from modelgauge.reports.pages.run_page import write_reports as write_reports
    from modelgauge.reports.pages.run_parts import Cell as Cell
    from modelgauge.reports.pages.run_parts import Part as Part
    from modelgauge.reports.pages.run_view import FailureRow as FailureRow
    from modelgauge.reports.pages.run_view import ResultRow as ResultRow
    from modelgauge.reports.pages.run_view import RunView as RunView
    from modelgauge.reports.pages.run_view import run_view as run_view
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)
