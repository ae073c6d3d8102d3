"""Every test compiles in a cache of its own session."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory):
    """A cache folder for the session, so that results don't depend on what was built before."""
    before = os.environ.get("RUSHLIGHT_CACHE_DIR")
    os.environ["RUSHLIGHT_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    os.environ.pop("RUSHLIGHT_CACHE_DIR")
    if before is not None:
        os.environ["RUSHLIGHT_CACHE_DIR"] = before
