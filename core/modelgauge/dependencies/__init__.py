"""External data that tests declare: where it comes from, and the store that fetches, verifies, unpacks and
keeps it.

`sources` holds what authors write, `store` what the engine and the command line use. Recording versions in a
run, and the options of the command line, live above.
"""

from modelgauge.dependencies.request import ResolvedDependency
from modelgauge.dependencies.safety import UnpackLimits
from modelgauge.dependencies.sources import ExternalData, LocalData, PackageData, Patience, Progress, WebData
from modelgauge.dependencies.store import DependencyStore

__all__ = [
    "DependencyStore",
    "ExternalData",
    "LocalData",
    "PackageData",
    "Patience",
    "Progress",
    "ResolvedDependency",
    "UnpackLimits",
    "WebData",
]
