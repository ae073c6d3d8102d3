// The values of scripted programs that are written statement by statement, how they compare and how they are ordered.
#pragma once

namespace rl {
namespace deployed {

constexpr int OBJECT = 100, MEMBER = 101;  // beside the kinds of the C interface: of classes and of enumerations

struct any;
// The items of a list or tuple, of a dict (each key, then its value), or of an object (its attributes).
struct sequence {
  any* items;
  int64_t count, room;
};
struct characters {
  const char* data;
  int64_t size;
};
struct any {
  int32_t kind = RL_CONSTANT(NONE);
  int32_t type = 0;  // The number of an object's class.
  union {
    int64_t integer;
    double real;
    const characters* text;
    sequence* list;
    const tensor* held;
  } as = {};
};

inline any any_of(int64_t number) {
  any made;
  made.kind = RL_CONSTANT(INT);
  made.as.integer = number;
  return made;
}
inline any any_of(bool number) {
  any made;
  made.kind = RL_CONSTANT(BOOL);
  made.as.integer = number;
  return made;
}
inline any any_of(double number) {
  any made;
  made.kind = RL_CONSTANT(FLOAT);
  made.as.real = number;
  return made;
}
inline any any_of(const any& made) { return made; }
inline bool is_number(const any& a) { return a.kind == RL_CONSTANT(INT) || a.kind == RL_CONSTANT(BOOL) || a.kind == RL_CONSTANT(FLOAT); }
inline double real_in(const any& a) { return a.kind == RL_CONSTANT(FLOAT) ? a.as.real : (double)a.as.integer; }
inline const char* word_of(int kind) { return kind == OBJECT ? "an object" : kind == RL_CONSTANT(NONE) ? "None" : kind_text(kind); }

// Whether two values are equal as Python says it. Tensors are equal to themselves only.
inline bool equal(const any& a, const any& b) {
  if (is_number(a) && is_number(b)) {
    if (a.kind != RL_CONSTANT(FLOAT) && b.kind != RL_CONSTANT(FLOAT)) return a.as.integer == b.as.integer;
    return real_in(a) == real_in(b);
  }
  if (a.kind != b.kind || a.type != b.type) return false;
  if (a.kind == RL_CONSTANT(NONE)) return true;
  if (a.kind == MEMBER) return a.as.integer == b.as.integer;
  if (a.kind == RL_CONSTANT(STRING))
    return a.as.text->size == b.as.text->size && memcmp(a.as.text->data, b.as.text->data, (size_t)a.as.text->size) == 0;
  if (a.kind == RL_CONSTANT(TENSOR)) return a.as.held == b.as.held;
  if (a.as.list == b.as.list) return true;
  if (a.kind == OBJECT || a.as.list->count != b.as.list->count) return false;
  if (a.kind == RL_CONSTANT(DICT)) {
    for (int64_t i = 0; i < a.as.list->count; i += 2) {
      bool found = false;
      for (int64_t j = 0; j < b.as.list->count && !found; j += 2)
        found = equal(a.as.list->items[i], b.as.list->items[j]) && equal(a.as.list->items[i + 1], b.as.list->items[j + 1]);
      if (!found) return false;
    }
    return true;
  }
  for (int64_t i = 0; i < a.as.list->count; ++i)
    if (!equal(a.as.list->items[i], b.as.list->items[i])) return false;
  return true;
}
inline bool same(const any& a, const any& b) {  // `is`
  return a.kind == b.kind && (a.kind == RL_CONSTANT(NONE) || a.as.integer == b.as.integer || (a.kind == RL_CONSTANT(STRING) && equal(a, b)));
}

// The order of numbers, strings, and tuples and lists of them.
inline int order(const any& a, const any& b) {
  if (is_number(a) && is_number(b)) {
    if (a.kind != RL_CONSTANT(FLOAT) && b.kind != RL_CONSTANT(FLOAT))
      return a.as.integer < b.as.integer ? -1 : a.as.integer > b.as.integer;
    return real_in(a) < real_in(b) ? -1 : real_in(a) > real_in(b);
  }
  if (a.kind == RL_CONSTANT(STRING) && b.kind == RL_CONSTANT(STRING)) {
    const int64_t least = a.as.text->size < b.as.text->size ? a.as.text->size : b.as.text->size;
    const int found = memcmp(a.as.text->data, b.as.text->data, (size_t)least);
    return found ? found : a.as.text->size < b.as.text->size ? -1 : a.as.text->size > b.as.text->size;
  }
  if (!has_items(a.kind) || !has_items(b.kind)) return 0;
  for (int64_t i = 0; i < a.as.list->count && i < b.as.list->count; ++i)
    if (const int found = order(a.as.list->items[i], b.as.list->items[i])) return found;
  return a.as.list->count < b.as.list->count ? -1 : a.as.list->count > b.as.list->count;
}

}  // namespace deployed
}  // namespace rl
