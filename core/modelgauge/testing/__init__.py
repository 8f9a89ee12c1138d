"""For plugin authors: fakes to test with, and the conformance kit, which checks what a plugin promises.

In the tests of a plugin:

    @pytest.mark.parametrize(**conformance("my-plugin"))
    def test_conformance(case):
        case.check()

The names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.testing.checks import check_annotator as check_annotator
    from modelgauge.testing.checks import check_plugin as check_plugin
    from modelgauge.testing.checks import check_sut as check_sut
    from modelgauge.testing.checks import check_test as check_test
    from modelgauge.testing.checks import conformance as conformance
    from modelgauge.testing.checks import list_rules as list_rules
    from modelgauge.testing.fakes import FakeAnnotator as FakeAnnotator
    from modelgauge.testing.fakes import FakeSUT as FakeSUT
    from modelgauge.testing.fakes import FakeTest as FakeTest
    from modelgauge.testing.report import Case as Case
    from modelgauge.testing.report import Finding as Finding
    from modelgauge.testing.report import Report as Report
    from modelgauge.testing.report import Status as Status
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)
