// Python objects held by C++, the interpreter lock, and errors on their way between the two languages.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define RL_HIDDEN __attribute__((visibility("hidden")))
// For what is not worth inlining: sources compile in half the time.
#define RL_OUTLINE __attribute__((noinline))

namespace rushlight RL_HIDDEN {

// ---- the interpreter lock ------------------------------------------------------------------------------------------

// Holds the lock, whoever held it before.
class gil_acquire {
 public:
  gil_acquire() : state_(PyGILState_Ensure()) {}
  ~gil_acquire() { PyGILState_Release(state_); }
  gil_acquire(const gil_acquire&) = delete;

 private:
  PyGILState_STATE state_;
};

// Lets other Python threads run meanwhile. Does nothing in a thread that does not hold the lock.
class gil_release {
 public:
  gil_release() : state_(PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~gil_release() {
    if (state_) PyEval_RestoreThread(state_);
  }
  gil_release(const gil_release&) = delete;

 private:
  PyThreadState* state_;
};

// ---- objects -------------------------------------------------------------------------------------------------------

// An owned reference, or none. Needs the lock to be copied or dropped.
class Object {
 public:
  Object() = default;
  Object(const Object& other) : pointer_(other.pointer_) { Py_XINCREF(pointer_); }
  Object(Object&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Object() {
    if (pointer_) drop(pointer_);
  }

  static Object steal(PyObject* pointer) {
    Object made;
    made.pointer_ = pointer;
    return made;
  }
  static Object borrow(PyObject* pointer) {
    Py_XINCREF(pointer);
    return steal(pointer);
  }

  PyObject* get() const { return pointer_; }
  PyObject* release() { return std::exchange(pointer_, nullptr); }
  explicit operator bool() const { return pointer_ != nullptr; }

 private:
  RL_OUTLINE static void drop(PyObject* pointer) { Py_DECREF(pointer); }
  PyObject* pointer_ = nullptr;
};

// ---- errors --------------------------------------------------------------------------------------------------------

// What a failed check throws; each becomes the Python exception of its name, Error a RuntimeError.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  const char* what_without_backtrace() const { return what(); }
  const std::string msg() const { return what(); }
};
struct ValueError : Error { using Error::Error; };
struct IndexError : Error { using Error::Error; };
struct TypeError : Error { using Error::Error; };
struct NotImplementedError : Error { using Error::Error; };

// A Python exception on its way through C++. It may be thrown, caught and dropped in any thread.
class PythonError : public Error {
 public:
  RL_OUTLINE PythonError() : Error("a Python error") {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    value_ = value;
    Object text = Object::steal(value ? PyObject_Str(value) : nullptr);
    const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (characters) text_ = characters;
    PyErr_Clear();
  }
  RL_OUTLINE PythonError(const PythonError& other) : Error(other), value_(other.value_), text_(other.text_) {
    gil_acquire lock;
    Py_XINCREF(value_);
  }
  RL_OUTLINE ~PythonError() override {
    gil_acquire lock;
    Py_XDECREF(value_);
  }
  const char* what() const noexcept override { return text_.c_str(); }
  void restore() const {
    if (value_) PyErr_SetObject((PyObject*)Py_TYPE(value_), value_);
    else PyErr_SetString(PyExc_RuntimeError, "an error without an exception");
  }

 private:
  PyObject* value_;
  std::string text_;
};

// The object that a Python call returned; throws what it raised.
[[noreturn]] __attribute__((cold)) RL_OUTLINE inline void throw_python_error() { throw PythonError(); }
inline Object checked(PyObject* result) {
  if (!result) throw_python_error();
  return Object::steal(result);
}
inline void checked(int status) {
  if (status < 0) throw_python_error();
}

// The Python exception for the C++ exception that is being handled.
RL_OUTLINE inline void set_python_error() {
  try {
    throw;
  } catch (const PythonError& error) {
    error.restore();
  } catch (const ValueError& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const IndexError& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const NotImplementedError& error) {
    PyErr_SetString(PyExc_NotImplementedError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::domain_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::length_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::overflow_error& error) {
    PyErr_SetString(PyExc_OverflowError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "a C++ exception of an unknown type");
  }
}

// ---- looking things up ---------------------------------------------------------------------------------------------

RL_OUTLINE inline Object attribute(PyObject* object, const char* name) { return checked(PyObject_GetAttrString(object, name)); }

// A module by its name; it stays alive as long as the process.
inline PyObject* module_of(const char* name) { return checked(PyImport_ImportModule(name)).release(); }

// The package rushlight.
inline PyObject* package() {
  static PyObject* found = module_of("rushlight");
  return found;
}

// ---- messages ------------------------------------------------------------------------------------------------------

RL_OUTLINE inline void append(std::string& text, const char* part) { text += part ? part : "(null)"; }
RL_OUTLINE inline void append(std::string& text, const std::string& part) { text += part; }
inline void append(std::string& text, char part) { text += part; }
inline void append(std::string& text, bool part) { text += part ? "1" : "0"; }
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> RL_OUTLINE void append(std::string& text, T part) {
  text += std::to_string(part);
}
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0> RL_OUTLINE void append(std::string& text, T part) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%g", (double)part);
  text += buffer;
}

// The parts as text, one after the other.
template <class... Parts> RL_OUTLINE std::string concatenate(const Parts&... parts) {
  std::string text;
  (append(text, parts), ...);
  return text;
}

template <class Kind = Error, class... Parts>
[[noreturn]] __attribute__((cold, noinline)) void fail(const char* otherwise, const Parts&... parts) {
  if constexpr (sizeof...(parts) == 0) throw Kind(otherwise);
  else throw Kind(concatenate(parts...));
}

template <class... Parts> void warn(const Parts&... parts) {
  gil_acquire lock;
  checked(PyErr_WarnEx(PyExc_UserWarning, concatenate(parts...).c_str(), 1));
}

}  // namespace rushlight

#define RL_CHECK_AS(kind, condition, ...) \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? void() \
       : ::rushlight::fail<::rushlight::kind>("Expected " #condition " to be true, but got false.", ##__VA_ARGS__))
#define RL_CHECK(condition, ...) RL_CHECK_AS(Error, condition, ##__VA_ARGS__)
