// Matrix products in tile registers (AMX): 16 rows of A times 16 columns of B, in one instruction for 64 bytes of K.
//
// B is a panel of words as in word_gemm.h: [words of K][32 columns], without the initial sums. The processor's support is tested at
// run time. Linux gives a process tile registers when it asks for them; where it refuses, products take other instructions.
#pragma once

#include <rushlight/pack.h>
#include <rushlight/parallel.h>

#if defined(__x86_64__) && defined(__linux__) && RL_LANES == 16 && !defined(RL_NO_TILES)
#define RL_TILES
#endif

namespace rl {

constexpr int register_rows = 16, register_bytes = 64;  // the size of a tile register

// Kinds of products, each with its instruction and the processor's feature, a bit of EDX of CPUID's leaf 7.
struct unsigned_by_signed {
  using sum = int32_t;
  static constexpr unsigned feature = 1u << 25;
};
struct signed_by_signed {
  using sum = int32_t;
  static constexpr unsigned feature = 1u << 25;
};
struct bfloat16_pairs {
  using sum = float;
  static constexpr unsigned feature = 1u << 22;
};

#ifdef RL_TILES
constexpr unsigned tiles_feature = 1u << 24, tiles_unknown = 1;

// Return the features of leaf 7 if the process may use tile registers, else 0.
inline unsigned request_tiles() {
  unsigned a = 7, b, c = 0, d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (!(d & tiles_feature)) return 0;
  long status = 158;  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
  asm volatile("syscall" : "+a"(status) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  return status ? 0 : d & ~tiles_unknown;
}

// Static: an inline variable would be one for all libraries of the process, and keep them from being unloaded.
static unsigned tile_features __attribute__((unused)) = tiles_unknown;

// Return whether products of this kind can use tile registers.
template <class Kind> RL_INLINE bool has_tiles() {
  unsigned found = __atomic_load_n(&tile_features, __ATOMIC_RELAXED);
  if (found == tiles_unknown) {
    found = request_tiles();
    __atomic_store_n(&tile_features, found, __ATOMIC_RELAXED);
  }
  return found & Kind::feature;
}

struct tile_configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
};

// Configures the tile registers of a thread while it exists, if `wanted`, for steps of `step` bytes of K.
class tile_region {
 public:
  RL_INLINE explicit tile_region(bool wanted, long step = register_bytes) : wanted_(wanted) {
    const uint16_t part = (uint16_t)step;
    const uint8_t words = (uint8_t)(step / 4);
    const tile_configuration chosen = {
        1, 0, {}, {64, 64, 64, 64, part, part, 64, 64}, {16, 16, 16, 16, 16, 16, words, words}};
    if (wanted_) asm volatile("ldtilecfg %0" ::"m"(chosen));
  }
  RL_INLINE ~tile_region() {
    if (wanted_) asm volatile("tilerelease");
  }
  tile_region(const tile_region&) = delete;
  RL_INLINE explicit operator bool() const { return wanted_; }

 private:
  const bool wanted_;
};

// Registers 0 to 3 are sums: two by two, rows by columns. Registers 4 and 5 are rows of A, 6 and 7 are columns of B.
#define RL_TILE_STEP(op)                                                                                                     \
  asm volatile("tileloadd (%2,%3,1), %%tmm6\n\ttileloadd (%0,%1,1), %%tmm4\n\ttileloadd 64(%2,%3,1), %%tmm7\n\t" op            \
               " %%tmm6, %%tmm4, %%tmm0\n\t" op " %%tmm7, %%tmm4, %%tmm1" ::"r"(first), "r"(row), "r"(b), "r"(pitch)         \
               : "memory");                                                                                                  \
  if constexpr (Two)                                                                                                         \
    asm volatile("tileloadd (%0,%1,1), %%tmm5\n\t" op " %%tmm6, %%tmm5, %%tmm2\n\t" op " %%tmm7, %%tmm5, %%tmm3" ::"r"(second), \
                 "r"(row)                                                                                                    \
                 : "memory")

template <class Kind, bool Two> RL_INLINE void add_tile(const char* first, const char* second, long row, const char* b, long pitch) {
  if constexpr (same<Kind, unsigned_by_signed>) {
    RL_TILE_STEP("tdpbusd");
  } else if constexpr (same<Kind, signed_by_signed>) {
    RL_TILE_STEP("tdpbssd");
  } else {
    RL_TILE_STEP("tdpbf16ps");
  }
}
#undef RL_TILE_STEP

// Store the sums as c[16 or 32][32].
template <bool Two> RL_INLINE void store_tiles(void* c) {
  constexpr long pitch = tile_columns * 4;
  asm volatile("tilestored %%tmm0, (%0,%1,1)\n\ttilestored %%tmm1, 64(%0,%1,1)" ::"r"(c), "r"(pitch) : "memory");
  if constexpr (Two)
    asm volatile("tilestored %%tmm2, (%0,%1,1)\n\ttilestored %%tmm3, 64(%0,%1,1)" ::"r"((char*)c + register_rows * pitch), "r"(pitch)
                 : "memory");
}

// Stores of tile registers take 800 cycles longer if there was none for about 2000 cycles (measured on Sapphire Rapids). So loops
// over K store a register, whose values are not used, at the first step and at each of these many.
constexpr long steps_between_stores = 16;

class frequent_stores {
 public:
  RL_INLINE explicit frequent_stores(void* unused) : unused_(unused) {}
  RL_INLINE void step() {
    if (--left_) return;
    asm volatile("tilestored %%tmm4, (%0,%1,1)" ::"r"(unused_), "r"((long)register_bytes) : "memory");
    left_ = steps_between_stores;
  }

 private:
  void* const unused_;  // The memory that results are stored to later.
  long left_ = 1;
};

// Compute c[16 or 32][32]: the sums over K of 16 rows of A from `first`, and of 16 from `second` if there are Two, times a panel.
// `row` is the distance of rows in bytes, and `depth` K in bytes; `words` is the number of the panel's words of K.
template <class Kind, bool Two>
__attribute__((noinline)) void multiply_in_tiles(const char* first, const char* second, long row, long depth, const char* panel,
                                                 long words, typename Kind::sum* c) {
  constexpr long pitch = tile_columns * 4;
  asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1" ::: "memory");
  if constexpr (Two) asm volatile("tilezero %%tmm2\n\ttilezero %%tmm3" ::: "memory");
  frequent_stores stores(c);
  long k = 0;
  for (; k + register_bytes <= depth; k += register_bytes, panel += 16 * pitch) {
    add_tile<Kind, Two>(first + k, second + k, row, panel, pitch);
    stores.step();
  }
  if (k < depth) {  // the rest of K, padded with zeros
    alignas(64) char rows[2 * register_rows][register_bytes] = {}, b[16 * pitch] = {};
    for (int r = 0; r < register_rows; ++r) {
      __builtin_memcpy(rows[r], first + r * row + k, depth - k);
      if (Two) __builtin_memcpy(rows[register_rows + r], second + r * row + k, depth - k);
    }
    __builtin_memcpy(b, panel, (words - k / 4) * pitch);
    add_tile<Kind, Two>(rows[0], rows[register_rows], register_bytes, b, pitch);
  }
  store_tiles<Two>(c);
}

// Multiply `count` rows of A, at least 16, by a panel. Calls emit(sums, row, rows) for consecutive rows. Where 16 does not divide
// their number, the last rows are computed with some of those before, whose sums are not emitted again.
template <class Kind, class E>
RL_INLINE void multiply_rows_in_tiles(const void* a, long row, long count, long depth, const void* panel, long words, const E& emit) {
  alignas(64) typename Kind::sum c[2 * register_rows * tile_columns];
  const char* const rows = (const char*)a;
  for (long at = 0; at < count;) {
    const long first = smallest(at, count - register_rows), next = first + register_rows;
    const long second = smallest(next, count - register_rows);
    const auto emit_from = [&](long start, int half, long done) {
      emit(c + (half * register_rows + done - start) * tile_columns, done, start + register_rows - done);
    };
    if (next < count) {
      multiply_in_tiles<Kind, true>(rows + first * row, rows + second * row, row, depth, (const char*)panel, words, c);
      emit_from(first, 0, at);
      emit_from(second, 1, next);
      at = second + register_rows;
    } else {
      multiply_in_tiles<Kind, false>(rows + first * row, nullptr, row, depth, (const char*)panel, words, c);
      emit_from(first, 0, at);
      at = next;
    }
  }
}
#else
template <class Kind> RL_INLINE bool has_tiles() { return false; }

class tile_region {
 public:
  RL_INLINE explicit tile_region(bool, long = register_bytes) {}
  RL_INLINE explicit operator bool() const { return false; }
};

template <class Kind, class E>
RL_INLINE void multiply_rows_in_tiles(const void*, long, long, long, const void*, long, const E&) {}
#endif

}  // namespace rl
