// NumPy arrays as operands of the engine.
#include "arrays.h"

static int bfloat16_number = -1;

void set_bfloat16_number(int number) { bfloat16_number = number; }

int array_dtype(PyArrayObject* array) {
  if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return -1;
  const int number = PyArray_TYPE(array);
  switch (number) {
    case NPY_BOOL: return RL_BOOL;
    case NPY_UINT8: return RL_UINT8;
    case NPY_INT8: return RL_INT8;
    case NPY_INT16: return RL_INT16;
    case NPY_INT32: return RL_INT32;
    case NPY_HALF: return RL_FLOAT16;
    case NPY_FLOAT: return RL_FLOAT32;
    case NPY_DOUBLE: return RL_FLOAT64;
    case NPY_LONG: case NPY_LONGLONG: return PyArray_ITEMSIZE(array) == 8 ? (int)RL_INT64 : -1;
    default: return number == bfloat16_number ? (int)RL_BFLOAT16 : -1;
  }
}

bool is_operand(PyObject* object, bool written, int* dtype) {
  if (!PyArray_Check(object)) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  *dtype = array_dtype(array);
  return *dtype >= 0 && (!written || PyArray_ISWRITEABLE(array)) && PyArray_NDIM(array) <= RL_MAX_DIMENSIONS;
}

bool is_plain(PyObject* object, bool written, int dtype) {
  int found;
  return is_operand(object, written, &found) && found == dtype && PyArray_IS_C_CONTIGUOUS((PyArrayObject*)object);
}

void byte_range(PyArrayObject* array, const char** first, const char** last) {
  const char *low = (const char*)PyArray_DATA(array), *high = low + PyArray_ITEMSIZE(array);
  for (int d = 0; d < PyArray_NDIM(array); ++d) {
    const int64_t reach = (PyArray_DIM(array, d) - 1) * PyArray_STRIDE(array, d);
    if (PyArray_DIM(array, d) == 0) high = low;
    else if (reach < 0) low += reach;
    else high += reach;
  }
  *first = low;
  *last = high;
}

bool overlaps(PyArrayObject* a, PyArrayObject* b) {
  const char *a_first, *a_last, *b_first, *b_last;
  byte_range(a, &a_first, &a_last);
  byte_range(b, &b_first, &b_last);
  return a_first < b_last && b_first < a_last;
}

bool same_layout(PyArrayObject* a, PyArrayObject* b) {
  const int rank = PyArray_NDIM(a);
  if (PyArray_DATA(a) != PyArray_DATA(b) || rank != PyArray_NDIM(b)) return false;
  if (PyArray_ITEMSIZE(a) != PyArray_ITEMSIZE(b)) return false;
  for (int d = 0; d < rank; ++d)
    if (PyArray_DIM(a, d) != PyArray_DIM(b, d) || PyArray_STRIDE(a, d) != PyArray_STRIDE(b, d)) return false;
  return true;
}

bool read_integer(PyObject* object, int64_t* value) {
  *value = PyLong_AsLongLong(object);
  return *value != -1 || !PyErr_Occurred();
}
