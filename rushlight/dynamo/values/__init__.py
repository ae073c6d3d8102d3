"""Tracked values: what the symbolic interpreter knows about each Python value, with one class per kind of value."""
