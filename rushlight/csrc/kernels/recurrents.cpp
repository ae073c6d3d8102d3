// The steps of an LSTM layer for Python.
#include "arrays.h"

namespace {

bool has_shape(PyObject* object, int64_t a, int64_t b, int64_t c = 0) {
  PyArrayObject* array = (PyArrayObject*)object;
  return PyArray_NDIM(array) == (c ? 3 : 2) && PyArray_DIM(array, 0) == a && PyArray_DIM(array, 1) == b &&
         (!c || PyArray_DIM(array, 2) == c);
}

float* floats(PyObject* object) { return (float*)PyArray_DATA((PyArrayObject*)object); }

// The operands that both directions have: weight, gates [steps, batch, 4 hidden], workspace, cell.
bool read_layer(PyObject* gates, PyObject* workspace, PyObject* weight, PyObject* cell, bool forward, Lstm* l) {
  if (!is_plain(gates, true, RL_FLOAT32) || !is_plain(workspace, forward, RL_FLOAT32) ||
      !is_plain(weight, false, RL_FLOAT32) || !is_plain(cell, false, RL_FLOAT32) ||
      PyArray_NDIM((PyArrayObject*)gates) != 3 || PyArray_NDIM((PyArrayObject*)weight) != 2)
    return false;
  const npy_intp* sizes = PyArray_DIMS((PyArrayObject*)gates);
  l->steps = sizes[0], l->batch = sizes[1], l->hidden = PyArray_DIM((PyArrayObject*)weight, 1);
  l->gates = floats(gates), l->workspace = floats(workspace), l->weight = floats(weight), l->cell = floats(cell);
  return l->steps && l->batch && l->hidden && sizes[2] == 4 * l->hidden && has_shape(weight, 4 * l->hidden, l->hidden) &&
         has_shape(workspace, l->steps, l->batch, 5 * l->hidden) && has_shape(cell, l->batch, l->hidden);
}

bool any_overlap(PyObject* const* written, int writes, PyObject* const* read, int reads) {
  for (int i = 0; i < writes; ++i) {
    for (int j = 0; j < reads; ++j)
      if (read[j] != Py_None && overlaps((PyArrayObject*)written[i], (PyArrayObject*)read[j])) return true;
    for (int j = 0; j < i; ++j)
      if (overlaps((PyArrayObject*)written[i], (PyArrayObject*)written[j])) return true;
  }
  return false;
}

// Runs the steps on as many threads as one step is worth.
template <class F> PyObject* run_steps(Lstm* l, const F& body) {
  const int64_t step = l->batch * l->hidden * (l->hidden / 4 + 1);
  return PyBool_FromLong(without_lock(step * l->steps, [&] {
    l->scratch = rushlight_scratch(rushlight_variant()->lstm_scratch(l->hidden), PANELS);
    if (!l->scratch) return 0;
    in_parallel(rushlight_threads_for(step), [&](int, int) { body(); });
    return 1;
  }));
}

PyObject* lstm(PyObject*, PyObject* const* args, Py_ssize_t given) {
  if (given != 8)
    return PyErr_Format(PyExc_TypeError, "lstm: expected output, last_cell, workspace, gates, weight, state, cell, reverse; "
                        "got %zd", given);
  Lstm l;
  if (!read_layer(args[3], args[2], args[4], args[6], true, &l) || !is_plain(args[0], true, RL_FLOAT32) ||
      !is_plain(args[1], true, RL_FLOAT32) || !is_plain(args[5], false, RL_FLOAT32) ||
      !has_shape(args[0], l.steps, l.batch, l.hidden) || !has_shape(args[1], l.batch, l.hidden) ||
      !has_shape(args[5], l.batch, l.hidden) || any_overlap(args, 3, args + 3, 4))
    Py_RETURN_FALSE;
  l.output = floats(args[0]), l.last_cell = floats(args[1]), l.state = floats(args[5]), l.reverse = args[7] == Py_True;
  return run_steps(&l, [&] { rushlight_variant()->lstm(&l); });
}

PyObject* lstm_backward(PyObject*, PyObject* const* args, Py_ssize_t given) {
  if (given != 8)
    return PyErr_Format(PyExc_TypeError, "lstm_backward: expected into_gates, grad_state, grad_cell, workspace, weight, cell, "
                        "grad_output, reverse; got %zd", given);
  Lstm l;
  if (!read_layer(args[0], args[3], args[4], args[5], false, &l) || !is_plain(args[1], true, RL_FLOAT32) ||
      !is_plain(args[2], true, RL_FLOAT32) || !has_shape(args[1], l.batch, l.hidden) ||
      !has_shape(args[2], l.batch, l.hidden))
    Py_RETURN_FALSE;
  if (args[6] != Py_None &&
      (!is_plain(args[6], false, RL_FLOAT32) || !has_shape(args[6], l.steps, l.batch, l.hidden)))
    Py_RETURN_FALSE;
  if (any_overlap(args, 3, args + 3, 4)) Py_RETURN_FALSE;
  l.output = l.last_cell = nullptr, l.state = nullptr, l.reverse = args[7] == Py_True;
  const LstmGradients g = {args[6] == Py_None ? nullptr : floats(args[6]), floats(args[0]), floats(args[1]), floats(args[2])};
  return run_steps(&l, [&] { rushlight_variant()->lstm_backward(&l, &g); });
}

}  // namespace

PyMethodDef recurrent_methods[] = {
    {"lstm", (PyCFunction)(void (*)(void))lstm, METH_FASTCALL,
     "lstm(output, last_cell, workspace, gates, weight, state, cell, reverse: bool, /) -> bool\n\nThe steps of an LSTM layer,\n"
     "row-major float32. gates (steps, batch, 4 hidden): what the input and the biases add to the gates; workspace (steps, batch,\n"
     "5 hidden) receives gates and cells. False where no kernel takes these arrays."},
    {"lstm_backward", (PyCFunction)(void (*)(void))lstm_backward, METH_FASTCALL,
     "lstm_backward(into_gates, grad_state, grad_cell, workspace, weight, cell, grad_output: ndarray | None, reverse, /) -> bool\n\n"
     "The gradients of what went into the gates; grad_state and grad_cell hold those of the last step's results, and receive\n"
     "those of the first state and cell. False where no kernel takes these arrays."},
    {nullptr, nullptr, 0, nullptr},
};
