// What an exported model needs beside its kernels: its weights, memory, state, and looking at what callers give.
//
// Included after the model's own C header, with RL_MODEL(name) spelling that header's names: RL_MODEL(tensor) is the type of
// tensors. Needs the C library only. Nothing here throws, ends the process or keeps anything outside of a handle.
#pragma once

#include <rushlight/checks.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __wasm__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace rl {
namespace deployed {

using tensor = ::RL_MODEL(tensor);
using value = ::RL_MODEL(value);
constexpr int max_dims = RL_CONSTANT(MAX_RANK);
constexpr int ok = RL_CONSTANT(OK), bad_argument = RL_CONSTANT(BAD_ARGUMENT), bad_weights = RL_CONSTANT(BAD_WEIGHTS);
constexpr int failed = RL_CONSTANT(FAILED), no_memory = RL_CONSTANT(NO_MEMORY);
constexpr int unfit = -1;  // one form of a method is not for these arguments; another form may be

constexpr size_t alignment = 64;
constexpr int64_t max_bytes = (int64_t)1 << (sizeof(size_t) > 4 ? 60 : 30);
inline size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

inline void* take_aligned(size_t bytes) {
  void* made = nullptr;
  if (bytes > (size_t)max_bytes) return nullptr;
  return posix_memalign(&made, alignment, bytes ? aligned(bytes) : alignment) ? nullptr : made;
}

// Memory that is taken piece by piece and given back all at once. What one round needed is one block in the next.
class memory {
 public:
  memory() = default;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() {
    while (blocks) drop();
  }

  // Null where there is no more.
  void* take(int64_t bytes) {
    if (bytes < 0 || bytes > max_bytes) return nullptr;
    const size_t wanted = aligned(bytes ? (size_t)bytes : 1);
    if (!blocks || blocks->size - blocks->used < wanted) {
      const size_t size = wanted > least ? wanted : least;
      char* made = (char*)take_aligned(sizeof(block) + alignment + size);
      if (!made) return nullptr;
      block* added = (block*)made;
      *added = {blocks, made + aligned(sizeof(block)), size, 0};
      blocks = added;
    }
    char* found = blocks->data + blocks->used;
    blocks->used += wanted;
    return found;
  }

  bool holds(const void* address) const {
    for (const block* each = blocks; each; each = each->next)
      if ((const char*)address >= each->data && (const char*)address < each->data + each->size) return true;
    return false;
  }

  void give_back() {
    size_t total = 0;
    if (blocks && !blocks->next) {
      blocks->used = 0;
      return;
    }
    while (blocks) {
      total += blocks->used;
      drop();
    }
    if (total > least && take((int64_t)total)) blocks->used = 0;
  }

 private:
  struct block {
    block* next;
    char* data;
    size_t size, used;
  };
  static constexpr size_t least = 4096;
  block* blocks = nullptr;
  void drop() {
    block* next = blocks->next;
    free(blocks);
    blocks = next;
  }
};

// Tensors

struct element_type {
  int name;
  int bytes;
  const char* text;
};
constexpr element_type element_types[] = {
    {RL_CONSTANT(FLOAT32), 4, "float32"}, {RL_CONSTANT(FLOAT64), 8, "float64"}, {RL_CONSTANT(FLOAT16), 2, "float16"},
    {RL_CONSTANT(BFLOAT16), 2, "bfloat16"}, {RL_CONSTANT(INT64), 8, "int64"}, {RL_CONSTANT(INT32), 4, "int32"},
    {RL_CONSTANT(INT16), 2, "int16"}, {RL_CONSTANT(INT8), 1, "int8"}, {RL_CONSTANT(UINT8), 1, "uint8"}, {RL_CONSTANT(BOOLEAN), 1, "bool"},
    {RL_CONSTANT(COMPLEX64), 8, "complex64"}, {RL_CONSTANT(COMPLEX128), 16, "complex128"},
};
inline const element_type* type_named(int name) {
  for (const element_type& each : element_types)
    if (each.name == name) return &each;
  return nullptr;
}
inline int bytes_of(int name) {
  const element_type* found = type_named(name);
  return found ? found->bytes : 0;
}
// What the addresses of elements are multiples of.
inline int alignment_of(int name) {
  const bool has_parts = name == RL_CONSTANT(COMPLEX64) || name == RL_CONSTANT(COMPLEX128);
  return bytes_of(name) / (has_parts ? 2 : 1);
}
inline const char* text_of(int name) {
  const element_type* found = type_named(name);
  return found ? found->text : "no dtype";
}

// The number of elements; -1 for sizes below 0 or too many elements.
inline int64_t count_of(const tensor& self) {
  int64_t count = 1;
  bool empty = false;
  for (int dim = 0; dim < self.rank; ++dim) {
    if (self.sizes[dim] < 0) return -1;
    empty |= self.sizes[dim] == 0;
  }
  if (empty) return 0;
  for (int dim = 0; dim < self.rank; ++dim)
    if (__builtin_mul_overflow(count, self.sizes[dim], &count) || count > max_bytes) return -1;
  return count;
}

inline void set_contiguous(tensor& self) {
  int64_t step = 1;
  for (int dim = self.rank; dim-- > 0;) {
    self.strides[dim] = step;
    step *= self.sizes[dim] > 1 ? self.sizes[dim] : 1;
  }
}

inline tensor tensor_of(void* data, int name, int rank, const int64_t* sizes, const int64_t* strides) {
  tensor made;
  memset(&made, 0, sizeof(made));
  made.data = data;
  made.dtype = name;
  made.rank = rank;
  for (int dim = 0; dim < rank; ++dim) made.sizes[dim] = sizes[dim];
  if (strides)
    for (int dim = 0; dim < rank; ++dim) made.strides[dim] = strides[dim];
  else
    set_contiguous(made);
  return made;
}

// Whether elements lie as strides say; those of dimensions with one element don't matter.
inline bool lies_by(const tensor& self, const int64_t* strides) {
  for (int dim = 0; dim < self.rank; ++dim)
    if (self.sizes[dim] != 1 && self.strides[dim] != strides[dim]) return false;
  return true;
}

// A list of sizes as an array.
struct size_list {
  int64_t numbers[max_dims];
};
template <class... Sizes> inline size_list sizes_of(Sizes... sizes) { return {{(int64_t)sizes...}}; }

inline bool same_sizes(const tensor& self, const tensor& other) {
  if (self.rank != other.rank) return false;
  for (int dim = 0; dim < self.rank; ++dim)
    if (self.sizes[dim] != other.sizes[dim]) return false;
  return true;
}

// The bytes from the first element to behind the last, for strides of 0 and more; -1 where they don't fit a number.
inline int64_t reach_of(const tensor& self) {
  int64_t last = 0;
  if (count_of(self) == 0) return 0;
  for (int dim = 0; dim < self.rank; ++dim) {
    int64_t step;
    if (self.strides[dim] < 0 || __builtin_mul_overflow(self.sizes[dim] - 1, self.strides[dim], &step)) return -1;
    if (__builtin_add_overflow(last, step, &last) || last > max_bytes / 8) return -1;
  }
  return (last + 1) * bytes_of(self.dtype);
}

template <class T> inline void copy_elements(char* to, const int64_t* to_steps, const char* from, const int64_t* steps,
                                             const int64_t* sizes, int rank) {
  if (rank == 0) {
    *(T*)to = *(const T*)from;
    return;
  }
  for (int64_t i = 0; i < sizes[0]; ++i) {
    char* row = to + i * to_steps[0] * (int64_t)sizeof(T);
    const char* other = from + i * steps[0] * (int64_t)sizeof(T);
    copy_elements<T>(row, to_steps + 1, other, steps + 1, sizes + 1, rank - 1);
  }
}

template <class T> struct two_of {
  T parts[2];
};

// Puts the elements of one tensor into another of the same sizes and dtype, whose memory is elsewhere.
inline void copy_tensor(const tensor& to, const tensor& from) {
  const int64_t count = count_of(from), bytes = bytes_of(from.dtype);
  if (count == 0) return;
  tensor plain = from;
  set_contiguous(plain);
  if (lies_by(from, plain.strides) && lies_by(to, plain.strides)) {
    memcpy(to.data, from.data, (size_t)(count * bytes));
    return;
  }
  const auto copy = bytes == 1   ? copy_elements<uint8_t>
                    : bytes == 2 ? copy_elements<uint16_t>
                    : bytes == 4 ? copy_elements<uint32_t>
                    : from.dtype == RL_CONSTANT(COMPLEX64) ? copy_elements<two_of<uint32_t>>
                    : bytes == 8 ? copy_elements<uint64_t>
                                 : copy_elements<two_of<uint64_t>>;
  copy((char*)to.data, to.strides, (const char*)from.data, from.strides, from.sizes, from.rank);
}

// Weights

constexpr char weights_magic[8] = {'R', 'L', 'W', 'E', 'I', 'G', 'H', 'T'};
struct weights_header {
  char magic[8];
  uint64_t size;        // the bytes of the whole file
  char identity[32];    // names the model that the weights belong to
};

// The weights of a model, and what is made of them once; handles share them.
struct weights {
  const char* data = nullptr;
  size_t size = 0;
  bool is_mapped = false, is_owned = false;
  long users = 1;
  memory made;
  void*** kept = nullptr;  // for each program what it takes of that from run to run, once it has been made
  bool is_busy = false;    // somebody makes it

  ~weights() {
#ifndef __wasm__
    if (is_mapped) munmap((void*)data, size);
#endif
    if (is_owned) free((void*)data);
  }
};

// What a program takes from run to run, which its first run makes; null where there is no memory.
inline void** kept_of(weights& held, int program, void** (*make)(weights&)) {
  void** found = __atomic_load_n(&held.kept[program], __ATOMIC_ACQUIRE);
  if (found) return found;
  while (__atomic_exchange_n(&held.is_busy, true, __ATOMIC_ACQUIRE)) {
#ifndef __wasm__
    usleep(50);
#endif
  }
  found = held.kept[program];
  if (!found) {
    found = make(held);
    __atomic_store_n(&held.kept[program], found, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&held.is_busy, false, __ATOMIC_RELEASE);
  return found;
}

// What is wrong is told in a sentence, which belongs to who asks.
class complaint {
 public:
  char text[512] = "";

  __attribute__((format(printf, 3, 4))) int say(int status, const char* format, ...) {
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof(text), format, rest);
    va_end(rest);
    return status;
  }
  int no_more() { return say(no_memory, "there is no memory left"); }
};

inline int check_weights(const weights& found, const char* identity, uint64_t expected, complaint& wrong) {
  weights_header header;
  if (found.size < sizeof(header)) return wrong.say(bad_weights, "the weights are %zu bytes, too short for any", found.size);
  memcpy(&header, found.data, sizeof(header));
  if (memcmp(header.magic, weights_magic, sizeof(weights_magic)) != 0)
    return wrong.say(bad_weights, "the weights do not begin as weights of a model do");
  if (memcmp(header.identity, identity, sizeof(header.identity)) != 0)
    return wrong.say(bad_weights, "the weights belong to another model, or to another export of this one");
  if (header.size != expected || found.size < expected)
    return wrong.say(bad_weights, "the weights are %zu bytes, and should be %llu: the file is cut off", found.size,
                     (unsigned long long)expected);
  return ok;
}

inline int read_weights(const char* path, weights& into, complaint& wrong) {
  if (!path) return wrong.say(bad_argument, "the path of the weights is a null pointer");
#ifdef __wasm__
  return wrong.say(bad_weights, "weights come from memory here, not from the file %s", path);
#else
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return wrong.say(bad_weights, "the weights %s cannot be opened: %s", path, strerror(errno));
  struct stat about;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
    close(file);
    return wrong.say(bad_weights, "the weights %s are no file with anything in it", path);
  }
  void* data = mmap(nullptr, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  const int reason = errno;
  close(file);
  if (data == MAP_FAILED) return wrong.say(bad_weights, "the weights %s cannot be mapped: %s", path, strerror(reason));
  into.data = (const char*)data;
  into.size = (size_t)about.st_size;
  into.is_mapped = true;
  return ok;
#endif
}

// Weights in the caller's memory, which stays; copied where they do not lie as numbers have to.
inline int borrow_weights(const void* data, size_t size, weights& into, complaint& wrong) {
  if (!data) return wrong.say(bad_argument, "the weights are a null pointer");
  into.data = (const char*)data;
  into.size = size;
  if ((uintptr_t)data % alignment == 0) return ok;
  void* copied = take_aligned(size);
  if (!copied) {
    into.data = nullptr;
    return wrong.no_more();
  }
  memcpy(copied, data, size);
  into.data = (const char*)copied;
  into.is_owned = true;
  return ok;
}

// What a program that gives up with this status found.
inline const char* reason_of(int status) {
  return status == no_solution ? "a matrix is singular or not positive-definite, or has numbers that are not finite"
                               : "a value is out of range: an index or a class beyond its dimension, a divisor of 0, or a probability";
}

// Sizes

// An integer that remembers whether it once was too large for 64 bits: conditions on sizes are false then.
struct counted {
  int64_t number;
  bool lost;
  counted(int64_t number, bool lost = false) : number(number), lost(lost) {}
  friend counted operator+(counted a, counted b) {
    int64_t sum;
    const bool over = __builtin_add_overflow(a.number, b.number, &sum);
    return {sum, over || a.lost || b.lost};
  }
  friend counted operator-(counted a, counted b) {
    int64_t rest;
    const bool over = __builtin_sub_overflow(a.number, b.number, &rest);
    return {rest, over || a.lost || b.lost};
  }
  friend counted operator*(counted a, counted b) {
    int64_t product;
    const bool over = __builtin_mul_overflow(a.number, b.number, &product);
    return {product, over || a.lost || b.lost};
  }
  friend counted operator/(counted a, counted b) { return b.none() ? counted(0, true) : counted(a.number / b.number, a.lost || b.lost); }
  friend counted operator%(counted a, counted b) { return b.none() ? counted(0, true) : counted(a.number % b.number, a.lost || b.lost); }
  friend counted operator-(counted a) { return counted(0) - a; }
  bool none() const { return number == 0 || number == -1; }  // no divisor that a size has
  bool is_zero() const { return !lost && number == 0; }
  bool is_other() const { return !lost && number != 0; }
  bool is_positive() const { return !lost && number >= 0; }
};
// Values

inline value none() {
  value made;
  memset(&made, 0, sizeof(made));
  return made;
}
inline value of_integer(int64_t number, int kind = RL_CONSTANT(INT)) {
  value made = none();
  made.kind = kind;
  made.as.integer = number;
  return made;
}
inline value of_boolean(bool number) { return of_integer(number, RL_CONSTANT(BOOL)); }
inline value of_real(double number) {
  value made = none();
  made.kind = RL_CONSTANT(FLOAT);
  made.as.real = number;
  return made;
}
inline value of_string(const char* text, size_t size) {
  value made = none();
  made.kind = RL_CONSTANT(STRING);
  made.as.string.text = text;
  made.as.string.size = size;
  return made;
}
inline value of_tensor(const tensor& found) {
  value made = none();
  made.kind = RL_CONSTANT(TENSOR);
  made.as.tensor = found;
  return made;
}
inline value of_items(int kind, value* items, size_t count) {
  value made = none();
  made.kind = kind;
  made.as.list.items = items;
  made.as.list.count = count;
  return made;
}
inline bool has_items(int kind) { return kind == RL_CONSTANT(LIST) || kind == RL_CONSTANT(TUPLE) || kind == RL_CONSTANT(DICT); }

inline const char* kind_text(int kind) {
  switch (kind) {
    case RL_CONSTANT(NONE): return "nothing";
    case RL_CONSTANT(BOOL): return "a bool";
    case RL_CONSTANT(INT): return "an int";
    case RL_CONSTANT(FLOAT): return "a float";
    case RL_CONSTANT(STRING): return "a string";
    case RL_CONSTANT(TENSOR): return "a tensor";
    case RL_CONSTANT(LIST): return "a list";
    case RL_CONSTANT(TUPLE): return "a tuple";
    case RL_CONSTANT(DICT): return "a dict";
  }
  return "no value of a known kind";
}

// Whether two plain values are equal and of one kind.
inline bool is_same(const value& one, const value& other) {
  if (one.kind != other.kind) return false;
  if (one.kind == RL_CONSTANT(NONE)) return true;
  if (one.kind == RL_CONSTANT(FLOAT)) return memcmp(&one.as.real, &other.as.real, sizeof(double)) == 0;
  if (one.kind == RL_CONSTANT(BOOL)) return (one.as.integer != 0) == (other.as.integer != 0);
  if (one.kind == RL_CONSTANT(INT)) return one.as.integer == other.as.integer;
  if (one.kind != RL_CONSTANT(STRING) || one.as.string.size != other.as.string.size) return false;
  return memcmp(one.as.string.text, other.as.string.text, one.as.string.size) == 0;
}
inline bool same_number(int64_t one, int64_t other) { return one == other; }
inline bool same_number(bool one, bool other) { return one == other; }
inline bool same_number(double one, double other) { return memcmp(&one, &other, sizeof(double)) == 0; }

// An item of a list or tuple by its index, or what a dict has for a key; null where there is none.
inline const value* part_of(const value* from, const value& key) {
  if (from->kind == RL_CONSTANT(LIST) || from->kind == RL_CONSTANT(TUPLE))
    return key.kind == RL_CONSTANT(INT) && (uint64_t)key.as.integer < from->as.list.count ? from->as.list.items + key.as.integer : nullptr;
  if (from->kind != RL_CONSTANT(DICT)) return nullptr;
  for (size_t i = 0; i + 1 < from->as.list.count; i += 2)
    if (is_same(from->as.list.items[i], key)) return from->as.list.items + i + 1;
  return nullptr;
}

// The place for a result: empty, unless the caller says where it is to lie.
inline value place_of(const tensor& given) { return given.data ? of_tensor(given) : none(); }

// A copy in other memory, whole; false where there is none.
inline bool copy_value(value& to, const value& from, memory& pool) {
  to = from;
  if (from.kind == RL_CONSTANT(TENSOR)) {
    tensor& made = to.as.tensor;
    set_contiguous(made);
    made.data = pool.take(count_of(from.as.tensor) * bytes_of(made.dtype));
    if (!made.data) return false;
    copy_tensor(made, from.as.tensor);
  } else if (from.kind == RL_CONSTANT(STRING)) {
    char* text = (char*)pool.take((int64_t)from.as.string.size + 1);
    if (!text) return false;
    memcpy(text, from.as.string.text, from.as.string.size);
    text[from.as.string.size] = 0;
    to.as.string.text = text;
  } else if (has_items(from.kind)) {
    to.as.list.items = (value*)pool.take((int64_t)(from.as.list.count * sizeof(value)));
    if (!to.as.list.items) return false;
    for (size_t i = 0; i < from.as.list.count; ++i)
      if (!copy_value(to.as.list.items[i], from.as.list.items[i], pool)) return false;
  }
  return true;
}

// A value that a handle holds between runs: two memories, so that a new one may be made of the old one.
struct slot {
  value now = none();
  memory pools[2];
  int used = 0;

  bool keep(const value& next) {
    const int other = 1 - used;
    pools[other].give_back();
    value made;
    if (!copy_value(made, next, pools[other])) return false;
    now = made;
    used = other;
    return true;
  }
};

// Whether a value that a caller gives may be looked at: its kind is one, and so are those of its items.
inline bool is_sound(const value& given, int depth) {
  const int kind = given.kind;
  if (kind < RL_CONSTANT(NONE) || kind > RL_CONSTANT(DICT) || depth > 16) return false;
  if (kind == RL_CONSTANT(TENSOR)) return given.as.tensor.rank >= 0 && given.as.tensor.rank <= max_dims;
  if (kind == RL_CONSTANT(STRING)) return given.as.string.text || !given.as.string.size;
  if (!has_items(kind)) return true;
  if (given.as.list.count && !given.as.list.items) return false;
  for (size_t i = 0; i < given.as.list.count; ++i)
    if (!is_sound(given.as.list.items[i], depth + 1)) return false;
  return true;
}

// Whether a result may go there: values other than tensors have no memory of the caller, and are replaced.
inline bool is_place(const value& given) {
  if (given.kind != RL_CONSTANT(TENSOR)) return given.kind >= RL_CONSTANT(NONE) && given.kind <= RL_CONSTANT(DICT);
  const tensor& place = given.as.tensor;
  return place.rank >= 0 && place.rank <= max_dims && (!place.data || count_of(place) >= 0);
}

// How a list lies in a structured program: how deep lists are in it, and what the innermost hold.
struct list_layout {
  int depth, kind;
  int64_t width;  // bytes of an element
  int element, rank;
  size_list sizes;
};
inline int64_t bits_of(double number) {
  int64_t bits;
  memcpy(&bits, &number, 8);
  return bits;
}
inline double real_of(int64_t bits) {
  double number;
  memcpy(&number, &bits, 8);
  return number;
}

// Handles

// What all handles have. `turn` is the memory of the present run: what the one before gave stays until the next.
struct handle : complaint {
  weights* held = nullptr;
  int threads = 1;
  uint64_t seed = 0, drawn = 0;
  memory turns[2];
  int turn = 0;

  memory& run_memory() { return turns[turn]; }
  void* take(int64_t bytes) { return run_memory().take(bytes); }
  void begin() {
    text[0] = 0;
    turn = 1 - turn;
    run_memory().give_back();
  }

  // A tensor among the arguments, of a dtype and a rank; null where it is none, which has been said.
  const tensor* tensor_in(const value& given, const char* name, int wanted, int rank) {
    if (given.kind != RL_CONSTANT(TENSOR)) {
      say(unfit, "%s must be a tensor, got %s", name, kind_text(given.kind));
      return nullptr;
    }
    const tensor& found = given.as.tensor;
    if (found.dtype != wanted) {
      say(unfit, "%s must be a tensor of dtype %s, got %s", name, text_of(wanted), text_of(found.dtype));
      return nullptr;
    }
    if (found.rank != rank) {
      say(unfit, "%s must have %d dimensions, got %d", name, rank, (int)found.rank);
      return nullptr;
    }
    const int64_t count = count_of(found);
    if (count < 0) {
      char sizes[200];
      say(unfit, "%s has the sizes %s, which no tensor has", name, sizes_text(found, sizes, sizeof(sizes)));
      return nullptr;
    }
    if (count && !found.data) {
      say(unfit, "%s has no memory: its data is a null pointer", name);
      return nullptr;
    }
    if ((uintptr_t)found.data % (uintptr_t)alignment_of(found.dtype)) {
      say(unfit, "%s begins at an address that is no multiple of %d bytes", name, alignment_of(found.dtype));
      return nullptr;
    }
    if (reach_of(found) < 0) {
      say(unfit, "%s has strides below 0, or beyond what memory holds", name);
      return nullptr;
    }
    return &found;
  }

  // Whether a value is of a kind, and, for a list, a tuple or a dict, of so many items.
  bool has_kind(const value& given, const char* name, int kind, int64_t count) {
    if (given.kind != kind) {
      say(unfit, "%s must be %s, got %s", name, kind_text(kind), kind_text(given.kind));
      return false;
    }
    if (count >= 0 && (int64_t)given.as.list.count != count) {
      say(unfit, "%s must have %lld items, got %zu", name, (long long)count, given.as.list.count);
      return false;
    }
    return true;
  }

  // A list as structured programs take it: its length, then numbers, or addresses of tensors or lists. Null where the value is no
  // such list, which has been said.
  int64_t* listed(const value& given, const char* name, const list_layout& layout) {
    const int64_t count = given.kind == RL_CONSTANT(LIST) ? (int64_t)given.as.list.count : 0;
    if (!has_kind(given, name, RL_CONSTANT(LIST), -1)) return nullptr;
    int64_t* const cells = (int64_t*)take(8 * (count + 1));
    if (!cells) {
      no_more();
      return nullptr;
    }
    cells[0] = count;
    for (int64_t i = 0; i < count; ++i) {
      const value& item = given.as.list.items[i];
      if (layout.depth > 0) {
        list_layout inner = layout;
        --inner.depth;
        cells[1 + i] = (int64_t)(intptr_t)listed(item, name, inner);
        if (!cells[1 + i]) return nullptr;
      } else if (layout.kind == RL_CONSTANT(TENSOR)) {
        const tensor* const found = tensor_in(item, name, layout.element, layout.rank);
        if (!found) return nullptr;
        const tensor wanted = tensor_of(nullptr, layout.element, layout.rank, layout.sizes.numbers, nullptr);
        if (!same_sizes(*found, wanted)) {
          char sizes[200];
          wrong_sizes(*found, name, sizes_text(wanted, sizes, sizeof(sizes)));
          return nullptr;
        }
        cells[1 + i] = (int64_t)(intptr_t)laid(*found, wanted.strides);
        if (!cells[1 + i]) return nullptr;
      } else {
        if (!has_kind(item, name, layout.kind, -1)) return nullptr;
        if (layout.kind == RL_CONSTANT(BOOL)) ((char*)(cells + 1))[i] = item.as.integer != 0;
        else memcpy(cells + 1 + i, &item.as, 8);
      }
    }
    return cells;
  }

  // What a structured program gives for a list, whose memory is given back; None for none, a list without items' memory where
  // there is no more.
  value unlisted(void* given, const list_layout& layout) {
    int64_t* const cells = (int64_t*)given;
    if (!cells) return none();
    const int64_t count = cells[0];
    value* const items = (value*)take((count + 1) * (int64_t)sizeof(value));
    for (int64_t i = 0; items && i < count; ++i) {
      if (layout.depth > 0) {
        list_layout inner = layout;
        --inner.depth;
        items[i] = unlisted((void*)(intptr_t)cells[1 + i], inner);
      } else if (layout.kind == RL_CONSTANT(TENSOR)) {
        void* const data = take(layout.width);
        if (data) memcpy(data, (char*)(cells + 1) + i * layout.width, (size_t)layout.width);
        items[i] = of_tensor(tensor_of(data, layout.element, layout.rank, layout.sizes.numbers, nullptr));
      } else if (layout.kind == RL_CONSTANT(BOOL)) {
        items[i] = of_boolean(((char*)(cells + 1))[i] != 0);
      } else {
        items[i] = none();
        items[i].kind = layout.kind;
        memcpy(&items[i].as, cells + 1 + i, 8);
      }
    }
    free(cells);
    return of_items(RL_CONSTANT(LIST), items, (size_t)count);
  }

  // The tensors of a list, all of the same sizes, put together along a new dimension or an old one.
  int joined(value& into, const value& list, int64_t dim, bool is_stack) {
    const size_t count = list.as.list.count;
    if (list.kind != RL_CONSTANT(LIST) || !count) return say(failed, "there are no tensors to put together");
    const tensor& first = list.as.list.items[0].as.tensor;
    tensor made = first;
    made.rank += is_stack;
    if (dim < 0) dim += made.rank;
    if (made.rank > max_dims || dim < 0 || dim >= made.rank) return say(failed, "tensors cannot be put together so");
    for (int at = made.rank - 1; is_stack && at > dim; --at) made.sizes[at] = made.sizes[at - 1];
    made.sizes[dim] = (int64_t)count * (is_stack ? 1 : first.sizes[dim]);
    set_contiguous(made);
    const int64_t elements = count_of(made);
    made.data = elements < 0 ? nullptr : take(elements * bytes_of(made.dtype));
    if (!made.data) return no_more();
    for (size_t i = 0; i < count; ++i) {
      tensor part = made;
      part.sizes[dim] = is_stack ? 1 : first.sizes[dim];
      part.data = (char*)made.data + (int64_t)i * part.sizes[dim] * made.strides[dim] * bytes_of(made.dtype);
      tensor item = list.as.list.items[i].as.tensor;
      if (!item.data && count_of(item)) return no_more();
      if (is_stack) {
        item.rank = made.rank;
        for (int at = made.rank - 1; at > dim; --at) item.sizes[at] = item.sizes[at - 1];
        item.sizes[dim] = 1;
        set_contiguous(item);
      }
      copy_tensor(part, item);
    }
    into = of_tensor(made);
    return ok;
  }

  // What a run's random numbers come from: a tensor of one int64 (SplitMix64).
  value next_seed() {
    int64_t* const place = (int64_t*)take(8);
    if (!place) return none();
    uint64_t mixed = seed + ++drawn * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    *place = (int64_t)(mixed ^ (mixed >> 31));
    return of_tensor(tensor_of(place, RL_CONSTANT(INT64), 0, nullptr, nullptr));
  }

  static const char* sizes_text(const tensor& found, char* text, size_t room) {
    size_t used = (size_t)snprintf(text, room, "[");
    for (int dim = 0; dim < found.rank && dim < max_dims && used < room; ++dim)
      used += (size_t)snprintf(text + used, room - used, dim ? ", %lld" : "%lld", (long long)found.sizes[dim]);
    if (used < room) snprintf(text + used, room - used, "]");
    return text;
  }

  int wrong_sizes(const tensor& found, const char* name, const char* expected) {
    char sizes[200];
    return say(unfit, "%s must have the sizes %s, got %s", name, expected, sizes_text(found, sizes, sizeof(sizes)));
  }

  // The elements of a tensor as strides say: where they lie, or copied. Null where there is no memory.
  void* laid(const tensor& found, const int64_t* strides) {
    if (lies_by(found, strides)) return found.data ? found.data : take(1);
    tensor copied = tensor_of(nullptr, found.dtype, found.rank, found.sizes, strides);
    copied.data = take(reach_of(copied));
    if (copied.data) copy_tensor(copied, found);
    return copied.data;
  }

  // The memory for a result: the caller's where that is as the result will be and apart from all inputs, else the handle's.
  void* room(const value* place, const tensor& made, const value* const* inputs, int count) {
    const int64_t bytes = reach_of(made);
    if (bytes < 0) return nullptr;
    if (place && place->kind == RL_CONSTANT(TENSOR) && place->as.tensor.data && bytes) {
      const tensor& given = place->as.tensor;
      bool fits = given.dtype == made.dtype && same_sizes(given, made) && lies_by(given, made.strides);
      fits &= (uintptr_t)given.data % (uintptr_t)alignment_of(made.dtype) == 0;
      const char *first = (const char*)given.data, *last = first + bytes;
      for (int i = 0; fits && i < count; ++i) {
        if (inputs[i]->kind != RL_CONSTANT(TENSOR)) continue;
        const char* data = (const char*)inputs[i]->as.tensor.data;
        fits = data >= last || data + reach_of(inputs[i]->as.tensor) <= first;
      }
      if (fits) return given.data;
    }
    return take(bytes);
  }

  // Puts a result where the caller wants it: in the memory that is given for it, or in the handle's.
  int deliver(value& to, const value& result, const char* name) {
    if (to.kind == RL_CONSTANT(NONE)) {
      to = result;
      return ok;
    }
    if (to.kind != RL_CONSTANT(TENSOR) || result.kind != RL_CONSTANT(TENSOR))
      return say(bad_argument, "the place for %s must be empty, or a tensor for a tensor; it is %s, for %s", name,
                 kind_text(to.kind), kind_text(result.kind));
    tensor& place = to.as.tensor;
    const tensor& made = result.as.tensor;
    if (!place.data) {
      to = result;
      return ok;
    }
    if (place.dtype != made.dtype)
      return say(bad_argument, "the memory for %s is of %s, the result of %s", name, text_of(place.dtype), text_of(made.dtype));
    if (!same_sizes(place, made)) {
      char sizes[200], given[200];
      return say(bad_argument, "the memory for %s has the sizes %s, the result %s", name,
                 sizes_text(place, given, sizeof(given)), sizes_text(made, sizes, sizeof(sizes)));
    }
    if (reach_of(place) < 0) return say(bad_argument, "the memory for %s has strides below 0, or beyond what memory holds", name);
    if ((uintptr_t)place.data % (uintptr_t)alignment_of(place.dtype))
      return say(bad_argument, "the memory for %s begins at an address that is no multiple of an element's bytes", name);
    if (place.data != made.data) copy_tensor(place, made);
    return ok;
  }
};

}  // namespace deployed

inline deployed::counted floor_div(deployed::counted a, deployed::counted b) {
  if (b.none()) return {0, true};
  const int64_t rest = a.number % b.number;
  return {a.number / b.number - (rest && (rest < 0) != (b.number < 0)), a.lost || b.lost};
}
inline deployed::counted floor_mod(deployed::counted a, deployed::counted b) {
  return a - floor_div(a, b) * b;
}

}  // namespace rl
