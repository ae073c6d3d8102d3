// The steps of recurrent layers for Python.
#include "arrays.h"

namespace {

// Read a row-major float32 array of these sizes. With `may_miss`, None is allowed and becomes null.
bool read(PyObject* object, bool written, bool may_miss, int dims, int64_t a, int64_t b, int64_t c, float** data) {
  *data = nullptr;
  if (may_miss && object == Py_None) return true;
  PyArrayObject* array = (PyArrayObject*)object;
  if (!is_plain(object, written, RL_FLOAT32) || PyArray_NDIM(array) != dims) return false;
  const int64_t sizes[] = {a, b, c};
  for (int dim = 0; dim < dims; ++dim)
    if (PyArray_DIM(array, dim) != sizes[dim]) return false;
  *data = (float*)PyArray_DATA(array);
  return true;
}

// Read the kind of layer, and its sizes from gates [steps, batch, gates hidden] and weight [gates hidden, hidden].
bool read_sizes(PyObject* kind, PyObject* gates, PyObject* weight, Recurrent* l) {
  l->kind = PyLong_Check(kind) ? (int)PyLong_AsLong(kind) : -1;
  if (l->kind < 0 || l->kind >= RECURRENT_COUNT || !is_plain(gates, false, RL_FLOAT32) || !is_plain(weight, false, RL_FLOAT32) ||
      PyArray_NDIM((PyArrayObject*)gates) != 3 || PyArray_NDIM((PyArrayObject*)weight) != 2)
    return PyErr_Clear(), false;
  const npy_intp* sizes = PyArray_DIMS((PyArrayObject*)gates);
  l->steps = sizes[0], l->batch = sizes[1], l->hidden = PyArray_DIM((PyArrayObject*)weight, 1);
  const int64_t width = recurrent_gates[l->kind] * l->hidden;
  float *read_gates, *read_weight;
  const bool fits = l->steps && l->batch && l->hidden && read(gates, false, false, 3, l->steps, l->batch, width, &read_gates) &&
                    read(weight, false, false, 2, width, l->hidden, 0, &read_weight);
  if (fits) l->gates = read_gates, l->weight = read_weight;
  return fits;
}

bool any_overlap(PyObject* const* written, int writes, PyObject* const* read, int reads) {
  for (int i = 0; i < writes; ++i) {
    if (written[i] == Py_None) continue;
    for (int j = 0; j < reads; ++j)
      if (read[j] != Py_None && overlaps((PyArrayObject*)written[i], (PyArrayObject*)read[j])) return true;
    for (int j = 0; j < i; ++j)
      if (written[j] != Py_None && overlaps((PyArrayObject*)written[i], (PyArrayObject*)written[j])) return true;
  }
  return false;
}

// Run all steps. The number of threads depends on the work of one step.
template <class F> PyObject* run_steps(Recurrent* l, const F& body) {
  const int64_t gates = recurrent_gates[l->kind], step = l->batch * l->hidden * (gates * l->hidden / 16 + 1);
  return PyBool_FromLong(without_gil(step * l->steps, [&] {
    l->scratch = rushlight_scratch(rushlight_variant()->recurrent_scratch(gates, l->hidden), PANELS);
    if (!l->scratch) return 0;
    in_parallel(rushlight_threads_for(step), [&](int, int) { body(); });
    return 1;
  }));
}

PyObject* recurrent(PyObject*, PyObject* const* args, Py_ssize_t given) {
  if (given != 10)
    return PyErr_Format(PyExc_TypeError, "recurrent: expected kind, output, last_cell, workspace, gates, weight, state, cell, "
                        "bias, reverse; got %zd", given);
  Recurrent l;
  if (!read_sizes(args[0], args[4], args[5], &l)) Py_RETURN_FALSE;
  const bool is_lstm = l.kind == LSTM, has_bias = l.kind == GRU;
  const int64_t saved = recurrent_saved[l.kind], width = recurrent_gates[l.kind] * l.hidden;
  float *state, *cell, *bias;
  if (!read(args[1], true, false, 3, l.steps, l.batch, l.hidden, &l.output) ||
      !read(args[2], true, !is_lstm, 2, l.batch, l.hidden, 0, &l.last_cell) ||
      !read(args[3], true, true, 3, l.steps, l.batch, saved * l.hidden, &l.workspace) ||
      !read(args[6], false, false, 2, l.batch, l.hidden, 0, &state) ||
      !read(args[7], false, !is_lstm, 2, l.batch, l.hidden, 0, &cell) ||
      !read(args[8], false, !has_bias, 1, width, 0, 0, &bias) || any_overlap(args + 1, 3, args + 4, 5))
    Py_RETURN_FALSE;
  l.state = state, l.cell = cell, l.bias = bias, l.reverse = args[9] == Py_True;
  return run_steps(&l, [&] { rushlight_variant()->recurrent(&l); });
}

PyObject* recurrent_backward(PyObject*, PyObject* const* args, Py_ssize_t given) {
  if (given != 12)
    return PyErr_Format(PyExc_TypeError, "recurrent_backward: expected kind, into_gates, into_hidden, grad_state, carried, "
                        "workspace, weight, state, cell, output, grad_output, reverse; got %zd", given);
  Recurrent l;
  RecurrentGradients g;
  if (!read_sizes(args[0], args[1], args[6], &l)) Py_RETURN_FALSE;
  const bool is_lstm = l.kind == LSTM, carries = is_lstm || l.kind == GRU;
  const int64_t saved = recurrent_saved[l.kind], width = recurrent_gates[l.kind] * l.hidden;
  float *state, *cell, *given_output;
  if (!read(args[1], true, false, 3, l.steps, l.batch, width, &g.into_gates) ||
      !read(args[2], true, l.kind != GRU, 3, l.steps, l.batch, width, &g.into_hidden) ||
      !read(args[3], true, false, 2, l.batch, l.hidden, 0, &g.grad_state) ||
      !read(args[4], true, !carries, 2, l.batch, l.hidden, 0, &g.carried) ||
      !read(args[5], false, !saved, 3, l.steps, l.batch, saved * l.hidden, &l.workspace) ||
      !read(args[7], false, false, 2, l.batch, l.hidden, 0, &state) ||
      !read(args[8], false, !is_lstm, 2, l.batch, l.hidden, 0, &cell) ||
      !read(args[9], false, false, 3, l.steps, l.batch, l.hidden, &l.output) ||
      !read(args[10], false, true, 3, l.steps, l.batch, l.hidden, &given_output) || any_overlap(args + 1, 4, args + 5, 6))
    Py_RETURN_FALSE;
  if (!g.into_hidden) g.into_hidden = g.into_gates;
  l.state = state, l.cell = cell, l.bias = nullptr, l.last_cell = nullptr, l.reverse = args[11] == Py_True;
  g.grad_output = given_output;
  return run_steps(&l, [&] { rushlight_variant()->recurrent_backward(&l, &g); });
}

}  // namespace

PyMethodDef recurrent_methods[] = {
    {"recurrent", (PyCFunction)(void (*)(void))recurrent, METH_FASTCALL,
     "recurrent(kind, output, last_cell, workspace, gates, weight, state, cell, bias, reverse: bool, /) -> bool\n\nThe steps of a\n"
     "recurrent layer, row-major float32. kind: 0 and 1 for RNNs of relu and tanh, 2 for an LSTM, 3 for a GRU; gates (steps,\n"
     "batch, gates * hidden): what the input adds to the gates; last_cell and cell are an LSTM's, bias a GRU's; workspace\n"
     "receives what the gradients need. Others are None. False where no kernel takes these arrays."},
    {"recurrent_backward", (PyCFunction)(void (*)(void))recurrent_backward, METH_FASTCALL,
     "recurrent_backward(kind, into_gates, into_hidden, grad_state, carried, workspace, weight, state, cell, output, grad_output,\n"
     "reverse: bool, /) -> bool\n\nThe gradients of what went into the gates, of a GRU from the input and from the state apart.\n"
     "grad_state and an LSTM's carried hold those of the last step's state and cell, and receive those of the first ones; a GRU's\n"
     "carried is scratch. False where no kernel takes these arrays."},
    {nullptr, nullptr, 0, nullptr},
};
