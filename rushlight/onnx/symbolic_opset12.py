"""`torch.onnx.symbolic_opset12`: translations that programs name in their own. `export` does not call them."""

from rushlight.core.absent import absent_function

dropout = absent_function("torch.onnx.symbolic_opset12.dropout")
