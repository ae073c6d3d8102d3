"""Settings of all tests.

Compiled code goes to a cache that belongs to the session. Hypothesis draws the same examples in every run, and a busy machine
fails no test by its slowness.
"""

import gc
import os
import sys

import pytest
from hypothesis import settings

from rushlight.core.garbage import making_objects_that_stay
from tests import library_store

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Disable garbage collection while modules are imported and tests collected, since these millions of objects stay alive.

    They are not frozen: counting frozen objects, as the library does, takes time in proportion to their number.
    """
    with making_objects_that_stay():
        return (yield)


@pytest.fixture
def small_heap():
    """Make `gc.collect()` look only at objects that the test makes, not at the millions that collected tests are."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory):
    """The session's own cache folder, so that results don't depend on earlier builds. All processes of the session share it.

    If there is a library store, the folder starts with its libraries (see library_store.py).
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


@pytest.fixture(autouse=True)
def fresh_captures():
    """Forget the captures of a test: a function that several tests compile keeps them, up to the limit of recompilations."""
    yield
    frames = sys.modules.get("rushlight.dynamo.frames")
    if frames is not None:
        frames.reset()
