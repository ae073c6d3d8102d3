"""Quantize traced models: `quantize_fx` has the functions, this package their steps, in order."""
