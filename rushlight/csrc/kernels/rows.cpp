// Softmax and layer normalisation for Python: check arrays, and divide rows among threads.
#include "arrays.h"

namespace {

bool all_plain(PyObject* const* arrays, int count) {
  for (int i = 0; i < count; ++i)
    if (!is_plain(arrays[i], i == 0, RL_FLOAT32)) return false;
  return true;
}

const float* data_of(PyObject* array) { return (const float*)PyArray_DATA((PyArrayObject*)array); }
float* target_of(PyObject* array) { return (float*)PyArray_DATA((PyArrayObject*)array); }
int64_t size_of(PyObject* array) { return PyArray_SIZE((PyArrayObject*)array); }

void softmax_pieces(SoftmaxRows kernel, const float* const* in, float* out, int64_t outer, int64_t count, int64_t inner) {
  constexpr int64_t WIDTH = 64;
  const int64_t runs = inner == 1 ? 1 : (inner + WIDTH - 1) / WIDTH;
  // An exponential costs as much as several plain elements.
  in_parallel(rushlight_threads_for(outer * count * inner * 2), [&](int thread, int threads) {
    const Part part = part_of(outer * runs, thread, threads);
    for (int64_t piece = part.first; piece < part.last; ++piece) {
      const int64_t column = piece % runs * WIDTH, left = inner - column;
      const int64_t at = piece / runs * count * inner + column;
      const float* sources[2] = {in[0] + at, in[1] ? in[1] + at : nullptr};
      kernel(sources, out + at, count, inner, inner == 1 ? 1 : left < WIDTH ? left : WIDTH);
    }
  });
}

PyObject* softmax(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  int64_t kind, axis;
  if (given < 4) return PyErr_Format(PyExc_TypeError, "softmax: expected kind, axis, out, inputs; got %zd", given);
  if (!read_integer(arguments[0], &kind) || !read_integer(arguments[1], &axis)) return nullptr;
  if (kind < 0 || kind >= SOFTMAX_COUNT) return PyErr_Format(PyExc_ValueError, "softmax: no kind %lld", (long long)kind);
  const int inputs = kind >= SOFTMAX_BACKWARD ? 2 : 1;
  if (given != 3 + inputs || !all_plain(arguments + 2, 1 + inputs)) Py_RETURN_FALSE;
  PyArrayObject* out = (PyArrayObject*)arguments[2];
  if (axis < 0 || axis >= PyArray_NDIM(out) || !PyArray_SIZE(out)) Py_RETURN_FALSE;
  const float* in[2] = {};
  for (int k = 0; k < inputs; ++k) {
    PyArrayObject* array = (PyArrayObject*)arguments[3 + k];
    if (!PyArray_SAMESHAPE(array, out) || overlaps(array, out)) Py_RETURN_FALSE;
    in[k] = (const float*)PyArray_DATA(array);
  }
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= PyArray_DIM(out, d);
  for (int d = (int)axis + 1; d < PyArray_NDIM(out); ++d) inner *= PyArray_DIM(out, d);
  const int64_t count = PyArray_DIM(out, (int)axis);
  float* target = (float*)PyArray_DATA(out);
  const SoftmaxRows kernel = rushlight_variant()->softmax[kind];
  return PyBool_FromLong(without_gil(PyArray_SIZE(out) * 2, [&] {
    softmax_pieces(kernel, in, target, outer, count, inner);
    return 1;
  }));
}

// Read an optional array of `count` floats: None becomes null.
bool read_optional(PyObject* object, int64_t count, bool written, const float** data) {
  *data = nullptr;
  if (object == Py_None) return true;
  if (!is_plain(object, written, RL_FLOAT32) || size_of(object) != count) return false;
  *data = data_of(object);
  return true;
}

PyObject* layer_norm(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  if (given != 7)
    return PyErr_Format(PyExc_TypeError, "layer_norm: expected out, mean, rstd, x, weight, bias, eps; got %zd", given);
  for (int i = 0; i < 4; ++i)
    if (!is_plain(arguments[i], i < 3, RL_FLOAT32)) Py_RETURN_FALSE;
  const int64_t rows = size_of(arguments[1]), total = size_of(arguments[3]);
  if (!rows || !total || total % rows || size_of(arguments[0]) != total || size_of(arguments[2]) != rows) Py_RETURN_FALSE;
  LayerNorm o = {data_of(arguments[3]), nullptr, nullptr, target_of(arguments[0]), target_of(arguments[1]),
                 target_of(arguments[2]), total / rows, 0};
  if (!read_optional(arguments[4], o.width, false, &o.weight) || !read_optional(arguments[5], o.width, false, &o.bias))
    Py_RETURN_FALSE;
  const double eps = PyFloat_AsDouble(arguments[6]);
  if (eps == -1.0 && PyErr_Occurred()) return nullptr;
  o.eps = (float)eps;
  const Variant* variant = rushlight_variant();
  return PyBool_FromLong(without_gil(total, [&] {
    in_parallel(rushlight_threads_for(total), [&](int thread, int threads) {
      const Part part = part_of(rows, thread, threads);
      variant->layer_norm(&o, part.first, part.last);
    });
    return 1;
  }));
}

// Each thread accumulates the weight and bias gradients of its rows in its own scratch.
int run_layer_norm_backward(const LayerNormBackward& o, int64_t rows) {
  const int wanted = rushlight_threads_for(rows * o.width);
  float* sums = (float*)rushlight_scratch(2 * wanted * o.width * (int64_t)sizeof(float), BUFFERS);
  if (!sums) return 0;
  __builtin_memset(sums, 0, 2 * wanted * o.width * sizeof(float));
  int used = 1;
  in_parallel(wanted, [&](int thread, int threads) {
    if (thread == 0) used = threads;
    LayerNormBackward own = o;
    own.to_weight = o.to_weight ? sums + 2 * thread * o.width : nullptr;
    own.to_bias = o.to_bias ? sums + (2 * thread + 1) * o.width : nullptr;
    const Part part = part_of(rows, thread, threads);
    rushlight_variant()->layer_norm_backward(&own, part.first, part.last);
  });
  for (int64_t i = 0; i < o.width; ++i) {
    float weight = 0, bias = 0;
    for (int thread = 0; thread < used; ++thread) {
      weight += sums[2 * thread * o.width + i];
      bias += sums[(2 * thread + 1) * o.width + i];
    }
    if (o.to_weight) o.to_weight[i] = weight;
    if (o.to_bias) o.to_bias[i] = bias;
  }
  return 1;
}

PyObject* layer_norm_backward(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  if (given != 8)
    return PyErr_Format(PyExc_TypeError, "layer_norm_backward: expected the three gradients, grad, x, mean, rstd, weight; "
                        "got %zd arguments", given);
  for (int i = 3; i < 7; ++i)
    if (!is_plain(arguments[i], false, RL_FLOAT32)) Py_RETURN_FALSE;
  const int64_t rows = size_of(arguments[5]), total = size_of(arguments[4]);
  if (!rows || !total || total % rows || size_of(arguments[3]) != total || size_of(arguments[6]) != rows) Py_RETURN_FALSE;
  const float *weight, *to_x, *to_weight, *to_bias;
  const int64_t width = total / rows;
  if (!read_optional(arguments[7], width, false, &weight) || !read_optional(arguments[0], total, true, &to_x) ||
      !read_optional(arguments[1], width, true, &to_weight) || !read_optional(arguments[2], width, true, &to_bias))
    Py_RETURN_FALSE;
  const LayerNormBackward o = {data_of(arguments[3]), data_of(arguments[4]), weight, data_of(arguments[5]),
                               data_of(arguments[6]), (float*)to_x, (float*)to_weight, (float*)to_bias, width};
  return PyBool_FromLong(without_gil(total, [&] { return run_layer_norm_backward(o, rows); }));
}

}  // namespace

PyMethodDef row_methods[] = {
    {"softmax", (PyCFunction)(void (*)(void))softmax, METH_FASTCALL,
     "softmax(kind: int, axis: int, out: ndarray, *inputs: ndarray) -> bool\n\nKinds: 0 softmax, 1 log_softmax, 2 and 3\n"
     "their gradients, of the result's gradient and the result. Row-major float32; False for anything else."},
    {"layer_norm", (PyCFunction)(void (*)(void))layer_norm, METH_FASTCALL,
     "layer_norm(out, mean, rstd, x, weight: ndarray | None, bias: ndarray | None, eps: float, /) -> bool\n\nRow-major\n"
     "float32, as many rows as `mean` has elements; False for anything else."},
    {"layer_norm_backward", (PyCFunction)(void (*)(void))layer_norm_backward, METH_FASTCALL,
     "layer_norm_backward(to_x, to_weight, to_bias, grad, x, mean, rstd, weight, /) -> bool\n\nThe first three and the\n"
     "weight may be None. Row-major float32; False for anything else."},
    {nullptr, nullptr, 0, nullptr},
};
