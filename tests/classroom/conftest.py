"""Programs that the tests start in other environments find the course by its path."""

import os

import pytest
from minihybrid_course.grading.sources import ROOT


@pytest.fixture(scope="package", autouse=True)
def course_on_the_path():
    """As the Makefile starts them."""
    before = os.environ.get("PYTHONPATH")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT / "course"), before])))
        yield
