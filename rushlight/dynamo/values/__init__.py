"""Tracked values: what the symbolic interpreter knows of each Python value, one class per kind of value."""
