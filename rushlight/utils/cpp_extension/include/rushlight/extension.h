// C++ functions over Rushlight's tensors, for rushlight.utils.cpp_extension.
//
// A source that includes this header (or <torch/extension.h>, which is the same) is built into a Python extension module.
// Tensors come in and go out as handles on Python's tensors: sizes, strides, dtype and the data pointer are read once,
// and every operator is a call back to Python's. Arguments are checked: a wrong type is a TypeError, and a C++ exception
// becomes a Python one. The interpreter lock is held while a function runs, unless it was bound with
// `py::call_guard<py::gil_scoped_release>()` or holds a `gil_release`; data may be read and written and operators called
// either way.
//
// Names are in the namespace `rushlight`; `torch`, `at`, `c10` and `pybind11` offer those that sources written for PyTorch use.
#pragma once

#include <rushlight/extension/python.h>
#include <rushlight/extension/types.h>
#include <rushlight/extension/tensor.h>
#include <rushlight/extension/convert.h>
#include <rushlight/extension/call.h>
#include <rushlight/extension/functions.h>
#include <rushlight/extension/function.h>
#include <rushlight/extension/module.h>
#include <rushlight/extension/library.h>
#include <rushlight/extension/dispatch.h>
#include <rushlight/extension/names.h>
