// The extension module rushlight._kernels: the native CPU kernels over NumPy arrays, and their table for C.
//
// Every function checks its arguments. If no kernel supports them, it returns False and has done nothing.
#define RUSHLIGHT_IMPORTS_NUMPY
#include "arrays.h"

#include <stdlib.h>
#include <string.h>

namespace {

RushlightKernels table = {
    RUSHLIGHT_KERNELS_VERSION, nullptr, rushlight_pointwise, rushlight_optimizer, rushlight_set_threads,
    rushlight_get_threads, rushlight_matmul,
};

PyObject* set_threads(PyObject*, PyObject* number) {
  int64_t count;
  if (!read_integer(number, &count)) return nullptr;
  if (count < 1 || count > 1 << 16)
    return PyErr_Format(PyExc_ValueError, "set_threads: expected a positive number of threads, got %S", number);
  rushlight_set_threads((int)count);
  Py_RETURN_NONE;
}

PyObject* set_bfloat16(PyObject*, PyObject* number) {
  int64_t value;
  if (!read_integer(number, &value)) return nullptr;
  set_bfloat16_number((int)value);
  Py_RETURN_NONE;
}

PyMethodDef general_methods[] = {
    {"set_threads", set_threads, METH_O, "set_threads(count: int, /) -> None\n\nThe number of threads of every kernel."},
    {"set_bfloat16", set_bfloat16, METH_O, "set_bfloat16(number: int, /) -> None\n\nNumPy's type number of bfloat16."},
    {nullptr, nullptr, 0, nullptr},
};

int add_codes(PyObject* module) {
  static const char* const names[] = {
#define RL_NAME(name, inputs, class) #name,
      RL_POINTWISE(RL_NAME)
#undef RL_NAME
  };
  PyObject* codes = PyDict_New();
  if (!codes) return -1;
  for (int code = 0; code < RL_POINTWISE_COUNT; ++code) {
    PyObject* number = PyLong_FromLong(code);
    const int failed = !number || PyDict_SetItemString(codes, names[code], number) < 0;
    Py_XDECREF(number);
    if (failed) return Py_DECREF(codes), -1;
  }
  const int failed = PyModule_AddObjectRef(module, "codes", codes);
  Py_DECREF(codes);
  return failed;
}

int choose_instructions(PyObject* module) {
  const char* wanted = getenv("RUSHLIGHT_KERNELS");
  if (wanted && (!*wanted || !strcmp(wanted, "numpy"))) wanted = nullptr;
  if (!rushlight_choose_variant(wanted)) {
    PyErr_Format(PyExc_ImportError, "RUSHLIGHT_KERNELS=%s: expected numpy, baseline, avx2 or avx512, as far as this "
                 "processor has them", wanted);
    return -1;
  }
  table.instructions = rushlight_variant()->name;
  return PyModule_AddStringConstant(module, "instructions", table.instructions);
}

int execute(PyObject* module) {
  import_array1(-1);
  static PyMethodDef* const tables[] = {general_methods, pointwise_methods, product_methods, reduction_methods,
                                       row_methods, convolution_methods, sorting_methods, indexing_methods,
                                       image_methods, attention_methods, loss_methods, recurrent_methods, region_methods,
                                       special_methods, block_methods, byte_methods};
  for (PyMethodDef* methods : tables)
    if (PyModule_AddFunctions(module, methods) < 0) return -1;
  if (choose_instructions(module) < 0 || add_codes(module) < 0) return -1;
  PyObject* capsule = PyCapsule_New(&table, RUSHLIGHT_KERNELS_CAPSULE, nullptr);
  const int failed = !capsule || PyModule_AddObjectRef(module, "table", capsule) < 0;
  Py_XDECREF(capsule);
  return failed ? -1 : 0;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, (void*)execute}, {0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rushlight._kernels", "Native CPU kernels over NumPy arrays.", 0, nullptr, slots, nullptr,
    nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__kernels() {
  static bool initialized;
  if (!initialized) rushlight_watch_forks();
  initialized = true;
  return PyModuleDef_Init(&definition);
}
