"""Instructions that break the graph, each with the reason. Python runs them; every other instruction has a handler."""

from __future__ import annotations

BREAKS: dict[str, str] = {
    # Exception groups: only Python can split them.
    "CHECK_EG_MATCH": "except*", "PREP_RERAISE_STAR": "except*",
    "CALL_INTRINSIC_2": "except*, or a type parameter with a bound",
    # Coroutines need an event loop.
    "BEFORE_ASYNC_WITH": "async with", "END_ASYNC_FOR": "async for", "GET_AITER": "async for", "GET_ANEXT": "async for",
    "GET_AWAITABLE": "await", "ASYNC_GEN_WRAP": "an asynchronous generator",
    # Bodies of classes and modules keep their variables in a dict, not in a frame.
    "LOAD_NAME": "a class body", "STORE_NAME": "a class body", "DELETE_NAME": "a class body", "LOAD_LOCALS": "a class body",
    "LOAD_FROM_DICT_OR_DEREF": "a class body", "LOAD_FROM_DICT_OR_GLOBALS": "a class body",
    "SETUP_ANNOTATIONS": "annotations of a class body", "IMPORT_STAR": "from ... import *",
    "PRINT_EXPR": "the interactive prompt",
}  # fmt: skip
