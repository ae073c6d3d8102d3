"""Settings of all tests: hypothesis draws the same examples in every run, and a busy machine fails no test by its slowness."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
