// Sorting, top-k and cumulative sums, row by row over row-major arrays. The sorting algorithm is in rushlight/sort.h, which
// compiled graphs use too.
#include <rushlight/sort.h>

#include "arrays.h"

namespace {

// ---- sorting -------------------------------------------------------------------------------------------------------

template <class T>
int sort_rows(const T* in, int64_t rows, int64_t count, int64_t kept, bool descending, T* values, int64_t* places) {
  const int threads = rushlight_threads_for(rows == 1 ? 1 : rows * count * 8);
  const int64_t needed = rl::sort_scratch_bytes<T>(count, kept);
  char* scratch = (char*)rushlight_scratch(threads * needed, BUFFERS);
  if (!scratch) return 0;
  int status = 0;  // the caller has made sure that rows are short enough
  in_parallel(threads, [&](int thread, int total) {
    char* own = scratch + thread * needed;
    const Part part = part_of(rows, thread, total);
    for (int64_t row = part.first; row < part.last; ++row) {
      const T* from = in + row * count;
      T* to = values + row * kept;
      if (descending) rl::sort_row<true>(from, count, kept, to, places + row * kept, own, &status);
      else rl::sort_row<false>(from, count, kept, to, places + row * kept, own, &status);
    }
  });
  return 1;
}

PyObject* sort(PyObject*, PyObject* const* a, Py_ssize_t given) {
  if (given != 4) return PyErr_Format(PyExc_TypeError, "sort: expected values, indices, input, descending; got %zd", given);
  int dtype;
  if (!is_operand(a[2], false, &dtype) || !is_plain(a[2], false, dtype) || !is_plain(a[0], true, dtype) ||
      !is_plain(a[1], true, RL_INT64))
    Py_RETURN_FALSE;
  PyArrayObject *values = (PyArrayObject*)a[0], *places = (PyArrayObject*)a[1], *in = (PyArrayObject*)a[2];
  const int rank = PyArray_NDIM(in);
  if (rank < 1 || PyArray_NDIM(values) != rank || !PyArray_SAMESHAPE(values, places) || overlaps(values, in)) Py_RETURN_FALSE;
  const int64_t count = PyArray_DIM(in, rank - 1), kept = PyArray_DIM(values, rank - 1);
  if (!count || !kept || kept > count || count >= UINT32_MAX) Py_RETURN_FALSE;
  const int64_t rows = PyArray_SIZE(in) / count;
  if (!rows || PyArray_SIZE(values) != rows * kept) Py_RETURN_FALSE;
  const bool descending = a[3] == Py_True;
  const void* source = PyArray_DATA(in);
  void* target = PyArray_DATA(values);
  int64_t* indices = (int64_t*)PyArray_DATA(places);
  return PyBool_FromLong(without_gil(PyArray_SIZE(in) * 4, [&] {
    switch (dtype) {
      case RL_FLOAT32: return sort_rows((const float*)source, rows, count, kept, descending, (float*)target, indices);
      case RL_FLOAT64: return sort_rows((const double*)source, rows, count, kept, descending, (double*)target, indices);
      case RL_INT32: return sort_rows((const int32_t*)source, rows, count, kept, descending, (int32_t*)target, indices);
      case RL_INT64: return sort_rows((const int64_t*)source, rows, count, kept, descending, (int64_t*)target, indices);
      default: return 0;
    }
  }));
}

// ---- running sums --------------------------------------------------------------------------------------------------

template <class T, class A> void running_row(const T* in, T* out, int64_t count) {
  A total = 0;
  for (int64_t i = 0; i < count; ++i) out[i] = (T)(total += in[i]);
}

// Four rows at a time; with one, each addition would wait for the one before.
template <class T, class A> void running_rows(const T* in, T* out, int64_t rows, int64_t count) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, in += 4 * count, out += 4 * count) {
    A total[4] = {};
    for (int64_t i = 0; i < count; ++i)
      for (int r = 0; r < 4; ++r) out[r * count + i] = (T)(total[r] += in[r * count + i]);
  }
  for (; row < rows; ++row, in += count, out += count) running_row<T, A>(in, out, count);
}

template <class T, class A> void running_columns(const T* in, T* out, int64_t count, int64_t inner, int64_t width) {
  A total[256] = {};
  for (int64_t i = 0; i < count; ++i, in += inner, out += inner)
    for (int64_t j = 0; j < width; ++j) out[j] = (T)(total[j] += in[j]);
}

template <class T, class A> int running_sums(const void* given, void* target, int64_t outer, int64_t count, int64_t inner) {
  const T* in = (const T*)given;
  T* out = (T*)target;
  const int64_t runs = (inner + 255) / 256;
  in_parallel(rushlight_threads_for(outer * count * inner), [&](int thread, int threads) {
    if (inner == 1) {
      const Part part = part_of(outer, thread, threads, 4);
      return running_rows<T, A>(in + part.first * count, out + part.first * count, part.last - part.first, count);
    }
    const Part part = part_of(outer * runs, thread, threads);
    for (int64_t piece = part.first; piece < part.last; ++piece) {
      const int64_t column = piece % runs * 256, at = piece / runs * count * inner + column;
      running_columns<T, A>(in + at, out + at, count, inner, inner - column < 256 ? inner - column : 256);
    }
  });
  return 1;
}

PyObject* cumsum(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t axis;
  int dtype;
  if (given != 3) return PyErr_Format(PyExc_TypeError, "cumsum: expected out, input, axis; got %zd", given);
  if (!read_integer(a[2], &axis)) return nullptr;
  if (!is_operand(a[1], false, &dtype) || !is_plain(a[1], false, dtype) || !is_plain(a[0], true, dtype)) Py_RETURN_FALSE;
  PyArrayObject *out = (PyArrayObject*)a[0], *in = (PyArrayObject*)a[1];
  if (!PyArray_SAMESHAPE(out, in) || axis < 0 || axis >= PyArray_NDIM(in) || overlaps(out, in) || !PyArray_SIZE(in))
    Py_RETURN_FALSE;
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= PyArray_DIM(in, d);
  for (int d = (int)axis + 1; d < PyArray_NDIM(in); ++d) inner *= PyArray_DIM(in, d);
  const int64_t count = PyArray_DIM(in, (int)axis);
  const void* source = PyArray_DATA(in);
  void* target = PyArray_DATA(out);
  return PyBool_FromLong(without_gil(PyArray_SIZE(in), [&] {
    switch (dtype) {
      case RL_FLOAT32: return running_sums<float, double>(source, target, outer, count, inner);
      case RL_FLOAT64: return running_sums<double, double>(source, target, outer, count, inner);
      case RL_INT64: return running_sums<int64_t, uint64_t>(source, target, outer, count, inner);
      default: return 0;
    }
  }));
}

}  // namespace

PyMethodDef sorting_methods[] = {
    {"sort", (PyCFunction)(void (*)(void))sort, METH_FASTCALL,
     "sort(values: ndarray, indices: ndarray, input: ndarray, descending: bool, /) -> bool\n\nThe first values of each row\n"
     "in order, as many as `values` has, with their places; equal ones in their given order. Row-major float32, float64,\n"
     "int32 or int64; False for anything else."},
    {"cumsum", (PyCFunction)(void (*)(void))cumsum, METH_FASTCALL,
     "cumsum(out: ndarray, input: ndarray, axis: int, /) -> bool\n\nRunning sums, those of float32 kept in double precision.\n"
     "Row-major float32, float64 or int64; False for anything else."},
    {nullptr, nullptr, 0, nullptr},
};
