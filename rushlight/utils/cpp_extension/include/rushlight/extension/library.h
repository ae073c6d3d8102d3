// Operators in C++: TORCH_LIBRARY(name, m) { m.def("op(Tensor x) -> Tensor"); m.impl("op", &op); } makes torch.ops.name.op.
//
// What the macros declare is registered when the library has been loaded, by rushlight.utils.cpp_extension, so that an error
// (a schema that cannot be read, an operator that exists) is a Python exception.
#pragma once

#include <rushlight/extension/module.h>

namespace rushlight RL_HIDDEN {

struct Definition {
  std::string schema_or_name, key;
  std::unique_ptr<Callable> function;
};

// What TORCH_LIBRARY's block fills.
class Library {
 public:
  Library(const char* kind, const char* name, const char* key) : kind(kind), name(name), key(key) {}

  // Declares an operator by its schema. With a function, which serves all devices, a name will do: its types are the schema.
  Library& def(const char* schema) {
    definitions.push_back({schema, "", nullptr});
    return *this;
  }
  template <class F> Library& def(const char* schema, F function) {
    auto bound = bind(schema, std::move(function));
    std::string text = schema;
    if (text.find('(') == std::string::npos) text += bound->schema();
    definitions.push_back({text, "", nullptr});
    return add(text.substr(0, text.find('(')), "CompositeImplicitAutograd", std::move(bound));
  }
  // The kernel of an operator for this block's key (in TORCH_LIBRARY, for all).
  template <class F> Library& impl(const char* op, F function) {
    return add(op, key.empty() ? "CompositeImplicitAutograd" : key, bind(op, std::move(function)));
  }
  template <class F> Library& impl(const char* op, const char* for_key, F function) {
    return add(op, for_key, bind(op, std::move(function)));
  }

  std::string kind, name, key;
  std::vector<Definition> definitions, kernels;

 private:
  Library& add(std::string op, std::string for_key, std::unique_ptr<Callable> function) {
    kernels.push_back({std::move(op), std::move(for_key), std::move(function)});
    return *this;
  }
};

struct Block {
  const char *kind, *name, *key;
  void (*fill)(Library&);
};
inline std::vector<Block>& blocks() {
  static std::vector<Block> found;
  return found;
}
struct BlockRegistration {
  BlockRegistration(Block block) { blocks().push_back(block); }
};

// Hands one block to Python.
RL_OUTLINE inline void register_block(const Block& block) {
  static PyObject* registry = module_of("rushlight.utils.cpp_extension.operators");
  Library library(block.kind, block.name, block.key);
  block.fill(library);
  Object schemas = checked(PyList_New(0)), kernels = checked(PyList_New(0));
  for (const Definition& item : library.definitions) checked(PyList_Append(schemas.get(), to_python(item.schema_or_name).get()));
  for (Definition& item : library.kernels) {
    Object function = Callable::wrap(std::move(item.function));
    Object kernel = to_python(std::tuple<std::string, std::string, Object>(item.schema_or_name, item.key, function));
    checked(PyList_Append(kernels.get(), kernel.get()));
  }
  checked(PyObject_CallMethod(registry, "register", "ssOO", block.kind, block.name, schemas.get(), kernels.get()));
}

// Registers what was declared and is not registered yet: operators first, then kernels of operators that may be another's.
RL_OUTLINE inline void register_libraries() {
  auto is_late = [](const Block& block) { return !std::strcmp(block.kind, "IMPL"); };
  std::stable_partition(blocks().begin(), blocks().end(), [&](const Block& block) { return !is_late(block); });
  while (!blocks().empty()) {
    register_block(blocks().front());
    blocks().erase(blocks().begin());
  }
}

}  // namespace rushlight

// For libraries that are no Python module: 0, or -1 with a Python exception set.
extern "C" __attribute__((visibility("default"), weak)) int rushlight_register_libraries() {
  try {
    ::rushlight::register_libraries();
    return 0;
  } catch (...) {
    ::rushlight::set_python_error();
    return -1;
  }
}

#define RL_JOIN_AS(a, b) a##b
#define RL_JOIN(a, b) RL_JOIN_AS(a, b)
#define RL_LIBRARY_BLOCK(kind, name, key, variable, id)                                                              \
  static void RL_JOIN(rushlight_block_, id)(::rushlight::Library&);                                                  \
  static const ::rushlight::BlockRegistration RL_JOIN(rushlight_registration_, id)(                                  \
      ::rushlight::Block{kind, #name, key, &RL_JOIN(rushlight_block_, id)});                                         \
  static void RL_JOIN(rushlight_block_, id)([[maybe_unused]] ::rushlight::Library& variable)
#define TORCH_LIBRARY(name, variable) RL_LIBRARY_BLOCK("DEF", name, "", variable, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(name, variable) RL_LIBRARY_BLOCK("FRAGMENT", name, "", variable, __COUNTER__)
#define TORCH_LIBRARY_IMPL(name, key, variable) RL_LIBRARY_BLOCK("IMPL", name, #key, variable, __COUNTER__)
#define TORCH_FN(function) &function
#define RL_OPERATORS(name, variable) TORCH_LIBRARY(name, variable)
