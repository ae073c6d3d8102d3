"""Writes groups of the scheduler as C++."""
