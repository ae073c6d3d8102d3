"""`torch._functorch`: the names under which programs configure compiled training, and trace it themselves."""

from rushlight._functorch import config
from rushlight.core.lazy_module import lazy_names

__all__ = ["aot_autograd", "config", "deprecated", "partitioners"]
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight._functorch.aot_autograd": (), "rushlight._functorch.deprecated": (), "rushlight._functorch.partitioners": (),
})  # fmt: skip
