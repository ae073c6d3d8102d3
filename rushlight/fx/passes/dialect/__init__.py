"""Passes over the graphs of one dialect."""
