"""Inductor: aten graphs to the loops IR, fused kernels, one memory plan, C++ text, and native code."""
