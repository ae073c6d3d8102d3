"""Note 3, "pytorch dynamo": the compiler's configuration, printed as a whole, and changed for a while."""

import torch
import torch._inductor.config

config = torch._inductor.config
settings = config.get_config_copy()
print(settings)
print(len(settings), "settings")


def fn(x):
    return (x * 2).relu()


x = torch.randn(8)
with config.patch({"max_fusion_size": 32, "cpp.threads": 1}):
    print("inside:", config.max_fusion_size, config.cpp.threads)
    assert torch.equal(torch.compile(fn)(x), fn(x))
print("outside:", config.max_fusion_size, config.cpp.threads)
