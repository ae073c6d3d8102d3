// A C++ function as a Python one: arguments by place or name, checked and converted; exceptions translated.
#pragma once

#include <rushlight/extension/call.h>

#include <memory>

namespace rushlight RL_HIDDEN {

// ---- what may be said about a function beside its name -------------------------------------------------------------

// An argument's name, and its default: arg("alpha") = 1.0.
struct arg {
  std::string name;
  Object otherwise;
  explicit arg(const char* name) : name(name) {}
  template <class T> arg operator=(const T& value) const {
    arg made = *this;
    made.otherwise = to_python(value);
    return made;
  }
};

template <class... Guards> struct call_guard {};

struct Traits {
  std::string name, doc;
  std::vector<arg> arguments;
  bool release = false;

  void add(const char* text) { doc = text; }
  void add(const std::string& text) { doc = text; }
  void add(const arg& argument) { arguments.push_back(argument); }
  template <class... Guards> void add(call_guard<Guards...>) { release = (std::is_same_v<Guards, gil_release> || ...); }
};

// ---- signatures ----------------------------------------------------------------------------------------------------

template <class R, class... A> struct Signature {
  using Result = R;
  static constexpr size_t count = sizeof...(A);
};
template <class F> struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <class R, class... A> struct SignatureOf<R (*)(A...)> { using type = Signature<R, A...>; };
template <class R, class... A> struct SignatureOf<R (*)(A...) noexcept> { using type = Signature<R, A...>; };
template <class C, class R, class... A> struct SignatureOf<R (C::*)(A...)> { using type = Signature<R, A...>; };
template <class C, class R, class... A> struct SignatureOf<R (C::*)(A...) const> { using type = Signature<R, A...>; };

template <class T> using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
template <class P> using Held = decltype(From<Plain<P>>::read(nullptr));

template <class D, class H> D convert_held(H& held) { return D(held); }
template <class D, class T> D convert_held(std::optional<std::vector<T>>& held) {
  return held ? D(typename D::value_type(*held)) : D();
}

// What is held of an argument, as the parameter P.
template <class P> decltype(auto) pass(Held<P>& held) {
  using D = Plain<P>;
  if constexpr (std::is_same_v<D, const char*>) return held.c_str();
  else if constexpr (!std::is_same_v<D, Held<P>>) return convert_held<D>(held);
  else if constexpr (std::is_lvalue_reference_v<P>) return (held);
  else return std::move(held);
}

// ---- the function --------------------------------------------------------------------------------------------------

class Callable {
 public:
  explicit Callable(Traits traits) : traits_(std::move(traits)) {}
  virtual ~Callable() = default;
  virtual PyObject* run(PyObject* const* given) const = 0;
  virtual size_t count() const = 0;
  virtual std::string schema() const = 0;

  // A Python function that owns this. Needs the lock.
  static Object wrap(std::unique_ptr<Callable> callable);

 protected:
  const Traits& traits() const { return traits_; }
  [[noreturn]] RL_OUTLINE void mismatch(size_t position, const std::string& wanted, PyObject* given) const {
    std::string name = position < traits_.arguments.size() ? concatenate("'", traits_.arguments[position].name, "' ") : "";
    throw TypeError(concatenate(traits_.name, "(): argument ", name, "(position ", position + 1, ") must be ", wanted, ", not ",
                                Py_TYPE(given)->tp_name));
  }

 private:
  static PyObject* called(PyObject* capsule, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    try {
      auto* self = static_cast<Callable*>(PyCapsule_GetPointer(capsule, nullptr));
      if (!self) return nullptr;
      std::vector<PyObject*> given = self->arrange(arguments, (size_t)count, names);
      return self->run(given.data());
    } catch (...) {
      set_python_error();
      return nullptr;
    }
  }
  static void destroy(PyObject* capsule) { delete static_cast<Callable*>(PyCapsule_GetPointer(capsule, nullptr)); }
  std::vector<PyObject*> arrange(PyObject* const* arguments, size_t given, PyObject* names) const;
  size_t place_of(PyObject* name) const;

  Traits traits_;
  PyMethodDef method_{};
};

RL_OUTLINE inline size_t Callable::place_of(PyObject* name) const {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) throw PythonError();
  for (size_t i = 0; i < traits_.arguments.size(); ++i)
    if (traits_.arguments[i].name == text) return i;
  throw TypeError(concatenate(traits_.name, "() got an unexpected keyword argument '", text, "'"));
}

// One object for each parameter, borrowed.
RL_OUTLINE inline std::vector<PyObject*> Callable::arrange(PyObject* const* arguments, size_t given, PyObject* names) const {
  const size_t wanted = count();
  if (given > wanted)
    throw TypeError(concatenate(traits_.name, "() takes ", wanted, " positional argument", wanted == 1 ? "" : "s", " but ", given,
                                given == 1 ? " was given" : " were given"));
  std::vector<PyObject*> placed(arguments, arguments + given);
  placed.resize(wanted, nullptr);
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    const size_t place = place_of(PyTuple_GET_ITEM(names, i));
    if (place >= wanted || placed[place])
      throw TypeError(concatenate(traits_.name, "() got multiple values for argument '", traits_.arguments[place].name, "'"));
    placed[place] = arguments[given + (size_t)i];
  }
  for (size_t i = 0; i < wanted; ++i) {
    if (placed[i]) continue;
    const bool named = i < traits_.arguments.size();
    if (named && traits_.arguments[i].otherwise) placed[i] = traits_.arguments[i].otherwise.get();
    else throw TypeError(concatenate(traits_.name, "() missing required argument ", named ? "'" + traits_.arguments[i].name + "' " : "",
                                     "(pos ", i + 1, ")"));
  }
  return placed;
}

RL_OUTLINE inline Object Callable::wrap(std::unique_ptr<Callable> callable) {
  Callable* self = callable.get();
  self->method_ = {self->traits_.name.c_str(), (PyCFunction)(void (*)(void))&Callable::called, METH_FASTCALL | METH_KEYWORDS,
                   self->traits_.doc.c_str()};
  Object capsule = checked(PyCapsule_New(self, nullptr, &Callable::destroy));
  callable.release();
  return checked(PyCFunction_New(&self->method_, capsule.get()));
}

template <class F, class S> class Bound;
template <class F, class R, class... A> class Bound<F, Signature<R, A...>> final : public Callable {
 public:
  Bound(F function, Traits traits) : Callable(std::move(traits)), function_(std::move(function)) {}
  size_t count() const override { return sizeof...(A); }
  PyObject* run(PyObject* const* given) const override { return run(given, std::index_sequence_for<A...>()); }

  std::string schema() const override {
    std::string text = "(";
    size_t position = 0;
    ((text += concatenate(position ? ", " : "", From<Plain<A>>::schema(), " ", argument_name(position)), ++position), ...);
    if constexpr (std::is_void_v<R>) return text + ") -> ()";
    else return text + ") -> " + From<Plain<R>>::schema();
  }

 private:
  std::string argument_name(size_t position) const {
    return position < traits().arguments.size() ? traits().arguments[position].name : concatenate("_", position);
  }

  template <class P> RL_OUTLINE Held<P> read(PyObject* given, size_t position) const {
    try {
      return From<Plain<P>>::read(given);
    } catch (const Mismatch&) {
      mismatch(position, From<Plain<P>>::name(), given);
    }
  }

  template <size_t... I> PyObject* run(PyObject* const* given, std::index_sequence<I...>) const {
    std::tuple<Held<A>...> held{read<A>(given[I], I)...};
    (void)given;
    std::unique_ptr<gil_release> released(traits().release ? new gil_release : nullptr);
    if constexpr (std::is_void_v<R>) {
      function_(pass<A>(std::get<I>(held))...);
      released.reset();
      return none().release();
    } else {
      Plain<R> result = function_(pass<A>(std::get<I>(held))...);
      released.reset();
      return to_python(result).release();
    }
  }

  F function_;
};

// A C++ function or lambda as a Callable.
template <class F, class... Extras> std::unique_ptr<Callable> bind(const std::string& name, F function, const Extras&... extras) {
  Traits traits;
  traits.name = name;
  (traits.add(extras), ...);
  return std::make_unique<Bound<F, typename SignatureOf<F>::type>>(std::move(function), std::move(traits));
}

}  // namespace rushlight
