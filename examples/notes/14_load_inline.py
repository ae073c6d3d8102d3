"""Note 3, "cpp": C++ text as an extension, after PyTorch's own example."""

import torch
from torch.utils.cpp_extension import load_inline

source = """
at::Tensor sin_add(at::Tensor x, at::Tensor y) {
  return x.sin() + y.sin();
}
"""
module = load_inline(name='inline_extension',
                     cpp_sources=[source],
                     functions=['sin_add'])

x, y = torch.randn(3), torch.randn(3)
print(module.sin_add(x, y))
print("same as in Python:", torch.allclose(module.sin_add(x, y), x.sin() + y.sin()))
