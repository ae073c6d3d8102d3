#include <rushlight/vec.h>
#include <rushlight/elementwise.h>
#include <rushlight/math.h>
#include <rushlight/reduce.h>
#include <rushlight/parallel.h>
#include <rushlight/checks.h>
#include <rushlight/search.h>
#include <rushlight/sort.h>

// mul, topk
// programs.py:48 in ranks: best, places = (x * 2).topk(3)
static void kernel_0(char* scratch, const float* in0, float* out0, int64_t* out1, int* status) {
  for (const long x : rl::shared(4L)) {
    char* own = scratch + rl::thread_index() * (256L + rl::sort_scratch_bytes<float>(50L, 3L));
    float* row = (float*)own;
    own += 256L;
    rl::for_each(50L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 50L*x);
      const auto tmp1 = lane.broadcast(2.0f);
      const auto tmp2 = tmp0 * tmp1;
      lane.store(row + r, tmp2);
    });
    rl::sort_row<true>(row, 50L, 3L, out0 + 3L*x, out1 + 3L*x, own, status);
  }
}

// sort
// programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
static void kernel_1(const float* in0, float* out0) {
  for (const long x : rl::shared(50L)) {
    rl::for_each(4L, [&](auto lane, long r) {
      const auto tmp0 = lane.load_strided(in0 + 50L*r + x, 50L);
      lane.store(out0 + r + 4L*x, tmp0);
    });
  }
}

// sort
// programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
static void kernel_2(char* scratch, const float* in0, float* out0, int* status) {
  for (const long x : rl::shared(50L)) {
    char* own = scratch + rl::thread_index() * (rl::sort_scratch_bytes<float>(4L, 4L));
    const float* row = in0 + 4L*x;
    rl::sort_row<true>(row, 4L, 4L, out0 + 4L*x, (int64_t*)nullptr, own, status);
  }
}

// searchsorted, add
// programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
static void kernel_3(const float* in0, const float* in1, int64_t* out0, int* status) {
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    [[maybe_unused]] constexpr long x = 0;
    rl::for_each(200L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in1 + r + 200L*x);
      const auto tmp1 = rl::search<false>(lane, in0 + 0L, 1L, 9L, tmp0, status);
      const auto tmp2 = lane.broadcast((int64_t)1L);
      const auto tmp3 = rl::add(tmp1, tmp2);
      lane.store(out0 + r + 200L*x, tmp3);
    });
  }
}

// cat
// programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
static void kernel_4(const float* in0, float* out0, const float* in1) {
  for (const long x : rl::shared(4L)) {
    rl::for_each(50L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 50L*x);
      lane.store(out0 + r + 53L*x, tmp0);
    });
    rl::for_each(53L - 50L, [&](auto lane, long column) { const long r = 50L + column;
      const auto tmp0 = lane.load(in1 + r + 3L*x - 50L);
      lane.store(out0 + r + 53L*x, tmp0);
    });
  }
}

// sort_0
// programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
static void kernel_5(const float* in0, float* out0) {
  for (const long x : rl::shared(4L)) {
    rl::for_each(50L, [&](auto lane, long r) {
      const auto tmp0 = lane.load_strided(in0 + 4L*r + x, 4L);
      lane.store(out0 + r + 50L*x, tmp0);
    });
  }
}

extern "C" long rushlight_arena_bytes() { return 1664 + rl::largest(2L * (256L + rl::sort_scratch_bytes<float>(50L, 3L)), 2L * (rl::sort_scratch_bytes<float>(4L, 4L))); }

extern "C" int rushlight_entry(void** buffers) {
  int status_value = 0;
  int* status = &status_value;
  float* arg0_1 = (float*)buffers[0];
  float* arg1_1 = (float*)buffers[1];
  float* buf0 = (float*)buffers[2];
  int64_t* buf1 = (int64_t*)buffers[3];
  float* buf7 = (float*)buffers[4];
  int64_t* buf8 = (int64_t*)buffers[5];
  float* buf6 = (float*)buffers[6];
  float* buf2 = (float*)(((char*)buffers[7]) + 0L);
  float* buf3 = (float*)(((char*)buffers[7]) + 832L);
  char* rows_buf0 = ((char*)buffers[7]) + 1664;
  char* rows_buf3 = ((char*)buffers[7]) + 1664;
  kernel_0(rows_buf0, arg0_1, buf0, buf1, status);  // programs.py:48 in ranks: best, places = (x * 2).topk(3)
  kernel_1(arg0_1, buf2);  // programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
  kernel_2(rows_buf3, buf2, buf3, status);  // programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
  kernel_3(arg1_1, arg0_1, buf8, status);  // programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
  kernel_4(arg0_1, buf6, buf0);  // programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
  kernel_5(buf3, buf7);  // programs.py:49 in ranks: return best, places, x.sort(0, descending=True)[0], torch.bucketize(x, row) + 1, torch.cat([x, best], 1)
  (void)status;
  return status_value;
}
