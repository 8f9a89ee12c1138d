"""Where the published data lies on this machine, if it does."""

from pathlib import Path

import pytest

_SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not _SHARED.is_dir():
        pytest.skip(f"the published benchmarks and recorded completions are not on this machine: {_SHARED}")
    return _SHARED
