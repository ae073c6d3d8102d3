"""Modules that PyTorch has inside of `torch._C`: `rushlight._C._dynamo.eval_frame` and others.

`rushlight._C` is one extension module. `rushlight/__init__.py` gives it this folder as its `__path__`, so that
`import rushlight._C.x` reads a file here. Nothing imports this folder by its own name.
"""
