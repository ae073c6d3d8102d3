"""`torch.onnx.symbolic_opset9`: translations that programs name in their own. `export` does not call them."""

from rushlight.core.absent import absent_function

dropout = absent_function("torch.onnx.symbolic_opset9.dropout")
masked_fill = absent_function("torch.onnx.symbolic_opset9.masked_fill")
softmax = absent_function("torch.onnx.symbolic_opset9.softmax")
