// Sorting, the largest or smallest of rows, and running sums, row by row over row-major arrays.
//
// Values become unsigned keys that compare as the values do, NaN greater than every number and -0 equal to 0. Keys are
// sorted by their bytes, lowest first, which keeps equal ones in order (Knuth, The Art of Computer Programming 3, 5.2.5).
#include <stdlib.h>
#include <string.h>

#include "arrays.h"

namespace {

// ---- keys ----------------------------------------------------------------------------------------------------------

uint32_t key_of(float value) {
  uint32_t bits;
  value += 0.0f;  // -0 becomes 0
  memcpy(&bits, &value, 4);
  if (value != value) return UINT32_MAX;
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
uint64_t key_of(double value) {
  uint64_t bits;
  value += 0.0;
  memcpy(&bits, &value, 8);
  if (value != value) return UINT64_MAX;
  return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}
uint32_t key_of(int32_t value) { return (uint32_t)value ^ 0x80000000u; }
uint64_t key_of(int64_t value) { return (uint64_t)value ^ 0x8000000000000000u; }

template <class K> struct Entry {
  K key;
  uint32_t place;
};

template <class K, class T> void make_entries(const T* row, int64_t count, bool descending, Entry<K>* entries) {
  const K flip = descending ? ~(K)0 : 0;
  for (int64_t i = 0; i < count; ++i) entries[i] = {(K)(key_of(row[i]) ^ flip), (uint32_t)i};
}

// ---- sorting -------------------------------------------------------------------------------------------------------

constexpr int64_t FEW = 48;

template <class K> void insertion_sort(Entry<K>* entries, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const Entry<K> moved = entries[i];
    int64_t j = i;
    for (; j > 0 && moved.key < entries[j - 1].key; --j) entries[j] = entries[j - 1];
    entries[j] = moved;
  }
}

// Sorts, with `spare` of the same size; returns where the result is.
template <class K> Entry<K>* radix_sort(Entry<K>* entries, Entry<K>* spare, int64_t count) {
  constexpr int DIGITS = sizeof(K);
  uint32_t counts[DIGITS][256] = {};
  for (int64_t i = 0; i < count; ++i)
    for (int d = 0; d < DIGITS; ++d) ++counts[d][entries[i].key >> (8 * d) & 255];
  for (int d = 0; d < DIGITS; ++d) {
    uint32_t* place = counts[d];
    if (place[entries[0].key >> (8 * d) & 255] == count) continue;  // all alike
    for (uint32_t b = 0, start = 0; b < 256; ++b) {
      const uint32_t here = place[b];
      place[b] = start;
      start += here;
    }
    for (int64_t i = 0; i < count; ++i) spare[place[entries[i].key >> (8 * d) & 255]++] = entries[i];
    Entry<K>* swap = entries;
    entries = spare;
    spare = swap;
  }
  return entries;
}

template <class K> Entry<K>* sort_entries(Entry<K>* entries, Entry<K>* spare, int64_t count) {
  if (count > FEW) return radix_sort(entries, spare, count);
  insertion_sort(entries, count);
  return entries;
}

template <class T> void store_entries(const T* row, const void* given, int64_t count, T* values, int64_t* places) {
  using K = decltype(key_of(T()));
  const Entry<K>* entries = (const Entry<K>*)given;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = row[entries[i].place];
    places[i] = entries[i].place;
  }
}

// ---- the first k ---------------------------------------------------------------------------------------------------

template <class K> bool before(const Entry<K>& a, const Entry<K>& b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

// The root is the last in order of those kept.
template <class K> void sift_down(Entry<K>* heap, int64_t count) {
  const Entry<K> moved = heap[0];
  int64_t at = 0;
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && before(heap[child], heap[child + 1])) ++child;
    if (!before(moved, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

// The k smallest keys in order; earlier ones first among equals. The first k of a heap's worth are sorted before, since a
// sorted array, reversed, is a heap.
template <class T, class K> Entry<K>* select_first(const T* row, int64_t count, int64_t k, bool largest, Entry<K>* kept,
                                                   Entry<K>* spare) {
  const K flip = largest ? ~(K)0 : 0;
  make_entries(row, k, largest, kept);
  Entry<K>* sorted = sort_entries(kept, spare, k);
  Entry<K>* heap = sorted == kept ? spare : kept;
  for (int64_t i = 0; i < k; ++i) heap[i] = sorted[k - 1 - i];
  K worst = heap[0].key;
  for (int64_t i = k; i < count; ++i) {
    const K key = (K)(key_of(row[i]) ^ flip);
    if (key >= worst) continue;
    heap[0] = {key, (uint32_t)i};
    sift_down(heap, k);
    worst = heap[0].key;
  }
  for (int64_t i = 1; i < k; ++i) {
    const Entry<K> moved = heap[i];
    int64_t j = i;
    for (; j > 0 && before(moved, heap[j - 1]); --j) heap[j] = heap[j - 1];
    heap[j] = moved;
  }
  return heap;
}

template <class T>
int sort_rows(const T* in, int64_t rows, int64_t count, int64_t kept, bool descending, T* values, int64_t* places) {
  using K = decltype(key_of(T()));
  const bool whole = kept == count || kept > 128 || kept * 8 > count;
  const int64_t needed = whole ? count : kept;
  const int threads = rushlight_threads_for(rows == 1 ? 1 : rows * count * 8);
  Entry<K>* entries = (Entry<K>*)rushlight_scratch(2 * threads * needed * sizeof(Entry<K>), BUFFERS);
  if (!entries) return 0;
  in_parallel(threads, [&](int thread, int total) {
    Entry<K>*own = entries + 2 * thread * needed, *spare = own + needed;
    const Part part = part_of(rows, thread, total);
    for (int64_t row = part.first; row < part.last; ++row) {
      const T* from = in + row * count;
      Entry<K>* sorted = own;
      if (whole) {
        make_entries(from, count, descending, own);
        sorted = sort_entries(own, spare, count);
      } else {
        sorted = select_first(from, count, kept, descending, own, spare);
      }
      store_entries(from, sorted, kept, values + row * kept, places + row * kept);
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
  return PyBool_FromLong(without_lock(PyArray_SIZE(in) * 4, [&] {
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

// Several rows at once, or each addition would wait for the one before.
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
  return PyBool_FromLong(without_lock(PyArray_SIZE(in), [&] {
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
