// Max pooling and batch normalisation for Python: arrays are checked, planes and channels shared among threads.
#include <string.h>

#include <initializer_list>

#include "arrays.h"

namespace {

bool read_integers(PyObject* object, int count, int64_t* values) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != count) return false;
  for (int i = 0; i < count; ++i)
    if (!read_integer(PyTuple_GET_ITEM(object, i), &values[i])) return false;
  return true;
}

int64_t size_at(PyObject* array, int from_end) {
  PyArrayObject* a = (PyArrayObject*)array;
  return PyArray_DIM(a, PyArray_NDIM(a) - from_end);
}
int64_t size_of(PyObject* array) { return PyArray_SIZE((PyArrayObject*)array); }
float* floats_of(PyObject* array) { return (float*)PyArray_DATA((PyArrayObject*)array); }

// Whether the sizes are positive and their product is the array's size.
bool fills(PyObject* array, std::initializer_list<int64_t> sizes) {
  int64_t rest = size_of(array);
  for (const int64_t size : sizes) {
    if (size < 1 || rest % size) return false;
    rest /= size;
  }
  return rest == 1;
}

// ---- pooling -------------------------------------------------------------------------------------------------------

// Check that every window overlaps the input: a maximum over padding alone is undefined.
bool windows_fit(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  if (kernel < 1 || stride < 1 || dilation < 1 || pad < 0 || size < 1 || outputs < 1) return false;
  if (kernel > 1 << 20 || stride > 1 << 20 || dilation > 1 << 20 || pad > 1 << 20) return false;
  return pad <= dilation * (kernel - 1) && (outputs - 1) * stride - pad < size;
}

PyObject* max_pool(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t g[8];
  if (wrong_count("max_pool", given, 4)) return nullptr;
  if (!is_plain(a[0], true, RL_FLOAT32) || !is_plain(a[1], true, RL_INT64) || !is_plain(a[2], false, RL_FLOAT32) ||
      !read_integers(a[3], 8, g) || PyArray_NDIM((PyArrayObject*)a[0]) < 2 || PyArray_NDIM((PyArrayObject*)a[2]) < 2 ||
      !PyArray_SAMESHAPE((PyArrayObject*)a[0], (PyArrayObject*)a[1]) || !size_of(a[0]) || !size_of(a[2]))
    return refuse();
  const Pooling o = {size_of(a[2]) / (size_at(a[2], 2) * size_at(a[2], 1)), size_at(a[2], 2), size_at(a[2], 1),
                     size_at(a[0], 2), size_at(a[0], 1), g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], floats_of(a[2]),
                     floats_of(a[0]), (int64_t*)PyArray_DATA((PyArrayObject*)a[1])};
  if (o.planes * o.out_height * o.out_width != size_of(a[0]) || o.height * o.width >= 1 << 30 ||
      !windows_fit(o.height, o.out_height, o.kernel_height, o.stride_height, o.pad_height, o.dilation_height) ||
      !windows_fit(o.width, o.out_width, o.kernel_width, o.stride_width, o.pad_width, o.dilation_width) ||
      overlaps((PyArrayObject*)a[0], (PyArrayObject*)a[2]) || overlaps((PyArrayObject*)a[1], (PyArrayObject*)a[2]))
    Py_RETURN_FALSE;
  const int64_t work = size_of(a[0]) * o.kernel_height * o.kernel_width;
  return PyBool_FromLong(without_gil(work, [&] {
    in_parallel(rushlight_threads_for(work), [&](int thread, int threads) {
      const Part part = part_of(o.planes, thread, threads);
      rushlight_variant()->max_pool(&o, part.first, part.last);
    });
    return 1;
  }));
}

// Add the gradients of planes at the positions of their maxima.
struct Scattered {
  const void* grad;
  const int64_t* places;
  void* out;
  int64_t planes, outputs, inputs, channels;  // elements of `channels` planes are interleaved
};

template <class T> int scatter_planes(const Scattered& s) {
  int wrong = 0;
  const int64_t size = s.inputs * s.channels;
  in_parallel(rushlight_threads_for(s.planes * size), [&](int thread, int threads) {
    const Part part = part_of(s.planes, thread, threads);
    memset((T*)s.out + part.first * size, 0, (part.last - part.first) * size * sizeof(T));
    for (int64_t plane = part.first; plane < part.last; ++plane)
      for (int64_t i = plane * s.outputs; i < (plane + 1) * s.outputs; ++i)
        for (int64_t channel = 0; channel < s.channels; ++channel) {
          const int64_t at = i * s.channels + channel, place = s.places[at];
          if ((uint64_t)place < (uint64_t)s.inputs) ((T*)s.out)[plane * size + place * s.channels + channel] += ((T*)s.grad)[at];
          else __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
        }
  });
  return !wrong;
}

PyObject* max_pool_backward(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t g[4];
  if (wrong_count("max_pool_backward", given, 4)) return nullptr;
  const bool is_double = is_plain(a[0], true, RL_FLOAT64);
  if (!(is_double || is_plain(a[0], true, RL_FLOAT32)) || !is_plain(a[1], false, is_double ? RL_FLOAT64 : RL_FLOAT32) ||
      !is_plain(a[2], false, RL_INT64) || !read_integers(a[3], 4, g) || !size_of(a[0]) || !size_of(a[1]) ||
      size_of(a[1]) != size_of(a[2]) || overlaps((PyArrayObject*)a[0], (PyArrayObject*)a[1]) ||
      overlaps((PyArrayObject*)a[0], (PyArrayObject*)a[2]))
    return refuse();
  if (!fills(a[0], {g[0], g[2], g[3]}) || !fills(a[1], {g[0], g[1], g[3]})) Py_RETURN_FALSE;
  const Scattered s = {PyArray_DATA((PyArrayObject*)a[1]), (const int64_t*)PyArray_DATA((PyArrayObject*)a[2]),
                       PyArray_DATA((PyArrayObject*)a[0]), g[0], g[1], g[2], g[3]};
  return PyBool_FromLong(
      without_gil(size_of(a[0]), [&] { return is_double ? scatter_planes<double>(s) : scatter_planes<float>(s); }));
}

// adaptive_pool(kind, out, places, x, geometry)
PyObject* adaptive_pool(PyObject*, PyObject* const* a, Py_ssize_t given) {
  int64_t kind, g[6];
  if (wrong_count("adaptive_pool", given, 5) || !read_integer(a[0], &kind)) return nullptr;
  const bool is_double = is_plain(a[1], true, RL_FLOAT64), finds = kind == ADAPTIVE_MAX;
  if (kind < ADAPTIVE_MAX || kind > ADAPTIVE_MEAN_BACKWARD || !(is_double || is_plain(a[1], true, RL_FLOAT32)) ||
      !is_plain(a[3], false, is_double ? RL_FLOAT64 : RL_FLOAT32) || !read_integers(a[4], 6, g) ||
      (finds && (!is_plain(a[2], true, RL_INT64) || size_of(a[2]) != size_of(a[1]) ||
                 overlaps((PyArrayObject*)a[2], (PyArrayObject*)a[3]))) ||
      !size_of(a[1]) || !size_of(a[3]) || overlaps((PyArrayObject*)a[1], (PyArrayObject*)a[3]))
    return refuse();
  const bool forward = kind != ADAPTIVE_MEAN_BACKWARD;
  if (!fills(a[forward ? 3 : 1], {g[0], g[1], g[2], g[3]}) || !fills(a[forward ? 1 : 3], {g[0], g[4], g[5], g[3]}) ||
      g[1] * g[2] > INT32_MAX)
    Py_RETURN_FALSE;
  const AdaptivePool o = {(int)kind, is_double, g[0], g[1], g[2], g[3], g[4], g[5], PyArray_DATA((PyArrayObject*)a[3]),
                          PyArray_DATA((PyArrayObject*)a[1]), finds ? (int64_t*)PyArray_DATA((PyArrayObject*)a[2]) : nullptr};
  const int64_t work = size_of(a[1]) + size_of(a[3]), wide = o.width > o.out_width ? o.width : o.out_width;
  const int64_t each = (2 * (wide * o.channels + o.out_width) * sizeof(double) + 63) / 64 * 64;
  const int threads = rushlight_threads_for(work);
  char* scratch = (char*)rushlight_scratch(each * threads, BUFFERS);
  if (!scratch) Py_RETURN_FALSE;
  return PyBool_FromLong(without_gil(work, [&] {
    in_parallel(threads, [&](int thread, int count) {
      const Part part = part_of(o.planes * (forward ? o.out_height : o.height), thread, count);
      rushlight_variant()->adaptive_pool(&o, scratch + thread * each, part.first, part.last);
    });
    return 1;
  }));
}

// ---- channels ------------------------------------------------------------------------------------------------------

bool read_channels(PyObject* object, Channels* c) {
  if (!is_plain(object, false, RL_FLOAT32) || PyArray_NDIM((PyArrayObject*)object) < 2 || !size_of(object)) return false;
  PyArrayObject* array = (PyArrayObject*)object;
  *c = {PyArray_DIM(array, 0), PyArray_DIM(array, 1), size_of(object) / (PyArray_DIM(array, 0) * PyArray_DIM(array, 1)),
        floats_of(object)};
  return true;
}

// Whether `object` is an array of one float per channel.
bool is_per_channel(PyObject* object, const Channels& c, bool written) {
  return is_plain(object, written, RL_FLOAT32) && size_of(object) == c.channels;
}

template <class F> PyObject* over(int64_t count, const Channels& c, const F& body) {
  const int64_t work = c.images * c.channels * c.count;
  return PyBool_FromLong(without_gil(work, [&] {
    in_parallel(rushlight_threads_for(work), [&](int thread, int threads) {
      const Part part = part_of(count, thread, threads);
      body(part.first, part.last);
    });
    return 1;
  }));
}

PyObject* channel_moments(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Channels c;
  if (wrong_count("channel_moments", given, 3)) return nullptr;
  if (!read_channels(a[2], &c) || !is_per_channel(a[0], c, true) || !is_per_channel(a[1], c, true)) return refuse();
  float *mean = floats_of(a[0]), *variance = floats_of(a[1]);
  return over(c.channels, c, [&](int64_t first, int64_t last) {
    rushlight_variant()->channel_moments(&c, mean, variance, first, last);
  });
}

PyObject* channel_products(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Channels c, grad;
  if (wrong_count("channel_products", given, 5)) return nullptr;
  if (!read_channels(a[2], &c) || !read_channels(a[3], &grad) || size_of(a[2]) != size_of(a[3]) ||
      !is_per_channel(a[0], c, true) || !is_per_channel(a[1], c, true) || !is_per_channel(a[4], c, false))
    return refuse();
  float *sums = floats_of(a[0]), *products = floats_of(a[1]);
  const float* mean = floats_of(a[4]);
  return over(c.channels, c, [&](int64_t first, int64_t last) {
    rushlight_variant()->channel_products(&c, grad.x, mean, sums, products, first, last);
  });
}

PyObject* channel_affine(PyObject*, PyObject* const* a, Py_ssize_t given) {
  Channels c, other = {};
  if (wrong_count("channel_affine", given, 6)) return nullptr;
  if (!read_channels(a[1], &c) || !is_plain(a[0], true, RL_FLOAT32) || size_of(a[0]) != size_of(a[1]) ||
      !is_per_channel(a[2], c, false) || !is_per_channel(a[3], c, false) ||
      overlaps((PyArrayObject*)a[0], (PyArrayObject*)a[1]))
    return refuse();
  if (a[4] != Py_None && (!read_channels(a[4], &other) || size_of(a[4]) != size_of(a[1]) ||
                          !is_per_channel(a[5], c, false) || overlaps((PyArrayObject*)a[0], (PyArrayObject*)a[4])))
    return refuse();
  const float *scale = floats_of(a[2]), *shift = floats_of(a[3]);
  const float* other_scale = other.x ? floats_of(a[5]) : nullptr;
  float* out = floats_of(a[0]);
  return over(c.images * c.channels, c, [&](int64_t first, int64_t last) {
    rushlight_variant()->channel_affine(&c, scale, shift, other.x, other_scale, out, first, last);
  });
}

}  // namespace

PyMethodDef image_methods[] = {
    {"max_pool", (PyCFunction)(void (*)(void))max_pool, METH_FASTCALL,
     "max_pool(out, places, x, geometry: tuple[int, ...], /) -> bool\n\nThe largest values of windows and where in their\n"
     "planes they are. geometry: sizes, strides, paddings and dilations of height and width. Row-major, float32 and int64;\n"
     "False for anything else."},
    {"max_pool_backward", (PyCFunction)(void (*)(void))max_pool_backward, METH_FASTCALL,
     "max_pool_backward(out, grad, places, geometry: tuple[int, ...], /) -> bool\n\nGradients added up at their places in\n"
     "planes of zeros. geometry: planes, outputs, inputs, and how many planes' elements lie side by side. Float32 and\n"
     "float64; False where a place is outside, or no kernel takes these arrays."},
    {"adaptive_pool", (PyCFunction)(void (*)(void))adaptive_pool, METH_FASTCALL,
     "adaptive_pool(kind: int, out, places, x, geometry: tuple[int, ...], /) -> bool\n\nThe largest elements (0) of adaptive\n"
     "windows with their places, their means (1), or the gradient of these (2); places is None but for 0. geometry: planes,\n"
     "height, width, channels that lie side by side, and height and width of the result. Float32 and float64, row-major;\n"
     "False for anything else."},
    {"channel_moments", (PyCFunction)(void (*)(void))channel_moments, METH_FASTCALL,
     "channel_moments(mean, variance, x, /) -> bool\n\nOver all but dimension 1 of row-major float32; False for anything else."},
    {"channel_products", (PyCFunction)(void (*)(void))channel_products, METH_FASTCALL,
     "channel_products(sums, products, x, grad, mean, /) -> bool\n\nBy channel: the sum of grad, and that of\n"
     "grad * (x - mean)."},
    {"channel_affine", (PyCFunction)(void (*)(void))channel_affine, METH_FASTCALL,
     "channel_affine(out, x, scale, shift, other, other_scale, /) -> bool\n\nout = x * scale + shift + other * other_scale, by\n"
     "channel; the last two may be None."},
    {nullptr, nullptr, 0, nullptr},
};
