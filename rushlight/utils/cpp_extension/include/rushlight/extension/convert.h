// Converting between Python and C++: From<T> reads an argument, to_python makes a result. Both need the interpreter lock.
//
// From<T>::type holds an argument during the call, `name()` is what messages call it, `schema()` is its type in an
// operator's schema, and `read(object)` throws a TypeError for any other object.
#pragma once

#include <rushlight/extension/tensor.h>

#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace rushlight RL_HIDDEN {

class Tensor;
Tensor tensor_of(PyObject* object);  // see call.h

// What From<T>::read throws: the object is of another type. The caller knows which argument it is, and says so.
struct Mismatch {};

template <class T, class = void> struct From {
  static_assert(!sizeof(T), "an extension's function cannot take or return this type");
};

template <> struct From<Tensor> {
  RL_OUTLINE static std::string name() { return "Tensor"; }
  RL_OUTLINE static std::string schema() { return "Tensor"; }
  static Tensor read(PyObject* object);  // see call.h
};

template <> struct From<bool> {
  RL_OUTLINE static std::string name() { return "bool"; }
  RL_OUTLINE static std::string schema() { return "bool"; }
  RL_OUTLINE static bool read(PyObject* object) {
    if (PyBool_Check(object)) return object == Py_True;
    if (std::strcmp(Py_TYPE(object)->tp_name, "numpy.bool") && std::strcmp(Py_TYPE(object)->tp_name, "numpy.bool_")) throw Mismatch();
    const int truth = PyObject_IsTrue(object);
    checked(truth);
    return truth == 1;
  }
};

template <class T> struct From<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  RL_OUTLINE static std::string name() { return "int"; }
  RL_OUTLINE static std::string schema() { return "int"; }
  RL_OUTLINE static T read(PyObject* object) {
    if (PyFloat_Check(object) || TensorBase::check(object) || !PyIndex_Check(object)) throw Mismatch();
    Object index = checked(PyNumber_Index(object));
    const long long value = PyLong_AsLongLong(index.get());
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    if constexpr (std::is_unsigned_v<T>) {
      if (value < 0 || (unsigned long long)value > std::numeric_limits<T>::max()) out_of_range(value);
    } else if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
      out_of_range(value);
    }
    return (T)value;
  }
  [[noreturn]] static void out_of_range(long long value) {
    throw std::overflow_error(concatenate("the integer ", value, " does not fit into ", sizeof(T) * 8, " bits"));
  }
};

template <class T> struct From<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  RL_OUTLINE static std::string name() { return "float"; }
  RL_OUTLINE static std::string schema() { return "float"; }
  RL_OUTLINE static T read(PyObject* object) {
    if (!PyFloat_Check(object) && (TensorBase::check(object) || !PyNumber_Check(object) || PyComplex_Check(object))) throw Mismatch();
    const double value = PyFloat_AsDouble(object);
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    return (T)value;
  }
};

template <> struct From<Scalar> {
  RL_OUTLINE static std::string name() { return "Number"; }
  RL_OUTLINE static std::string schema() { return "Scalar"; }
  RL_OUTLINE static Scalar read(PyObject* object) {
    if (PyBool_Check(object)) return Scalar(object == Py_True);
    if (PyFloat_Check(object) || !PyIndex_Check(object)) return Scalar(From<double>::read(object));
    return Scalar(From<int64_t>::read(object));
  }
};

template <> struct From<std::string> {
  RL_OUTLINE static std::string name() { return "str"; }
  RL_OUTLINE static std::string schema() { return "str"; }
  RL_OUTLINE static std::string read(PyObject* object) {
    Py_ssize_t size = 0;
    if (PyBytes_Check(object)) return {PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object)};
    if (!PyUnicode_Check(object)) throw Mismatch();
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) throw PythonError();
    return {text, (size_t)size};
  }
};
template <> struct From<std::string_view> : From<std::string> {};
template <> struct From<const char*> : From<std::string> {};

template <> struct From<ScalarType> {
  RL_OUTLINE static std::string name() { return "torch.dtype"; }
  RL_OUTLINE static std::string schema() { return "ScalarType"; }
  RL_OUTLINE static ScalarType read(PyObject* object) {
    static PyObject* type = attribute(package(), "dtype").release();
    const int found = PyObject_IsInstance(object, type);
    checked(found);
    if (!found) throw Mismatch();
    return scalar_type_of(object);
  }
};

template <> struct From<Device> {
  RL_OUTLINE static std::string name() { return "torch.device"; }
  RL_OUTLINE static std::string schema() { return "Device"; }
  RL_OUTLINE static Device read(PyObject* object) {
    if (PyUnicode_Check(object)) return Device(From<std::string>::read(object));
    static PyObject* type = attribute(package(), "device").release();
    const int found = PyObject_IsInstance(object, type);
    checked(found);
    if (!found) throw Mismatch();
    return Device(From<std::string>::read(attribute(object, "type").get()));
  }
};

template <> struct From<Object> {
  RL_OUTLINE static std::string name() { return "object"; }
  RL_OUTLINE static std::string schema() { return "Any"; }
  RL_OUTLINE static Object read(PyObject* object) { return Object::borrow(object); }
};

template <class T> struct From<std::optional<T>> {
  RL_OUTLINE static std::string name() { return From<T>::name() + " or None"; }
  RL_OUTLINE static std::string schema() { return From<T>::schema() + "?"; }
  RL_OUTLINE static auto read(PyObject* object) {
    using Held = decltype(From<T>::read(object));
    return object == Py_None ? std::optional<Held>() : std::optional<Held>(From<T>::read(object));
  }
};

template <class T> struct From<std::vector<T>> {
  RL_OUTLINE static std::string name() { return "list of " + From<T>::name(); }
  RL_OUTLINE static std::string schema() { return From<T>::schema() + "[]"; }
  RL_OUTLINE static std::vector<T> read(PyObject* object) {
    if (!PyList_Check(object) && !PyTuple_Check(object)) throw Mismatch();
    Object items = checked(PySequence_Tuple(object));  // ours: reading an item may run Python code
    std::vector<T> values;
    values.reserve((size_t)PyTuple_GET_SIZE(items.get()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      values.push_back(From<T>::read(PyTuple_GET_ITEM(items.get(), i)));
    return values;
  }
};
template <class T> struct From<ArrayRef<T>> : From<std::vector<T>> {};
template <class T> struct From<std::optional<ArrayRef<T>>> : From<std::optional<std::vector<T>>> {};

template <class... T> struct From<std::tuple<T...>> {
  RL_OUTLINE static std::string name() {
    std::string text;
    ((text += (text.empty() ? "tuple of (" : ", ") + From<T>::name()), ...);
    return text + ")";
  }
  RL_OUTLINE static std::string schema() {
    std::string text;
    ((text += (text.empty() ? "(" : ", ") + From<T>::schema()), ...);
    return text + ")";
  }
  RL_OUTLINE static std::tuple<T...> read(PyObject* object) {
    if (!PyList_Check(object) && !PyTuple_Check(object)) throw Mismatch();
    Object items = checked(PySequence_Tuple(object));
    if (PyTuple_GET_SIZE(items.get()) != (Py_ssize_t)sizeof...(T)) throw Mismatch();
    return read(items.get(), std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I> static std::tuple<T...> read(PyObject* items, std::index_sequence<I...>) {
    return std::tuple<T...>{From<T>::read(PyTuple_GET_ITEM(items, (Py_ssize_t)I))...};
  }
};
template <class A, class B> struct From<std::pair<A, B>> : From<std::tuple<A, B>> {
  RL_OUTLINE static std::pair<A, B> read(PyObject* object) {
    auto [first, second] = From<std::tuple<A, B>>::read(object);
    return {std::move(first), std::move(second)};
  }
};

template <class Map> struct FromMap {
  using Key = typename Map::key_type;
  using Mapped = typename Map::mapped_type;
  RL_OUTLINE static std::string name() { return "dict of " + From<Key>::name() + " to " + From<Mapped>::name(); }
  RL_OUTLINE static std::string schema() { return "Dict(" + From<Key>::schema() + ", " + From<Mapped>::schema() + ")"; }
  RL_OUTLINE static Map read(PyObject* object) {
    if (!PyDict_Check(object)) throw Mismatch();
    Object items = checked(PyDict_Items(object));
    Map values;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* item = PyList_GET_ITEM(items.get(), i);
      values.emplace(From<Key>::read(PyTuple_GET_ITEM(item, 0)), From<Mapped>::read(PyTuple_GET_ITEM(item, 1)));
    }
    return values;
  }
};
template <class K, class V> struct From<std::map<K, V>> : FromMap<std::map<K, V>> {};
template <class K, class V> struct From<std::unordered_map<K, V>> : FromMap<std::unordered_map<K, V>> {};

// ---- to Python -----------------------------------------------------------------------------------------------------

inline Object none() { return Object::borrow(Py_None); }
RL_OUTLINE inline Object to_python(const Object& object) { return object; }
RL_OUTLINE inline Object to_python(const TensorBase& tensor) { return Object::borrow(tensor.object()); }
RL_OUTLINE inline Object to_python(const std::string& text) { return checked(PyUnicode_FromStringAndSize(text.data(), (Py_ssize_t)text.size())); }
RL_OUTLINE inline Object to_python(std::string_view text) { return to_python(std::string(text)); }
RL_OUTLINE inline Object to_python(const char* text) { return text ? to_python(std::string(text)) : none(); }
RL_OUTLINE inline Object to_python(std::nullopt_t) { return none(); }
RL_OUTLINE inline Object to_python(ScalarType kind) { return attribute(package(), python_name(kind)); }
RL_OUTLINE inline Object to_python(const Device& device) { return to_python(device.str()); }
RL_OUTLINE inline Object to_python(MemoryFormat format) {
  const char* names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  return attribute(package(), names[(int)format]);
}
template <class T> RL_OUTLINE std::enable_if_t<std::is_arithmetic_v<T>, Object> to_python(T value) {
  if constexpr (std::is_same_v<T, bool>) return checked(PyBool_FromLong(value));
  else if constexpr (std::is_floating_point_v<T>) return checked(PyFloat_FromDouble((double)value));
  else if constexpr (std::is_unsigned_v<T>) return checked(PyLong_FromUnsignedLongLong(value));
  else return checked(PyLong_FromLongLong(value));
}
RL_OUTLINE inline Object to_python(const Scalar& value) {
  if (value.isBoolean()) return to_python(value.toBool());
  return value.isFloatingPoint() ? to_python(value.toDouble()) : to_python(value.toLong());
}

template <class T> Object to_python(const std::optional<T>& value);
template <class T> Object to_python(ArrayRef<T> values);
template <class T> Object to_python(const std::vector<T>& values);
template <class... T> Object to_python(const std::tuple<T...>& values);
template <class A, class B> Object to_python(const std::pair<A, B>& values);
template <class K, class V> Object to_python(const std::map<K, V>& values);
template <class K, class V> Object to_python(const std::unordered_map<K, V>& values);

template <class T> RL_OUTLINE Object to_python(const std::optional<T>& value) { return value ? to_python(*value) : none(); }

template <class Range> RL_OUTLINE Object list_of(const Range& values) {
  Object list = checked(PyList_New(0));
  for (const typename Range::value_type& value : values) checked(PyList_Append(list.get(), to_python(value).get()));
  return list;
}
template <class T> RL_OUTLINE Object to_python(ArrayRef<T> values) { return list_of(values); }
template <class T> RL_OUTLINE Object to_python(const std::vector<T>& values) { return list_of(values); }

template <class... T> RL_OUTLINE Object to_python(const std::tuple<T...>& values) {
  Object made = checked(PyTuple_New((Py_ssize_t)sizeof...(T)));
  Py_ssize_t position = 0;
  std::apply([&](const auto&... items) {
    (checked(PyTuple_SetItem(made.get(), position++, to_python(items).release())), ...);
  }, values);
  return made;
}
template <class A, class B> RL_OUTLINE Object to_python(const std::pair<A, B>& values) {
  return to_python(std::tuple<const A&, const B&>(values.first, values.second));
}

template <class Map> RL_OUTLINE Object dict_of(const Map& values) {
  Object made = checked(PyDict_New());
  for (const auto& [key, value] : values)
    checked(PyDict_SetItem(made.get(), to_python(key).get(), to_python(value).get()));
  return made;
}
template <class K, class V> RL_OUTLINE Object to_python(const std::map<K, V>& values) { return dict_of(values); }
template <class K, class V> RL_OUTLINE Object to_python(const std::unordered_map<K, V>& values) { return dict_of(values); }

}  // namespace rushlight
