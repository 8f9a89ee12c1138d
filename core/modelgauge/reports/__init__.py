"""What people read of runs and comparisons: pages of HTML; tables, JUnit XML and JSON for terminals and programs.

The names below are loaded on use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.reports.pages.run_page import write_comparison as write_comparison
    from modelgauge.reports.pages.run_page import write_page as write_page
    from modelgauge.reports.pages.run_page import write_reports as write_reports
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)
