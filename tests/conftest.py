"""Settings of all tests.

Compiled code goes to a cache of the session's own. Hypothesis draws the same examples in every run, and a busy machine fails
no test by its slowness.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory):
    """A cache folder of the session's own, so that results don't depend on what was built before. Its processes share it."""
    before = os.environ.get("RUSHLIGHT_CACHE_DIR")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(exist_ok=True)
    os.environ["RUSHLIGHT_CACHE_DIR"] = str(folder)
    yield
    os.environ.pop("RUSHLIGHT_CACHE_DIR")
    if before is not None:
        os.environ["RUSHLIGHT_CACHE_DIR"] = before
