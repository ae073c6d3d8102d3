// What scripted programs that are written statement by statement do with numbers and dicts, and with the values of callers.
//
// Their lists, strings and formats are in the headers that this one includes.
#pragma once

#include <rushlight/deployed_format.h>

namespace rl {
namespace deployed {

struct language : formatting {
  using formatting::formatting;

  // Numbers

  int64_t factorial(int64_t number) {
    int64_t made = 1;
    if (number < 0) fail(failed, "ValueError: factorial() not defined for negative values");
    if (number > 20) fail(failed, "OverflowError: factorial() of a number whose result no int holds");
    for (int64_t i = 2; !status && i <= number; ++i) made *= i;
    return made;
  }
  double gamma(double number) {
    if ((number <= 0 && number == floor(number)) || number > 171.62 || number == -INFINITY) fail(failed, "ValueError: math domain error");
    return status ? 0 : tgamma(number);
  }
  double log_gamma(double number) {
    if (number <= 0 && number == floor(number)) fail(failed, "ValueError: math domain error");
    return status ? 0 : lgamma(number);
  }
  double scaled(double number, int64_t power) {
    const double made = ldexp(number, power > 100000 ? 100000 : power < -100000 ? -100000 : (int)power);
    if (isinf(made) && !isinf(number)) fail(failed, "OverflowError: math range error");
    return made;
  }
  any fraction(double number) {
    int power = 0;
    const any parts[] = {any_of(frexp(number, &power)), any_of((int64_t)power)};
    return items_of(RL_CONSTANT(TUPLE), parts, 2);
  }
  any whole_and_rest(double number) {
    double whole;
    const double rest = modf(number, &whole);
    const any parts[] = {any_of(rest), any_of(whole)};
    return items_of(RL_CONSTANT(TUPLE), parts, 2);
  }
  int64_t divided(int64_t a, int64_t b) {
    if (b == 0) fail(failed, "ZeroDivisionError: division by zero");
    return status ? 0 : (int64_t)((double)a / (double)b);
  }

  // Dicts

  static any* entry(const any& dict, const any& key) {
    for (int64_t i = 0; i < dict.as.list->count; i += 2)
      if (equal(dict.as.list->items[i], key)) return &dict.as.list->items[i + 1];
    return nullptr;
  }
  any lookup(const any& dict, const any& key) {
    any* found = entry(dict, key);
    if (found) return *found;
    any named = text(key);
    const char* mark = key.kind == RL_CONSTANT(STRING) ? "'" : "";
    return status ? any{} : fail(failed, "KeyError: %s%.200s%s", mark, named.as.text->data, mark);
  }
  static any get(const any& dict, const any& key, const any& otherwise) {
    any* found = entry(dict, key);
    return found ? *found : otherwise;
  }
  void put(const any& dict, const any& key, const any& item) {
    if (any* found = entry(dict, key)) {
      *found = item;
      return;
    }
    append(dict, key);
    append(dict, item);
  }
  any put_default(const any& dict, const any& key, const any& item) {
    if (!entry(dict, key)) put(dict, key, item);
    return get(dict, key, item);
  }
  any taken(const any& dict, const any& key) {
    any found = lookup(dict, key);
    if (!status) drop(*dict.as.list, entry(dict, key) - 1 - dict.as.list->items, 2);
    return found;
  }
  any taken(const any& dict, const any& key, const any& otherwise) { return entry(dict, key) ? taken(dict, key) : otherwise; }
  any last_item(const any& dict) {
    sequence& held = *dict.as.list;
    if (!held.count) return fail(failed, "KeyError: popitem(): dictionary is empty");
    any made = items_of(RL_CONSTANT(TUPLE), held.items + held.count - 2, 2);
    held.count -= 2;
    return made;
  }
  void update(const any& dict, const any& other) {
    for (int64_t i = 0; !status && i < other.as.list->count; i += 2) put(dict, other.as.list->items[i], other.as.list->items[i + 1]);
  }
  any every(const any& dict, int64_t first) {  // the keys, or the values
    any made = new_list(dict.as.list->count / 2);
    for (int64_t i = 0; !status && i < made.as.list->count; ++i) made.as.list->items[i] = dict.as.list->items[2 * i + first];
    return made;
  }
  any pairs(const any& dict) {
    any made = new_list(dict.as.list->count / 2);
    for (int64_t i = 0; !status && i < made.as.list->count; ++i)
      made.as.list->items[i] = items_of(RL_CONSTANT(TUPLE), dict.as.list->items + 2 * i, 2);
    return made;
  }
  any dict_of(const any& list) {
    any made = new_items(RL_CONSTANT(DICT), 0);
    for (int64_t i = 0; !status && i < list.as.list->count; ++i)
      put(made, list.as.list->items[i].as.list->items[0], list.as.list->items[i].as.list->items[1]);
    return made;
  }

  // The C interface's values

  any taken_from(const value& given) {
    any made;
    made.kind = given.kind;
    switch (given.kind) {
      case RL_CONSTANT(NONE): break;
      case RL_CONSTANT(BOOL): made.as.integer = given.as.integer != 0; break;
      case RL_CONSTANT(INT): made.as.integer = given.as.integer; break;
      case RL_CONSTANT(FLOAT): made.as.real = given.as.real; break;
      case RL_CONSTANT(STRING): return text_of(given.as.string.text, (int64_t)given.as.string.size);
      case RL_CONSTANT(TENSOR): return tensor_like(given.as.tensor);
      default: {
        any list = new_items(given.kind, (int64_t)given.as.list.count);
        for (size_t i = 0; !status && i < given.as.list.count; ++i) list.as.list->items[i] = taken_from(given.as.list.items[i]);
        return list;
      }
    }
    return made;
  }
  any tensor_like(const tensor& given) {
    tensor* held = (tensor*)take((int64_t)sizeof(tensor));
    any made;
    if (!held) return made;
    *held = given;
    made.kind = RL_CONSTANT(TENSOR);
    made.as.held = held;
    return made;
  }
  // A value as callers get it, in memory that nothing else writes to.
  value given_back(const any& found, int depth = 0) {
    value made = none();
    made.kind = found.kind;
    if (status) return made;
    switch (found.kind) {
      case RL_CONSTANT(NONE): return made;
      case RL_CONSTANT(BOOL):
      case RL_CONSTANT(INT): made.as.integer = found.as.integer; return made;
      case RL_CONSTANT(FLOAT): made.as.real = found.as.real; return made;
      case RL_CONSTANT(STRING): return of_string(found.as.text->data, (size_t)found.as.text->size);
      case RL_CONSTANT(TENSOR):
        if (!copy_value(made, of_tensor(*found.as.held), self.run_memory())) fail(no_memory, "there is no memory left");
        return made;
      default: break;
    }
    if (depth > 64) fail(failed, "a result that holds itself");
    made.kind = found.kind == OBJECT ? RL_CONSTANT(TUPLE) : found.kind;
    made.as.list.count = (size_t)found.as.list->count;
    made.as.list.items = (value*)take((found.as.list->count + 1) * (int64_t)sizeof(value));
    for (int64_t i = 0; !status && i < found.as.list->count; ++i) made.as.list.items[i] = given_back(found.as.list->items[i], depth + 1);
    return made;
  }
};

}  // namespace deployed
}  // namespace rl
