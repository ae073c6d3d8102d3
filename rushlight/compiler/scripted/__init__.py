"""Scripted programs as native code; the jit's executor calls `native.py`.

`whole.py` compiles a function as one graph, `translate.py` as a structured program, and `segments.py` splits functions that are
neither.
"""
