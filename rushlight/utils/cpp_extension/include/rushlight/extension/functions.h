// Operators as functions, rushlight::name(x, ...), and as C++ operators. Each is a call of Python's.
#pragma once

#include <rushlight/extension/call.h>

namespace rushlight RL_HIDDEN {

template <class T> constexpr bool is_tensor = std::is_base_of_v<TensorBase, T>;
// Functions take part only where a tensor is among the arguments, so that exp(1.0) stays the C library's.
template <class... Arguments> using if_tensors = std::enable_if_t<(is_tensor<Arguments> || ...), Tensor>;

#define RL_FUNCTIONS(X)                                                                                                    \
  X(abs) X(acos) X(acosh) X(add) X(addcdiv) X(addcmul) X(addmm) X(addmv) X(all) X(amax) X(amin) X(any) X(argmax) X(argmin)    \
  X(argsort) X(asin) X(asinh) X(atan) X(atan2) X(atanh) X(avg_pool2d) X(baddbmm) X(batch_norm) X(bernoulli) X(binary_cross_entropy) \
  X(bmm) X(bucketize) X(ceil) X(celu) X(clamp) X(clamp_max) X(clamp_min) X(clone) X(conv1d) X(conv2d) X(conv3d) X(copysign)   \
  X(cos) X(cosh) X(cosine_similarity) X(cross) X(cross_entropy) X(cumprod) X(cumsum) X(diag) X(diagonal) X(digamma) X(dist)   \
  X(div) X(dot) X(dropout) X(elu) X(embedding) X(eq) X(erf) X(erfc) X(erfinv) X(exp) X(exp2) X(expm1) X(flatten)             \
  X(floor) X(floor_divide) X(fmax) X(fmin) X(fmod) X(frac) X(gather) X(ge) X(gelu) X(ger) X(glu) X(gt) X(hardshrink)          \
  X(hardsigmoid) X(hardswish) X(hardtanh) X(index_add) X(index_select) X(inverse) X(isfinite) X(isinf) X(isnan)              \
  X(l1_loss) X(layer_norm) X(le) X(leaky_relu) X(lerp) X(lgamma) X(linear) X(log) X(log10) X(log1p) X(log2)                  \
  X(log_sigmoid) X(log_softmax) X(logaddexp) X(logical_and) X(logical_not) X(logical_or) X(logical_xor) X(logsumexp)         \
  X(lt) X(masked_fill) X(masked_select) X(matmul) X(max_pool2d) X(maximum) X(minimum) X(mish) X(mm) X(movedim) X(mse_loss)    \
  X(mul) X(multinomial) X(mv) X(narrow) X(ne) X(neg) X(nll_loss) X(nonzero) X(norm) X(one_hot) X(outer) X(pow)    \
  X(prelu) X(prod) X(reciprocal) X(relu) X(relu6) X(remainder) X(repeat_interleave) X(rms_norm) X(round) X(rsqrt)            \
  X(scaled_dot_product_attention) X(scatter) X(scatter_add) X(select) X(selu) X(sgn) X(sigmoid) X(sign) X(silu) X(sin)        \
  X(sinh) X(slice) X(smooth_l1_loss) X(softmax) X(softplus) X(sqrt) X(square) X(squeeze) X(std) X(sub) X(t) X(take) X(tan)     \
  X(tanh) X(trace) X(transpose) X(tril) X(triu) X(trunc) X(unsqueeze) X(var) X(where) X(zeros_like) X(ones_like)             \
  X(empty_like) X(full_like) X(rand_like) X(randn_like) X(bincount) X(searchsorted) X(nan_to_num) X(threshold) X(swapaxes)

#define X(name)                                                                                    \
  template <class... Arguments> if_tensors<Arguments...> name(const Arguments&... arguments) {    \
    return call_function<Tensor>(#name, arguments...);                                            \
  }
RL_FUNCTIONS(X)
#undef X

// Those that take integers, which may be written in braces, besides a tensor.
#define X(name)                                                                                          \
  template <class... Rest> Tensor name(const Tensor& self, IntArrayRef values, const Rest&... rest) {    \
    return call_method<Tensor>(self, #name, values, rest...);                                            \
  }
X(flip) X(mean) X(permute) X(reshape) X(roll) X(sum) X(tile)
#undef X
inline Tensor sum(const Tensor& self) { return self.sum(); }
inline Tensor mean(const Tensor& self) { return self.mean(); }

// Those that join tensors.
#define X(name)                                                                       \
  template <class... Rest> Tensor name(TensorList tensors, const Rest&... rest) {     \
    return call_function<Tensor>(#name, tensors, rest...);                            \
  }
X(cat) X(concat) X(stack) X(hstack) X(vstack)
#undef X
inline Tensor einsum(const std::string& equation, TensorList tensors) {
  return call_function<Tensor>("einsum", equation, tensors);
}

// Those with other results.
template <class... Rest> std::vector<Tensor> chunk(const Tensor& self, const Rest&... rest) { return self.chunk(rest...); }
template <class... Rest> std::vector<Tensor> split(const Tensor& self, const Rest&... rest) { return self.split(rest...); }
inline std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0) { return self.unbind(dim); }
template <class... Rest> std::tuple<Tensor, Tensor> topk(const Tensor& self, const Rest&... rest) { return self.topk(rest...); }
template <class... Rest> std::tuple<Tensor, Tensor> sort(const Tensor& self, const Rest&... rest) { return self.sort(rest...); }
template <class... Rest> auto max(const Tensor& self, const Rest&... rest) { return self.max(rest...); }
template <class... Rest> auto min(const Tensor& self, const Rest&... rest) { return self.min(rest...); }
inline bool equal(const Tensor& a, const Tensor& b) { return a.equal(b); }
template <class... Rest> bool allclose(const Tensor& a, const Tensor& b, const Rest&... rest) { return a.allclose(b, rest...); }

// ---- new tensors ---------------------------------------------------------------------------------------------------

#define X(name)                                                                        \
  inline Tensor name(IntArrayRef sizes, const TensorOptions& options = {}) {           \
    return call_function<Tensor>(#name, sizes, options);                               \
  }
X(empty) X(ones) X(rand) X(randn) X(zeros)
#undef X
inline Tensor full(IntArrayRef sizes, Scalar value, const TensorOptions& options = {}) {
  return call_function<Tensor>("full", sizes, value, options);
}
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) {
  return call_function<Tensor>("empty_strided", sizes, strides, options);
}
inline Tensor arange(Scalar end, const TensorOptions& options = {}) { return call_function<Tensor>("arange", end, options); }
inline Tensor arange(Scalar start, Scalar end, const TensorOptions& options = {}) {
  return call_function<Tensor>("arange", start, end, options);
}
inline Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& options = {}) {
  return call_function<Tensor>("arange", start, end, step, options);
}
inline Tensor linspace(Scalar start, Scalar end, int64_t steps, const TensorOptions& options = {}) {
  return call_function<Tensor>("linspace", start, end, steps, options);
}
inline Tensor eye(int64_t n, const TensorOptions& options = {}) { return call_function<Tensor>("eye", n, options); }
inline Tensor randint(int64_t high, IntArrayRef sizes, const TensorOptions& options = {}) {
  return call_function<Tensor>("randint", high, sizes, options);
}
inline Tensor randint(int64_t low, int64_t high, IntArrayRef sizes, const TensorOptions& options = {}) {
  return call_function<Tensor>("randint", low, high, sizes, options);
}
inline Tensor randperm(int64_t n, const TensorOptions& options = {}) { return call_function<Tensor>("randperm", n, options); }

// A tensor of one number, or of a row of them.
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return call_function<Tensor>("tensor", value, options);
}
template <class T> Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return call_function<Tensor>("tensor", values, options);
}
template <class T> Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(std::vector<T>(values), options);
}
template <class T> Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) { return tensor(values.vec(), options); }
inline Tensor scalar_tensor(Scalar value, const TensorOptions& options = {}) {
  return call_function<Tensor>("tensor", value, options);
}

// A tensor over memory that the caller keeps alive, row-major.
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  gil_acquire lock;
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  if (!count) return empty(sizes, options);
  Object view = checked(PyMemoryView_FromMemory((char*)data, (Py_ssize_t)(count * elementSize(options.dtype())), PyBUF_WRITE));
  return call_function<Tensor>("frombuffer", view, TensorOptions(options.dtype())).view(sizes);
}

// ---- C++ operators -------------------------------------------------------------------------------------------------

template <class T> constexpr bool is_number = std::is_arithmetic_v<T> || std::is_same_v<T, Scalar>;
template <class A, class B>
using if_operands = std::enable_if_t<(is_tensor<A> && (is_tensor<B> || is_number<B>)) || (is_number<A> && is_tensor<B>), Tensor>;

// By Python's operators, which take numbers on either side.
template <class A, class B> RL_OUTLINE Tensor binary(PyObject* (*operation)(PyObject*, PyObject*), const A& a, const B& b) {
  gil_acquire lock;
  return result_as<Tensor>("an operator", checked(operation(to_python(a).get(), to_python(b).get())));
}
#define X(symbol, operation)                                                          \
  template <class A, class B> if_operands<A, B> operator symbol(const A& a, const B& b) { return binary(operation, a, b); }
X(+, PyNumber_Add) X(-, PyNumber_Subtract) X(*, PyNumber_Multiply) X(/, PyNumber_TrueDivide) X(%, PyNumber_Remainder)
X(&, PyNumber_And) X(|, PyNumber_Or) X(^, PyNumber_Xor)
#undef X
#define X(symbol, code)                                                                             \
  template <class A, class B> if_operands<A, B> operator symbol(const A& a, const B& b) {           \
    return binary([](PyObject* x, PyObject* y) { return PyObject_RichCompare(x, y, code); }, a, b); \
  }
X(<, Py_LT) X(<=, Py_LE) X(>, Py_GT) X(>=, Py_GE) X(==, Py_EQ) X(!=, Py_NE)
#undef X
#define X(symbol, method)                                                                         \
  template <class B> std::enable_if_t<is_tensor<B> || is_number<B>, Tensor&> operator symbol(Tensor& a, const B& b) { \
    a.method(b);                                                                                  \
    return a;                                                                                     \
  }
X(+=, add_) X(-=, sub_) X(*=, mul_) X(/=, div_)
#undef X
inline Tensor operator-(const Tensor& a) { return a.neg(); }
inline Tensor operator~(const Tensor& a) { return a.bitwise_not(); }
inline Tensor operator!(const Tensor& a) { return a.logical_not(); }

}  // namespace rushlight
