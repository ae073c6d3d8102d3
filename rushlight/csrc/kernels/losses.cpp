// The negative log-likelihood of rows and its gradient, for Python.
#include <string.h>

#include "arrays.h"

namespace {

struct Rows {
  int64_t count, classes, ignored;
  const int64_t* labels;
  const float* weights;  // one per class, or null

  float weight(int64_t label) const { return weights ? weights[label] : 1.0f; }
  bool counts(int64_t row) const { return labels[row] != ignored; }
};

bool labels_exist(const Rows& r) {
  bool exist = true;
  for (int64_t i = 0; i < r.count; ++i) exist &= !r.counts(i) || (uint64_t)r.labels[i] < (uint64_t)r.classes;
  return exist;
}

// Read and check labels and weights. Return false, perhaps with an exception set, if they do not fit the rows of `values`.
bool read_rows(PyObject* values, bool written, PyObject* labels, PyObject* weights, PyObject* ignored, Rows* r) {
  if (!is_plain(values, written, RL_FLOAT32) || PyArray_NDIM((PyArrayObject*)values) != 2) return false;
  r->count = PyArray_DIM((PyArrayObject*)values, 0);
  r->classes = PyArray_DIM((PyArrayObject*)values, 1);
  if (!is_plain(labels, false, RL_INT64) || PyArray_SIZE((PyArrayObject*)labels) != r->count) return false;
  r->labels = (const int64_t*)PyArray_DATA((PyArrayObject*)labels);
  r->weights = nullptr;
  if (weights != Py_None) {
    if (!is_plain(weights, false, RL_FLOAT32) || PyArray_SIZE((PyArrayObject*)weights) != r->classes) return false;
    r->weights = (const float*)PyArray_DATA((PyArrayObject*)weights);
  }
  return read_integer(ignored, &r->ignored) && labels_exist(*r);
}

PyObject* nll_loss(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Rows r;
  if (given != 5) return PyErr_Format(PyExc_TypeError, "nll_loss: expected x, labels, weights, ignored, losses; got %zd", given);
  if (!read_rows(a[0], false, a[1], a[2], a[3], &r)) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
  }
  float* losses = nullptr;
  if (a[4] != Py_None) {
    if (!is_plain(a[4], true, RL_FLOAT32) || PyArray_SIZE((PyArrayObject*)a[4]) != r.count) Py_RETURN_NONE;
    losses = (float*)PyArray_DATA((PyArrayObject*)a[4]);
  }
  const float* x = (const float*)PyArray_DATA((PyArrayObject*)a[0]);
  double sum = 0, total = 0;
  for (int64_t i = 0; i < r.count; ++i) {
    const int64_t label = r.labels[i];
    const float weight = r.counts(i) ? r.weight(label) : 0.0f, loss = r.counts(i) ? -x[i * r.classes + label] * weight : 0.0f;
    if (losses) losses[i] = loss;
    sum += loss;
    total += weight;
  }
  return Py_BuildValue("(dd)", sum, total);
}

PyObject* nll_loss_backward(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Rows r;
  if (given != 6)
    return PyErr_Format(PyExc_TypeError, "nll_loss_backward: expected out, labels, weights, ignored, grad, divisor; got %zd",
                        given);
  const double divisor = PyFloat_AsDouble(a[5]);
  if (divisor == -1.0 && PyErr_Occurred()) return nullptr;
  if (!read_rows(a[0], true, a[1], a[2], a[3], &r)) return PyErr_Occurred() ? nullptr : PyBool_FromLong(0);
  if (!is_plain(a[4], false, RL_FLOAT32)) Py_RETURN_FALSE;
  const int64_t size = PyArray_SIZE((PyArrayObject*)a[4]);
  if (size != 1 && size != r.count) Py_RETURN_FALSE;
  const float* grad = (const float*)PyArray_DATA((PyArrayObject*)a[4]);
  float* out = (float*)PyArray_DATA((PyArrayObject*)a[0]);
  return PyBool_FromLong(without_gil(r.count * r.classes, [&] {
    in_parallel(rushlight_threads_for(r.count * r.classes), [&](int thread, int threads) {
      const Part part = part_of(r.count, thread, threads);
      memset(out + part.first * r.classes, 0, (part.last - part.first) * r.classes * sizeof(float));
      for (int64_t i = part.first; i < part.last; ++i)
        if (r.counts(i))
          out[i * r.classes + r.labels[i]] = -r.weight(r.labels[i]) * grad[size == 1 ? 0 : i] / (float)divisor;
    });
    return 1;
  }));
}

}  // namespace

PyMethodDef loss_methods[] = {
    {"nll_loss", (PyCFunction)(void (*)(void))nll_loss, METH_FASTCALL,
     "nll_loss(x, labels, weights: ndarray | None, ignored: int, losses: ndarray | None, /) -> tuple[float, float] | None\n\n"
     "The sum of the rows' losses, which `losses` receives, and of their weights. None for a label that does not exist, and\n"
     "for anything but row-major float32 and int64."},
    {"nll_loss_backward", (PyCFunction)(void (*)(void))nll_loss_backward, METH_FASTCALL,
     "nll_loss_backward(out, labels, weights: ndarray | None, ignored: int, grad, divisor: float, /) -> bool\n\nThe gradient\n"
     "of x for those of the rows' losses, or one for all. False as None above."},
    {nullptr, nullptr, 0, nullptr},
};
