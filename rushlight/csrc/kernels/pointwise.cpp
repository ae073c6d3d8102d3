// Pointwise operators and copies for Python. A function takes arrays and numbers, and returns whether a kernel did the work.
#include "arrays.h"

namespace {

constexpr int inputs_of[RL_POINTWISE_COUNT] = {
#define RL_INPUTS(name, inputs, class) inputs,
    RL_POINTWISE(RL_INPUTS)
#undef RL_INPUTS
};

bool is_integer_dtype(int dtype) { return dtype >= RL_UINT8 && dtype <= RL_INT64; }

// Store a Python number as an element of the type in which the operator computes. Return false if it does not fit exactly.
bool read_number(PyObject* object, int dtype, double* storage, Operand* operand) {
  operand->data = (char*)storage;
  if (PyFloat_Check(object)) {
    *storage = PyFloat_AS_DOUBLE(object);
    operand->dtype = RL_FLOAT64;
    return dtype >= RL_FLOAT16;
  }
  if (!PyLong_Check(object)) return false;  // includes bool
  int overflow;
  const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) return false;
  if (dtype >= RL_FLOAT16) {
    *storage = (double)value;
    operand->dtype = RL_FLOAT64;
    return value <= (1LL << 53) && value >= -(1LL << 53);
  }
  if (dtype == RL_UINT8 ? value < 0 || value > 255
                        : is_integer_dtype(dtype) && dtype != RL_INT64 &&
                              (value >= 1LL << (8 * item_size[dtype] - 1) || value < -(1LL << (8 * item_size[dtype] - 1))))
    return false;
  *(int64_t*)storage = dtype == RL_BOOL ? value != 0 : value;
  operand->dtype = RL_INT64;
  return true;
}

bool read_output(PyObject* object, Loop* loop) {
  if (!is_operand(object, true, &loop->out.dtype)) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  loop->rank = PyArray_NDIM(array);
  loop->out.data = (char*)PyArray_DATA(array);
  for (int d = 0; d < loop->rank; ++d) {
    loop->sizes[d] = PyArray_DIM(array, d);
    loop->out.strides[d] = PyArray_STRIDE(array, d);
    if (loop->out.strides[d] == 0 && loop->sizes[d] > 1) return false;
  }
  return true;
}

// Read an array, broadcast to the loop's sizes. Return false if it does not fit, or if it overlaps the output in another
// layout.
bool read_array(PyObject* object, PyArrayObject* out, const Loop* loop, Operand* operand) {
  if (!is_operand(object, false, &operand->dtype)) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  const int missing = loop->rank - PyArray_NDIM(array);
  if (missing < 0) return false;
  operand->data = (char*)PyArray_DATA(array);
  for (int d = 0; d < loop->rank; ++d) {
    const int64_t size = d < missing ? 1 : PyArray_DIM(array, d - missing);
    if (size != loop->sizes[d] && size != 1) return false;
    operand->strides[d] = size == 1 ? 0 : PyArray_STRIDE(array, d - missing);
  }
  return !overlaps(array, out) || same_layout(array, out);
}

bool read_input(PyObject* object, PyArrayObject* out, const Loop* loop, double* storage, Operand* operand) {
  if (PyArray_Check(object)) {
    if (!read_array(object, out, loop, operand)) return false;
    // Small integers are computed as int32, so operands of other integer types would have to wrap around first: not supported.
    return loop->dtype == operand->dtype || !is_integer_dtype(loop->dtype) || item_size[loop->dtype] >= 4;
  }
  for (int d = 0; d < loop->rank; ++d) operand->strides[d] = 0;
  return read_number(object, loop->dtype, storage, operand);
}

int64_t count_of(const Loop* loop) {
  int64_t count = 1;
  for (int d = 0; d < loop->rank; ++d) count *= loop->sizes[d];
  return count;
}

PyObject* run(const Loop* loop) {
  return PyBool_FromLong(without_gil(count_of(loop), [&] { return rushlight_run_loop(loop); }));
}

PyObject* pointwise(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  int64_t code, dtype;
  if (count < 3) return PyErr_Format(PyExc_TypeError, "pointwise: expected code, dtype, out and inputs");
  if (!read_integer(arguments[0], &code) || !read_integer(arguments[1], &dtype)) return nullptr;
  if (code < 0 || code >= RL_POINTWISE_COUNT || dtype < 0 || dtype >= RL_DTYPE_COUNT)
    return PyErr_Format(PyExc_ValueError, "pointwise: no operator %lld or dtype %lld", (long long)code, (long long)dtype);
  Loop loop;
  loop.code = (int)code;
  loop.dtype = (int)dtype;
  loop.inputs = inputs_of[code];
  const Py_ssize_t parameters = count - 3 - loop.inputs;
  if (parameters < 0 || parameters > RL_MAX_PARAMETERS)
    return PyErr_Format(PyExc_TypeError, "pointwise: expected %d inputs and at most %d parameters", loop.inputs,
                        (int)RL_MAX_PARAMETERS);
  if (!read_output(arguments[2], &loop)) Py_RETURN_FALSE;
  PyArrayObject* out = (PyArrayObject*)arguments[2];
  double numbers[RL_MAX_INPUTS];
  for (int k = 0; k < loop.inputs; ++k)
    if (!read_input(arguments[3 + k], out, &loop, &numbers[k], &loop.in[k])) {
      if (PyErr_Occurred()) return nullptr;
      Py_RETURN_FALSE;
    }
  for (int i = 0; i < RL_MAX_PARAMETERS; ++i) {
    loop.parameters[i] = i < parameters ? PyFloat_AsDouble(arguments[3 + loop.inputs + i]) : 0.0;
    if (loop.parameters[i] == -1.0 && PyErr_Occurred()) return nullptr;
  }
  return run(&loop);
}

PyObject* copy(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "copy: expected out and input, got %zd arguments", count);
  Loop loop;
  loop.code = COPY;
  loop.inputs = 1;
  loop.dtype = RL_FLOAT32;
  if (!read_output(arguments[0], &loop)) Py_RETURN_FALSE;
  if (!PyArray_Check(arguments[1]) || !read_array(arguments[1], (PyArrayObject*)arguments[0], &loop, &loop.in[0]))
    Py_RETURN_FALSE;
  return run(&loop);
}

}  // namespace

PyMethodDef pointwise_methods[] = {
    {"pointwise", (PyCFunction)(void (*)(void))pointwise, METH_FASTCALL,
     "pointwise(code: int, dtype: int, out: ndarray, *inputs: ndarray | float | int, *parameters: float) -> bool\n\n"
     "out[...] = the operator `codes[name]` computed in `dtype`, inputs broadcast to out. False, with nothing written,\n"
     "where no kernel takes these arguments. TypeError and ValueError for wrong counts and codes."},
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL,
     "copy(out: ndarray, input: ndarray, /) -> bool\n\nout[...] = input, converted and broadcast; False where no kernel\n"
     "takes these arrays."},
    {nullptr, nullptr, 0, nullptr},
};
