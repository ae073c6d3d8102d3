"""Primitive operators whose meaning depends on their node: its types and attributes. Each entry makes a function for a node."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.jit.ir.graph import Node


def _uninitialized(node: Node) -> Callable:
    return lambda: None


def _tuple_index(node: Node) -> Callable:
    def index(values: tuple, position: int) -> object:
        if not -len(values) <= position < len(values):
            raise IndexError("list index out of range")
        return values[position]

    return index


def _tuple_slice(node: Node) -> Callable:
    begin, end = node["beg"], node["end"]
    return lambda values: tuple(values[begin:end])


def _profile(node: Node) -> Callable:
    return node["callback"]


def _constant_chunk(node: Node) -> Callable:
    count, dim = node["chunks"], node["dim"]
    return lambda value: tuple(value.chunk(count, dim))


PRIMITIVES: dict[str, Callable[[Node], Callable]] = {
    "prim::Uninitialized": _uninitialized,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "prim::profile": _profile,
    "prim::ConstantChunk": _constant_chunk,
}
