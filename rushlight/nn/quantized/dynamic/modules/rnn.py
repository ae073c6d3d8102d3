"""`torch.nn.quantized.dynamic.modules.rnn`: an older name of `torch.ao.nn.quantized.dynamic.modules.rnn`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.quantized.dynamic.modules.rnn")
