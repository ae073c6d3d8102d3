/* NumPy arrays as operands of the engine: declarations that the files of the Python module share. */
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

/* Work below this many elements keeps the GIL: releasing it would cost more. */
constexpr int64_t SMALL_WORK = 8192;

/* The element type of an array, or -1 where the kernels do not know it (complex, byte-swapped, unaligned). */
int array_dtype(PyArrayObject* array);
void set_bfloat16_number(int number);

/* Whether `object` is an array that the kernels may read (or, `written`, write to); *dtype receives its type. */
bool is_operand(PyObject* object, bool written, int* dtype);
/* Whether `object` is a row-major operand of this type. */
bool is_plain(PyObject* object, bool written, int dtype);

/* The byte range that an array covers: [first, last). */
void extent(PyArrayObject* array, const char** first, const char** last);
bool overlaps(PyArrayObject* a, PyArrayObject* b);
bool same_layout(PyArrayObject* a, PyArrayObject* b);

/* Runs `work`, releasing the GIL if `count` elements make that worthwhile. */
template <class F> inline int without_lock(int64_t count, const F& work) {
  if (count < SMALL_WORK) return work();
  int done;
  Py_BEGIN_ALLOW_THREADS
  done = work();
  Py_END_ALLOW_THREADS
  return done;
}

/* The result of a function that does not accept its arguments: False, or NULL if an exception is set. */
inline PyObject* refuse() { return PyErr_Occurred() ? nullptr : PyBool_FromLong(0); }

/* Whether the argument count is wrong; sets a TypeError if so. */
inline bool wrong_count(const char* name, Py_ssize_t given, Py_ssize_t wanted) {
  if (given == wanted) return false;
  PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", name, wanted, given);
  return true;
}

inline PyArrayObject* array_of(PyObject* object) { return (PyArrayObject*)object; }

/* Whether an array shares memory with any array among other arguments. */
inline bool any_overlap(PyObject* out, PyObject* const* others, int count) {
  for (int i = 0; i < count; ++i)
    if (PyArray_Check(others[i]) && overlaps(array_of(out), array_of(others[i]))) return true;
  return false;
}

/* Reads an integer argument; false with an exception set if it is none. */
bool read_integer(PyObject* object, int64_t* value);

extern PyMethodDef pointwise_methods[], product_methods[], recurrent_methods[], reduction_methods[], row_methods[], convolution_methods[],
    sorting_methods[], indexing_methods[], image_methods[], attention_methods[],
    loss_methods[], region_methods[], special_methods[], block_methods[], byte_methods[];

#endif
