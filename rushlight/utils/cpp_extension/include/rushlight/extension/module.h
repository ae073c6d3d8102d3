// The extension module itself: PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, "what f does"); }
#pragma once

#include <rushlight/extension/function.h>

namespace rushlight RL_HIDDEN {

class Module {
  struct Attribute {
    Module& module;
    const char* name;
    template <class T> void operator=(const T& value) { module.set(name, to_python(value)); }
  };

 public:
  explicit Module(PyObject* module) : module_(module) {}

  // Adds a function. `extras`: its documentation, arg(...) for each argument, call_guard<gil_release>().
  template <class F, class... Extras> Module& def(const char* name, F function, const Extras&... extras) {
    return set(name, Callable::wrap(bind(name, std::move(function), extras...)));
  }
  // Adds a value: attr("answer", 42), or attr("answer") = 42.
  template <class T> Module& attr(const char* name, const T& value) { return set(name, to_python(value)); }
  Attribute attr(const char* name) { return {*this, name}; }
  // The module's documentation, as doc() = "...".
  Attribute doc() { return attr("__doc__"); }
  void set_doc(const char* text) { doc() = text; }

 private:
  Module& set(const char* name, const Object& value) {
    checked(PyObject_SetAttrString(module_, name, value.get()));
    return *this;
  }
  PyObject* module_;
};

void register_libraries();  // see library.h

// The module that Python imports; what goes wrong is raised there.
RL_OUTLINE inline PyObject* make_module(PyModuleDef* definition, void (*fill)(Module&)) {
  try {
    Object module = checked(PyModule_Create(definition));
    register_libraries();
    Module wrapped(module.get());
    fill(wrapped);
    return module.release();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace rushlight

#define RL_MODULE_AS(name, variable)                                                                      \
  static void rushlight_fill_module(::rushlight::Module&);                                                \
  extern "C" __attribute__((visibility("default"))) PyObject* PyInit_##name() {                           \
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, #name, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
    return ::rushlight::make_module(&definition, &rushlight_fill_module);                                 \
  }                                                                                                       \
  static void rushlight_fill_module([[maybe_unused]] ::rushlight::Module& variable)
#define RL_MODULE(name, variable) RL_MODULE_AS(name, variable)
#define PYBIND11_MODULE(name, variable) RL_MODULE(name, variable)
