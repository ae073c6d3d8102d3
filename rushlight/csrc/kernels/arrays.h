/* NumPy arrays as operands of the engine: what the files of the Python module share. */
#ifndef RUSHLIGHT_ARRAYS_H
#define RUSHLIGHT_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL rushlight_numpy
#ifndef RUSHLIGHT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "engine.h"

/* Work below this many elements is done while holding the interpreter lock: letting it go costs more. */
constexpr int64_t SMALL_WORK = 8192;

/* The element type of an array, or -1 where the kernels do not know it (complex, byte-swapped, unaligned). */
int array_dtype(PyArrayObject* array);
void set_bfloat16_number(int number);

/* Whether `object` is an array that the kernels may read (or, `written`, write to); *dtype receives its type. */
bool is_operand(PyObject* object, bool written, int* dtype);
/* The same, row-major and of one type. */
bool is_plain(PyObject* object, bool written, int dtype);

/* The bytes that an array reaches: [first, last). */
void extent(PyArrayObject* array, const char** first, const char** last);
bool overlaps(PyArrayObject* a, PyArrayObject* b);
bool same_layout(PyArrayObject* a, PyArrayObject* b);

/* Runs `work` without the interpreter lock where `count` elements make that worthwhile. */
template <class F> inline int without_lock(int64_t count, const F& work) {
  if (count < SMALL_WORK) return work();
  int done;
  Py_BEGIN_ALLOW_THREADS
  done = work();
  Py_END_ALLOW_THREADS
  return done;
}

/* What a function gives that does not take its arguments: False, or an exception that is set. */
inline PyObject* refuse() { return PyErr_Occurred() ? nullptr : PyBool_FromLong(0); }

/* Whether a function was called with another number of arguments; sets a TypeError. */
inline bool wrong_count(const char* name, Py_ssize_t given, Py_ssize_t wanted) {
  if (given == wanted) return false;
  PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", name, wanted, given);
  return true;
}

inline PyArrayObject* array_of(PyObject* object) { return (PyArrayObject*)object; }

/* Whether an array shares memory with any of those among other arguments. */
inline bool any_overlap(PyObject* out, PyObject* const* others, int count) {
  for (int i = 0; i < count; ++i)
    if (PyArray_Check(others[i]) && overlaps(array_of(out), array_of(others[i]))) return true;
  return false;
}

/* Integers among arguments; -1 with an exception set where one is not. */
bool read_integer(PyObject* object, int64_t* value);

extern PyMethodDef pointwise_methods[], product_methods[], recurrent_methods[], reduction_methods[], row_methods[], convolution_methods[],
    sorting_methods[], indexing_methods[], image_methods[], attention_methods[],
    loss_methods[], region_methods[], special_methods[], block_methods[], byte_methods[];

#endif
