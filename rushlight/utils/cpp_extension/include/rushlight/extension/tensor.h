// Tensor: a handle on a Python tensor, with its sizes, strides, dtype and data pointer at hand; accessors of elements.
#pragma once

#include <rushlight/extension/types.h>

#include <algorithm>
#include <atomic>

namespace rushlight RL_HIDDEN {

// ---- accessors -----------------------------------------------------------------------------------------------------

// Elements by their indices, N of them: a[i][j]. Indices are not checked.
template <class T, size_t N> class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  auto operator[](int64_t index) const -> std::conditional_t<N == 1, T&, TensorAccessor<T, N == 1 ? 1 : N - 1>> {
    if constexpr (N == 1) return data_[index * strides_[0]];
    else return {data_ + index * strides_[0], sizes_ + 1, strides_ + 1};
  }
  int64_t size(int64_t dim) const { return sizes_[dim]; }
  int64_t stride(int64_t dim) const { return strides_[dim]; }
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

// ---- what a handle points to ---------------------------------------------------------------------------------------

// Counts its handles itself, so that they can be copied without the interpreter lock.
struct TensorState {
  std::atomic<long> handles{1};
  PyObject* object = nullptr;
  void* data = nullptr;
  ScalarType kind = ScalarType::Undefined;
  int64_t numel = 1;
  std::vector<int64_t> sizes, strides;
};

// The class of tensors, and names of attributes, made once.
struct TensorNames {
  Object type = attribute(package(), "Tensor");
  Object impl = name("_impl"), sizes = name("sizes"), strides = name("strides"), dtype = name("dtype"),
         data = name("data_ptr"), kind = name("name");
  static Object name(const char* text) { return checked(PyUnicode_InternFromString(text)); }
  static const TensorNames& get() {
    static const TensorNames* names = new TensorNames;
    return *names;
  }
};

inline Object attribute(PyObject* object, const Object& name) { return checked(PyObject_GetAttr(object, name.get())); }

RL_OUTLINE inline std::vector<int64_t> integers_of(const Object& tuple) {
  if (!PyTuple_Check(tuple.get())) throw TypeError("a tensor whose sizes are no tuple");
  std::vector<int64_t> values((size_t)PyTuple_GET_SIZE(tuple.get()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple.get(), (Py_ssize_t)i));
    if (values[i] == -1 && PyErr_Occurred()) throw PythonError();
  }
  return values;
}

RL_OUTLINE inline ScalarType scalar_type_of(PyObject* dtype) {
  Object name = attribute(dtype, TensorNames::get().kind);
  const char* text = PyUnicode_AsUTF8(name.get());
  if (!text) throw PythonError();
  return scalar_type_of(text);
}

// ---- the handle ----------------------------------------------------------------------------------------------------

class TensorBase {
 public:
  TensorBase() = default;
  TensorBase(const TensorBase& other) : state_(other.state_) {
    if (state_) state_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  TensorBase(TensorBase&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  TensorBase& operator=(TensorBase other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~TensorBase() { drop(); }

  static bool check(PyObject* object) {
    const int found = PyObject_IsInstance(object, TensorNames::get().type.get());
    checked(found);
    return found == 1;
  }

  // The Python tensor, borrowed; None for an undefined one.
  PyObject* object() const { return state_ ? state_->object : Py_None; }

  bool defined() const { return state_ != nullptr; }
  void reset() { *this = TensorBase(); }
  bool is_same(const TensorBase& other) const { return object() == other.object(); }
  ScalarType scalar_type() const { return state().kind; }
  ScalarType dtype() const { return state().kind; }
  ScalarType type() const { return state().kind; }
  int64_t dim() const { return (int64_t)state().sizes.size(); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return state().numel; }
  int64_t itemsize() const { return elementSize(state().kind); }
  int64_t element_size() const { return itemsize(); }
  size_t nbytes() const { return (size_t)(numel() * itemsize()); }
  IntArrayRef sizes() const { return state().sizes; }
  IntArrayRef strides() const { return state().strides; }
  int64_t size(int64_t dim) const { return state().sizes[wrap(dim)]; }
  int64_t stride(int64_t dim) const { return state().strides[wrap(dim)]; }
  bool is_contiguous() const;
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool is_cuda() const { return false; }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return false; }
  Device device() const;
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }

  void* data_ptr() const {
    if (!state().data && numel()) fail("this tensor has no memory, so it has no data_ptr (a meta or fake tensor?)");
    return state().data;
  }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  template <class T> T* data_ptr() const {
    constexpr ScalarType wanted = scalar_type_for<T>();
    if (scalar_type() != wanted) fail("", "expected scalar type ", wanted, " but found ", scalar_type());
    return static_cast<T*>(data_ptr());
  }
  template <class T> T* data() const { return data_ptr<T>(); }
  template <class T> T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <class T> const std::remove_const_t<T>* const_data_ptr() const { return data_ptr<std::remove_const_t<T>>(); }

  // Elements as a[i][j]...; Error when there are not N dimensions, or T is not their type.
  template <class T, size_t N> TensorAccessor<T, N> accessor() const& {
    static_assert(N > 0, "accessor is for at least one dimension; use *data_ptr<T>()");
    if (dim() != (int64_t)N) fail("", "TensorAccessor expected ", N, " dims but tensor has ", dim());
    return {data_ptr<std::remove_const_t<T>>(), state_->sizes.data(), state_->strides.data()};
  }
  template <class T, size_t N> TensorAccessor<T, N> accessor() && = delete;
  template <class T, size_t N> TensorAccessor<T, N> packed_accessor32() const& { return accessor<T, N>(); }
  template <class T, size_t N> TensorAccessor<T, N> packed_accessor64() const& { return accessor<T, N>(); }

 protected:
  // Takes a new reference to `object`, which is a tensor. Needs the lock.
  explicit TensorBase(PyObject* object);
  // After an operator that may have changed sizes or memory.
  void read_again();
  const TensorState& state() const {
    if (!state_) fail("Expected a proper Tensor but got None (or an undefined Tensor in C++)");
    return *state_;
  }
  size_t wrap(int64_t dim) const {
    const int64_t count = this->dim(), least = count ? count : 1;
    if (dim < -least || dim >= least || !count)
      fail<IndexError>("", "Dimension out of range (expected to be in range of [", -least, ", ", least - 1, "], but got ", dim, ")");
    return (size_t)(dim < 0 ? dim + count : dim);
  }

 private:
  void drop() {
    if (state_ && state_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  RL_OUTLINE void destroy() {
    if (Py_IsInitialized()) {
      gil_acquire lock;
      Py_XDECREF(state_->object);
    }
    delete state_;
  }
  static void read(TensorState& state);
  TensorState* state_ = nullptr;
};

RL_OUTLINE inline TensorBase::TensorBase(PyObject* object) : state_(new TensorState) {
  try {
    Py_INCREF(object);
    state_->object = object;
    read(*state_);
  } catch (...) {
    drop();
    throw;
  }
}

RL_OUTLINE inline void TensorBase::read_again() {
  gil_acquire lock;
  read(*state_);
}

RL_OUTLINE inline void TensorBase::read(TensorState& state) {
  const TensorNames& names = TensorNames::get();
  Object impl = attribute(state.object, names.impl);
  state.sizes = integers_of(attribute(impl.get(), names.sizes));
  state.strides = integers_of(attribute(impl.get(), names.strides));
  state.kind = scalar_type_of(attribute(impl.get(), names.dtype).get());
  state.numel = 1;
  for (int64_t size : state.sizes) state.numel *= size;
  Object data = Object::steal(PyObject_GetAttr(impl.get(), names.data.get()));
  if (!data) PyErr_Clear();  // a tensor without memory
  state.data = data && PyLong_Check(data.get()) ? PyLong_AsVoidPtr(data.get()) : nullptr;
  PyErr_Clear();
}

RL_OUTLINE inline bool TensorBase::is_contiguous() const {
  int64_t expected = 1;
  if (numel() == 0) return true;
  for (size_t dim = state().sizes.size(); dim-- > 0;) {
    if (state_->sizes[dim] != 1 && state_->strides[dim] != expected) return false;
    expected *= state_->sizes[dim];
  }
  return true;
}

RL_OUTLINE inline Device TensorBase::device() const {
  if (state().data) return Device();
  gil_acquire lock;
  Object name = attribute(attribute(object(), "device").get(), "type");
  const char* text = PyUnicode_AsUTF8(name.get());
  if (!text) throw PythonError();
  return Device(std::string(text));
}

}  // namespace rushlight
