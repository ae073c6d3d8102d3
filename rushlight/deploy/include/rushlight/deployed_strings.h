// The strings of scripted programs that are written statement by statement.
#pragma once

#include <rushlight/deployed_lists.h>

namespace rl {
namespace deployed {

struct strings : lists {
  using lists::lists;

  any text_of(const char* data, int64_t size) {
    static const characters nothing = {"", 0};
    characters* held = (characters*)take((int64_t)sizeof(characters) + size + 1);
    any made;
    made.kind = RL_CONSTANT(STRING);
    made.as.text = &nothing;  // the result without memory: `take` has set `status`
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
  // Fills a string up to `width` characters: on the left, on the right, or on both sides.
  any padded(const any& a, int64_t width, const any& with, int left, int right) {
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

  // Slices of strings and of lists

  // Sets the first index of a slice of `count` items, and how many items it takes. None as start or end means that end.
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
};

}  // namespace deployed
}  // namespace rl
