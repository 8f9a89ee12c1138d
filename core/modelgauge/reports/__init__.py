"""Reports on runs and comparisons for people: HTML pages; tables, JUnit XML and JSON for terminals and programs.

The names below are loaded on use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.documents.axis import Axis as Axis
    from modelgauge.documents.charts import axis_ruler as axis_ruler
    from modelgauge.documents.charts import histogram as histogram
    from modelgauge.documents.charts import interval_bar as interval_bar
    from modelgauge.documents.html import as_html as as_html
    from modelgauge.documents.plots import over_time as over_time
    from modelgauge.documents.plots import reliability as reliability
    from modelgauge.documents.plots import steps as steps
    from modelgauge.reports.pages.item_data import ItemTable as ItemTable
    from modelgauge.reports.pages.pages import write_comparison as write_comparison
    from modelgauge.reports.pages.pages import write_page as write_page
    from modelgauge.reports.pages.run_page import write_reports as write_reports
    from modelgauge.reports.pages.run_view import run_document as run_document
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)
