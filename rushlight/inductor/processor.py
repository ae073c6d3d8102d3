"""Instruction sets of this processor. Cache keys include them, because machines may share a cache folder."""

from __future__ import annotations

import functools
import platform

import rushlight._C as _C

# Instructions on x86 that `-march=native` may enable, by their names in /proc/cpuinfo. Other flags there do not affect code.
_INSTRUCTION_FLAGS = frozenset(
    "sse3 pni ssse3 sse4_1 sse4_2 sse4a popcnt cx16 movbe aes pclmulqdq f16c rdrnd rdrand fma fma4 xop tbm abm lzcnt bmi1 bmi2 "
    "avx avx2 avx_vnni avx_ifma avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx512vbmi avx512_vbmi2 avx512_vnni "
    "avx512_bitalg avx512_vpopcntdq avx512_bf16 avx512_fp16 avx512_vp2intersect gfni vaes vpclmulqdq adx sha_ni rdseed clwb "
    "clflushopt clzero mwaitx wbnoinvd pku serialize amx_bf16 amx_int8 amx_tile movdiri movdir64b rdpid fsgsbase prfchw "
    "3dnowprefetch xsave xsaveopt xsavec xsaves".split()
)


def machine() -> str:
    """Return the operating system and the processor's family."""
    return f"{platform.system()} {platform.machine()}"


@functools.cache
def instructions() -> tuple[str, ...]:
    """Return the names of this processor's instruction sets, sorted."""
    flags = _flags_of_linux()
    known = flags & _INSTRUCTION_FLAGS if platform.machine() in ("x86_64", "AMD64") else flags
    return tuple(sorted(known | set(_C.cpu_features())))


def _flags_of_linux() -> set[str]:
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith(("flags", "Features")):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()
