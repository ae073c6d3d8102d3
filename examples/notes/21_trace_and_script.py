"""Note 4, "TorchScript使用": tracing fixes control flow, scripting keeps it; each may hold the other; saving and loading."""

import io
import warnings

import torch


class Loop(torch.nn.Module):
    def forward(self, xs):
        total = torch.zeros(2)
        for x in xs.unbind(0):  # a recurrent network is a loop over the length of its input
            total = torch.tanh(total + x)
        return total


class Scripted(torch.nn.Module):
    def forward(self, xs):
        total = torch.zeros(2)
        for i in range(xs.size(0)):
            total = torch.tanh(total + xs[i])
        return total


three, five = torch.rand(3, 2), torch.rand(5, 2)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    traced = torch.jit.trace(Loop(), three)
scripted = torch.jit.script(Scripted())
print("scripted is right for another length:", torch.allclose(scripted(five), Loop()(five)))
try:
    print("traced is right for another length:", torch.allclose(traced(five), Loop()(five)))
except RuntimeError as error:
    print("traced fails for another length:", str(error).strip().splitlines()[-1])


def double(x):
    return x * 2


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.jit.trace(double, torch.rand(2))  # script over trace
        self.loop = Scripted()

    def forward(self, xs):
        return self.scale(self.loop(xs))


both = torch.jit.script(Both())


class Around(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.both = both

    def forward(self, xs):
        return self.both(xs) + 1


around = torch.jit.trace(Around(), three)  # trace over script: the control flow inside is kept
print("trace over script is right for another length:", torch.allclose(around(five), both(five) + 1))
print(scripted.code)  # to see whether the method is what one had in mind

buffer = io.BytesIO()
torch.jit.save(both, buffer)
buffer.seek(0)
print("loaded is the same:", torch.equal(torch.jit.load(buffer)(five), both(five)))
