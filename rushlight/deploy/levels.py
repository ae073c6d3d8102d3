"""One library for several instruction sets: a model's file is built for each x86-64 level, and the library chooses a level by
the CPU when it is loaded.

In: an exported folder's header. Out: `NAME_levels.cpp`, whose functions call those of the highest level that the CPU supports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LEVELS = ("v2", "v3", "v4")

_HEAD = """\
// The functions of {name} for each level of x86-64: the model's file is compiled once for each, with RL_LEVEL as its level.
#include "{name}.h"

namespace {{

// The level of this processor. All that have these have what else belongs to the level.
int level_here() {{
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return 2;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") ? 1 : 0;
}}

const int level = level_here();

}}  // namespace

extern "C" {{
"""

_PARAMETER = re.compile(r"(\w+)$")


def level_flags(level: str) -> tuple[str, ...]:
    """Return the compiler flags of a level."""
    return (f"-march=x86-64-{level}", f"-DRL_LEVEL={level}")


def renamed(header: str, name: str) -> list[str]:
    """Return macros that rename all functions of a header for one level's build."""
    words = [f"{name}_rl", f"{name}_rl_team", *(function for _, function, _ in _functions(header, name))]
    join = ["#define RL_JOIN(name, level) name##_##level", "#define RL_AT(name, level) RL_JOIN(name, level)"]
    own = [f"#define {word} RL_AT({word}, RL_LEVEL)" for word in words]
    return ["#ifdef RL_LEVEL", f"#define {name.upper()}_API", *join, *own, "#endif"]


def write_levels(header: str, name: str) -> str:
    """Return the file that chooses a level when the library is loaded."""
    parts = [_HEAD.format(name=name)]
    for result, function, parameters in _functions(header, name):
        given = ", ".join(_PARAMETER.search(each)[1] for each in parameters)
        rows = ", ".join(f"{function}_{level}" for level in LEVELS)
        parts += [
            f"decltype({function}) {rows};",
            f"{result} {function}({', '.join(parameters) or 'void'}) {{",
            f"  static decltype({function})* const built[] = {{{rows}}};",
            f"  return built[level]({given});",
            "}",
            "",
        ]
    return "\n".join([*parts, '}  // extern "C"', ""])


def _functions(header: str, name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the return type, name and parameters of each function in a header."""
    for found in re.finditer(rf"^{name.upper()}_API (.+?)({name}_\w+)\((.*?)\);", header, re.MULTILINE | re.DOTALL):
        words = " ".join(found[3].split())
        yield found[1].strip(), found[2], [] if words == "void" else words.split(", ")
