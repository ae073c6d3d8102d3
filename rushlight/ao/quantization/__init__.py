"""`torch.ao.quantization`: modules with which models are ready for quantization. Quantizing raises: it is not here."""

from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper
from rushlight.core.absent import absent_class, absent_function
from rushlight.nn.modules.module import Module

__all__ = [
    "DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QConfig", "QuantStub", "QuantWrapper", "convert", "fuse_modules",
    "prepare", "prepare_qat",
]  # fmt: skip

QConfig = absent_class("torch.ao.quantization.QConfig")
FakeQuantizeBase = absent_class("torch.ao.quantization.FakeQuantizeBase", base=Module)
ObserverBase = absent_class("torch.ao.quantization.ObserverBase", base=Module)
_FUNCTIONS = (
    "convert", "fuse_modules", "fuse_modules_qat", "get_default_qat_qconfig", "get_default_qconfig", "prepare", "prepare_qat",
    "quantize", "quantize_dynamic", "quantize_qat",
)  # fmt: skip
globals().update({name: absent_function(f"torch.ao.quantization.{name}") for name in _FUNCTIONS})
