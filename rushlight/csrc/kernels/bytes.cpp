// Quantized layers and functions over bytes, for Python.
#include <string.h>

#include "arrays.h"
#include "bytes.h"

namespace {

void* data_of(PyObject* object) { return PyArray_DATA(array_of(object)); }
int64_t size_of(PyObject* object) { return PyArray_SIZE(array_of(object)); }
int64_t size_at(PyObject* object, int dimension) { return PyArray_DIM(array_of(object), dimension); }

bool read_integers(PyObject* object, int count, int64_t* values) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != count) return false;
  for (int i = 0; i < count; ++i)
    if (!read_integer(PyTuple_GET_ITEM(object, i), &values[i])) return false;
  return true;
}

// Whether `object` is a row-major array of unsigned or signed bytes. A negative `rank` allows any rank.
bool is_bytes(PyObject* object, bool written, int rank, int* dtype) {
  if (!is_operand(object, written, dtype) || (*dtype != RL_UINT8 && *dtype != RL_INT8)) return false;
  return PyArray_IS_C_CONTIGUOUS(array_of(object)) && (rank < 0 || PyArray_NDIM(array_of(object)) == rank);
}

bool is_byte_of(int64_t value, int dtype) {
  return dtype == RL_INT8 ? value >= -128 && value <= 127 : value >= 0 && value <= 255;
}

// ---- layers ------------------------------------------------------------------------------------------------------------

constexpr int64_t MAX_SUM_LENGTH = 32768;  // at most this many products of two bytes, each below 2^16, stay below 2^31
constexpr int64_t MAX_SIZE = 1 << 24;

// Check the sizes of a packed weight: groups, outputs of a group, depth.
bool read_packing(const int64_t* sizes) {
  return sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0 && sizes[2] <= MAX_SUM_LENGTH && sizes[0] <= MAX_SIZE &&
         sizes[1] <= MAX_SIZE && (double)sizes[0] * sizes[1] * sizes[2] < 1e12;
}

PyObject* packed_bytes(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t sizes[3];
  if (wrong_count("packed_bytes", given, 3)) return nullptr;
  for (int i = 0; i < 3; ++i)
    if (!read_integer(a[i], &sizes[i])) return nullptr;
  return PyLong_FromLongLong(read_packing(sizes) ? sizes[0] * rushlight_variant()->packed_bytes(sizes[2], sizes[1]) : 0);
}

bool is_aligned(PyObject* object) { return (uintptr_t)data_of(object) % 64 == 0; }

PyObject* pack_bytes(PyObject*, PyObject* const* a, Py_ssize_t given) {
  if (wrong_count("pack_bytes", given, 2)) return nullptr;
  if (!is_plain(a[0], true, RL_UINT8) || !is_plain(a[1], false, RL_INT8) || PyArray_NDIM(array_of(a[1])) != 3 ||
      !is_aligned(a[0]) || overlaps(array_of(a[0]), array_of(a[1])))
    return refuse();
  const Variant* const variant = rushlight_variant();
  const int64_t sizes[3] = {size_at(a[1], 0), size_at(a[1], 1), size_at(a[1], 2)};
  if (!read_packing(sizes)) Py_RETURN_FALSE;
  const int64_t group = variant->packed_bytes(sizes[2], sizes[1]);
  if (size_of(a[0]) != group * sizes[0]) Py_RETURN_FALSE;
  const int8_t* const weight = (const int8_t*)data_of(a[1]);
  char* const packed = (char*)data_of(a[0]);
  return PyBool_FromLong(without_gil(size_of(a[1]), [&] {
    in_parallel(rushlight_threads_for(size_of(a[1])), [&](int, int) {
      for (int64_t i = 0; i < sizes[0]; ++i)
        variant->pack_layer(weight + i * sizes[1] * sizes[2], sizes[2], sizes[1], packed + i * group);
    });
    return 1;
  }));
}

// Read kernel sizes, strides, paddings, dilations and groups, and check them against the sizes of the input and the result.
bool read_layer(const int64_t* g, PyObject* out, PyObject* x, ByteLayer* l) {
  for (int i = 0; i < 8; ++i)
    if (g[i] < (i == 4 || i == 5 ? 0 : 1) || g[i] > 1 << 20) return false;
  for (int i = 0; i < 4; ++i)
    if (size_at(x, i) < 1 || size_at(x, i) > MAX_SIZE || size_at(out, i) < 1 || size_at(out, i) > MAX_SIZE) return false;
  *l = {size_at(x, 0), size_at(x, 1), size_at(x, 2), size_at(x, 3), size_at(out, 1), size_at(out, 2), size_at(out, 3),
        g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 0, 0,
        0, 0, nullptr};
  const auto outputs_of = [](int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
    const int64_t reach = dilation * (kernel - 1) + 1;
    return size + 2 * pad < reach ? 0 : (size + 2 * pad - reach) / stride + 1;
  };
  return size_at(out, 0) == l->images && g[8] > 0 && l->channels % g[8] == 0 && l->outputs % g[8] == 0 &&
         l->out_height == outputs_of(l->height, g[0], g[2], g[4], g[6]) &&
         l->out_width == outputs_of(l->width, g[1], g[3], g[5], g[7]);
}

// Read the weight: either packed by pack_bytes, or 16-bit [taps, channels] of a depthwise layer.
bool read_weight(PyObject* weight, ByteLayer* l) {
  const int64_t depth = l->channels / l->groups * l->kernel_height * l->kernel_width, outputs = l->outputs / l->groups;
  if (is_plain(weight, false, RL_INT16)) {
    l->depthwise = (const int16_t*)data_of(weight);
    return l->groups == l->channels && outputs == 1 && PyArray_NDIM(array_of(weight)) == 2 && depth <= MAX_SUM_LENGTH &&
           size_at(weight, 0) == depth && size_at(weight, 1) == l->channels;
  }
  const int64_t sizes[3] = {l->groups, outputs, depth};
  l->packed = PyArray_Check(weight) ? data_of(weight) : nullptr;
  return is_plain(weight, false, RL_UINT8) && is_aligned(weight) && read_packing(sizes) &&
         size_of(weight) == l->groups * rushlight_variant()->packed_bytes(depth, outputs);
}

bool run_layer(ByteLayer* l) {
  const Variant* const variant = rushlight_variant();
  const double macs = (double)l->images * l->out_height * l->out_width * l->outputs * (l->channels / l->groups) *
                      l->kernel_height * l->kernel_width / 32;
  const int threads = rushlight_threads_for(macs < 1e15 ? (int64_t)macs : (int64_t)1e15);
  l->scratch = rushlight_scratch(threads * variant->byte_layer_scratch(l), PANELS);
  if (!l->scratch) return false;
  in_parallel(threads, [&](int, int) { variant->byte_layer(l); });
  return true;
}

PyObject* byte_layer(PyObject*, PyObject* const* a, Py_ssize_t given) {
  ByteLayer l;
  int64_t g[12];
  int in_kind, out_kind;
  if (wrong_count("byte_layer", given, 6)) return nullptr;
  if (!is_bytes(a[1], false, 4, &in_kind) || !is_operand(a[0], true, &out_kind) || PyArray_NDIM(array_of(a[0])) != 4 ||
      !(is_bytes(a[0], true, 4, &out_kind) || is_plain(a[0], true, RL_FLOAT32)) || !read_integers(a[5], 12, g) ||
      !read_layer(g, a[0], a[1], &l) || !read_weight(a[2], &l))
    return refuse();
  for (int i = 3; i < 5; ++i)
    if (!is_plain(a[i], false, RL_FLOAT32) || size_of(a[i]) != l.outputs) Py_RETURN_FALSE;
  if (!is_byte_of(g[9], in_kind) || (out_kind != RL_FLOAT32 && !is_byte_of(g[10], out_kind)) || any_overlap(a[0], a + 1, 4))
    Py_RETURN_FALSE;
  l.x = data_of(a[1]), l.bias = (const float*)data_of(a[3]), l.multiplier = (const float*)data_of(a[4]), l.out = data_of(a[0]);
  l.is_signed = in_kind == RL_INT8, l.out_kind = out_kind, l.relu = g[11] != 0;
  l.zero_point = (int32_t)g[9], l.out_zero = (int32_t)g[10];
  return PyBool_FromLong(without_gil(MIN_UNLOCKED_WORK, [&] { return run_layer(&l); }));
}

// ---- elementwise ------------------------------------------------------------------------------------------------

int run_function(ByteFunction* f, int64_t count) {
  return without_gil(count, [&] {
    in_parallel(rushlight_threads_for(count), [&](int thread, int threads) {
      const Part part = part_of(count, thread, threads, 64);
      rushlight_variant()->byte_function(f, part.first, part.last);
    });
    return 1;
  });
}

bool read_float(PyObject* object, float* value) {
  const double read = PyFloat_AsDouble(object);
  *value = (float)read;
  return !(read == -1 && PyErr_Occurred());
}

bool read_zero(PyObject* object, int dtype, int32_t* zero) {
  int64_t value;
  if (!read_integer(object, &value) || !is_byte_of(value, dtype)) return false;
  *zero = (int32_t)value;
  return true;
}

PyObject* quantize(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int dtype;
  ByteFunction f = {};
  if (wrong_count("quantize_bytes", given, 4)) return nullptr;
  if (!is_bytes(a[0], true, -1, &dtype) || !is_plain(a[1], false, RL_FLOAT32) || size_of(a[0]) != size_of(a[1]) ||
      overlaps(array_of(a[0]), array_of(a[1])) || !read_float(a[2], &f.inverse) || !read_zero(a[3], dtype, &f.out_zero))
    return refuse();
  f.code = BYTES_QUANTIZE, f.is_signed = dtype == RL_INT8, f.inputs[0] = data_of(a[1]), f.out = data_of(a[0]);
  return PyBool_FromLong(run_function(&f, size_of(a[0])));
}

PyObject* dequantize(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int dtype;
  ByteFunction f = {};
  if (wrong_count("dequantize_bytes", given, 4)) return nullptr;
  if (!is_plain(a[0], true, RL_FLOAT32) || !is_bytes(a[1], false, -1, &dtype) || size_of(a[0]) != size_of(a[1]) ||
      overlaps(array_of(a[0]), array_of(a[1])) || !read_float(a[2], &f.scales[0]) || !read_zero(a[3], dtype, &f.zeros[0]))
    return refuse();
  f.code = BYTES_DEQUANTIZE, f.is_signed = dtype == RL_INT8, f.inputs[0] = data_of(a[1]), f.out = data_of(a[0]);
  return PyBool_FromLong(run_function(&f, size_of(a[0])));
}

PyObject* combine(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t code, relu;
  int dtype, kinds[2];
  ByteFunction f = {};
  if (wrong_count("combine_bytes", given, 11)) return nullptr;
  if (!read_integer(a[0], &code) || (code != BYTES_ADD && code != BYTES_MULTIPLY) || !is_bytes(a[1], true, -1, &dtype))
    return refuse();
  for (int i = 0; i < 2; ++i) {
    if (!is_bytes(a[2 + i], false, -1, &kinds[i]) || kinds[i] != dtype || size_of(a[2 + i]) != size_of(a[1])) return refuse();
    if (overlaps(array_of(a[1]), array_of(a[2 + i]))) Py_RETURN_FALSE;
    f.inputs[i] = data_of(a[2 + i]);
    if (!read_float(a[4 + i], &f.scales[i]) || !read_zero(a[6 + i], dtype, &f.zeros[i])) return refuse();
  }
  if (!read_float(a[8], &f.inverse) || !read_zero(a[9], dtype, &f.out_zero) || !read_integer(a[10], &relu)) return refuse();
  f.code = (int)code, f.is_signed = dtype == RL_INT8, f.relu = relu != 0, f.out = data_of(a[1]);
  return PyBool_FromLong(run_function(&f, size_of(a[1])));
}

PyObject* rescale(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t relu;
  int dtype, in_kind;
  ByteFunction f = {};
  if (wrong_count("rescale_bytes", given, 7)) return nullptr;
  if (!is_bytes(a[0], true, -1, &dtype) || !is_bytes(a[1], false, -1, &in_kind) || dtype != in_kind ||
      size_of(a[0]) != size_of(a[1]) || overlaps(array_of(a[0]), array_of(a[1])) || !read_float(a[2], &f.scales[0]) ||
      !read_zero(a[3], dtype, &f.zeros[0]) || !read_float(a[4], &f.inverse) || !read_zero(a[5], dtype, &f.out_zero) ||
      !read_integer(a[6], &relu))
    return refuse();
  f.code = BYTES_RESCALE, f.is_signed = dtype == RL_INT8, f.relu = relu != 0, f.inputs[0] = data_of(a[1]), f.out = data_of(a[0]);
  return PyBool_FromLong(run_function(&f, size_of(a[0])));
}

PyObject* look_up(PyObject*, PyObject* const* a, Py_ssize_t given) {
  if (wrong_count("look_up_bytes", given, 3)) return nullptr;
  for (int i = 0; i < 3; ++i)
    if (!is_plain(a[i], i == 0, RL_UINT8)) return refuse();
  if (size_of(a[0]) != size_of(a[1]) || size_of(a[2]) != 256 || any_overlap(a[0], a + 1, 2)) Py_RETURN_FALSE;
  ByteFunction f = {};
  f.code = BYTES_LOOKUP, f.inputs[0] = data_of(a[1]), f.inputs[1] = data_of(a[2]), f.out = data_of(a[0]);
  return PyBool_FromLong(run_function(&f, size_of(a[0])));
}

PyObject* float_limits(PyObject*, PyObject* x) {
  if (!is_plain(x, false, RL_FLOAT32)) Py_RETURN_NONE;
  const int64_t count = size_of(x);
  const float* const values = (const float*)data_of(x);
  float limits[2];
  without_gil(count, [&] { return rushlight_variant()->float_limits(values, count, limits), 1; });
  return Py_BuildValue("(dd)", (double)limits[0], (double)limits[1]);
}

// ---- pooling -----------------------------------------------------------------------------------------------------------

bool windows_fit(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  if (kernel < 1 || stride < 1 || dilation < 1 || pad < 0 || kernel > 1 << 20 || stride > 1 << 20 || dilation > 1 << 20 ||
      pad > 1 << 20)
    return false;
  return pad <= dilation * (kernel - 1) && (outputs - 1) * stride - pad < size;
}

PyObject* pool(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t g[13];
  int dtype, in_kind;
  if (wrong_count("pool_bytes", given, 3)) return nullptr;
  if (!is_bytes(a[0], true, 4, &dtype) || !is_bytes(a[1], false, 4, &in_kind) || dtype != in_kind ||
      !read_integers(a[2], 13, g) || overlaps(array_of(a[0]), array_of(a[1])))
    return refuse();
  for (int i = 0; i < 4; ++i)
    if (size_at(a[0], i) < 1 || size_at(a[1], i) < 1 || size_at(a[0], i) > MAX_SIZE || size_at(a[1], i) > MAX_SIZE)
      Py_RETURN_FALSE;
  BytePool p = {size_at(a[1], 1), size_at(a[1], 2), size_at(a[1], 3), size_at(a[0], 1), size_at(a[0], 2), {g[0], g[1]},
                {g[2], g[3]}, {g[4], g[5]}, {g[6], g[7]}, g[8], g[9] != 0, dtype == RL_INT8, g[10] != 0, g[11] != 0,
                (int32_t)g[12], data_of(a[1]), data_of(a[0])};
  if (size_at(a[0], 0) != size_at(a[1], 0) || size_at(a[0], 3) != p.channels || !is_byte_of(g[12], dtype) || g[8] < 0 ||
      g[8] > 1 << 30)
    Py_RETURN_FALSE;
  if (p.adaptive) p.dilation[0] = p.dilation[1] = 1;
  else if (!windows_fit(p.height, p.out_height, g[0], g[2], g[4], g[6]) ||
           !windows_fit(p.width, p.out_width, g[1], g[3], g[5], g[7]))
    Py_RETURN_FALSE;
  // The sum over a window must stay below 2^31.
  const double window = p.adaptive ? (double)p.height * p.width : (double)g[0] * g[1];
  if (window > 1 << 23) Py_RETURN_FALSE;
  const int64_t lines = size_at(a[0], 0) * p.out_height;
  const int64_t work = p.adaptive ? size_of(a[1]) : size_of(a[0]) * g[0] * g[1];
  return PyBool_FromLong(without_gil(work, [&] {
    in_parallel(rushlight_threads_for(work / 4), [&](int thread, int threads) {
      const Part part = part_of(lines, thread, threads);
      rushlight_variant()->byte_pool(&p, part.first, part.last);
    });
    return 1;
  }));
}

}  // namespace

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

PyMethodDef byte_methods[] = {
    {"packed_bytes", FAST(packed_bytes),
     "packed_bytes(groups: int, outputs: int, depth: int, /) -> int\n\nThe bytes of a weight of so many rows in each group, "
     "packed; 0 where no kernel takes it."},
    {"pack_bytes", FAST(pack_bytes),
     "pack_bytes(out: ndarray, weight: ndarray, /) -> bool\n\nPacks an int8 weight [groups, outputs, depth] into uint8 that "
     "are aligned to 64."},
    {"byte_layer", FAST(byte_layer),
     "byte_layer(out: ndarray, x: ndarray, weight: ndarray, bias: ndarray, multiplier: ndarray, numbers: tuple[int, ...], /) "
     "-> bool\n\nA quantized layer over [images, height, width, channels] of bytes, to bytes, or to float32. The weight is "
     "packed, or int16 [taps, channels] of a depthwise one. To bytes, bias (in quanta of the sums) is added before the product "
     "with the multiplier, to float32 after it. Numbers: kernel sizes, strides, paddings and dilations, two each; groups, the "
     "zero points of x and out, and whether negative results become zero."},
    {"quantize_bytes", FAST(quantize),
     "quantize_bytes(out: ndarray, x: ndarray, inverse: float, zero_point: int, /) -> bool\n\nx * inverse + zero_point, "
     "rounded once, to the nearest byte."},
    {"dequantize_bytes", FAST(dequantize),
     "dequantize_bytes(out: ndarray, x: ndarray, scale: float, zero_point: int, /) -> bool\n\n(x - zero_point) * scale, float32."},
    {"combine_bytes", FAST(combine),
     "combine_bytes(code: int, out: ndarray, a: ndarray, b: ndarray, a_scale: float, b_scale: float, a_zero: int, b_zero: int, "
     "inverse: float, zero_point: int, relu: bool, /) -> bool\n\nThe sum (code 2) of two arrays of bytes dequantized, or the "
     "product (code 3) of their integers, times the inverse, rounded, plus the zero point."},
    {"rescale_bytes", FAST(rescale),
     "rescale_bytes(out: ndarray, x: ndarray, scale: float, zero: int, inverse: float, zero_point: int, relu: bool, /) -> bool"
     "\n\nBytes dequantized, and quantized anew as by quantize_bytes."},
    {"look_up_bytes", FAST(look_up), "look_up_bytes(out: ndarray, x: ndarray, table: ndarray, /) -> bool\n\ntable[x], uint8."},
    {"float_limits", float_limits, METH_O,
     "float_limits(x: ndarray, /) -> tuple[float, float] | None\n\nThe smallest and the largest of float32 numbers."},
    {"pool_bytes", FAST(pool),
     "pool_bytes(out: ndarray, x: ndarray, numbers: tuple[int, ...], /) -> bool\n\nMaxima or means over windows of [images, "
     "height, width, channels] of bytes. Numbers: kernel sizes, strides, paddings and dilations, two each; the divisor of means "
     "or 0, whether they are means, whether pooling is adaptive, whether padding counts, and the zero point."},
    {nullptr, nullptr, 0, nullptr},
};
