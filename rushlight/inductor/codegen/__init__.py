"""Code generation: groups of the loops IR to C++ (`cpp`) or Triton (`triton`) text."""
