"""Part of the jit."""
