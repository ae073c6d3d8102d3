// One run of a scripted program that is written statement by statement, and its lists, tuples and objects.
//
// Lists and objects are references, as in Python. All memory is the run's. What goes wrong is noted in `status`, with a sentence in the
// handle, and the program leaves at its next check.
#pragma once

#include <rushlight/deployed_any.h>

namespace rl {
namespace deployed {

// One run of a program: its memory, and what went wrong.
struct lists {
  handle& self;
  int status = ok;
  sequence none_left = {nullptr, 0, 0};  // a list for which there was no memory

  explicit lists(handle& self) : self(self) {}
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

  // Lists, tuples, objects

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
};

}  // namespace deployed
}  // namespace rl
