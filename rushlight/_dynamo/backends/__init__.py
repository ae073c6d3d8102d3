"""`torch._dynamo.backends`: backends of `torch.compile`, their names, and what builds them."""
