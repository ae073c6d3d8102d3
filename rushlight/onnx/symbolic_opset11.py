"""`torch.onnx.symbolic_opset11`: translations that programs name in their own. `export` does not call them."""

from rushlight.core.absent import absent_function

select = absent_function("torch.onnx.symbolic_opset11.select")
squeeze = absent_function("torch.onnx.symbolic_opset11.squeeze")
unsqueeze = absent_function("torch.onnx.symbolic_opset11.unsqueeze")
