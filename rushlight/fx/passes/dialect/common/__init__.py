"""Passes over graphs of aten operators, whoever captured them."""
