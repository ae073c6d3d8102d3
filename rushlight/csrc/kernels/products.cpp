// Matrix products for C and for Python.
#include "arrays.h"

int rushlight_run_product(Product* product) {
  const Variant* variant = rushlight_variant();
  const double work = (double)product->batches * product->rows * product->columns * product->depth / 16;
  const int threads = rushlight_threads_for(work < 1e15 ? (int64_t)work : (int64_t)1e15);
  product->scratch = rushlight_scratch(variant->product_scratch(product) * threads, PANELS);
  if (!product->scratch) return 0;
  in_parallel(threads, [&](int, int) { variant->product(product); });
  return 1;
}

int rushlight_matmul(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_column, const float* b,
                     int64_t b_row, int64_t b_column, const float* bias, float* c) {
  Product p = {1, m, n, k, a, b, bias, 0, a_row, a_column, 0, b_row, b_column, 0, 0, 1, c, 0, n, 1.0f, 1.0f, nullptr};
  return m > 0 && n > 0 && k > 0 && rushlight_run_product(&p);
}

namespace {

// An array of floats as a batch of matrices: its last two dimensions, and the batch dimension if there are three.
struct Matrices {
  const float* data;
  int64_t batches, rows, columns, batch_stride, row_stride, column_stride;
};

bool read_matrices(PyObject* object, bool written, Matrices* found) {
  int dtype;
  if (!is_operand(object, written, &dtype) || dtype != RL_FLOAT32) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  const int rank = PyArray_NDIM(array);
  if (rank != 2 && rank != 3) return false;
  const npy_intp *sizes = PyArray_DIMS(array) + rank - 2, *strides = PyArray_STRIDES(array) + rank - 2;
  *found = {(const float*)PyArray_DATA(array), rank == 3 ? PyArray_DIM(array, 0) : 1, sizes[0], sizes[1],
            rank == 3 ? (int64_t)PyArray_STRIDE(array, 0) / 4 : 0, strides[0] / 4, strides[1] / 4};
  return rank == 2 || PyArray_STRIDE(array, 0) % 4 == 0;
}

int64_t broadcast(int64_t size, int64_t stride) { return size == 1 ? 0 : stride; }

bool read_addend(PyObject* object, Product* p) {
  if (object == Py_None) return true;
  Matrices m;
  if (!read_matrices(object, false, &m)) return false;
  if ((m.rows != p->rows && m.rows != 1) || (m.columns != p->columns && m.columns != 1)) return false;
  if (m.batches != p->batches && m.batches != 1) return false;
  p->addend = m.data;
  p->addend_batch = broadcast(m.batches, m.batch_stride);
  p->addend_row = broadcast(m.rows, m.row_stride);
  p->addend_column = broadcast(m.columns, m.column_stride);
  return true;
}

PyObject* matmul(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 6) return PyErr_Format(PyExc_TypeError, "matmul: expected out, a, b, addend, alpha, beta; got %zd", count);
  Matrices c, a, b;
  if (!is_plain(arguments[0], true, RL_FLOAT32) || !read_matrices(arguments[0], true, &c) ||
      !read_matrices(arguments[1], false, &a) || !read_matrices(arguments[2], false, &b))
    Py_RETURN_FALSE;
  if (a.batches != c.batches || b.batches != c.batches || a.rows != c.rows || b.columns != c.columns ||
      a.columns != b.rows || any_overlap(arguments[0], arguments + 1, 3))
    Py_RETURN_FALSE;
  const double alpha = PyFloat_AsDouble(arguments[4]), beta = PyFloat_AsDouble(arguments[5]);
  if (PyErr_Occurred()) return nullptr;
  if (!(c.batches && c.rows && c.columns && a.columns)) Py_RETURN_FALSE;
  Product p = {c.batches, c.rows, c.columns, a.columns, a.data, b.data, nullptr, a.batch_stride, a.row_stride,
               a.column_stride, b.batch_stride, b.row_stride, b.column_stride, 0, 0, 0, (float*)c.data,
               c.rows * c.columns, c.columns, (float)alpha, (float)beta, nullptr};
  if (!read_addend(arguments[3], &p)) Py_RETURN_FALSE;
  const int64_t work = c.batches * c.rows * c.columns * (a.columns / 16 + 1);
  return PyBool_FromLong(without_gil(work, [&] { return rushlight_run_product(&p); }));
}

}  // namespace

PyMethodDef product_methods[] = {
    {"matmul", (PyCFunction)(void (*)(void))matmul, METH_FASTCALL,
     "matmul(out: ndarray, a: ndarray, b: ndarray, addend: ndarray | None, alpha: float, beta: float, /) -> bool\n\n"
     "out[...] = alpha * a @ b + beta * addend of float32 matrices, or stacks of them; out row-major, the others of any\n"
     "strides, the addend broadcast. False where no kernel takes these arrays."},
    {nullptr, nullptr, 0, nullptr},
};
