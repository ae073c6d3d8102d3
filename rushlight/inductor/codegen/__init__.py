"""Code generation: groups of the loops IR to C++ text."""
