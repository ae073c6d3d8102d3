"""Passes over graphs of aten operators from any capture."""
