"""Settings of all tests.

Compiled code goes to a cache of the session's own. Hypothesis draws the same examples in every run, and a busy machine fails
no test by its slowness.
"""

import os

import pytest
from hypothesis import settings

from rushlight.core.garbage import making_objects_that_stay
from tests import library_store

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search for no garbage among imported modules and collected tests, millions of objects, which count as old ones then.

    They are not frozen: to count frozen objects, as the library does, takes as long as there are many.
    """
    with making_objects_that_stay():
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory):
    """A cache folder of the session's own, so that results don't depend on what was built before. Its processes share it.

    It begins with the libraries of the store, if there is one (see library_store.py).
    """
    before = os.environ.get("RUSHLIGHT_CACHE_DIR")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    store = library_store.store()
    if store is not None:
        library_store.copy_entries(store, folder)
    os.environ["RUSHLIGHT_CACHE_DIR"] = str(folder)
    yield
    os.environ.pop("RUSHLIGHT_CACHE_DIR")
    if before is not None:
        os.environ["RUSHLIGHT_CACHE_DIR"] = before
    if store is not None:
        library_store.copy_entries(folder, store)
        library_store.trim(store)
