"""Honest code is never too slow: only tests that set a limit have one."""

import pytest

from classroom import sandbox


@pytest.fixture(scope="session", autouse=True)
def patient():
    """A busy machine may take longer than students' code may take."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CELL_S", "TEST_S", "ALL_S"):
            patch.setattr(sandbox, name, 600)
        yield
