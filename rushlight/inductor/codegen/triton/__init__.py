"""Writes groups of the scheduler as Triton kernels, and the Python text that launches them."""
