"""Annotations of parameters that accept one number for a list of a fixed length: `BroadcastingList2[int]`."""

from __future__ import annotations

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list
