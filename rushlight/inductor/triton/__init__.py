"""Graphs as Triton programs: compiling, launching and calling them."""
