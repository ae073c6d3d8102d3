"""Templates of the files that say how to build and use an exported model."""

from __future__ import annotations

from rushlight.deploy.levels import LEVELS
from rushlight.deploy.model import Method, Model, Parameter
from rushlight.deploy.spelling import DTYPES, c_string

# Sizes are 64-bit and are narrowed to `long` fields. Where `long` has 32 bits, memory is small enough for 32-bit sizes.
FLAGS = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fno-exceptions", "-fno-rtti", "-Wno-narrowing")

_CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project(@name VERSION 1.0 LANGUAGES C CXX@ASM)

option(@NAME_SHARED "Build a shared library" ON)
option(@NAME_EXAMPLE "Build the example program" ON)
option(@NAME_LEVELS "Build for each level of x86-64, of which the processor's own one runs" OFF)
set(@NAME_ARCH "native" CACHE STRING "The processor to build for, as -march takes it; empty for the compiler's usual one")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Threads: OpenMP where the compiler has it, a pool of the model's own otherwise.
find_package(OpenMP COMPONENTS CXX)
find_package(Threads)

function(@name_options target)
  target_compile_features(${target} PRIVATE cxx_std_17)
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:@FLAGS>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)
  endif()
  if(OpenMP_CXX_FOUND)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  elseif(Threads_FOUND)
    target_link_libraries(${target} PRIVATE Threads::Threads)
  endif()
endfunction()

if(@NAME_LEVELS)
  set(@name_sources @name_levels.cpp@WEIGHTS_SOURCE)
  foreach(level @LEVELS)
    add_library(@name_${level} OBJECT @name.cpp)
    @name_options(@name_${level})
    target_compile_options(@name_${level} PRIVATE -march=x86-64-${level} -DRL_LEVEL=${level})
    list(APPEND @name_sources $<TARGET_OBJECTS:@name_${level}>)
  endforeach()
else()
  set(@name_sources @name.cpp@WEIGHTS_SOURCE)
endif()
if(@NAME_SHARED)
  add_library(@name SHARED ${@name_sources})
else()
  add_library(@name STATIC ${@name_sources})
endif()
add_library(@name::@name ALIAS @name)
@name_options(@name)
target_include_directories(@name PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
if(@NAME_ARCH AND NOT @NAME_LEVELS)
  target_compile_options(@name PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-march=${@NAME_ARCH}>)
endif()
if(UNIX)
  target_link_libraries(@name PRIVATE m)
endif()

if(@NAME_EXAMPLE)
  add_executable(@name_example example.c)
  target_link_libraries(@name_example PRIVATE @name)
  # The library is C++ for the compiler only: it needs nothing of the C++ library.
  set_target_properties(@name_example PROPERTIES LINKER_LANGUAGE CXX)
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS @name EXPORT @nameTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT @nameTargets NAMESPACE @name:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/@name)
install(FILES @name.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
@INSTALL_WEIGHTSconfigure_package_config_file(@nameConfig.cmake.in @nameConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/@name)
write_basic_package_version_file(@nameConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/@nameConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/@nameConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/@name)
configure_file(@name.pc.in @name.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/@name.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
"""

_CONFIG = """\
@PACKAGE_INIT@
include(CMakeFindDependencyMacro)
find_package(OpenMP QUIET COMPONENTS CXX)
find_package(Threads QUIET)
include("${CMAKE_CURRENT_LIST_DIR}/%nameTargets.cmake")
set(%name_WEIGHTS "${PACKAGE_PREFIX_DIR}/share/%name/%name.weights")
"""

_PKG_CONFIG = """\
prefix=@CMAKE_INSTALL_PREFIX@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
weights=${prefix}/share/%name/%name.weights

Name: %name
Description: The model %name
Version: @PROJECT_VERSION@
Libs: -L${libdir} -l%name
Libs.private: -lm
Cflags: -I${includedir}
"""

_EMBEDDING = """\
/* The weights of %name, compiled in. */
#ifdef __wasm__
    .section .rodata.%name_weights,"",@
    .type %name_weights,@object
    .size %name_weights, %bytes
#else
    .section .rodata
#endif
    .globl %name_weights
    .hidden %name_weights
    .p2align 6
%name_weights:
    .incbin "%name.weights"
#ifdef __ELF__
    .section .note.GNU-stack,"",%progbits
#endif
"""


def _fill_in_names(text: str, name: str, mark: str) -> str:
    return text.replace(f"{mark}NAME", name.upper()).replace(f"{mark}name", name)


def cmake(name: str, embed: bool) -> str:
    """Return the text of CMakeLists.txt: the library, an installable target, the example."""
    weights = f" {name}_weights.S" if embed else ""
    install = "" if embed else f"install(FILES {name}.weights DESTINATION ${{CMAKE_INSTALL_DATADIR}}/{name})\n"
    text = (
        _CMAKE.replace("@WEIGHTS_SOURCE", weights).replace("@INSTALL_WEIGHTS", install).replace("@ASM", " ASM" if embed else "")
    )
    return _fill_in_names(text.replace("@FLAGS", ";".join(FLAGS)).replace("@LEVELS", " ".join(LEVELS)), name, "@")


def cmake_config(name: str) -> str:
    """Return the config file of `find_package`, before it is configured."""
    return _fill_in_names(_CONFIG, name, "%")


def pkg_config(name: str) -> str:
    """Return the pkg-config file, before it is configured."""
    return _fill_in_names(_PKG_CONFIG, name, "%")


def embedding(name: str, nbytes: int) -> str:
    """Return assembly that embeds the weights, `nbytes` bytes."""
    return _fill_in_names(_EMBEDDING.replace("%bytes", str(nbytes)), name, "%")


# The example


def _example_size(size: int | str, bounds: dict) -> int:
    if isinstance(size, int):
        return size
    least, _ = bounds.get(size, (2, None))
    return max(least, 2)


def _example_input(model: Model, parameter: Parameter, position: int) -> list[str]:
    name, upper = model.name, model.name.upper()
    if parameter.kind in ("int", "bool"):
        return [f"  inputs[{position}].kind = {upper}_{parameter.kind.upper()};", f"  inputs[{position}].as.integer = 1;"]
    if parameter.kind == "float":
        return [f"  inputs[{position}].kind = {upper}_FLOAT;", f"  inputs[{position}].as.real = 1.0;"]
    if parameter.kind != "tensor" or parameter.sizes is None or parameter.dtype is None:
        return [f"  /* inputs[{position}]: {parameter} */"]
    bounds = {each: (least, most) for each, least, most in parameter.bounds}
    sizes = [_example_size(size, bounds) for size in parameter.sizes]
    shown = ", ".join(map(str, sizes)) or "1"
    element = f"{upper}_{DTYPES[parameter.dtype.name]}"
    return [
        f"  const int64_t sizes_{position}[] = {{{shown}}};",
        f"  inputs[{position}].kind = {upper}_TENSOR;",
        f"  inputs[{position}].as.tensor = {name}_tensor_of({element}, NULL, {len(sizes)}, sizes_{position});",
        f"  inputs[{position}].as.tensor.data = zeros(&inputs[{position}].as.tensor, {parameter.dtype.itemsize});",
    ]


def example(model: Model, embed: bool) -> str:
    """Return a program that runs the first method on zeros, and prints the sizes of its results."""
    name, upper, method = model.name, model.name.upper(), model.methods[0]
    given = [line for position, each in enumerate(method.inputs) for line in _example_input(model, each, position)]
    weights = "argc > 1 ? argv[1] : NULL" if embed else f'argc > 1 ? argv[1] : "{name}.weights"'
    inputs, outputs = max(len(method.inputs), 1), max(len(method.outputs), 1)
    return f"""\
/* Runs {name}'s method {method.name} once, on zeros. */
#include <stdio.h>
#include <stdlib.h>

#include "{name}.h"

static void* zeros(const {name}_tensor* tensor, size_t bytes) {{
  int dim;
  for (dim = 0; dim < tensor->rank; ++dim) bytes *= (size_t)tensor->sizes[dim];
  return calloc(bytes ? bytes : 1, 1);
}}

int main(int argc, char** argv) {{
  char message[512];
  {name}* model = NULL;
  {name}_value inputs[{inputs}] = {{{{0}}}}, outputs[{outputs}] = {{{{0}}}};
  int i, dim;
{chr(10).join(given)}
  if ({name}_create({weights}, &model, message, sizeof(message)) != {upper}_OK) {{
    fprintf(stderr, "{name}: %s\\n", message);
    return 1;
  }}
  if ({name}_run(model, 0, inputs, {len(method.inputs)}, outputs, {len(method.outputs)}) != {upper}_OK) {{
    fprintf(stderr, "{name}: %s\\n", {name}_error(model));
    {name}_destroy(model);
    return 1;
  }}
  for (i = 0; i < {len(method.outputs)}; ++i) {{
    printf("%s:", {name}_method_at(0)->outputs[i].name);
    if (outputs[i].kind == {upper}_TENSOR)
      for (dim = 0; dim < outputs[i].as.tensor.rank; ++dim) printf(" %lld", (long long)outputs[i].as.tensor.sizes[dim]);
    printf("\\n");
  }}
  {name}_destroy(model);
  for (i = 0; i < {len(method.inputs)}; ++i)
    if (inputs[i].kind == {upper}_TENSOR) free(inputs[i].as.tensor.data);
  return 0;
}}
"""


# The README


def _signature(method: Method) -> str:
    outputs = ", ".join(map(str, method.outputs)) or "nothing"
    return f"{method.name}({', '.join(map(str, method.inputs))}) -> {outputs}"


def _range_lines(method: Method) -> list[str]:
    bounds = dict.fromkeys(each for parameter in method.inputs for each in parameter.bounds)
    return [f"    {name}: from {least}" + ("" if most is None else f" to {most}") for name, least, most in bounds]


def readme(model: Model, embed: bool, digest: str, nbytes: int) -> str:
    """Return the README: what the model is, how to build it, and its checksum."""
    name = model.name
    methods = "\n".join("\n".join([f"    {_signature(method)}", *_range_lines(method)]) for method in model.methods)
    states = "\n".join(f"- `{each}`" for each, _ in model.states)
    state = f"\nIt keeps a state from run to run, until `{name}_reset`:\n\n{states}\n" if model.states else ""
    upper, sources = name.upper(), f"{name}.cpp{f' {name}_weights.S' if embed else ''}"
    weights = "compiled into the library" if embed else f"`{name}.weights`, which `{name}_create` maps"
    return f"""\
# {name}

A model as C++ source with a C interface. It needs a compiler for C++17 (GCC or Clang) and the C library, and nothing else.

{methods}
{state}
- The interface is in `{name}.h`.
- The weights are {weights}: {nbytes:,} bytes, SHA-256 {digest}.

With CMake:

    cmake -S . -B build && cmake --build build && cmake --install build --prefix {c_string(name)[1:-1]}-install

installs a target for other projects: `find_package({name})`, `target_link_libraries(app {name}::{name})`, and a file for
pkg-config. `-D{upper}_ARCH=x86-64-v3` builds for another processor than this machine's, `-D{upper}_LEVELS=ON` for each
level of x86-64, of which the processor's own one runs, and `-D{upper}_SHARED=OFF` a static library. Without CMake:

    g++ -std=c++17 -O2 -march=native -fopenmp -fPIC -shared {" ".join(FLAGS)} \\
      -I. {sources} -o lib{name}.so -lm
"""
