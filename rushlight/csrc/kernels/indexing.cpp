// Taking, gathering and scattering by indices. Every index is checked. If an index is out of range, the function returns False,
// possibly after writing to its result; then the caller finds the index, raises the error and drops the result.
#include <string.h>

#include "arrays.h"

namespace {

// Copy rows of `bytes` bytes from a table of `size` rows by index; every index is checked first.
struct Taking {
  const char* table;
  const int64_t* index;
  char* out;
  int64_t outer, size, count, bytes;
};

template <int64_t Bytes> void take_part(const Taking& t, int64_t first, int64_t last) {
  const int64_t bytes = Bytes ? Bytes : t.bytes;
  for (int64_t i = first; i < last; ++i) {
    const char* from = t.table + (i / t.count * t.size + t.index[i % t.count]) * bytes;
    memcpy(t.out + i * bytes, from, bytes);
  }
}

bool all_inside(const int64_t* index, int64_t count, int64_t size) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) wrong |= (uint64_t)index[i] >= (uint64_t)size;
  return !wrong;
}

int run_take(const Taking& t) {
  if (!all_inside(t.index, t.count, t.size)) return 0;
  in_parallel(rushlight_threads_for(t.outer * t.count * (t.bytes / 8 + 1)), [&](int thread, int threads) {
    const Part part = part_of(t.outer * t.count, thread, threads);
    switch (t.bytes) {
      case 4: return take_part<4>(t, part.first, part.last);
      case 8: return take_part<8>(t, part.first, part.last);
      default: return take_part<0>(t, part.first, part.last);
    }
  });
  return 1;
}

// Check that an array can be viewed as [outer, size, inner], split at an axis, and return these sizes.
bool as_table(PyObject* object, bool written, int64_t axis, int64_t* outer, int64_t* size, int64_t* inner) {
  int dtype;
  if (!is_operand(object, written, &dtype) || !is_plain(object, written, dtype)) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  if (axis < 0 || axis >= PyArray_NDIM(array)) return false;
  *outer = *inner = 1;
  for (int d = 0; d < axis; ++d) *outer *= PyArray_DIM(array, d);
  for (int d = (int)axis + 1; d < PyArray_NDIM(array); ++d) *inner *= PyArray_DIM(array, d);
  *size = PyArray_DIM(array, (int)axis);
  return true;
}

PyObject* take(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t axis, outer, size, inner;
  int dtype;
  if (given != 4) return PyErr_Format(PyExc_TypeError, "take: expected out, table, index, axis; got %zd", given);
  if (!read_integer(a[3], &axis)) return nullptr;
  if (!as_table(a[1], false, axis, &outer, &size, &inner) || !is_plain(a[2], false, RL_INT64)) Py_RETURN_FALSE;
  if (!is_operand(a[1], false, &dtype) || !is_plain(a[0], true, dtype)) Py_RETURN_FALSE;
  PyArrayObject *out = (PyArrayObject*)a[0], *table = (PyArrayObject*)a[1], *index = (PyArrayObject*)a[2];
  const int64_t count = PyArray_SIZE(index);
  if (!PyArray_SIZE(out) || PyArray_SIZE(out) != outer * count * inner || overlaps(out, table) || overlaps(out, index))
    Py_RETURN_FALSE;
  const Taking t = {(const char*)PyArray_DATA(table), (const int64_t*)PyArray_DATA(index), (char*)PyArray_DATA(out), outer,
                    size, count, inner * item_size[dtype]};
  return PyBool_FromLong(without_gil(PyArray_SIZE(out), [&] { return run_take(t); }));
}

// ---- adding rows at indices ----------------------------------------------------------------------------------------

// Add rows[i] to out[index[i]]. Each thread owns a range of the result's rows, and adds in index order.
template <class T> int add_rows(const T* rows, const int64_t* index, int64_t count, T* out, int64_t size, int64_t width) {
  if (!all_inside(index, count, size)) return 0;
  in_parallel(rushlight_threads_for(count * width), [&](int thread, int threads) {
    const Part part = part_of(size, thread, threads);
    for (int64_t i = 0; i < count; ++i) {
      if (index[i] < part.first || index[i] >= part.last) continue;
      T* to = out + index[i] * width;
      const T* from = rows + i * width;
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    }
  });
  return 1;
}

PyObject* add_at(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int dtype;
  if (given != 3) return PyErr_Format(PyExc_TypeError, "add_at: expected out, index, rows; got %zd", given);
  if (!is_operand(a[0], true, &dtype) || !is_plain(a[0], true, dtype) || !is_plain(a[2], false, dtype) ||
      !is_plain(a[1], false, RL_INT64))
    Py_RETURN_FALSE;
  PyArrayObject *out = (PyArrayObject*)a[0], *index = (PyArrayObject*)a[1], *rows = (PyArrayObject*)a[2];
  if (PyArray_NDIM(out) != 2 || overlaps(out, rows) || overlaps(out, index)) Py_RETURN_FALSE;
  const int64_t size = PyArray_DIM(out, 0), width = PyArray_DIM(out, 1), count = PyArray_SIZE(index);
  if (PyArray_SIZE(rows) != count * width) Py_RETURN_FALSE;
  const void* from = PyArray_DATA(rows);
  void* to = PyArray_DATA(out);
  const int64_t* places = (const int64_t*)PyArray_DATA(index);
  return PyBool_FromLong(without_gil(count * width, [&] {
    switch (dtype) {
      case RL_FLOAT32: return add_rows((const float*)from, places, count, (float*)to, size, width);
      case RL_FLOAT64: return add_rows((const double*)from, places, count, (double*)to, size, width);
      case RL_INT64: return add_rows((const uint64_t*)from, places, count, (uint64_t*)to, size, width);
      default: return 0;
    }
  }));
}

// ---- one index for each element ------------------------------------------------------------------------------------

// A loop over `index`. Each step visits the element of `table` whose position is that of the step, except along `axis`, where
// it is the index's value. Strides are in bytes.
struct Walk {
  int rank, axis;
  int64_t sizes[RL_MAX_DIMENSIONS], table_strides[RL_MAX_DIMENSIONS];
  int64_t limit;  // the table's size along the axis
  char* table;
  const int64_t* index;
  char* other;  // contiguous, with the shape of the index
};

// Call body(table element, other element) for rows [first, last) of the loop; return false if an index is out of range.
template <class T, class F> bool walk_rows(const Walk& w, int64_t first, int64_t last, const F& body) {
  const int64_t width = w.sizes[w.rank - 1], along = w.table_strides[w.axis];
  const int64_t step = w.axis == w.rank - 1 ? 0 : w.table_strides[w.rank - 1];
  for (int64_t row = first; row < last; ++row) {
    char* base = w.table;
    int64_t rest = row;
    for (int d = w.rank - 2; d >= 0; --d) {
      if (d != w.axis) base += rest % w.sizes[d] * w.table_strides[d];
      rest /= w.sizes[d];
    }
    const int64_t* index = w.index + row * width;
    T* other = (T*)w.other + row * width;
    for (int64_t j = 0; j < width; ++j) {
      if ((uint64_t)index[j] >= (uint64_t)w.limit) return false;
      body(*(T*)(base + index[j] * along + j * step), other[j]);
    }
  }
  return true;
}

// Run a loop with its rows divided among threads. If several rows may write to one element, one thread takes all rows.
template <class T, class F> int walk(const Walk& w, bool shared_rows, const F& body) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < w.rank; ++d) rows *= w.sizes[d];
  const int threads = shared_rows ? 1 : rushlight_threads_for(rows * w.sizes[w.rank - 1] * 2);
  int wrong = 0;
  in_parallel(threads, [&](int thread, int total) {
    const Part part = part_of(rows, thread, total);
    if (!walk_rows<T>(w, part.first, part.last, body)) __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
  });
  return !wrong;
}

bool read_walk(PyObject* table, PyObject* index, PyObject* other, int64_t axis, bool writes_table, Walk* w, int* dtype) {
  if (!is_operand(table, writes_table, dtype) || !is_plain(index, false, RL_INT64) || !is_plain(other, !writes_table, *dtype))
    return false;
  PyArrayObject *t = (PyArrayObject*)table, *i = (PyArrayObject*)index, *o = (PyArrayObject*)other;
  w->rank = PyArray_NDIM(t);
  if (w->rank < 1 || PyArray_NDIM(i) != w->rank || !PyArray_SAMESHAPE(i, o) || axis < 0 || axis >= w->rank) return false;
  if (!PyArray_SIZE(i) || overlaps(t, o) || (writes_table ? overlaps(t, i) : overlaps(o, i))) return false;
  w->axis = (int)axis;
  for (int d = 0; d < w->rank; ++d) {
    w->sizes[d] = PyArray_DIM(i, d);
    w->table_strides[d] = PyArray_STRIDE(t, d);
    if (d != axis && w->sizes[d] > PyArray_DIM(t, d)) return false;
  }
  w->limit = PyArray_DIM(t, (int)axis);
  w->table = (char*)PyArray_DATA(t);
  w->index = (const int64_t*)PyArray_DATA(i);
  w->other = (char*)PyArray_DATA(o);
  return true;
}

enum { GATHER, SCATTER, SCATTER_ADD };

template <class T> int move_items(const Walk& w, int kind) {
  if (kind == GATHER) return walk<T>(w, false, [](const T& element, T& other) { other = element; });
  return walk<T>(w, w.axis != w.rank - 1, [](T& element, const T& other) { element = other; });
}

template <class T> int add_items(const Walk& w) {
  return walk<T>(w, w.axis != w.rank - 1, [](T& element, const T& other) { element += other; });
}

int run_walk(const Walk& w, int kind, int dtype) {
  if (kind == SCATTER_ADD) {
    if (dtype == RL_FLOAT32) return add_items<float>(w);
    if (dtype == RL_FLOAT64) return add_items<double>(w);
    return dtype == RL_INT64 ? add_items<uint64_t>(w) : 0;
  }
  switch (item_size[dtype]) {
    case 1: return move_items<uint8_t>(w, kind);
    case 2: return move_items<uint16_t>(w, kind);
    case 4: return move_items<uint32_t>(w, kind);
    default: return move_items<uint64_t>(w, kind);
  }
}

PyObject* along(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t kind, axis;
  if (given != 5) return PyErr_Format(PyExc_TypeError, "along: expected kind, table, index, other, axis; got %zd", given);
  if (!read_integer(a[0], &kind) || !read_integer(a[4], &axis)) return nullptr;
  Walk w;
  int dtype;
  if (kind < GATHER || kind > SCATTER_ADD) return PyErr_Format(PyExc_ValueError, "along: no kind %lld", (long long)kind);
  if (!read_walk(a[1], a[2], a[3], axis, kind != GATHER, &w, &dtype)) Py_RETURN_FALSE;
  return PyBool_FromLong(without_gil(PyArray_SIZE((PyArrayObject*)a[2]), [&] { return run_walk(w, (int)kind, dtype); }));
}

}  // namespace

PyMethodDef indexing_methods[] = {
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL,
     "take(out: ndarray, table: ndarray, index: ndarray, axis: int, /) -> bool\n\nout = table at the int64 indices along the\n"
     "axis, row-major. False, with nothing written, where an index is outside or no kernel takes these arrays."},
    {"add_at", (PyCFunction)(void (*)(void))add_at, METH_FASTCALL,
     "add_at(out: ndarray, index: ndarray, rows: ndarray, /) -> bool\n\nout[index[i]] += rows[i], row-major, in order. False,\n"
     "with nothing written, where an index is outside or no kernel takes these arrays."},
    {"along", (PyCFunction)(void (*)(void))along, METH_FASTCALL,
     "along(kind: int, table: ndarray, index: ndarray, other: ndarray, axis: int, /) -> bool\n\nKinds: 0 gathers `other` from\n"
     "the table, 1 scatters it to the table, 2 adds it there. False where an index is outside (what has been written by\n"
     "then stays) or no kernel takes these arrays."},
    {nullptr, nullptr, 0, nullptr},
};
