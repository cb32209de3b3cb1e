"""When the tests run the chapters, nothing depends on the time: no progress bars, and
no NumPy that answers until kernels are compiled."""

import os

os.environ |= {"TQDM_DISABLE": "1", "MINIHYBRID_WAIT": "1"}

# With gaps: tests/book/test_building.py runs them; and tests/classroom its own.
collect_ignore = ["build", "assignments"]


def pytest_collection_modifyitems(items):
    """nbval waits 5 s for a cell's outputs, which a kernel on a busy machine may exceed."""
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = 600
