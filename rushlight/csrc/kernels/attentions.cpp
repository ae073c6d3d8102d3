// Fused attention for Python.
#include "arrays.h"

namespace {

bool read_heads(PyObject* object, bool written, float** data, int64_t* strides) {
  int dtype;
  if (!is_operand(object, written, &dtype) || dtype != RL_FLOAT32) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  if (PyArray_NDIM(array) != 4) return false;
  *data = (float*)PyArray_DATA(array);
  for (int d = 0; d < 4; ++d) strides[d] = PyArray_STRIDE(array, d) / 4;
  return true;
}

bool read_mask(PyObject* object, Attention* a) {
  a->mask = nullptr;
  a->mask_is_bool = 0;
  if (object == Py_None) return true;
  int dtype;
  if (!is_operand(object, false, &dtype) || (dtype != RL_FLOAT32 && dtype != RL_BOOL)) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  const int64_t wanted[4] = {a->batches, a->heads, a->rows, a->keys};
  const int missing = 4 - PyArray_NDIM(array);
  if (missing < 0) return false;
  for (int d = 0; d < 4; ++d) {
    const int64_t size = d < missing ? 1 : PyArray_DIM(array, d - missing);
    if (size != 1 && size != wanted[d]) return false;
    a->mask_strides[d] = size == 1 ? 0 : PyArray_STRIDE(array, d - missing) / item_size[dtype];
  }
  a->mask = PyArray_DATA(array);
  a->mask_is_bool = dtype == RL_BOOL;
  return true;
}

// Read out, sums, q, k, v, mask, causal and scale; `written` applies to the first two. Return false if no kernel supports them,
// or with an exception set.
bool read_attention(PyObject* const* args, bool written, Attention* a) {
  float *q, *k, *v;
  if (!read_heads(args[0], written, &a->out, a->out_strides) || !is_plain(args[1], written, RL_FLOAT32) ||
      !read_heads(args[2], false, &q, a->q_strides) || !read_heads(args[3], false, &k, a->k_strides) ||
      !read_heads(args[4], false, &v, a->v_strides))
    return false;
  a->q = q, a->k = k, a->v = v;
  a->sums = (float*)PyArray_DATA((PyArrayObject*)args[1]);
  const npy_intp *qs = PyArray_DIMS((PyArrayObject*)args[2]), *ks = PyArray_DIMS((PyArrayObject*)args[3]);
  a->batches = qs[0], a->heads = qs[1], a->rows = qs[2], a->width = qs[3], a->keys = ks[2];
  if (!PyArray_SAMESHAPE((PyArrayObject*)args[0], (PyArrayObject*)args[2]) ||
      !PyArray_SAMESHAPE((PyArrayObject*)args[3], (PyArrayObject*)args[4]) || ks[0] != qs[0] || ks[1] != qs[1] ||
      ks[3] != qs[3] || PyArray_SIZE((PyArrayObject*)args[1]) != qs[0] * qs[1] * qs[2] || !read_mask(args[5], a) ||
      !PyArray_SIZE((PyArrayObject*)args[2]) || !a->keys)
    return false;
  a->causal = args[6] == Py_True;
  const double scale = PyFloat_AsDouble(args[7]);
  a->scale = (float)scale;
  return scale != -1.0 || !PyErr_Occurred();
}

PyObject* no_kernel() {
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_FALSE;
}

int64_t work_of(const Attention& a) { return a.batches * a.heads * a.rows * a.keys * (a.width / 8 + 1); }

// Call run() on all threads; return the result of the first thread.
template <class F> int run_on_all_threads(int threads, const F& run) {
  int done = 0;
  in_parallel(threads, [&](int thread, int) {
    const int mine = run();
    if (thread == 0) done = mine;
  });
  return done;
}

PyObject* attention(PyObject*, PyObject* const* args, Py_ssize_t given) {
  Attention a;
  if (given != 8)
    return PyErr_Format(PyExc_TypeError, "attention: expected out, sums, q, k, v, mask, causal, scale; got %zd", given);
  if (!read_attention(args, true, &a)) return no_kernel();
  for (int i = 2; i < 5; ++i)
    if (overlaps((PyArrayObject*)args[0], (PyArrayObject*)args[i])) Py_RETURN_FALSE;
  const int64_t work = work_of(a);
  return PyBool_FromLong(without_gil(work, [&] {
    return run_on_all_threads(rushlight_threads_for(work), [&] { return rushlight_variant()->attention(&a); });
  }));
}

PyObject* attention_backward(PyObject*, PyObject* const* args, Py_ssize_t given) {
  Attention a;
  AttentionGradients g;
  float* grad;
  if (given != 12)
    return PyErr_Format(PyExc_TypeError,
                        "attention_backward: expected to_q, to_k, to_v, grad, out, sums, q, k, v, mask, causal, scale; "
                        "got %zd", given);
  if (!read_attention(args + 4, false, &a)) return no_kernel();
  if (!read_heads(args[0], true, &g.to_q, g.to_q_strides) || !read_heads(args[1], true, &g.to_k, g.to_k_strides) ||
      !read_heads(args[2], true, &g.to_v, g.to_v_strides) || !read_heads(args[3], false, &grad, g.grad_strides))
    Py_RETURN_FALSE;
  g.grad = grad;
  const int like[] = {6, 7, 8, 6};  // each array has the shape of the argument with this index
  for (int i = 0; i < 4; ++i)
    if (!PyArray_SAMESHAPE((PyArrayObject*)args[i], (PyArrayObject*)args[like[i]])) Py_RETURN_FALSE;
  for (int i = 0; i < 3; ++i)
    for (int j = i + 1; j < 10; ++j)
      if (args[j] != Py_None && overlaps((PyArrayObject*)args[i], (PyArrayObject*)args[j])) Py_RETURN_FALSE;
  const int64_t work = 3 * work_of(a);
  return PyBool_FromLong(without_gil(work, [&] {
    const Variant* variant = rushlight_variant();
    const int threads = rushlight_threads_for(work);
    g.scratch = rushlight_scratch(variant->attention_scratch(&a) * threads, PANELS);
    return g.scratch ? run_on_all_threads(threads, [&] { return variant->attention_backward(&a, &g); }) : 0;
  }));
}

}  // namespace

PyMethodDef attention_methods[] = {
    {"attention", (PyCFunction)(void (*)(void))attention, METH_FASTCALL,
     "attention(out, sums, q, k, v, mask: ndarray | None, causal: bool, scale: float, /) -> bool\n\nScaled-dot-product\n"
     "attention of float32 (batch, heads, length, width) of any strides; sums, row-major, receives the log-sum-exp. The mask\n"
     "is broadcast, float32 or bool. False for widths and arrays without a kernel."},
    {"attention_backward", (PyCFunction)(void (*)(void))attention_backward, METH_FASTCALL,
     "attention_backward(to_q, to_k, to_v, grad, out, sums, q, k, v, mask: ndarray | None, causal: bool, scale: float, /)\n"
     "-> bool\n\nThe gradients of attention() for query, key and value, from that of its result; the arrays as there. False where no\n"
     "kernel takes them."},
    {nullptr, nullptr, 0, nullptr},
};
