// The class Tensor, and calling Python's operators from C++.
#pragma once

#include <rushlight/extension/convert.h>

namespace rushlight RL_HIDDEN {

using TensorList = ArrayRef<Tensor>;

// An index of x.index({...}): an integer, a slice, a tensor, None or Ellipsis.
struct Slice {
  std::optional<int64_t> start, stop, step;
  Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt,
        std::optional<int64_t> step = std::nullopt)
      : start(start), stop(stop), step(step) {}
};
enum class EllipsisIndex { Ellipsis };
constexpr EllipsisIndex Ellipsis = EllipsisIndex::Ellipsis;
constexpr std::nullopt_t None = std::nullopt;

struct TensorIndex {
  Object object;
  TensorIndex(const TensorBase& tensor) : object(with_lock([&] { return to_python(tensor); })) {}
  TensorIndex(std::nullopt_t) : object(with_lock(none)) {}
  TensorIndex(EllipsisIndex) : object(with_lock([] { return Object::borrow(Py_Ellipsis); })) {}
  TensorIndex(const char* text) : TensorIndex(EllipsisIndex::Ellipsis) {
    if (std::strcmp(text, "...")) throw ValueError("an index may be \"...\", and no other text");
  }
  TensorIndex(const Slice& slice)
      : object(with_lock([&] {
          return checked(PySlice_New(to_python(slice.start).get(), to_python(slice.stop).get(), to_python(slice.step).get()));
        })) {}
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  TensorIndex(T value) : object(with_lock([&] { return to_python(value); })) {}
  TensorIndex(const TensorIndex& other) : object(with_lock([&] { return other.object; })) {}
  ~TensorIndex() {
    gil_acquire lock;
    object = Object();
  }

 private:
  template <class F> static Object with_lock(const F& make) {
    gil_acquire lock;
    return make();
  }
};

// ---- Tensor --------------------------------------------------------------------------------------------------------

template <class R, class... Arguments> R call_method(const TensorBase& self, const char* name, const Arguments&... arguments);

#define RL_METHODS(X)                                                                                                     \
  X(abs) X(acos) X(add) X(addmm) X(addmv) X(addcmul) X(addcdiv) X(all) X(amax) X(amin) X(any) X(argmax)  \
  X(argmin) X(argsort) X(asin) X(atan) X(atan2) X(baddbmm) X(bernoulli) X(bitwise_and) X(bitwise_not) X(bitwise_or)        \
  X(bitwise_xor) X(bmm) X(ceil) X(clamp) X(clamp_max) X(clamp_min) X(clone) X(cos) X(cosh) X(count_nonzero) \
  X(cumprod) X(cumsum) X(detach) X(diag) X(diagonal) X(digamma) X(div) X(dot) X(eq) X(erf) X(erfc) X(exp) X(expand_as)      \
  X(expm1) X(flatten) X(floor) X(floor_divide) X(fmod) X(frac) X(gather) X(ge) X(ger) X(gt) X(hardshrink)                   \
  X(index_add) X(index_copy) X(index_fill) X(index_select) X(inverse) X(isfinite) X(isinf) X(isnan) X(le) X(lerp) X(lgamma) \
  X(log) X(log10) X(log1p) X(log2) X(log_softmax) X(logical_and) X(logical_not) X(logical_or) X(logical_xor) X(logsumexp)    \
  X(lt) X(masked_fill) X(masked_scatter) X(masked_select) X(matmul) X(maximum) X(minimum) X(mm) X(movedim) X(mul)           \
  X(multinomial) X(mv) X(narrow) X(ne) X(neg) X(nonzero) X(norm) X(outer) X(pow) X(prelu) X(prod) X(reciprocal) X(relu)      \
  X(remainder) X(repeat_interleave) X(round) X(rsqrt) X(scatter) X(scatter_add) X(select) X(sigmoid) X(sign) X(sin) X(sinh)  \
  X(slice) X(softmax) X(sqrt) X(square) X(squeeze) X(std) X(sub) X(t) X(take) X(tan) X(tanh) X(to) X(trace) X(transpose)      \
  X(tril) X(triu) X(trunc) X(type_as) X(unfold) X(unsqueeze) X(var) X(view_as) X(reshape_as) X(where) X(cpu) X(gelu)         \
  X(swapaxes) X(diff) X(index_put) X(softplus) X(elu) X(leaky_relu) X(log_sigmoid)

#define RL_METHODS_IN_PLACE(X)                                                                                             \
  X(abs_) X(add_) X(addmm_) X(addcmul_) X(addcdiv_) X(bernoulli_) X(ceil_) X(clamp_) X(clamp_max_) X(clamp_min_) X(copy_)    \
  X(cos_) X(cumsum_) X(div_) X(eq_) X(erf_) X(exp_) X(fill_) X(floor_) X(fmod_) X(ge_) X(gt_) X(index_add_) X(index_copy_)   \
  X(index_fill_) X(le_) X(lerp_) X(log_) X(log1p_) X(log2_) X(logical_and_) X(logical_not_) X(logical_or_) X(lt_)            \
  X(masked_fill_) X(masked_scatter_) X(mul_) X(ne_) X(neg_) X(normal_) X(pow_) X(random_) X(reciprocal_) X(relu_)            \
  X(remainder_) X(requires_grad_) X(round_) X(rsqrt_) X(scatter_) X(scatter_add_) X(sigmoid_) X(sign_) X(sin_) X(sqrt_)      \
  X(square_) X(squeeze_) X(sub_) X(t_) X(tan_) X(tanh_) X(transpose_) X(tril_) X(triu_) X(trunc_) X(uniform_)               \
  X(unsqueeze_) X(zero_) X(detach_) X(resize_)

class Tensor : public TensorBase {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) = default;
  Tensor(Tensor&& other) noexcept = default;
  static Tensor wrap_object(PyObject* object) { return Tensor(object); }

  // A name that is assigned to is another tensor from then on. What has no name, as x[0], is written to.
  Tensor& operator=(const Tensor& other) & = default;
  Tensor& operator=(Tensor&& other) & noexcept = default;
  Tensor& operator=(const Tensor& values) && { return written(copy_(values)); }
  Tensor& operator=(Tensor&& values) && { return written(copy_(values)); }
  Tensor& operator=(const Scalar& value) && { return written(fill_(value)); }

  // For every operator of the list: x.name(arguments...), as in Python.
#define X(name)                                                              \
  template <class... Arguments> Tensor name(const Arguments&... arguments) const { \
    return call_method<Tensor>(*this, #name, arguments...);                 \
  }
  RL_METHODS(X)
#undef X
#define X(name)                                                              \
  template <class... Arguments> const Tensor& name(const Arguments&... arguments) const { \
    call_method<Tensor>(*this, #name, arguments...);                        \
    const_cast<Tensor*>(this)->read_again();                                \
    return *this;                                                           \
  }
  RL_METHODS_IN_PLACE(X)
#undef X

  // Operators that take a list of integers, which may be written in braces.
#define X(name)                                                                       \
  template <class... Rest> Tensor name(IntArrayRef values, const Rest&... rest) const { \
    return call_method<Tensor>(*this, #name, values, rest...);                       \
  }
  X(expand) X(flip) X(permute) X(repeat) X(reshape) X(roll) X(view) X(mean) X(sum) X(new_empty) X(new_ones)
  X(new_zeros) X(tile) X(new_full)
#undef X
  Tensor sum() const { return call_method<Tensor>(*this, "sum"); }
  Tensor mean() const { return call_method<Tensor>(*this, "mean"); }
  Tensor sum(ScalarType kind) const;
  Tensor view(ScalarType kind) const { return call_method<Tensor>(*this, "view", kind); }
  Tensor as_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset = std::nullopt) const {
    return call_method<Tensor>(*this, "as_strided", sizes, strides, offset);
  }

  // Those with other results.
  template <class... Rest> std::vector<Tensor> chunk(const Rest&... rest) const {
    return call_method<std::vector<Tensor>>(*this, "chunk", rest...);
  }
  template <class... Rest> std::vector<Tensor> split(const Rest&... rest) const {
    return call_method<std::vector<Tensor>>(*this, "split", rest...);
  }
  std::vector<Tensor> unbind(int64_t dim = 0) const { return call_method<std::vector<Tensor>>(*this, "unbind", dim); }
  template <class... Rest> std::tuple<Tensor, Tensor> topk(const Rest&... rest) const {
    return call_method<std::tuple<Tensor, Tensor>>(*this, "topk", rest...);
  }
  template <class... Rest> std::tuple<Tensor, Tensor> sort(const Rest&... rest) const {
    return call_method<std::tuple<Tensor, Tensor>>(*this, "sort", rest...);
  }
#define X(name)                                                                                  \
  Tensor name() const { return call_method<Tensor>(*this, #name); }                              \
  Tensor name(const Tensor& other) const { return call_method<Tensor>(*this, #name, other); }    \
  std::tuple<Tensor, Tensor> name(int64_t dim, bool keepdim = false) const {                     \
    return call_method<std::tuple<Tensor, Tensor>>(*this, #name, dim, keepdim);                  \
  }
  X(max) X(min)
#undef X
  bool equal(const Tensor& other) const { return call_method<bool>(*this, "equal", other); }
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const {
    return call_method<bool>(*this, "allclose", other, rtol, atol, equal_nan);
  }
  bool requires_grad() const;
  bool is_leaf() const;
  int64_t storage_offset() const { return call_method<int64_t>(*this, "storage_offset"); }
  Tensor grad() const;
  void backward() const { call_method<void>(*this, "backward"); }
  void backward(const Tensor& gradient) const { call_method<void>(*this, "backward", gradient); }
  Scalar item() const { return call_method<Scalar>(*this, "item"); }
  template <class T> T item() const { return item().template to<T>(); }
  std::string toString() const;

  Tensor contiguous() const { return is_contiguous() ? *this : call_method<Tensor>(*this, "contiguous"); }
  Tensor contiguous(MemoryFormat format) const { return call_method<Tensor>(*this, "contiguous", format); }
  Tensor toType(ScalarType kind) const { return to(kind); }
  const Tensor& set_requires_grad(bool wanted) const { return requires_grad_(wanted); }

  Tensor operator[](int64_t index) const { return select((int64_t)0, index); }
  Tensor operator[](const Tensor& index_tensor) const { return index({index_tensor}); }
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor index(const std::vector<Tensor>& indices) const;
  template <class Value> const Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Value& value) const;

 private:
  explicit Tensor(PyObject* object) : TensorBase(object) {}
  Tensor& written(const Tensor&) { return *this; }
};

// ---- calls ---------------------------------------------------------------------------------------------------------

inline Tensor tensor_of(PyObject* object) { return Tensor::wrap_object(object); }

RL_OUTLINE inline Tensor From<Tensor>::read(PyObject* object) {
  if (object == Py_None) return Tensor();
  if (!TensorBase::check(object)) throw Mismatch();
  return tensor_of(object);
}

// A result of type R.
template <class R> RL_OUTLINE R result_as(const char* name, const Object& result) {
  if constexpr (!std::is_void_v<R>) {
    try {
      return From<R>::read(result.get());
    } catch (const Mismatch&) {
      throw TypeError(concatenate(name, " returned ", Py_TYPE(result.get())->tp_name, ", not ", From<R>::name()));
    }
  }
}

// The arguments of a call. Those that Python takes by name only become keywords.
struct Arguments {
  Object list = checked(PyList_New(0)), keywords;

  template <class T> RL_OUTLINE void add(const T& argument) { checked(PyList_Append(list.get(), to_python(argument).get())); }
  RL_OUTLINE void add(MemoryFormat format) { name("memory_format", to_python(format)); }
  RL_OUTLINE void add(const TensorOptions& options) {
    if (options.dtype_) name("dtype", to_python(*options.dtype_));
    if (options.device_) name("device", to_python(*options.device_));
    if (options.requires_grad_) name("requires_grad", to_python(*options.requires_grad_));
    if (options.memory_format_) add(*options.memory_format_);
  }
  RL_OUTLINE void name(const char* text, const Object& value) {
    if (!keywords) keywords = checked(PyDict_New());
    checked(PyDict_SetItemString(keywords.get(), text, value.get()));
  }
  RL_OUTLINE Object call(PyObject* callable) const {
    Object positional = checked(PyList_AsTuple(list.get()));
    return checked(PyObject_Call(callable, positional.get(), keywords.get()));
  }
};

// The function of an operator: torch.name, torch.nn.functional.name or torch.ops.aten.name. Borrowed.
RL_OUTLINE inline PyObject* find_function(const char* name) {
  static auto* found = new std::unordered_map<std::string, PyObject*>;
  PyObject*& function = (*found)[name];
  if (function) return function;
  function = PyObject_GetAttrString(package(), name);
  for (const char* place : {"rushlight.nn.functional", "rushlight"}) {
    if (function) break;
    PyErr_Clear();
    Object module = checked(PyImport_ImportModule(place));
    if (!std::strcmp(place, "rushlight")) module = attribute(attribute(module.get(), "ops").get(), "aten");
    function = PyObject_GetAttrString(module.get(), name);
  }
  if (!function) {
    PyErr_Clear();
    throw NotImplementedError(concatenate("there is no operator ", name));
  }
  return function;
}

RL_OUTLINE inline Object invoke_method(const TensorBase& self, const char* name, const Arguments& arguments) {
  Object method = Object::steal(PyObject_GetAttrString(self.object(), name));
  if (method) return arguments.call(method.get());
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw_python_error();
  PyErr_Clear();
  checked(PyList_Insert(arguments.list.get(), 0, self.object()));
  return arguments.call(find_function(name));
}

template <class R, class... Given> R call_function(const char* name, const Given&... given) {
  gil_acquire lock;
  Arguments arguments;
  (arguments.add(given), ...);
  return result_as<R>(name, arguments.call(find_function(name)));
}

template <class R, class... Given> R call_method(const TensorBase& self, const char* name, const Given&... given) {
  if (!self.defined()) fail("", "Expected a proper Tensor but got None (or an undefined Tensor in C++) for ", name);
  gil_acquire lock;
  Arguments arguments;
  (arguments.add(given), ...);
  return result_as<R>(name, invoke_method(self, name, arguments));
}

// An attribute of a tensor as R.
template <class R> R read_attribute(const TensorBase& self, const char* name) {
  gil_acquire lock;
  return result_as<R>(name, attribute(self.object(), name));
}

inline Tensor Tensor::sum(ScalarType kind) const {
  return call_method<Tensor>(*this, "sum", TensorOptions(kind));
}
inline bool Tensor::requires_grad() const { return read_attribute<bool>(*this, "requires_grad"); }
inline bool Tensor::is_leaf() const { return read_attribute<bool>(*this, "is_leaf"); }
inline Tensor Tensor::grad() const { return read_attribute<Tensor>(*this, "grad"); }
inline std::string Tensor::toString() const {
  gil_acquire lock;
  return From<std::string>::read(checked(PyObject_Str(object())).get());
}
inline void append(std::string& text, const Tensor& tensor) { text += tensor.toString(); }
template <class Stream> auto operator<<(Stream& stream, const Tensor& tensor) -> decltype(stream << std::string()) {
  return stream << tensor.toString();
}
template <class Stream> auto operator<<(Stream& stream, ScalarType kind) -> decltype(stream << "") {
  return stream << toString(kind);
}
template <class Stream> auto operator<<(Stream& stream, IntArrayRef values) -> decltype(stream << std::string()) {
  return stream << concatenate(values);
}

RL_OUTLINE inline Object index_tuple(std::initializer_list<TensorIndex> indices) {
  Object list = checked(PyList_New(0));
  for (const TensorIndex& index : indices) checked(PyList_Append(list.get(), index.object.get()));
  return checked(PyList_AsTuple(list.get()));
}
inline Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  gil_acquire lock;
  return result_as<Tensor>("index", checked(PyObject_GetItem(object(), index_tuple(indices).get())));
}
inline Tensor Tensor::index(const std::vector<Tensor>& indices) const {
  gil_acquire lock;
  Object tuple = checked(PySequence_Tuple(to_python(indices).get()));
  return result_as<Tensor>("index", checked(PyObject_GetItem(object(), tuple.get())));
}
template <class Value> const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Value& value) const {
  gil_acquire lock;
  checked(PyObject_SetItem(object(), index_tuple(indices).get(), to_python(value).get()));
  return *this;
}

}  // namespace rushlight
