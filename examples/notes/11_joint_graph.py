"""Note 3, "after aot_dispatch_autograd_graph called": the joint graph of `aten.mm(m1, m2)`, and the two graphs it is cut into."""

import torch
from torch._functorch.aot_autograd import aot_function, make_boxed_func
from torch._functorch.partitioners import default_partition


def mm(m1, m2):
    return torch.mm(m1, m2)


def show(gm: torch.fx.GraphModule, example_inputs):
    gm.print_readable()
    return make_boxed_func(gm.forward)


def show_joint(joint: torch.fx.GraphModule, joint_inputs, **options):
    joint.print_readable()
    return default_partition(joint, joint_inputs, **options)


m1, m2 = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
compiled = aot_function(mm, fw_compiler=show, bw_compiler=show, partition_fn=show_joint)
result = compiled(m1, m2)
result.sum().backward()
print("gradient is right:", torch.allclose(m1.grad, torch.ones(4, 4) @ m2.detach().t()))
