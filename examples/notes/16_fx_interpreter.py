"""Note 3, "example of torch fx interpreter": an interpreter that swaps `neg` and `sigmoid`, as the note has it."""

import torch
from torch.fx import Interpreter

class NegSigmSwapInterpreter(Interpreter):
    def call_function(self, target,
                        args, kwargs):
        if target == torch.sigmoid:
            return torch.neg(*args, **kwargs)
        return super().call_function(target)

    def call_method(self, target,
                    args, kwargs):
        if target == 'neg':
            call_self, *args_tail = args
            return call_self.sigmoid(*args_tail, **kwargs)
        return super().call_method(target)

def fn(x):
    return torch.sigmoid(x).neg()

gm = torch.fx.symbolic_trace(fn)
print(gm.print_readable())
input = torch.randn(3, 4)
result = NegSigmSwapInterpreter(gm).run(input)

print(result)
print(torch.neg(input).sigmoid())
