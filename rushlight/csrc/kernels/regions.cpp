// Boxes and regions of images, as in torchvision: non-maximum suppression and RoI align.
#include <math.h>
#include <string.h>

#include "arrays.h"

namespace {

// ---- boxes ---------------------------------------------------------------------------------------------------------

// Non-maximum suppression of boxes sorted by falling score, sides[4][count] as x1, y1, x2, y2. A box is kept, and its index
// written, if its intersection over union with every kept box is at most `threshold`. `areas` and `covered` have room for all boxes.
template <class T>
int64_t suppress_boxes(const T* sides, int64_t count, double threshold, int64_t* kept, T* areas, uint8_t* covered) {
  const T *x1 = sides, *y1 = x1 + count, *x2 = y1 + count, *y2 = x2 + count;
  for (int64_t i = 0; i < count; ++i) areas[i] = (x2[i] - x1[i]) * (y2[i] - y1[i]);
  memset(covered, 0, count);
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (covered[i]) continue;
    kept[found++] = i;
    const T left = x1[i], top = y1[i], right = x2[i], bottom = y2[i], area = areas[i];
    for (int64_t j = i + 1; j < count; ++j) {
      const T width = (right < x2[j] ? right : x2[j]) - (left > x1[j] ? left : x1[j]);
      const T height = (bottom < y2[j] ? bottom : y2[j]) - (top > y1[j] ? top : y1[j]);
      const T common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
      covered[j] |= (double)(common / (area + areas[j] - common)) > threshold;
    }
  }
  return found;
}

template <class T> int64_t run_nms(PyObject* const* a, int64_t count, double threshold) {
  char* scratch = (char*)rushlight_scratch(count * (sizeof(T) + 1), BUFFERS);
  if (!scratch) return -1;
  int64_t found = 0;
  const T* sides = (const T*)PyArray_DATA((PyArrayObject*)a[1]);
  int64_t* kept = (int64_t*)PyArray_DATA((PyArrayObject*)a[0]);
  without_gil(count * count, [&] {
    found = suppress_boxes(sides, count, threshold, kept, (T*)scratch, (uint8_t*)(scratch + count * sizeof(T)));
    return 1;
  });
  return found;
}

// nms(kept, sides, threshold): return the number of indices written to `kept`, or -1 if no kernel supports the arrays.
PyObject* nms(PyObject*, PyObject* const* a, Py_ssize_t given) {
  if (given != 3) return PyErr_Format(PyExc_TypeError, "nms: expected kept, sides, threshold; got %zd", given);
  const double threshold = PyFloat_AsDouble(a[2]);
  if (threshold == -1 && PyErr_Occurred()) return nullptr;
  const bool is_double = is_plain(a[1], false, RL_FLOAT64);
  if (!(is_double || is_plain(a[1], false, RL_FLOAT32)) || !is_plain(a[0], true, RL_INT64)) return PyLong_FromLong(-1);
  PyArrayObject *kept = (PyArrayObject*)a[0], *sides = (PyArrayObject*)a[1];
  if (PyArray_NDIM(sides) != 2 || PyArray_DIM(sides, 0) != 4 || PyArray_SIZE(kept) != PyArray_DIM(sides, 1) ||
      overlaps(kept, sides))
    return PyLong_FromLong(-1);
  const int64_t count = PyArray_DIM(sides, 1);
  return PyLong_FromLongLong(is_double ? run_nms<double>(a, count, threshold) : run_nms<float>(a, count, threshold));
}

// ---- regions -------------------------------------------------------------------------------------------------------

struct Regions {
  const void *images, *rois;
  void* out;
  int64_t count, batch, channels, height, width, out_height, out_width, samples;
  double scale;
  bool aligned;
};

constexpr int64_t MAX_SAMPLES = 1 << 20;  // samples along one side of a region

// The weights along one side of a region: cell `i` of the result averages the pixels [first[i], last[i]) with weights[i * size
// + pixel].
template <class T> struct Side {
  int64_t *first, *last;
  T* weights;
};

template <class T> int64_t side_bytes(int64_t pooled, int64_t size) { return pooled * (2 * sizeof(int64_t) + size * sizeof(T)); }

template <class T> Side<T> side_at(char* memory, int64_t pooled) {
  int64_t* first = (int64_t*)memory;
  return {first, first + pooled, (T*)(first + 2 * pooled)};
}

// Compute the weights along one side. Each cell has `samples` evenly spread points (if 0, about one for each pixel), and each
// point is interpolated between two pixels. Return false if that is too much work, or if the region is not finite.
template <class T> bool compute_weights(const Regions& r, T low, T high, int64_t pooled, int64_t size, const Side<T>& side) {
  const T scale = (T)r.scale, offset = r.aligned ? (T)0.5 : (T)0, start = low * scale - offset;
  T length = high * scale - offset - start;
  if (!r.aligned && length < 1) length = 1;
  const T cell = length / (T)pooled;
  if (!isfinite(cell) || !isfinite(start) || cell > (T)MAX_SAMPLES) return false;
  const int64_t samples = r.samples > 0 ? r.samples : cell > 0 ? (int64_t)ceil(cell) : 0;
  if (samples > MAX_SAMPLES / pooled) return false;
  for (int64_t i = 0; i < pooled; ++i) {
    T* weights = side.weights + i * size;
    int64_t first = size, last = 0;
    memset(weights, 0, size * sizeof(T));
    for (int64_t sample = 0; sample < samples; ++sample) {
      T at = start + (T)i * cell + ((T)sample + (T)0.5) * cell / (T)samples;
      if (!(at >= -1 && at <= (T)size)) continue;
      if (at < 0) at = 0;
      int64_t pixel = (int64_t)at;
      if (pixel > size - 1) pixel = size - 1;
      const int64_t next = pixel + 1 < size ? pixel + 1 : pixel;
      const T share = pixel == size - 1 ? 0 : at - (T)pixel;
      weights[pixel] += (1 - share) / (T)samples;
      weights[next] += share / (T)samples;
      if (pixel < first) first = pixel;
      if (next + 1 > last) last = next + 1;
    }
    side.first[i] = first;
    side.last[i] = last;
  }
  return true;
}

// Average all channels of one region. `line` has room for one row of an image.
template <class T> void average(const Regions& r, const T* image, T* out, const Side<T>& rows, const Side<T>& columns, T* line) {
  int64_t left = r.width, right = 0;
  for (int64_t i = 0; i < r.out_width; ++i) {
    if (columns.first[i] < left) left = columns.first[i];
    if (columns.last[i] > right) right = columns.last[i];
  }
  for (int64_t channel = 0; channel < r.channels; ++channel, image += r.height * r.width)
    for (int64_t i = 0; i < r.out_height; ++i, out += r.out_width) {
      for (int64_t x = left; x < right; ++x) line[x] = 0;
      for (int64_t y = rows.first[i]; y < rows.last[i]; ++y) {
        const T weight = rows.weights[i * r.height + y], *pixels = image + y * r.width;
        for (int64_t x = left; x < right; ++x) line[x] += weight * pixels[x];
      }
      for (int64_t j = 0; j < r.out_width; ++j) {
        const T* weights = columns.weights + j * r.width;
        T sum = 0;
        for (int64_t x = columns.first[j]; x < columns.last[j]; ++x) sum += weights[x] * line[x];
        out[j] = sum;
      }
    }
}

template <class T> int align_regions(const Regions& r) {
  const int64_t above = (side_bytes<T>(r.out_height, r.height) + 63) / 64 * 64;
  const int64_t beside = (side_bytes<T>(r.out_width, r.width) + 63) / 64 * 64;
  const int64_t each = above + beside + (r.width * (int64_t)sizeof(T) + 63) / 64 * 64;
  const int threads = rushlight_threads_for(r.count * r.channels * r.out_height * r.out_width * 16);
  char* scratch = (char*)rushlight_scratch(each * threads, BUFFERS);
  if (!scratch) return 0;
  int wrong = 0;
  in_parallel(threads, [&](int thread, int total) {
    char* own = scratch + thread * each;
    const Side<T> rows = side_at<T>(own, r.out_height), columns = side_at<T>(own + above, r.out_width);
    const Part part = part_of(r.count, thread, total);
    for (int64_t region = part.first; region < part.last; ++region) {
      const T* roi = (const T*)r.rois + region * 5;
      if (!(roi[0] >= 0 && roi[0] < (T)r.batch) || !compute_weights(r, roi[2], roi[4], r.out_height, r.height, rows) ||
          !compute_weights(r, roi[1], roi[3], r.out_width, r.width, columns)) {
        __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
        return;
      }
      average(r, (const T*)r.images + (int64_t)roi[0] * r.channels * r.height * r.width,
              (T*)r.out + region * r.channels * r.out_height * r.out_width, rows, columns, (T*)(own + above + beside));
    }
  });
  return !wrong;
}

// roi_align(out, images, rois, scale, sampling_ratio, aligned): return false if a region is invalid, or if no kernel supports
// the arrays.
PyObject* roi_align(PyObject*, PyObject* const* a, Py_ssize_t given) {
  if (given != 6) return PyErr_Format(PyExc_TypeError, "roi_align: expected 6 arguments, got %zd", given);
  int64_t samples;
  const double scale = PyFloat_AsDouble(a[3]);
  if ((scale == -1 && PyErr_Occurred()) || !read_integer(a[4], &samples)) return nullptr;
  const bool is_double = is_plain(a[1], false, RL_FLOAT64);
  const int dtype = is_double ? RL_FLOAT64 : RL_FLOAT32;
  if (!is_plain(a[0], true, dtype) || !is_plain(a[1], false, dtype) || !is_plain(a[2], false, dtype)) Py_RETURN_FALSE;
  PyArrayObject *out = (PyArrayObject*)a[0], *images = (PyArrayObject*)a[1], *rois = (PyArrayObject*)a[2];
  if (PyArray_NDIM(out) != 4 || PyArray_NDIM(images) != 4 || PyArray_NDIM(rois) != 2 || PyArray_DIM(rois, 1) != 5 ||
      PyArray_DIM(out, 0) != PyArray_DIM(rois, 0) || PyArray_DIM(out, 1) != PyArray_DIM(images, 1) || !PyArray_SIZE(out) ||
      !PyArray_SIZE(images) || overlaps(out, images) || overlaps(out, rois))
    Py_RETURN_FALSE;
  const Regions r = {PyArray_DATA(images), PyArray_DATA(rois), PyArray_DATA(out), PyArray_DIM(rois, 0), PyArray_DIM(images, 0),
                     PyArray_DIM(images, 1), PyArray_DIM(images, 2), PyArray_DIM(images, 3), PyArray_DIM(out, 2),
                     PyArray_DIM(out, 3), samples, scale, a[5] == Py_True};
  return PyBool_FromLong(
      without_gil(PyArray_SIZE(out) * 16, [&] { return is_double ? align_regions<double>(r) : align_regions<float>(r); }));
}

}  // namespace

#define METHOD(name, text) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, text}
PyMethodDef region_methods[] = {
    METHOD(nms, "nms(kept, sides, threshold, /) -> int\n\nPlaces of boxes, by falling score, that no kept one covers."),
    METHOD(roi_align, "roi_align(out, images, rois, scale, sampling_ratio, aligned, /) -> bool\n\nMeans over samples of regions."),
    {nullptr, nullptr, 0, nullptr},
};
