"""Spell a model's names, dtypes and strings in C."""

from __future__ import annotations

import keyword
import re

from rushlight.core.dtype import dtype, float64, int64
from rushlight.inductor.codegen.cpp.types import CPP_WORDS, literal

DTYPES = {
    "float32": "FLOAT32", "float64": "FLOAT64", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "int64": "INT64",
    "int32": "INT32", "int16": "INT16", "int8": "INT8", "uint8": "UINT8", "bool": "BOOLEAN",
    "complex64": "COMPLEX64", "complex128": "COMPLEX128",
}  # fmt: skip
"""The dtypes that cross the interface, and the suffixes of their constants' names."""


class NotExportable(RuntimeError):
    """A model, or a part of it, cannot run without Python; the message lists the reasons with their source lines."""


_C_WORDS = frozenset(
    "restrict inline signed unsigned struct union typedef main std unix linux i386 stdin stdout stderr EOF I".split()
)


C_LIBRARY = frozenset(
    "abort abs access acos acosh alarm asin asinh atan atan2 atanh atexit atof atoi bcmp bcopy brk bsearch bzero calloc "
    "cbrt ceil chdir chmod chown clock close copysign cos cosh creat daemon div drand48 drem dup erf erfc exit exp exp10 "
    "exp2 expm1 fabs fchmod fclose fdim fdopen feof ferror fflush ffs fgetc fgets fileno finite floor fma fmax fmin fmod "
    "fopen fork fprintf fputc fputs fread free freopen frexp fscanf fseek fstat fsync ftell ftruncate fwrite gamma getc "
    "getcwd getenv getw hypot ilogb index isatty j0 j1 jn kill labs ldexp ldiv lgamma link llabs llrint llround lockf log "
    "log10 log1p log2 logb lrint lround lseek lstat madvise malloc memchr memcmp memcpy memmem memmove mempcpy memset mkdir "
    "mkfifo mknod mkstemp mktemp mlock mmap modf mprotect mremap msync munlock munmap nan nanosleep nearbyint nextafter "
    "nice open openat pause pclose perror pipe popen pow pread printf putc putchar putenv puts pwrite qsort quick_exit "
    "raise rand rand_r random read readlink realloc realpath remainder remove remquo rename rewind rindex rint rmdir round "
    "sbrk scalb scalbn scanf select setbuf setenv setvbuf signal significand sin sincos sinh sleep sprintf sqrt srand "
    "srandom sscanf stat strcat strchr strcmp strcpy strdup strlen strncpy strsep strstr strtod strtok strtol swab symlink "
    "sync syscall system tan tanh tee tgamma time tmpfile tmpnam trunc truncate umask ungetc unlink unsetenv usleep valloc "
    "vfork vprintf write y0 y1 yn".split()
)  # fmt: skip
"""Functions of the C library in headers that programs include. A model's type cannot have these names."""


def c_constant(kind: dtype) -> str:
    """Return the constant of a dtype in the model's source."""
    return f"RL_CONSTANT({DTYPES[kind.name]})"


def is_identifier(name: str) -> bool:
    """Return whether this is a valid name in C, C++ and Python."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and not is_word(name)


def is_model_name(name: str) -> bool:
    """Return whether a model may have this name, which its type in C gets."""
    return is_identifier(name) and name not in C_LIBRARY


def model_name(wished: str) -> str:
    """Return a valid model name similar to the wished one."""
    return identifier(wished, set(C_LIBRARY), "model")


def is_word(name: str) -> bool:
    """Return whether a name is a keyword in one of these languages."""
    return name in CPP_WORDS or name in _C_WORDS or keyword.iskeyword(name)


def identifier(name: str, taken: set[str], otherwise: str = "x", behind_prefix: bool = False) -> str:
    """Return a valid identifier similar to the wished name, and mark it as taken. After a prefix it may be a keyword."""
    found = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or otherwise
    if found[0].isdigit():
        found = f"{otherwise}_{found}"
    wished, number = found, 0
    while found in taken or (is_word(found) and not behind_prefix):
        number += 1
        found = f"{wished}_{number}"
    taken.add(found)
    return found


def in_user_names(text: str, names: dict[str, str]) -> str:
    """Return text with symbols such as s0 replaced by the user's names."""
    return re.sub(r"\bs\d+\b", lambda found: names.get(found[0], found[0]), text)


def c_string(text: str) -> str:
    """Return a C string literal."""
    made = []
    for byte in text.encode():
        char = chr(byte)
        plain = 32 <= byte < 127 and char not in '"\\?'
        made.append(char if plain else f"\\{byte:03o}")
    return f'"{"".join(made)}"'


def format_text(text: str) -> str:
    """Return a printf format that prints exactly this text."""
    return c_string(text.replace("%", "%%"))


def real_text(value: float) -> str:
    """Return a float as a C literal."""
    return literal(value, float64)


def constant_text(value: object) -> str:
    """Return a plain value as a C++ expression of type `value`. NotExportable for others."""
    if value is None:
        return "none()"
    if isinstance(value, bool):
        return f"of_boolean({str(value).lower()})"
    if isinstance(value, int):
        return f"of_integer({integer_text(value)})"
    if isinstance(value, float):
        return f"of_real({real_text(value)})"
    if isinstance(value, str):
        return f"of_string({c_string(value)}, {len(value.encode())})"
    raise NotExportable(f"a value of type {type(value).__name__}, which has no form in C")


def integer_text(value: int) -> str:
    """Return a 64-bit int as a C literal."""
    return literal(value, int64)
