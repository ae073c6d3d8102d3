"""Quantizing traced models: `quantize_fx` has the functions, this package its steps, in the order in which they are taken."""
