"""Ahead-of-time passes over aten graphs: functionalization."""
