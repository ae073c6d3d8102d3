"""Annotations of parameters that take one number for a list of so many: `BroadcastingList2[int]`."""

from __future__ import annotations

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list
