// Convolution and its two gradients for Python: direct kernels, or matrix products over gathered windows if that is faster.
#include <string.h>

#include "arrays.h"

namespace {

int64_t taps_of(const Convolution& c) { return c.kernel_depth * c.kernel_height * c.kernel_width; }
int64_t results_of(const Convolution& c) { return c.out_depth * c.out_height * c.out_width; }

int64_t work_of(const Convolution& c) {
  const double macs = (double)c.images * c.outputs * results_of(c) * (c.channels / c.groups) * taps_of(c) / 16;
  return macs < 1e15 ? (int64_t)macs : (int64_t)1e15;
}

// ---- windows -------------------------------------------------------------------------------------------------------

// The range of output columns whose tap lies inside a row of the input.
struct Columns {
  int64_t low, high, shift;
};
Columns columns_of(const Convolution& c, int64_t kx) {
  const int64_t shift = kx * c.dilation_width - c.pad_width, s = c.stride_width;
  int64_t low = shift >= 0 ? 0 : (-shift + s - 1) / s, high = c.width - shift <= 0 ? 0 : (c.width - shift + s - 1) / s;
  if (high > c.out_width) high = c.out_width;
  return {low < high ? low : high, high, shift};
}

// For each tap of a channel and each row of results, call body(index of the row in windows, index of the row in the volume or
// -1, columns).
template <class F> void each_tap_row(const Convolution& c, int64_t channel, const F& body) {
  const int64_t taps = taps_of(c), rows = c.out_depth * c.out_height;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Columns columns = columns_of(c, tap % c.kernel_width);
    const int64_t ky = tap / c.kernel_width % c.kernel_height, kz = tap / c.kernel_width / c.kernel_height;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t z = row / c.out_height * c.stride_depth - c.pad_depth + kz * c.dilation_depth;
      const int64_t y = row % c.out_height * c.stride_height - c.pad_height + ky * c.dilation_height;
      const bool inside = z >= 0 && z < c.depth && y >= 0 && y < c.height && columns.low < columns.high;
      const int64_t at = ((channel * c.depth + z) * c.height + y) * c.width + columns.low * c.stride_width + columns.shift;
      body(((channel * taps + tap) * rows + row) * c.out_width, inside ? at : -1, columns);
    }
  }
}

void gather_windows(const Convolution& c, const float* x, float* windows, int64_t channel) {
  each_tap_row(c, channel, [&](int64_t to, int64_t from, const Columns& columns) {
    float* out = windows + to;
    if (from < 0) return (void)memset(out, 0, c.out_width * sizeof(float));
    memset(out, 0, columns.low * sizeof(float));
    memset(out + columns.high, 0, (c.out_width - columns.high) * sizeof(float));
    if (c.stride_width == 1) memcpy(out + columns.low, x + from, (columns.high - columns.low) * sizeof(float));
    else
      for (int64_t i = 0; i < columns.high - columns.low; ++i) out[columns.low + i] = x[from + i * c.stride_width];
  });
}

void scatter_windows(const Convolution& c, const float* windows, float* x, int64_t channel) {
  each_tap_row(c, channel, [&](int64_t from, int64_t to, const Columns& columns) {
    if (to < 0) return;
    const float* in = windows + from + columns.low;
    const int64_t count = columns.high - columns.low;
    if (c.stride_width == 1)
      for (int64_t i = 0; i < count; ++i) x[to + i] += in[i];
    else
      for (int64_t i = 0; i < count; ++i) x[to + i * c.stride_width] += in[i];
  });
}

template <class F> void each_channel(const Convolution& c, const F& body) {
  const int64_t work = c.channels * taps_of(c) * results_of(c);
  in_parallel(rushlight_threads_for(work), [&](int thread, int threads) {
    const Part part = part_of(c.channels, thread, threads);
    for (int64_t channel = part.first; channel < part.last; ++channel) body(channel);
  });
}

struct Sizes {
  int64_t depth, pixels, outputs, plane;  // per group: taps of all its channels, results, output channels
};
Sizes sizes_of(const Convolution& c) {
  return {c.channels / c.groups * taps_of(c), results_of(c), c.outputs / c.groups, c.depth * c.height * c.width};
}

float* windows_of(const Convolution& c) {
  const Sizes s = sizes_of(c);
  if ((double)s.depth * c.groups * s.pixels > 1e12) return nullptr;
  return (float*)rushlight_scratch(s.depth * c.groups * s.pixels * sizeof(float), BUFFERS);
}

bool is_pointwise(const Convolution& c) {
  return taps_of(c) == 1 && c.stride_depth == 1 && c.stride_height == 1 && c.stride_width == 1 && !c.pad_depth &&
         !c.pad_height && !c.pad_width;
}

// ---- forward -------------------------------------------------------------------------------------------------------

int forward_by_windows(const Convolution& c) {
  const Sizes s = sizes_of(c);
  float* windows = windows_of(c);
  if (!windows) return 0;
  for (int64_t image = 0; image < c.images; ++image) {
    const float* x = c.x + image * c.channels * s.plane;
    each_channel(c, [&](int64_t channel) { gather_windows(c, x, windows, channel); });
    Product p = {c.groups, s.outputs, s.pixels, s.depth, c.weight, windows, c.bias, s.outputs * s.depth, s.depth, 1,
                 s.depth * s.pixels, s.pixels, 1, s.outputs, 1, 0, c.out + image * c.outputs * s.pixels,
                 s.outputs * s.pixels, s.pixels, 1.0f, 1.0f, nullptr};
    if (!rushlight_run_product(&p)) return 0;
  }
  return 1;
}

int run_forward(Convolution c) {
  const Variant* variant = rushlight_variant();
  const int threads = rushlight_threads_for(work_of(c));
  const int64_t bytes = variant->convolution_scratch(&c, threads);
  if (!bytes) return forward_by_windows(c);
  c.scratch = rushlight_scratch(bytes, PANELS);
  if (!c.scratch) return 0;
  in_parallel(threads, [&](int, int) { variant->convolution(&c); });
  return 1;
}

// ---- the input's gradient ------------------------------------------------------------------------------------------

int input_gradient_by_scattering(const Convolution& c, const float* grad, float* to_x) {
  const Sizes s = sizes_of(c);
  float* windows = windows_of(c);
  if (!windows) return 0;
  for (int64_t image = 0; image < c.images; ++image) {
    Product p = {c.groups, s.depth, s.pixels, s.outputs, c.weight, grad + image * c.outputs * s.pixels, nullptr,
                 s.outputs * s.depth, 1, s.depth, s.outputs * s.pixels, s.pixels, 1, 0, 0, 0, windows,
                 s.depth * s.pixels, s.pixels, 1.0f, 0.0f, nullptr};
    if (!rushlight_run_product(&p)) return 0;
    float* x = to_x + image * c.channels * s.plane;
    each_channel(c, [&](int64_t channel) {
      for (int64_t i = 0; i < s.plane; ++i) x[channel * s.plane + i] = c.bias ? c.bias[channel] : 0;
      scatter_windows(c, windows, x, channel);
    });
  }
  return 1;
}

int run_input_gradient(Convolution c, const float* grad, float* to_x) {
  const Variant* variant = rushlight_variant();
  const int threads = rushlight_threads_for(work_of(c));
  const int64_t bytes = variant->convolution_input_scratch(&c, threads);
  if (!bytes) return input_gradient_by_scattering(c, grad, to_x);
  c.scratch = rushlight_scratch(bytes, PANELS);
  if (!c.scratch) return 0;
  in_parallel(threads, [&](int, int) { variant->convolution_input(&c, grad, to_x); });
  return 1;
}

// ---- the weight's gradient -----------------------------------------------------------------------------------------

int weight_gradient(const Convolution& c, const float* grad, float* to_weight) {
  const Sizes s = sizes_of(c);
  const bool is_image = c.depth == 1 && c.kernel_depth == 1 && !c.pad_depth;
  if (is_image && c.channels == c.groups && c.outputs == c.groups) {
    in_parallel(rushlight_threads_for(c.images * c.channels * s.pixels), [&](int thread, int threads) {
      const Part part = part_of(c.channels, thread, threads);
      rushlight_variant()->depthwise_weight(&c, grad, to_weight, part.first, part.last);
    });
    return 1;
  }
  const bool direct = is_pointwise(c);
  float* gathered = direct ? nullptr : windows_of(c);
  if (!direct && !gathered) return 0;
  for (int64_t image = 0; image < c.images; ++image) {
    const float *x = c.x + image * c.channels * s.plane, *windows = direct ? x : gathered;
    if (!direct) each_channel(c, [&](int64_t channel) { gather_windows(c, x, gathered, channel); });
    Product p = {c.groups, s.outputs, s.depth, s.pixels, grad + image * c.outputs * s.pixels, windows,
                 image ? to_weight : nullptr, s.outputs * s.pixels, s.pixels, 1, s.depth * s.pixels, 1, s.pixels,
                 s.outputs * s.depth, s.depth, 1, to_weight, s.outputs * s.depth, s.depth, 1.0f, 1.0f, nullptr};
    if (!rushlight_run_product(&p)) return 0;
  }
  return 1;
}

// ---- arguments -----------------------------------------------------------------------------------------------------

bool read_geometry(PyObject* object, Convolution* c) {
  int64_t values[10];
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 10) return false;
  for (int i = 0; i < 10; ++i) {
    if (!read_integer(PyTuple_GET_ITEM(object, i), &values[i])) return false;
    const bool is_padding = i >= 3 && i < 6;
    if (values[i] < (is_padding ? 0 : 1) || values[i] > 1 << 20) return false;
  }
  c->stride_depth = values[0], c->stride_height = values[1], c->stride_width = values[2];
  c->pad_depth = values[3], c->pad_height = values[4], c->pad_width = values[5];
  c->dilation_depth = values[6], c->dilation_height = values[7], c->dilation_width = values[8];
  c->groups = values[9];
  return true;
}

bool is_volume(PyObject* object, bool written) {
  return is_plain(object, written, RL_FLOAT32) && PyArray_NDIM((PyArrayObject*)object) == 5 &&
         PyArray_SIZE((PyArrayObject*)object) > 0;
}

int64_t outputs_along(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

// Check that the sizes fit together and that their products fit into 64 bits.
bool is_convolution(const Convolution& c, int64_t weight_channels, int64_t out_images, int64_t out_channels) {
  return c.channels % c.groups == 0 && c.outputs % c.groups == 0 && weight_channels == c.channels / c.groups &&
         out_images == c.images && out_channels == c.outputs && c.depth * c.height * c.width < 1 << 30 &&
         results_of(c) < 1 << 30 && taps_of(c) < 1 << 30 &&
         c.out_depth == outputs_along(c.depth, c.kernel_depth, c.stride_depth, c.pad_depth, c.dilation_depth) &&
         c.out_height == outputs_along(c.height, c.kernel_height, c.stride_height, c.pad_height, c.dilation_height) &&
         c.out_width == outputs_along(c.width, c.kernel_width, c.stride_width, c.pad_width, c.dilation_width);
}

// Read x [N, C, d, h, w], weight [O, C / groups, kd, kh, kw] and out [N, O, od, oh, ow], and check that they fit together. The
// caller checks which of them are writable.
bool read_convolution(PyObject* x, PyObject* weight, PyObject* out, PyObject* geometry, Convolution* c) {
  if (!read_geometry(geometry, c) || !is_volume(x, false) || !is_volume(weight, false) || !is_volume(out, false)) return false;
  const npy_intp *xs = PyArray_DIMS((PyArrayObject*)x), *ws = PyArray_DIMS((PyArrayObject*)weight);
  const npy_intp* os = PyArray_DIMS((PyArrayObject*)out);
  c->images = xs[0], c->channels = xs[1], c->depth = xs[2], c->height = xs[3], c->width = xs[4];
  c->outputs = ws[0], c->kernel_depth = ws[2], c->kernel_height = ws[3], c->kernel_width = ws[4];
  c->out_depth = os[2], c->out_height = os[3], c->out_width = os[4];
  c->x = (const float*)PyArray_DATA((PyArrayObject*)x);
  c->weight = (const float*)PyArray_DATA((PyArrayObject*)weight);
  c->bias = nullptr;
  c->out = (float*)PyArray_DATA((PyArrayObject*)out);
  c->scratch = nullptr;
  return is_convolution(*c, ws[1], os[0], os[1]);
}

// Read a bias: None, or one value for each of `count` channels.
bool read_bias(PyObject* object, int64_t count, Convolution* c) {
  if (object == Py_None) return true;
  if (!is_plain(object, false, RL_FLOAT32) || PyArray_SIZE((PyArrayObject*)object) != count) return false;
  c->bias = (const float*)PyArray_DATA((PyArrayObject*)object);
  return true;
}

bool is_disjoint_output(PyObject* target, PyObject* a, PyObject* b) {
  PyArrayObject* out = (PyArrayObject*)target;
  return PyArray_ISWRITEABLE(out) && !overlaps(out, (PyArrayObject*)a) && !overlaps(out, (PyArrayObject*)b);
}

PyObject* convolution(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Convolution c;
  if (wrong_count("convolution", given, 5)) return nullptr;
  if (!read_convolution(a[1], a[2], a[0], a[4], &c) || !is_disjoint_output(a[0], a[1], a[2])) return refuse();
  if (!read_bias(a[3], c.outputs, &c)) return refuse();
  return PyBool_FromLong(without_gil(work_of(c), [&] { return run_forward(c); }));
}

PyObject* convolution_input(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Convolution c;
  if (wrong_count("convolution_input", given, 5)) return nullptr;
  if (!read_convolution(a[0], a[2], a[1], a[4], &c) || !is_disjoint_output(a[0], a[1], a[2])) return refuse();
  if (!read_bias(a[3], c.channels, &c)) return refuse();
  const float* grad = c.out;
  float* to_x = (float*)PyArray_DATA((PyArrayObject*)a[0]);
  return PyBool_FromLong(without_gil(work_of(c), [&] { return run_input_gradient(c, grad, to_x); }));
}

PyObject* convolution_weight(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Convolution c;
  if (wrong_count("convolution_weight", given, 4)) return nullptr;
  if (!read_convolution(a[1], a[0], a[2], a[3], &c) || !is_disjoint_output(a[0], a[1], a[2])) return refuse();
  const float* grad = c.out;
  float* to_weight = (float*)PyArray_DATA((PyArrayObject*)a[0]);
  return PyBool_FromLong(without_gil(work_of(c), [&] { return weight_gradient(c, grad, to_weight); }));
}

}  // namespace

PyMethodDef convolution_methods[] = {
    {"convolution", (PyCFunction)(void (*)(void))convolution, METH_FASTCALL,
     "convolution(out, x, weight, bias: ndarray | None, geometry: tuple[int, ...], /) -> bool\n\nOver volumes, row-major\n"
     "float32. geometry: strides, paddings and dilations of depth, height and width, and groups. False for anything else."},
    {"convolution_input", (PyCFunction)(void (*)(void))convolution_input, METH_FASTCALL,
     "convolution_input(to_x, grad, weight, bias: ndarray | None, geometry, /) -> bool\n\nThe gradient of x for that of the\n"
     "result; bias is added to its channels."},
    {"convolution_weight", (PyCFunction)(void (*)(void))convolution_weight, METH_FASTCALL,
     "convolution_weight(to_weight, x, grad, geometry, /) -> bool\n\nThe gradient of the weight for that of the result."},
    {nullptr, nullptr, 0, nullptr},
};
