"""Scripted programs as native code; `native.py` is what the jit's executor calls.

`whole.py` makes one compiled graph of a function, `translate.py` a structured program, `segments.py` cuts what is neither.
"""
