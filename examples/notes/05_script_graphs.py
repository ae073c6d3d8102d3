"""Note 1, "pytorch script", "run": the original graph, the one that profiles, and the passes of `getOptimizedPlanFor` by name."""

import torch
from torch.jit.passes.run import run_pass  # Rushlight's: the passes by the names that the note gives

torch._C._jit_set_profiling_executor(True)
torch._C._jit_set_profiling_mode(True)


@torch.jit.script
def aa(a, b):
    c = a + b
    d = c * c
    return d


print("---------- original graph ---------")
print(aa.graph)
aa(torch.ones(2), torch.ones(2))
print("---------- profiling graph ---------")
print(torch.jit.last_executed_optimized_graph())

graph = aa.graph.copy()
for name in (
    "Inline", "ClearProfilingInformation", "LowerGradOf", "ClearUndefinedness", "RemoveExpands", "CanonicalizeOps",
    "EliminateDeadCode", "DecomposeOps", "ConstantPropagation", "EliminateDeadCode", "EliminateCommonSubexpression",
    "ConstantPropagation", "ConstantPooling", "PeepholeOptimize", "EliminateDeadCode", "LowerSimpleTuples", "CheckInplace",
):  # fmt: skip
    run_pass(name, graph)
print("---------- after runProfilingInsensitiveOptimizations ---------")
print(graph)
