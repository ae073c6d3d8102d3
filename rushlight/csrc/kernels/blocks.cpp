// Block-quantized weights, for Python.
#include "arrays.h"

namespace {

bool is_matrix(PyObject* object, bool written, int dtype) {
  return is_plain(object, written, dtype) && PyArray_NDIM(array_of(object)) == 2;
}

// Read blocks [columns, bytes of a row] of a layout; a row has `depth` elements.
bool read_blocks(PyObject* blocks, PyObject* layout, int64_t depth, BlockOperands* b) {
  int64_t number;
  if (!is_matrix(blocks, false, RL_UINT8) || !read_integer(layout, &number) || number < 0 || number > 255) return false;
  b->layout = (int)number, b->depth = depth, b->columns = PyArray_DIM(array_of(blocks), 0);
  b->blocks = (const uint8_t*)PyArray_DATA(array_of(blocks));
  b->row_bytes = PyArray_DIM(array_of(blocks), 1);
  return b->row_bytes > 0 && b->columns > 0 && rushlight_variant()->block_row_bytes(b->layout, depth) == b->row_bytes;
}

int threads_for(double work) { return rushlight_threads_for(work < 1e15 ? (int64_t)work : (int64_t)1e15); }

// block_product(out [rows, columns], x [rows, depth], blocks, layout)
PyObject* block_product(PyObject*, PyObject* const* a, Py_ssize_t given) {
  BlockOperands b = {};
  if (wrong_count("block_product", given, 4)) return nullptr;
  if (!is_matrix(a[0], true, RL_FLOAT32) || !is_matrix(a[1], false, RL_FLOAT32) ||
      !read_blocks(a[2], a[3], PyArray_DIM(array_of(a[1]), 1), &b))
    return refuse();
  b.rows = PyArray_DIM(array_of(a[1]), 0);
  if (b.rows == 0 || PyArray_DIM(array_of(a[0]), 0) != b.rows || PyArray_DIM(array_of(a[0]), 1) != b.columns ||
      any_overlap(a[0], a + 1, 2))
    Py_RETURN_FALSE;
  b.x = (const float*)PyArray_DATA(array_of(a[1])), b.out = (float*)PyArray_DATA(array_of(a[0]));
  const Variant* const variant = rushlight_variant();
  return PyBool_FromLong(without_gil(MIN_UNLOCKED_WORK, [&] {
    b.scratch = rushlight_scratch(variant->block_scratch(&b), PANELS);
    if (!b.scratch) return 0;
    in_parallel(threads_for((double)b.rows * b.columns * b.depth / 32), [&](int, int) { variant->block_product(&b); });
    return 1;
  }));
}

// block_elements(out [rows, depth], blocks, layout)
PyObject* block_elements(PyObject*, PyObject* const* a, Py_ssize_t given) {
  BlockOperands b = {};
  if (wrong_count("block_elements", given, 3)) return nullptr;
  if (!is_matrix(a[0], true, RL_FLOAT32) || !read_blocks(a[1], a[2], PyArray_DIM(array_of(a[0]), 1), &b)) return refuse();
  if (PyArray_DIM(array_of(a[0]), 0) != b.columns || overlaps(array_of(a[0]), array_of(a[1]))) Py_RETURN_FALSE;
  b.out = (float*)PyArray_DATA(array_of(a[0]));
  const Variant* const variant = rushlight_variant();
  return PyBool_FromLong(without_gil(b.columns * b.depth, [&] {
    in_parallel(threads_for((double)b.columns * b.depth), [&](int, int) { variant->block_elements(&b); });
    return 1;
  }));
}

}  // namespace

#define RL_METHOD(name, text) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, PyDoc_STR(text)}
PyMethodDef block_methods[] = {
    RL_METHOD(block_product, "out = x times rows in blocks; whether that was done."),
    RL_METHOD(block_elements, "out = the elements of rows in blocks; whether that was done."),
    {nullptr, nullptr, 0, nullptr},
};
