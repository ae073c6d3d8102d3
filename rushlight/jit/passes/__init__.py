"""Passes: functions from graph to graph, one per file."""
