"""Passes over graphs: functions from graph to graph."""
