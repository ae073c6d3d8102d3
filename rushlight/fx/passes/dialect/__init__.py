"""Passes for graphs of particular operators."""
