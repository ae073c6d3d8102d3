"""Passes for any graph."""
