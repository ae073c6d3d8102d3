"""Tracked values: what the symbolic interpreter knows of each Python value, one class per kind of value."""

from __future__ import annotations

import rushlight.dynamo.values.standard  # noqa: F401  (fills the table of builtins)
