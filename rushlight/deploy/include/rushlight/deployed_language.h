// What scripted programs that are written statement by statement do with strings, lists, tuples, dicts, objects, and tensors.
//
// Lists, dicts and objects are references, as in Python. All memory is the run's. What goes wrong is noted in `status`, with a
// sentence in the handle, and the program leaves at its next check.
#pragma once

#include <rushlight/deployed_any.h>

namespace rl {
namespace deployed {

// One run of a program: its memory, and what went wrong.
struct language {
  handle& self;
  int status = ok;
  sequence none_left = {nullptr, 0, 0};  // a list for which there was no memory

  explicit language(handle& self) : self(self) {}
  template <class... Rest> any fail(int code, const char* format, Rest... rest) {
    if constexpr (sizeof...(rest) == 0) {
      if (!status) status = self.say(code, "%s", format);
    } else if (!status) {
      status = self.say(code, format, rest...);
    }
    return {};
  }
  // The status of a run that fails, whose sentence gets the line.
  int at(const char* line) {
    const size_t used = strlen(self.text);
    if (*line && used < sizeof(self.text)) snprintf(self.text + used, sizeof(self.text) - used, " (%s)", line);
    return status == unfit ? failed : status;
  }
  void* take(int64_t bytes) {
    void* made = self.take(bytes);
    if (!made) fail(no_memory, "there is no memory left");
    return made;
  }

  // Strings

  any text_of(const char* data, int64_t size) {
    static const characters nothing = {"", 0};
    characters* held = (characters*)take((int64_t)sizeof(characters) + size + 1);
    any made;
    made.kind = RL_CONSTANT(STRING);
    made.as.text = &nothing;  // where there is no memory, which the next check says
    if (!held) return made;
    char* bytes = (char*)(held + 1);
    if (data && size) memcpy(bytes, data, (size_t)size);
    bytes[size] = 0;
    *held = {bytes, size};
    made.as.text = held;
    return made;
  }
  any text_of(const char* data) { return text_of(data, (int64_t)strlen(data)); }
  static char* bytes_in(const any& made) { return (char*)made.as.text->data; }
  static bool continues(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }
  static int64_t length(const any& a) {
    int64_t count = 0;
    for (int64_t i = 0; i < a.as.text->size; ++i) count += !continues(a.as.text->data[i]);
    return count;
  }
  // The byte at which a character begins.
  static int64_t byte_at(const any& a, int64_t index) {
    int64_t at = 0;
    for (; at < a.as.text->size; ++at)
      if (!continues(a.as.text->data[at]) && index-- == 0) break;
    return at;
  }
  any part(const any& a, int64_t first, int64_t last) {
    if (last <= first) return text_of("", 0);
    const int64_t begin = byte_at(a, first);
    return text_of(a.as.text->data + begin, byte_at(a, last) - begin);
  }
  any character(const any& a, int64_t index) {
    const int64_t count = length(a);
    if (index < 0) index += count;
    if (index < 0 || index >= count) return fail(failed, "IndexError: string index out of range");
    return part(a, index, index + 1);
  }
  any joined(const any& a, const any& b) {
    any made = text_of(nullptr, a.as.text->size + b.as.text->size);
    if (status) return {};
    memcpy(bytes_in(made), a.as.text->data, (size_t)a.as.text->size);
    memcpy(bytes_in(made) + a.as.text->size, b.as.text->data, (size_t)b.as.text->size);
    return made;
  }
  any times(const any& a, int64_t count) {
    if (count < 0) count = 0;
    int64_t size;
    if (__builtin_mul_overflow(a.as.text->size, count, &size) || size > max_bytes) return fail(no_memory, "there is no memory left");
    any made = text_of(nullptr, size);
    for (int64_t i = 0; !status && i < count; ++i)
      memcpy(bytes_in(made) + i * a.as.text->size, a.as.text->data, (size_t)a.as.text->size);
    return made;
  }
  // Where one string is in another, in bytes, from a byte on; -1 where it is not.
  static int64_t place(const any& a, const any& part, int64_t from, int64_t to) {
    for (int64_t at = from; at + part.as.text->size <= to; ++at)
      if (memcmp(a.as.text->data + at, part.as.text->data, (size_t)part.as.text->size) == 0) return at;
    return -1;
  }
  static bool contains(const any& a, const any& part) { return place(a, part, 0, a.as.text->size) >= 0; }
  static bool begins(const any& a, const any& part) {
    return a.as.text->size >= part.as.text->size && memcmp(a.as.text->data, part.as.text->data, (size_t)part.as.text->size) == 0;
  }
  static bool ends(const any& a, const any& part) {
    const int64_t rest = a.as.text->size - part.as.text->size;
    return rest >= 0 && memcmp(a.as.text->data + rest, part.as.text->data, (size_t)part.as.text->size) == 0;
  }
  // Maps each byte; text beyond ASCII has other rules.
  template <class Map> any mapped(const any& a, Map map) {
    any made = text_of(a.as.text->data, a.as.text->size);
    if (status) return {};
    char* bytes = bytes_in(made);
    for (int64_t i = 0; i < a.as.text->size; ++i) {
      if (bytes[i] < 0) return fail(failed, "the case of characters beyond ASCII has no form in C");
      bytes[i] = map(i ? a.as.text->data[i - 1] : ' ', bytes[i]);
    }
    return made;
  }
  static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
  static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
  static bool is_letter(char c) { return is_upper(c) || is_lower(c); }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_blank(char c) { return c == ' ' || (c >= 9 && c <= 13); }
  static char raised(char c) { return is_lower(c) ? (char)(c - 32) : c; }
  static char lowered(char c) { return is_upper(c) ? (char)(c + 32) : c; }
  any upper(const any& a) { return mapped(a, [](char, char c) { return raised(c); }); }
  any lower(const any& a) { return mapped(a, [](char, char c) { return lowered(c); }); }
  any swapcase(const any& a) { return mapped(a, [](char, char c) { return is_upper(c) ? lowered(c) : raised(c); }); }
  any title(const any& a) { return mapped(a, [](char before, char c) { return is_letter(before) ? lowered(c) : raised(c); }); }
  any capitalize(const any& a) {
    any made = lower(a);
    if (!status && made.as.text->size) *bytes_in(made) = raised(*bytes_in(made));
    return made;
  }
  // Whether all characters are of a kind, and there is one.
  template <class Test> bool all(const any& a, Test test) {
    for (int64_t i = 0; i < a.as.text->size; ++i) {
      if (a.as.text->data[i] < 0) fail(failed, "the kinds of characters beyond ASCII have no form in C");
      if (!test(a.as.text->data[i])) return false;
    }
    return a.as.text->size > 0;
  }
  bool isalpha(const any& a) { return all(a, is_letter); }
  bool isdigit(const any& a) { return all(a, is_digit); }
  bool isalnum(const any& a) { return all(a, [](char c) { return is_letter(c) || is_digit(c); }); }
  bool isspace(const any& a) { return all(a, is_blank); }
  bool isupper(const any& a) { return has_case(a) && all(a, [](char c) { return !is_lower(c); }); }
  bool islower(const any& a) { return has_case(a) && all(a, [](char c) { return !is_upper(c); }); }
  static bool has_case(const any& a) {
    for (int64_t i = 0; i < a.as.text->size; ++i)
      if (is_letter(a.as.text->data[i])) return true;
    return false;
  }
  any strip(const any& a, const any& chars, bool left, bool right) {
    int64_t first = 0, last = a.as.text->size;
    const bool blanks = chars.kind == RL_CONSTANT(NONE);
    auto is_off = [&](char c) { return blanks ? is_blank(c) : memchr(chars.as.text->data, c, (size_t)chars.as.text->size) != nullptr; };
    while (left && first < last && is_off(a.as.text->data[first])) ++first;
    while (right && first < last && is_off(a.as.text->data[last - 1])) --last;
    return text_of(a.as.text->data + first, last - first);
  }
  any replace(const any& a, const any& old, const any& by, int64_t most) {
    any made = text_of("", 0);
    int64_t from = 0;
    if (!old.as.text->size) return fail(failed, "replace() of an empty string has no form in C");
    for (int64_t found; !status && most-- != 0 && (found = place(a, old, from, a.as.text->size)) >= 0; from = found + old.as.text->size)
      made = joined(joined(made, text_of(a.as.text->data + from, found - from)), by);
    return status ? any{} : joined(made, text_of(a.as.text->data + from, a.as.text->size - from));
  }
  any split(const any& a, const any& separator, int64_t most) {
    any made = new_list(0);
    const char* data = a.as.text->data;
    const int64_t size = a.as.text->size;
    int64_t from = 0;
    if (separator.kind == RL_CONSTANT(NONE)) {
      for (;;) {
        while (from < size && is_blank(data[from])) ++from;
        if (from == size || status) return made;
        int64_t to = from;
        if (most-- == 0) {
          for (to = size; is_blank(data[to - 1]);) --to;
        } else {
          while (to < size && !is_blank(data[to])) ++to;
        }
        append(made, text_of(data + from, to - from));
        from = to;
      }
    }
    if (!separator.as.text->size) return fail(failed, "ValueError: empty separator");
    for (int64_t found; !status && most-- != 0 && (found = place(a, separator, from, size)) >= 0; from = found + separator.as.text->size)
      append(made, text_of(data + from, found - from));
    append(made, text_of(data + from, size - from));
    return made;
  }
  any join(const any& separator, const any& parts) {
    any made = text_of("", 0);
    for (int64_t i = 0; !status && i < parts.as.list->count; ++i)
      made = joined(i ? joined(made, separator) : made, parts.as.list->items[i]);
    return made;
  }
  any letters(const any& a) {
    any made = new_list(0);
    const int64_t count = length(a);
    for (int64_t i = 0; !status && i < count; ++i) append(made, part(a, i, i + 1));
    return made;
  }
  any padded(const any& a, int64_t width, const any& with, int left, int right) {  // of 2 parts
    const int64_t missing = width - length(a);
    if (missing <= 0) return a;
    const int64_t before = left && right ? missing / 2 + (missing & width & 1) : left ? missing : 0;
    return joined(joined(times(with, before), a), times(with, missing - before));
  }
  any zero_filled(const any& a, int64_t width) {
    const bool is_signed = a.as.text->size && (a.as.text->data[0] == '-' || a.as.text->data[0] == '+');
    const int64_t missing = width - length(a);
    if (missing <= 0) return a;
    any zeros = times(text_of("0"), missing);
    if (status || !is_signed) return status ? any{} : joined(zeros, a);
    return joined(joined(text_of(a.as.text->data, 1), zeros), text_of(a.as.text->data + 1, a.as.text->size - 1));
  }
  // Where a string is in another, in characters; -1 where it is not.
  static int64_t find_text(const any& a, const any& part, bool last) {
    int64_t found = -1;
    for (int64_t at = 0; (at = place(a, part, at, a.as.text->size)) >= 0; ++at) {
      found = at;
      if (!last) break;
    }
    int64_t before = 0;
    for (int64_t i = 0; i < found; ++i) before += !continues(a.as.text->data[i]);
    return found < 0 ? -1 : before;
  }
  static int64_t count_text(const any& a, const any& part) {
    if (!part.as.text->size) return length(a) + 1;
    int64_t count = 0;
    for (int64_t at = 0; (at = place(a, part, at, a.as.text->size)) >= 0; at += part.as.text->size) ++count;
    return count;
  }
  any parted(const any& a, const any& separator, bool last) {
    if (!separator.as.text->size) return fail(failed, "ValueError: empty separator");
    int64_t found = -1;
    for (int64_t at = 0; (at = place(a, separator, at, a.as.text->size)) >= 0 && (last || found < 0); ++at) found = at;
    any parts[3] = {last ? text_of("", 0) : a, text_of("", 0), last ? a : text_of("", 0)};
    if (found >= 0) {
      const int64_t end = found + separator.as.text->size;
      parts[0] = text_of(a.as.text->data, found);
      parts[1] = separator;
      parts[2] = text_of(a.as.text->data + end, a.as.text->size - end);
    }
    return status ? any{} : items_of(RL_CONSTANT(TUPLE), parts, 3);
  }
  any split_lines(const any& a, bool keeps) {
    any made = new_list(0);
    const char* data = a.as.text->data;
    for (int64_t from = 0, at = 0; !status && from < a.as.text->size; from = at) {
      while (at < a.as.text->size && data[at] != '\n' && data[at] != '\r') ++at;
      const int64_t end = at;
      if (at < a.as.text->size) at += data[at] == '\r' && at + 1 < a.as.text->size && data[at + 1] == '\n' ? 2 : 1;
      append(made, text_of(data + from, (keeps ? at : end) - from));
    }
    return made;
  }
  static any member_of(int type, int64_t number) {
    any made;
    made.kind = MEMBER;
    made.type = type;
    made.as.integer = number;
    return made;
  }
  int64_t ord(const any& a) {
    const unsigned char* bytes = (const unsigned char*)a.as.text->data;
    if (length(a) != 1) fail(failed, "TypeError: ord() expected a character, but got a string of length %lld", (long long)length(a));
    if (status || bytes[0] < 0x80) return status ? 0 : bytes[0];
    int64_t found = bytes[0] & (bytes[0] < 0xe0 ? 0x1f : bytes[0] < 0xf0 ? 0x0f : 7);
    for (int64_t i = 1; i < a.as.text->size; ++i) found = found << 6 | (bytes[i] & 0x3f);
    return found;
  }
  any chr(int64_t code) {
    if (code < 0 || code > 0x10ffff) return fail(failed, "ValueError: chr() arg not in range(0x110000)");
    char bytes[4];
    int count = 0;
    if (code < 0x80) bytes[count++] = (char)code;
    else {
      const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      bytes[count++] = (char)((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | (code >> (6 * more)));
      for (int i = more; i-- > 0;) bytes[count++] = (char)(0x80 | (code >> (6 * i) & 0x3f));
    }
    return text_of(bytes, count);
  }

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

  // Lists, tuples, dicts, objects

  any new_items(int kind, int64_t count, int type = 0) {
    sequence* made = (sequence*)take((int64_t)sizeof(sequence));
    any found;
    found.kind = kind;
    found.type = type;
    found.as.list = &none_left;
    if (!made) return found;
    const int64_t room = count > 4 ? count : 4;
    if (count > max_bytes / (int64_t)sizeof(any)) fail(no_memory, "there is no memory left");
    any* const items = status ? nullptr : (any*)take(room * (int64_t)sizeof(any));
    if (!items) return found;
    *made = {items, count, room};
    for (int64_t i = 0; i < count; ++i) made->items[i] = any{};
    found.as.list = made;
    return found;
  }
  any new_list(int64_t count) { return new_items(RL_CONSTANT(LIST), count); }
  any items_of(int kind, const any* items, int64_t count, int type = 0) {
    any made = new_items(kind, count, type);
    for (int64_t i = 0; !status && i < count; ++i) made.as.list->items[i] = items[i];
    return made;
  }
  void append(const any& list, const any& item) {
    if (status) return;
    sequence& held = *list.as.list;
    if (held.count == held.room) {
      any* more = (any*)take(2 * held.room * (int64_t)sizeof(any));
      if (!more) return;
      for (int64_t i = 0; i < held.count; ++i) more[i] = held.items[i];
      held.items = more;
      held.room *= 2;
    }
    held.items[held.count++] = item;
  }
  any at_index(const any& list, int64_t index) {
    const int64_t count = list.as.list->count;
    if (index < 0) index += count;
    if (index < 0 || index >= count) return fail(failed, "IndexError: list index out of range");
    return list.as.list->items[index];
  }
  void set_index(const any& list, int64_t index, const any& item) {
    const int64_t count = list.as.list->count;
    if (index < 0) index += count;
    if (index < 0 || index >= count) fail(failed, "IndexError: list assignment index out of range");
    else list.as.list->items[index] = item;
  }
  void extend(const any& list, const any& other) {
    for (int64_t i = 0, count = other.as.list->count; !status && i < count; ++i) append(list, other.as.list->items[i]);
  }
  any copied(const any& list) { return items_of(list.kind, list.as.list->items, list.as.list->count); }
  any added(const any& a, const any& b) {
    any made = copied(a);
    if (!status) extend(made, b);
    return made;
  }
  any repeated(const any& list, int64_t count) {
    any made = new_list(0);
    for (int64_t i = 0; !status && i < count && list.as.list->count; ++i) extend(made, list);
    return made;
  }
  void insert(const any& list, int64_t index, const any& item) {
    append(list, item);
    if (status) return;
    sequence& held = *list.as.list;
    if (index < 0) index += held.count - 1;
    index = index < 0 ? 0 : index;
    for (int64_t i = held.count - 1; i > index; --i) held.items[i] = held.items[i - 1];
    if (index < held.count) held.items[index] = item;
  }
  any pop(const any& list, int64_t index) {
    sequence& held = *list.as.list;
    if (!held.count) return fail(failed, "IndexError: pop from empty list");
    if (index < 0) index += held.count;
    if (index < 0 || index >= held.count) return fail(failed, "IndexError: pop index out of range");
    any found = held.items[index];
    drop(held, index, 1);
    return found;
  }
  static void drop(sequence& held, int64_t index, int64_t count) {
    held.count -= count;
    for (int64_t i = index; i < held.count; ++i) held.items[i] = held.items[i + count];
  }
  static void reverse(const any& list) {
    sequence& held = *list.as.list;
    for (int64_t i = 0, j = held.count - 1; i < j; ++i, --j) {
      const any item = held.items[i];
      held.items[i] = held.items[j];
      held.items[j] = item;
    }
  }
  // A stable sort, by merging.
  void sort(const any& list, bool down) {
    sequence& held = *list.as.list;
    any* other = (any*)take((held.count + 1) * (int64_t)sizeof(any));
    if (!other) return;
    any* from = held.items;
    for (int64_t width = 1; width < held.count; width *= 2) {
      for (int64_t left = 0; left < held.count; left += 2 * width) {
        const int64_t middle = left + width < held.count ? left + width : held.count;
        const int64_t end = left + 2 * width < held.count ? left + 2 * width : held.count;
        for (int64_t i = left, j = middle, to = left; to < end; ++to) {
          const bool takes_left = i < middle && (j >= end || (down ? order(from[i], from[j]) >= 0 : order(from[i], from[j]) <= 0));
          other[to] = takes_left ? from[i++] : from[j++];
        }
      }
      any* const swapped = from;
      from = other;
      other = swapped;
    }
    if (from != held.items) {
      for (int64_t i = 0; i < held.count; ++i) held.items[i] = from[i];
    }
  }
  any sorted(const any& list) {
    any made = copied(list);
    if (!status) sort(made, false);
    return made;
  }
  static int64_t found_in(const any& list, const any& item) {
    for (int64_t i = 0; i < list.as.list->count; ++i)
      if (equal(list.as.list->items[i], item)) return i;
    return -1;
  }
  int64_t index_of(const any& list, const any& item) {
    const int64_t found = found_in(list, item);
    if (found < 0) fail(failed, "ValueError: the value is not in the list");
    return found;
  }
  void remove(const any& list, const any& item) {
    const int64_t found = found_in(list, item);
    if (found < 0) fail(failed, "ValueError: list.remove(x): x not in list");
    else drop(*list.as.list, found, 1);
  }
  static int64_t count_of_item(const any& list, const any& item) {
    int64_t count = 0;
    for (int64_t i = 0; i < list.as.list->count; ++i) count += equal(list.as.list->items[i], item);
    return count;
  }
  any extreme(const any& list, bool most) {
    if (!list.as.list->count) return fail(failed, "ValueError: %s() arg is an empty sequence", most ? "max" : "min");
    any found = list.as.list->items[0];
    for (int64_t i = 1; i < list.as.list->count; ++i) {
      const int direction = order(list.as.list->items[i], found);
      if (most ? direction > 0 : direction < 0) found = list.as.list->items[i];
    }
    return found;
  }
  any sum(const any& list, const any& first) {
    any made = first;
    for (int64_t i = 0; i < list.as.list->count; ++i) {
      const any& item = list.as.list->items[i];
      if (made.kind == RL_CONSTANT(FLOAT) || item.kind == RL_CONSTANT(FLOAT)) made = any_of(real_in(made) + real_in(item));
      else made = any_of((int64_t)((uint64_t)made.as.integer + (uint64_t)item.as.integer));
    }
    return made;
  }
  static bool truth(const any& item) {
    if (is_number(item)) return item.kind == RL_CONSTANT(FLOAT) ? item.as.real != 0 : item.as.integer != 0;
    return item.kind == RL_CONSTANT(STRING) ? item.as.text->size > 0 : item.kind != RL_CONSTANT(NONE);
  }
  static bool any_true(const any& list) {
    for (int64_t i = 0; i < list.as.list->count; ++i)
      if (truth(list.as.list->items[i])) return true;
    return false;
  }
  static bool all_true(const any& list) {
    for (int64_t i = 0; i < list.as.list->count; ++i)
      if (!truth(list.as.list->items[i])) return false;
    return true;
  }
  any range(int64_t count) {
    any made = new_list(count > 0 ? count : 0);
    for (int64_t i = 0; !status && i < count; ++i) made.as.list->items[i] = any_of(i);
    return made;
  }

  // What a slice takes of so many: the first, the step, and how many. None is the end that it stands for.
  bool bounds(const any& start, const any& end, int64_t step, int64_t count, int64_t& first, int64_t& taken) {
    if (!step) fail(failed, "ValueError: slice step cannot be zero");
    if (status) return false;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
    auto place = [&](const any& given, int64_t otherwise) {
      if (given.kind == RL_CONSTANT(NONE)) return otherwise;
      int64_t at = given.as.integer;
      if (at < 0) at = at < -count ? low : at + count;
      return at < low ? low : at > high ? high : at;
    };
    first = place(start, step > 0 ? low : high);
    const int64_t last = place(end, step > 0 ? high : low);
    taken = step > 0 ? (last > first ? (last - first - 1) / step + 1 : 0) : (first > last ? (first - last - 1) / -step + 1 : 0);
    return true;
  }
  any slice(const any& a, const any& start, const any& end, int64_t step) {
    int64_t first, taken;
    const bool is_text = a.kind == RL_CONSTANT(STRING);
    if (!bounds(start, end, step, is_text ? length(a) : a.as.list->count, first, taken)) return {};
    any made = is_text ? text_of("", 0) : new_items(a.kind, taken);
    for (int64_t i = 0; !status && i < taken; ++i) {
      if (is_text) made = joined(made, part(a, first + i * step, first + i * step + 1));
      else made.as.list->items[i] = a.as.list->items[first + i * step];
    }
    return made;
  }

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
