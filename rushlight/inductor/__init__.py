"""Inductor: lowers aten graphs to the loops IR, fuses kernels, plans memory, writes C++ and builds native code."""
