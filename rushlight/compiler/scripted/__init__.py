"""Scripted programs as native code: `translate.py` turns a jit graph into a structured program, whose straight-line pieces
`regions.py` captures as aten graphs; `native.py` is what the jit's executor calls.
"""
