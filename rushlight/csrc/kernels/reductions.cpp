// Reductions: division of the work among threads, and the dimensions of a NumPy array to reduce.
#include <string.h>

#include "arrays.h"

// ---- division among threads ----------------------------------------------------------------------------------------

namespace {

constexpr int MAX_PARTS = 64;

bool reads_mean(Reduction operation) { return operation == REDUCE_DEVIATION || operation == REDUCE_OFFSET; }
bool returns_index(Reduction operation) { return operation == REDUCE_ARGMAX || operation == REDUCE_ARGMIN; }

struct Task {
  Reduction operation;
  int dtype, result;
  const char* in;
  int64_t outer, count, inner;
  char* out;
  const char* mean;

  int64_t in_size() const { return item_size[dtype]; }
  int64_t out_size() const { return item_size[result]; }
  const char* mean_at(int64_t index) const { return mean ? mean + index * out_size() : nullptr; }
};

// Reduce elements [first, last) of the reduced dimension, for `width` results from `column` on.
void run_columns(const Task& t, int64_t outer, int64_t column, int64_t width, int64_t first, int64_t last, char* out) {
  const char* in = t.in + ((outer * t.count + first) * t.inner + column) * t.in_size();
  rushlight_variant()->reduce_columns[t.operation][t.dtype](in, last - first, t.inner, width, out,
                                                            t.mean_at(outer * t.inner + column));
}

void run_row(const Task& t, int64_t row, int64_t first, int64_t last, char* out) {
  rushlight_variant()->reduce_row[t.operation][t.dtype](t.in + (row * t.count + first) * t.in_size(), last - first, out,
                                                        t.mean_at(row));
}

// The number of pieces of work: whole rows, or runs of columns.
int64_t pieces(const Task& t) { return t.inner == 1 ? t.outer : t.outer * ((t.inner + REDUCED_WIDTH - 1) / REDUCED_WIDTH); }

// Reduce one piece over [first, last) of the reduced dimension into `out`, or to its position in t.out if `out` is null.
void run_piece(const Task& t, int64_t piece, int64_t first, int64_t last, char* out) {
  if (t.inner == 1) return run_row(t, piece, first, last, out ? out : t.out + piece * t.out_size());
  const int64_t runs = (t.inner + REDUCED_WIDTH - 1) / REDUCED_WIDTH, column = piece % runs * REDUCED_WIDTH;
  const int64_t left = t.inner - column, width = left < REDUCED_WIDTH ? left : REDUCED_WIDTH;
  char* place = t.out + (piece / runs * t.inner + column) * t.out_size();
  run_columns(t, piece / runs, column, width, first, last, out ? out : place);
}

int64_t width_of(const Task& t, int64_t piece) {
  if (t.inner == 1) return 1;
  const int64_t runs = (t.inner + REDUCED_WIDTH - 1) / REDUCED_WIDTH, left = t.inner - piece % runs * REDUCED_WIDTH;
  return left < REDUCED_WIDTH ? left : REDUCED_WIDTH;
}

// Reduce when there are few results of many elements: every thread reduces a part of each, then the partial results are
// reduced.
void run_split(const Task& t, int threads) {
  const Reduction merging = reads_mean(t.operation) ? REDUCE_SUM : t.operation;
  for (int64_t piece = 0; piece < pieces(t); ++piece) {
    alignas(64) char parts[MAX_PARTS][REDUCED_WIDTH * 8];
    int used = 0;
    in_parallel(threads, [&](int thread, int count) {
      const Part part = part_of(t.count, thread, count, 64);
      if (thread == 0) used = count;
      run_piece(t, piece, part.first, part.last, parts[thread]);
    });
    const int64_t width = width_of(t, piece), bytes = width * t.out_size();
    for (int k = 1; k < used; ++k) memmove((char*)parts + k * bytes, parts[k], bytes);
    Task merge = {merging, t.result, t.result, (char*)parts, 1, used, width, t.out, nullptr};
    const int64_t runs = t.inner == 1 ? 1 : (t.inner + REDUCED_WIDTH - 1) / REDUCED_WIDTH;
    merge.out = t.out + (t.inner == 1 ? piece : piece / runs * t.inner + piece % runs * REDUCED_WIDTH) * t.out_size();
    run_piece(merge, 0, 0, used, nullptr);
  }
}

// The first index of a row's extremum: all threads find the value, then each searches its part for the index.
void run_split_extremum(const Task& t, int threads) {
  const Reduction extremum = t.operation == REDUCE_ARGMAX ? REDUCE_MAX : REDUCE_MIN;
  for (int64_t row = 0; row < t.outer; ++row) {
    alignas(8) char value[8];
    const char* in = t.in + row * t.count * t.in_size();
    rushlight_reduce(extremum, t.dtype, in, 1, t.count, 1, value, nullptr);
    int64_t found = INT64_MAX, starts[MAX_PARTS], places[MAX_PARTS];
    int used = 0;
    in_parallel(threads, [&](int thread, int count) {
      const Part part = part_of(t.count, thread, count);
      if (thread == 0) used = count;
      starts[thread] = part.first;
      rushlight_variant()->reduce_row[REDUCE_FIND][t.dtype](in + part.first * t.in_size(), part.last - part.first,
                                                            &places[thread], value);
    });
    for (int k = used - 1; k >= 0; --k)
      if (places[k] != INT64_MAX) found = starts[k] + places[k];
    ((int64_t*)t.out)[row] = found;
  }
}

}  // namespace

int rushlight_reduced_dtype(Reduction operation, int dtype) {
  if (returns_index(operation)) return RL_INT64;
  if (operation == REDUCE_ANY || operation == REDUCE_ALL) return RL_BOOL;
  if (dtype == RL_FLOAT16 || dtype == RL_BFLOAT16) return RL_FLOAT32;
  return (operation == REDUCE_SUM || operation == REDUCE_PROD) && dtype < RL_FLOAT16 ? (int)RL_INT64 : dtype;
}

int rushlight_reduce(Reduction operation, int dtype, const void* in, int64_t outer, int64_t count, int64_t inner,
                     void* out, const void* mean) {
  if (!rushlight_variant()->reduce_row[operation][dtype]) return 0;
  Task t = {operation, dtype, rushlight_reduced_dtype(operation, dtype), (const char*)in, outer, count, inner, (char*)out,
            (const char*)mean};
  int threads = rushlight_threads_for(outer * count * inner);
  threads = threads < MAX_PARTS ? threads : MAX_PARTS;
  const bool mergeable = !returns_index(operation) && count >= 64 * threads && rushlight_variant()->reduce_row[
      reads_mean(operation) ? REDUCE_SUM : operation][t.result];
  if (pieces(t) < threads && mergeable) return run_split(t, threads), 1;
  if (pieces(t) < threads && returns_index(operation) && inner == 1) return run_split_extremum(t, threads), 1;
  in_parallel(threads, [&](int thread, int total) {
    const Part part = part_of(pieces(t), thread, total);
    for (int64_t piece = part.first; piece < part.last; ++piece) run_piece(t, piece, 0, t.count, nullptr);
  });
  return 1;
}

// ---- NumPy arrays --------------------------------------------------------------------------------------------------

namespace {

// View a row-major array as [outer, count, inner] with `count` the reduced elements. Return false if kept and reduced
// dimensions alternate more often.
bool view_as_three(PyArrayObject* array, uint32_t axes, int64_t* outer, int64_t* count, int64_t* inner) {
  *outer = *count = *inner = 1;
  int stage = 0;
  for (int d = 0; d < PyArray_NDIM(array); ++d) {
    const int64_t size = PyArray_DIM(array, d);
    if (size == 1) continue;
    const bool reduced = axes >> d & 1;
    if (reduced && stage == 0) stage = 1;
    if (!reduced && stage == 1) stage = 2;
    if (reduced && stage == 2) return false;
    *(stage == 0 ? outer : stage == 1 ? count : inner) *= size;
  }
  return true;
}

bool read_axes(PyObject* object, int rank, uint32_t* axes) {
  if (!PyTuple_Check(object)) return false;
  *axes = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    int64_t axis;
    if (!read_integer(PyTuple_GET_ITEM(object, i), &axis) || axis < 0 || axis >= rank) return false;
    *axes |= 1u << axis;
  }
  return true;
}

PyObject* reduce(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  if (given != 4 && given != 5)
    return PyErr_Format(PyExc_TypeError, "reduce: expected operation, out, input, axes and a mean; got %zd", given);
  int64_t operation;
  int dtype, result;
  uint32_t axes;
  if (!read_integer(arguments[0], &operation)) return nullptr;
  if (operation < 0 || operation > REDUCE_OFFSET)
    return PyErr_Format(PyExc_ValueError, "reduce: no operation %lld", (long long)operation);
  if (!is_operand(arguments[1], true, &result) || !is_operand(arguments[2], false, &dtype)) Py_RETURN_FALSE;
  PyArrayObject *out = (PyArrayObject*)arguments[1], *in = (PyArrayObject*)arguments[2];
  int64_t outer, count, inner;
  if (!PyArray_IS_C_CONTIGUOUS(out) || !PyArray_IS_C_CONTIGUOUS(in) ||
      !read_axes(arguments[3], PyArray_NDIM(in), &axes) || !view_as_three(in, axes, &outer, &count, &inner))
    return PyErr_Occurred() ? nullptr : PyBool_FromLong(0);
  const Reduction chosen = (Reduction)operation;
  if (outer * inner != PyArray_SIZE(out) || result != rushlight_reduced_dtype(chosen, dtype) || overlaps(in, out))
    Py_RETURN_FALSE;
  const void* mean = nullptr;
  if (reads_mean(chosen)) {
    if (given != 5 || !is_plain(arguments[4], false, dtype) ||
        PyArray_SIZE((PyArrayObject*)arguments[4]) != PyArray_SIZE(out))
      Py_RETURN_FALSE;
    mean = PyArray_DATA((PyArrayObject*)arguments[4]);
  }
  // The extremum of an empty array does not exist; the caller handles empty sums too.
  if (!PyArray_SIZE(out) || !count) Py_RETURN_FALSE;
  const void* source = PyArray_DATA(in);
  void* target = PyArray_DATA(out);
  return PyBool_FromLong(without_gil(PyArray_SIZE(in), [&] {
    return rushlight_reduce(chosen, dtype, source, outer, count, inner, target, mean);
  }));
}

}  // namespace

PyMethodDef reduction_methods[] = {
    {"reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL,
     "reduce(operation: int, out: ndarray, input: ndarray, axes: tuple[int, ...], mean: ndarray = ..., /) -> bool\n\n"
     "Reduce row-major arrays over axes that lie side by side. Operations: 0 sum, 1 prod, 2 max, 3 min, 4 any, 5 all,\n"
     "6 argmax, 7 argmin, 8 the sum of squared differences from `mean`, 9 that of the differences. False where no kernel\n"
     "takes these arrays."},
    {nullptr, nullptr, 0, nullptr},
};
