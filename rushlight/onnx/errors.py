"""`torch.onnx.errors`: what goes wrong in an export."""

__all__ = ["OnnxExporterError", "OnnxExporterWarning"]


class OnnxExporterError(RuntimeError):
    """A model can't be exported."""


class OnnxExporterWarning(UserWarning):
    """A model is exported, but not quite as it is."""
