"""`torch.backends.quantized`: what computes with quantized tensors. It is the library's own, whatever is set."""

engine = "onednn"
supported_engines = ["none", "onednn"]
