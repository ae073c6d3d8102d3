// Tensors of scripted programs that are written statement by statement: views, which share memory, single elements, and tensors that
// are put together from lists whose lengths only a run knows.
#pragma once

namespace rl {
namespace deployed {

struct tensors : language {
  using language::language;

  static const tensor& in(const any& a) { return *a.as.held; }
  static int64_t width(const tensor& a) { return bytes_of(a.dtype); }

  // A dimension as one of 0 and more.
  int dim_of(int64_t dim, int rank) {
    const int64_t found = dim < 0 ? dim + rank : dim;
    if (found < 0 || found >= rank) {
      fail(failed, "IndexError: Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -rank, rank - 1, (long long)dim);
      return 0;
    }
    return (int)found;
  }
  int64_t size(const any& a, int64_t dim) {
    const int found = dim_of(dim, in(a).rank);
    return status ? 0 : in(a).sizes[found];
  }
  int64_t tensor_length(const any& a) {
    if (!in(a).rank) fail(failed, "TypeError: len() of a 0-d tensor");
    return status ? 0 : in(a).sizes[0];
  }
  any sizes(const any& a) {
    any made = new_list(in(a).rank);
    for (int dim = 0; !status && dim < in(a).rank; ++dim) made.as.list->items[dim] = any_of(in(a).sizes[dim]);
    return made;
  }
  any new_tensor(int name, int rank, const int64_t* sizes) {
    tensor made = tensor_of(nullptr, name, rank, sizes, nullptr);
    const int64_t count = count_of(made);
    if (count < 0) return fail(failed, "RuntimeError: sizes that no tensor has");
    made.data = take(count * width(made));
    return status ? any{} : tensor_like(made);
  }
  any contiguous(const any& a) {
    tensor plain = in(a);
    set_contiguous(plain);
    return lies_by(in(a), plain.strides) ? a : clone(a);
  }
  any clone(const any& a) {
    any made = new_tensor(in(a).dtype, in(a).rank, in(a).sizes);
    if (!status) copy_tensor(in(made), in(a));
    return made;
  }

  // Views

  any select(const any& a, int64_t dim, int64_t index) {
    const int at = dim_of(dim, in(a).rank);
    if (status) return {};
    tensor made = in(a);
    const int64_t count = made.sizes[at];
    if (index < -count || index >= count)
      return fail(failed, "IndexError: select(): index %lld out of range for tensor of size %lld at dimension %d", (long long)index, (long long)count, at);
    made.data = (char*)made.data + (index < 0 ? index + count : index) * made.strides[at] * width(made);
    for (int i = at; i + 1 < made.rank; ++i) made.sizes[i] = made.sizes[i + 1], made.strides[i] = made.strides[i + 1];
    --made.rank;
    return tensor_like(made);
  }
  any tensor_slice(const any& a, int64_t dim, const any& start, const any& end, int64_t step) {
    int64_t first, taken;
    const int at = dim_of(dim, in(a).rank);
    if (step < 1) fail(failed, "ValueError: slice step must be positive");
    if (status || !bounds(start, end, step, in(a).sizes[at], first, taken)) return {};
    tensor made = in(a);
    if (taken) made.data = (char*)made.data + first * made.strides[at] * width(made);
    made.sizes[at] = taken;
    made.strides[at] *= step;
    return tensor_like(made);
  }
  any narrow(const any& a, int64_t dim, int64_t start, int64_t length) {
    const int at = dim_of(dim, in(a).rank);
    if (status) return {};
    if (start < 0) start += in(a).sizes[at];
    if (start < 0 || length < 0 || start > in(a).sizes[at] - length)
      return fail(failed, "RuntimeError: start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start, (long long)length, (long long)in(a).sizes[at]);
    return tensor_slice(a, at, any_of(start), any_of(start + length), 1);
  }
  any unsqueeze(const any& a, int64_t dim) {
    const int at = dim_of(dim, in(a).rank + 1);
    if (in(a).rank == max_dims) fail(failed, "a tensor of more dimensions than the interface has");
    if (status) return {};
    tensor made = in(a);
    for (int i = made.rank; i > at; --i) made.sizes[i] = made.sizes[i - 1], made.strides[i] = made.strides[i - 1];
    made.strides[at] = at < made.rank ? made.sizes[at + 1] * made.strides[at + 1] : 1;
    made.sizes[at] = 1;
    ++made.rank;
    return tensor_like(made);
  }
  any transpose(const any& a, int64_t one, int64_t other) {
    const int i = dim_of(one, in(a).rank), j = dim_of(other, in(a).rank);
    if (status) return {};
    tensor made = in(a);
    made.sizes[i] = in(a).sizes[j], made.sizes[j] = in(a).sizes[i];
    made.strides[i] = in(a).strides[j], made.strides[j] = in(a).strides[i];
    return tensor_like(made);
  }
  any permute(const any& a, const any& dims) {
    tensor made = in(a);
    for (int i = 0; i < made.rank; ++i) {
      const int from = dim_of(dims.as.list->items[i].as.integer, made.rank);
      if (status) return {};
      made.sizes[i] = in(a).sizes[from], made.strides[i] = in(a).strides[from];
    }
    return tensor_like(made);
  }
  any expand(const any& a, const any& sizes) {
    const int rank = (int)sizes.as.list->count, more = rank - in(a).rank;
    tensor made = in(a);
    made.rank = rank;
    for (int i = rank; i-- > 0;) {
      const int64_t own = i < more ? 1 : in(a).sizes[i - more], wanted = sizes.as.list->items[i].as.integer;
      made.sizes[i] = wanted == -1 ? own : wanted;
      made.strides[i] = i < more || own == 1 ? 0 : in(a).strides[i - more];
      if (made.sizes[i] < 0 || (own != 1 && made.sizes[i] != own) || (wanted == -1 && i < more))
        return fail(failed, "RuntimeError: The expanded size of the tensor (%lld) must match the existing size (%lld)", (long long)wanted, (long long)own);
    }
    return tensor_like(made);
  }
  // Other sizes over the same elements; a copy where strides have no other way.
  any reshape(const any& a, const any& sizes) {
    const tensor& given = in(a);
    const int rank = (int)sizes.as.list->count;
    int open = -1;
    int64_t known = 1;
    tensor made = given;
    made.rank = rank;
    for (int i = 0; i < rank; ++i) {
      made.sizes[i] = sizes.as.list->items[i].as.integer;
      if (made.sizes[i] == -1) open = i;
      else if (made.sizes[i] < 0 || __builtin_mul_overflow(known, made.sizes[i], &known)) return fail(failed, "RuntimeError: invalid shape dimension");
    }
    const int64_t count = count_of(given);
    if (open >= 0 && known) made.sizes[open] = count / known;
    if (open >= 0 && known) known *= made.sizes[open];
    if (known != count || (open >= 0 && !known)) return fail(failed, "RuntimeError: shape is invalid for input of size %lld", (long long)count);
    set_contiguous(made);
    tensor plain = given;
    set_contiguous(plain);
    if (lies_by(given, plain.strides)) return tensor_like(made);
    any copied = clone(a);
    if (status) return {};
    made.data = in(copied).data;
    return tensor_like(made);
  }
  // A list of parts along a dimension, each as long as `lengths` says, or all as long, but for the last.
  any tensor_split(const any& a, const any& lengths, int64_t dim) {
    const int at = dim_of(dim, in(a).rank);
    if (status) return {};
    any made = new_list(0);
    const bool is_list = lengths.kind == RL_CONSTANT(LIST);
    const int64_t total = in(a).sizes[at];
    if (!is_list && lengths.as.integer <= 0) return fail(failed, "RuntimeError: split expects split_size be positive");
    int64_t from = 0;
    for (int64_t i = 0; !status && (is_list ? i < lengths.as.list->count : from < total || i == 0); ++i) {
      int64_t length = is_list ? lengths.as.list->items[i].as.integer : lengths.as.integer;
      if (!is_list && from + length > total) length = total - from;
      append(made, narrow(a, at, from, length));
      from += length;
    }
    if (!status && from != total) return fail(failed, "RuntimeError: split_with_sizes expects the sizes to sum to %lld", (long long)total);
    return made;
  }
  any chunk(const any& a, int64_t count, int64_t dim) {
    const int at = dim_of(dim, in(a).rank);
    if (count < 1) fail(failed, "RuntimeError: chunk expects `chunks` to be greater than 0");
    if (status) return {};
    const int64_t total = in(a).sizes[at];
    return tensor_split(a, any_of(total ? (total - 1) / count + 1 : (int64_t)1), at);
  }
  any unbind(const any& a, int64_t dim) {
    const int at = dim_of(dim, in(a).rank);
    if (status) return {};
    any made = new_list(0);
    for (int64_t i = 0; !status && i < in(a).sizes[at]; ++i) append(made, select(a, at, i));
    return made;
  }

  // Elements

  template <class T> static T element(const tensor& a) {
    T found;
    memcpy(&found, a.data, sizeof(T));
    return found;
  }
  static float half_of(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
    return bits >> 15 ? -size : size;
  }
  static float brain_of(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float found;
    memcpy(&found, &wide, 4);
    return found;
  }
  any item(const any& a) {
    const tensor& given = in(a);
    if (count_of(given) != 1) return fail(failed, "RuntimeError: a Tensor with %lld elements cannot be converted to Scalar", (long long)count_of(given));
    switch (given.dtype) {
      case RL_CONSTANT(FLOAT32): return any_of((double)element<float>(given));
      case RL_CONSTANT(FLOAT64): return any_of(element<double>(given));
      case RL_CONSTANT(FLOAT16): return any_of((double)half_of(element<uint16_t>(given)));
      case RL_CONSTANT(BFLOAT16): return any_of((double)brain_of(element<uint16_t>(given)));
      case RL_CONSTANT(INT64): return any_of(element<int64_t>(given));
      case RL_CONSTANT(INT32): return any_of((int64_t)element<int32_t>(given));
      case RL_CONSTANT(INT16): return any_of((int64_t)element<int16_t>(given));
      case RL_CONSTANT(INT8): return any_of((int64_t)element<int8_t>(given));
      case RL_CONSTANT(UINT8): return any_of((int64_t)element<uint8_t>(given));
      case RL_CONSTANT(BOOLEAN): return any_of(element<uint8_t>(given) != 0);
      default: return fail(failed, "a tensor of a dtype whose elements have no form in C");
    }
  }
  int64_t integer_in(const any& a) {
    const any found = a.kind == RL_CONSTANT(TENSOR) ? item(a) : a;
    if (found.kind != RL_CONSTANT(FLOAT)) return found.as.integer;
    if (!(found.as.real >= -9223372036854775808.0 && found.as.real < 9223372036854775808.0)) fail(failed, "OverflowError: a float that no int holds");
    return status ? 0 : (int64_t)found.as.real;
  }
  double real_in_item(const any& a) { return real_in(a.kind == RL_CONSTANT(TENSOR) ? item(a) : a); }
  bool truth_in(const any& a) {
    if (a.kind == RL_CONSTANT(TENSOR) && count_of(in(a)) != 1)
      fail(failed, "RuntimeError: Boolean value of Tensor with %lld values is ambiguous", (long long)count_of(in(a)));
    return !status && truth(a.kind == RL_CONSTANT(TENSOR) ? item(a) : a);
  }
  void put_number(const tensor& into, int64_t place, const any& number) {
    char* const to = (char*)into.data + place * width(into);
    const int64_t whole = number.kind == RL_CONSTANT(FLOAT) ? (int64_t)number.as.real : number.as.integer;
    const float real = (float)real_in(number);
    const double wide = real_in(number);
    const uint8_t truth = real_in(number) != 0;
    switch (into.dtype) {
      case RL_CONSTANT(FLOAT32): memcpy(to, &real, 4); return;
      case RL_CONSTANT(FLOAT64): memcpy(to, &wide, 8); return;
      case RL_CONSTANT(INT64):
      case RL_CONSTANT(INT32):
      case RL_CONSTANT(INT16):
      case RL_CONSTANT(INT8):
      case RL_CONSTANT(UINT8): memcpy(to, &whole, (size_t)width(into)); return;
      case RL_CONSTANT(BOOLEAN): memcpy(to, &truth, 1); return;
      default: fail(failed, "a tensor of numbers of a dtype that has no form in C");
    }
  }
  // A tensor of a number, or of lists of numbers, all as long.
  any tensor_from(const any& numbers, int name) {
    int64_t sizes[max_dims + 1];
    int rank = 0;
    for (const any* at = &numbers; at->kind == RL_CONSTANT(LIST); at = at->as.list->items) {
      if (rank == max_dims) return fail(failed, "lists within lists, too deep for a tensor");
      sizes[rank++] = at->as.list->count;
      if (!at->as.list->count) break;
    }
    any made = new_tensor(name, rank, sizes);
    int64_t place = 0;
    if (!status) fill(in(made), numbers, 0, place);
    return made;
  }
  void fill(const tensor& into, const any& numbers, int depth, int64_t& place) {
    if (numbers.kind != RL_CONSTANT(LIST)) {
      if (depth == into.rank) put_number(into, place++, numbers);
      else fail(failed, "ValueError: expected sequences of the same depth");
      return;
    }
    if (depth >= into.rank || numbers.as.list->count != into.sizes[depth]) {
      fail(failed, "ValueError: expected sequence of length %lld at dim %d (got %lld)", depth < into.rank ? (long long)into.sizes[depth] : 0, depth, (long long)numbers.as.list->count);
      return;
    }
    for (int64_t i = 0; !status && i < numbers.as.list->count; ++i) fill(into, numbers.as.list->items[i], depth + 1, place);
  }
  any numbers_in(const any& a, int depth) {
    if (in(a).rank != depth) return fail(failed, "RuntimeError: Output annotation list dimension and runtime tensor dimension must match for tolist()");
    if (!depth) return item(a);
    any made = new_list(0);
    for (int64_t i = 0; !status && i < in(a).sizes[0]; ++i) append(made, numbers_in(select(a, 0, i), depth - 1));
    return made;
  }

  // What only elements decide

  static bool is_set(const tensor& a, int64_t place) {
    const char* const at = (const char*)a.data + place * width(a);
    float real;
    double wide;
    switch (a.dtype) {
      case RL_CONSTANT(FLOAT32): memcpy(&real, at, 4); return real != 0;
      case RL_CONSTANT(FLOAT64): memcpy(&wide, at, 8); return wide != 0;
      case RL_CONSTANT(FLOAT16):
      case RL_CONSTANT(BFLOAT16): return at[0] || (at[1] & 0x7f);
      default:
        for (int64_t i = 0; i < width(a); ++i)
          if (at[i]) return true;
        return false;
    }
  }
  any nonzero(const any& given) {
    const any a = contiguous(given);
    if (status) return {};
    const int64_t elements = count_of(in(a));
    int64_t count = 0, row = 0;
    for (int64_t i = 0; i < elements; ++i) count += is_set(in(a), i);
    const int64_t sizes[] = {count, in(a).rank};
    any made = new_tensor(RL_CONSTANT(INT64), 2, sizes);
    for (int64_t i = 0; !status && i < elements; ++i) {
      if (!is_set(in(a), i)) continue;
      int64_t* const to = (int64_t*)in(made).data + row++ * in(a).rank;
      for (int64_t rest = i, dim = in(a).rank; dim-- > 0; rest /= in(a).sizes[dim]) to[dim] = rest % in(a).sizes[dim];
    }
    return made;
  }
  // `a[mask]`: the rows, or elements, where a mask over the first dimensions is true.
  any masked(const any& given, const any& of) {
    const any a = contiguous(given), mask = contiguous(of);
    if (status) return {};
    const int lead = in(mask).rank;
    for (int dim = 0; dim < lead; ++dim)
      if (lead > in(a).rank || in(a).sizes[dim] != in(mask).sizes[dim])
        return fail(failed, "IndexError: The shape of the mask does not match the shape of the indexed tensor at dimension %d", dim);
    const int64_t places = count_of(in(mask));
    int64_t sizes[max_dims + 1] = {0};
    for (int64_t i = 0; i < places; ++i) sizes[0] += is_set(in(mask), i);
    int64_t row = width(in(a));
    for (int dim = lead; dim < in(a).rank; ++dim) row *= sizes[dim - lead + 1] = in(a).sizes[dim];
    if (in(a).rank - lead + 1 > max_dims) return fail(failed, "a tensor of more dimensions than the interface has");
    any made = new_tensor(in(a).dtype, in(a).rank - lead + 1, sizes);
    char* to = status ? nullptr : (char*)in(made).data;
    for (int64_t i = 0; !status && row && i < places; ++i)
      if (is_set(in(mask), i)) to = (char*)memcpy(to, (const char*)in(a).data + i * row, (size_t)row) + row;
    return made;
  }

  // Writes a tensor of the same sizes and dtype into another's memory.
  void write(const any& to, const any& from) {
    if (status) return;
    if (in(to).dtype != in(from).dtype || !same_sizes(in(to), in(from))) {
      fail(failed, "RuntimeError: a write of a tensor of other sizes");
      return;
    }
    copy_tensor(in(to), in(from));
  }

  // `cat` of a list; tensors of no elements and one dimension count for nothing, as ever.
  any cat(const any& list, int64_t dim) {
    const sequence& parts = *list.as.list;
    const tensor* first = nullptr;
    for (int64_t i = 0; i < parts.count; ++i)
      if (!first || is_nothing(*first)) first = parts.items[i].as.held;
    if (!first) return fail(failed, "RuntimeError: torch.cat(): expected a non-empty list of Tensors");
    const int at = dim_of(dim, first->rank);
    if (status) return {};
    tensor made = *first;
    made.sizes[at] = 0;
    for (int64_t i = 0; i < parts.count; ++i) {
      const tensor& each = *parts.items[i].as.held;
      if (is_nothing(each) && made.rank != 1) continue;
      tensor other = each;
      if (other.rank != made.rank || other.dtype != made.dtype) return fail(failed, "RuntimeError: torch.cat(): tensors of several dtypes or ranks");
      made.sizes[at] += other.sizes[at];
      other.sizes[at] = made.sizes[at];
      if (!same_sizes(made, other)) return fail(failed, "RuntimeError: Sizes of tensors must match except in dimension %d", at);
    }
    any whole = new_tensor(made.dtype, made.rank, made.sizes);
    tensor part = status ? made : in(whole);
    for (int64_t i = 0; !status && i < parts.count; ++i) {
      const tensor& each = *parts.items[i].as.held;
      if (is_nothing(each)) continue;
      part.sizes[at] = each.sizes[at];
      copy_tensor(part, each);
      part.data = (char*)part.data + each.sizes[at] * part.strides[at] * width(part);
    }
    return whole;
  }
  static bool is_nothing(const tensor& a) { return a.rank == 1 && a.sizes[0] == 0; }
  any stack(const any& list, int64_t dim) {
    any parts = new_list(0);
    for (int64_t i = 0; !status && i < list.as.list->count; ++i) {
      if (i && !same_sizes(in(list.as.list->items[i]), in(list.as.list->items[0])))
        return fail(failed, "RuntimeError: stack expects each tensor to be equal size");
      append(parts, unsqueeze(list.as.list->items[i], dim < 0 ? dim + in(list.as.list->items[i]).rank + 1 : dim));
    }
    if (!parts.as.list->count) return fail(failed, "RuntimeError: stack expects a non-empty TensorList");
    return status ? any{} : cat(parts, dim < 0 ? dim + in(parts.as.list->items[0]).rank : dim);
  }
};

// Whether a value is of a kind all through: lists say what their items are.
inline bool all_are(const any& a, bool (*test)(const any&)) {
  for (int64_t i = 0; i < a.as.list->count; ++i)
    if (!test(a.as.list->items[i])) return false;
  return true;
}
inline bool all_pairs(const any& a, bool (*test)(const any&, const any&)) {
  for (int64_t i = 0; i < a.as.list->count; i += 2)
    if (!test(a.as.list->items[i], a.as.list->items[i + 1])) return false;
  return true;
}

}  // namespace deployed
}  // namespace rl
