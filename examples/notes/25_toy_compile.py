"""Note 5, "TorchDynamo: JIT Compiler Framework": a compiled function, its cache entry, its new code, and its native code.

The notebook's cells. `%time` is IPython's, so this file takes the time itself; `decompile` is depyf's where that is installed,
and otherwise the text that Rushlight keeps.
"""

import time

import torch

# A toy example
def foo(a: torch.Tensor, b: torch.Tensor):
    return torch.add(a, b)

# foo_ is compiled version of foo (JIT-enabled)
foo_ = torch.compile(foo)

a = torch.randn(3, 4)
b = torch.randn(3, 4)

for function in (foo, foo_, foo_):
    begin = time.perf_counter()
    result = function(a, b)
    print(f"Wall time: {(time.perf_counter() - begin) * 1e6:.1f} μs")
    print(result)

from dis import dis
from torch._dynamo.eval_frame import _debug_get_cache_entry_list, innermost_fn

cache_entries = _debug_get_cache_entry_list(innermost_fn(foo_))
cache_entry = cache_entries[0]
guard, code = cache_entry.check_fn, cache_entry.code

try:
    from depyf import decompile
except ImportError:
    print(cache_entry.guarded_code.source)
else:
    print(decompile(foo.__code__))
    print(decompile(code))
dis(code)

fn = innermost_fn(__compiled_fn_1)
print(fn.__closure__[0].cell_contents.__closure__[0].cell_contents.__closure__[0].cell_contents.__closure__[0].cell_contents.source_code)
