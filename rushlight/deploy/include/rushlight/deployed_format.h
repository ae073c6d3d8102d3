// Formatting, printing and parsing in scripted programs that are written statement by statement.
#pragma once

#include <rushlight/deployed_strings.h>

namespace rl {
namespace deployed {

struct formatting : strings {
  using strings::strings;

  // A float with all its digits, as scripted code writes it; a whole one that an int holds as `2.`.
  any real_text(double number) {
    char made[48];
    if (number > -9223372036854775808.0 && number < 9223372036854775808.0 && number == floor(number))
      snprintf(made, sizeof(made), "%lld.", (long long)number);
    else if (isnan(number)) snprintf(made, sizeof(made), "nan");
    else snprintf(made, sizeof(made), "%.17g", number);
    return text_of(made);
  }
  any number_text(int64_t number) {
    char made[24];
    snprintf(made, sizeof(made), "%lld", (long long)number);
    return text_of(made);
  }
  any based(int64_t number, int base, const char* prefix) {
    char made[72];
    int at = sizeof(made) - 1;
    made[at] = 0;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do made[--at] = "0123456789abcdef"[rest % (unsigned)base];
    while (rest /= (unsigned)base);
    any found = joined(text_of(prefix), text_of(made + at));
    return number < 0 ? joined(text_of("-"), found) : found;
  }
  // What `str`, `print` and `format` make of a value: strings are not quoted, also inside of something.
  any text(const any& a) {
    switch (a.kind) {
      case RL_CONSTANT(NONE): return text_of("None");
      case RL_CONSTANT(BOOL): return text_of(a.as.integer ? "True" : "False");
      case RL_CONSTANT(INT): return number_text(a.as.integer);
      case RL_CONSTANT(FLOAT): return real_text(a.as.real);
      case RL_CONSTANT(STRING): return a;
      case RL_CONSTANT(LIST):
      case RL_CONSTANT(TUPLE):
      case RL_CONSTANT(DICT): break;
      default: return fail(failed, "%s as text has no form in C", word_of(a.kind));
    }
    const bool is_dict = a.kind == RL_CONSTANT(DICT), is_tuple = a.kind == RL_CONSTANT(TUPLE);
    any made = text_of(is_dict ? "{" : is_tuple ? "(" : "[");
    for (int64_t i = 0; !status && i < a.as.list->count; ++i) {
      if (i) made = joined(made, text_of(is_dict && i % 2 ? ": " : ", "));
      if (!status) made = joined(made, text(a.as.list->items[i]));
      if (status) return {};
    }
    return status ? any{} : joined(made, text_of(is_dict ? "}" : is_tuple ? a.as.list->count == 1 ? ",)" : ")" : "]"));
  }
  // `"a {} of {}".format(...)`.
  any format(const any& form, const any* values, int64_t count) {
    any made = text_of("", 0);
    const char* data = form.as.text->data;
    int64_t from = 0, next = 0;
    for (int64_t at = 0; !status && at + 1 < form.as.text->size; ++at) {
      if (data[at] != '{' || data[at + 1] != '}') continue;
      if (next >= count) return fail(failed, "RuntimeError: Too few arguments for format string: %.200s", data);
      made = joined(made, text_of(data + from, at - from));
      if (!status) made = joined(made, text(values[next++]));
      from = ++at + 1;
    }
    return status ? any{} : joined(made, text_of(data + from, form.as.text->size - from));
  }
  // `"%d of %s" % (...)`.
  any percent(const any& form, const any* values, int64_t count) {
    any made = text_of("", 0);
    const char* data = form.as.text->data;
    int64_t from = 0, next = 0;
    for (int64_t at = 0; !status && at < form.as.text->size; ++at) {
      if (data[at] != '%') continue;
      made = joined(made, text_of(data + from, at - from));
      int64_t end = at + 1;
      while (end < form.as.text->size && strchr("+- #0123456789.", data[end])) ++end;
      const char letter = data[end];
      char given[24], shown[400];
      if (end - at > 16) return fail(failed, "ValueError: a format that is too long");
      snprintf(given, sizeof(given), "%.*s%s%c", (int)(end - at), data + at, strchr("dixXo", letter) ? "ll" : "", letter == 'i' ? 'd' : letter);
      from = end + 1;
      at = end;
      if (letter == '%') {
        made = joined(made, text_of("%"));
        continue;
      }
      if (next >= count) return fail(failed, "TypeError: not enough arguments for format string");
      const any& value = values[next++];
      if (letter == 's') {
        any text_found = text(value);
        if (status) return {};
        given[strlen(given) - 1] = 's';
        any wide = text_of(nullptr, text_found.as.text->size + 400);
        if (status) return {};
        const int size = snprintf(bytes_in(wide), (size_t)text_found.as.text->size + 400, given, text_found.as.text->data);
        made = joined(made, text_of(wide.as.text->data, size < 0 ? 0 : size < text_found.as.text->size + 400 ? size : text_found.as.text->size + 399));
        continue;
      }
      if (!letter || !strchr("dixXoeEfFgG", letter) || !is_number(value)) return fail(failed, "TypeError: a value that '%%%c' does not take", letter ? letter : ' ');
      if (strchr("dixXo", letter)) snprintf(shown, sizeof(shown), given, (long long)(value.kind == RL_CONSTANT(FLOAT) ? (int64_t)value.as.real : value.as.integer));
      else snprintf(shown, sizeof(shown), given, real_in(value));
      if (!status) made = joined(made, text_of(shown));
    }
    if (!status && next < count) return fail(failed, "TypeError: not all arguments converted during string formatting");
    return status ? any{} : joined(made, text_of(data + from, form.as.text->size - from));
  }
  void print(const any* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      any found = text(values[i]);
      if (status) return;
      if (i) fputc(' ', stdout);
      fwrite(found.as.text->data, 1, (size_t)found.as.text->size, stdout);
    }
    fputc('\n', stdout);
  }
  double parsed_real(const any& a) {
    char* end = nullptr;
    any plain = strip(a, {}, true, true);
    if (status) return 0;
    const double found = strtod(plain.as.text->data, &end);
    if (!plain.as.text->size || *end) fail(failed, "ValueError: could not convert string to float: '%.80s'", plain.as.text->data);
    return found;
  }
  int64_t parsed_integer(const any& a) {
    char* end = nullptr;
    any plain = strip(a, {}, true, true);
    if (status) return 0;
    errno = 0;
    const long long found = strtoll(plain.as.text->data, &end, 10);
    if (!plain.as.text->size || *end || errno) fail(failed, "ValueError: invalid literal for int() with base 10: '%.80s'", plain.as.text->data);
    return found;
  }
};

}  // namespace deployed
}  // namespace rl
