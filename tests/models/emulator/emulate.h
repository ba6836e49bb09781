// The GPU's primitives on a CPU, a thread for each of its threads: for addresses and order, not for speed.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#define DEVICE static inline
#define ENTRY static void
#define CONSTANT extern "C" const
typedef unsigned short bf16;
struct uint4 {
  unsigned x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
struct Dim {
  unsigned x;
};
static thread_local Dim threadIdx, blockIdx;
static Dim gridDim;
static std::vector<unsigned char> memory(240000);
struct Bar {
  std::mutex m;
  std::condition_variable cv;
  int count = 0;
  long generation = 0;
  void arrive(int all, bool wait) {
    std::unique_lock<std::mutex> lock(m);
    long mine = generation;
    if (++count == all) {
      count = 0;
      generation++;
      cv.notify_all();
      return;
    }
    if (wait) cv.wait(lock, [&] { return generation != mine; });
  }
};
static Bar bars[16], warp_bars[12];
static unsigned lanes_address[12][32];
DEVICE int same(int warps) { return warps; }
DEVICE void bar_sync(int id, int all) {
  if (id < 1 || id > 15) {
    puts("bar id");
    abort();
  }
  bars[id].arrive(all, true);
}
DEVICE void bar_arrive(int id, int all) { bars[id].arrive(all, false); }
DEVICE void block_sync() { bars[0].arrive(384, true); }
DEVICE void fence_async() {}
DEVICE void copies_done() {}
DEVICE unsigned shared_slot() { return 1; }
static int most_slots;
DEVICE unsigned char* slot(unsigned s) {
  if ((int)s - 1 >= most_slots || s < 1) {
    printf("slot %u beyond %d\n", s, most_slots);
    abort();
  }
  return &memory[16 * s];
}
DEVICE void copy_slot(unsigned to, const uint4* from) { memcpy(slot(to), from, 16); }
DEVICE void store_slot(unsigned to, uint4 v) { memcpy(slot(to), &v, 16); }
DEVICE float as_float(unsigned bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
DEVICE float from_bf16(bf16 v) { return as_float(unsigned(v) << 16); }
DEVICE bf16 to_bf16(float f) {
  uint32_t b;
  memcpy(&b, &f, 4);
  return (b + 0x7fff + ((b >> 16) & 1)) >> 16;
}
DEVICE unsigned bytes_equal(unsigned a, unsigned b) {
  unsigned r = 0;
  for (int i = 0; i < 4; i++)
    if (((a ^ b) >> 8 * i & 255) == 0) r |= 0x80u << 8 * i;
  return r;
}
DEVICE unsigned spread_low(unsigned m) { return (m & 0x80 ? 0xffffu : 0) | (m & 0x8000 ? 0xffff0000u : 0); }
DEVICE unsigned spread_high(unsigned m) { return spread_low(m >> 16); }
struct Matrix {
  unsigned start, leading, stride;
};
DEVICE Matrix matrix(unsigned s, unsigned l, unsigned t) { return {s, l, t}; }
DEVICE float at(Matrix m, int row, int k) {
  bf16 v;
  memcpy(&v, slot(m.start + row / 8 * m.stride + k / 8 * m.leading + row % 8) + k % 8 * 2, 2);
  return from_bf16(v);
}
DEVICE float at_turned(Matrix m, int n, int k) {
  bf16 v;
  memcpy(&v, slot(m.start + n / 8 * m.stride + k / 8 * m.leading + k % 8) + n % 8 * 2, 2);
  return from_bf16(v);
}
DEVICE void wgmma_fence() {}
DEVICE void wgmma_commit() {}
template <int N>
DEVICE void wgmma_wait() {}
template <int N>
DEVICE void mma(float* sums, Matrix a, Matrix b) {
  int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  float A[2][16];
  for (int h = 0; h < 2; h++)
    for (int k = 0; k < 16; k++) A[h][k] = at(a, warp * 16 + lane / 4 + 8 * h, k);
  for (int j = 0; j < N / 8; j++)
    for (int e = 0; e < 2; e++) {
      for (int k = 0; k < 16; k++) {
        float v = at(b, 8 * j + lane % 4 * 2 + e, k);
        for (int h = 0; h < 2; h++) sums[4 * j + 2 * h + e] += A[h][k] * v;
      }
    }
}
DEVICE void wgmma_128(float (&sums)[64], Matrix a, Matrix b) { mma<128>(sums, a, b); }
DEVICE void wgmma_136(float (&sums)[68], Matrix a, Matrix b) { mma<136>(sums, a, b); }
DEVICE void load_turned(unsigned (&r)[4], unsigned mine) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  lanes_address[warp][lane] = mine;
  warp_bars[warp].arrive(32, true);
  for (int i = 0; i < 4; i++) {
    bf16 v[2];
    for (int e = 0; e < 2; e++)
      memcpy(&v[e], slot(lanes_address[warp][8 * i + lane % 4 * 2 + e]) + lane / 4 * 2, 2);
    memcpy(&r[i], v, 4);
  }
  warp_bars[warp].arrive(32, true);
}
// A fragment: r0 rows low, k low; r1 rows high, k low; r2 rows low, k high; r3 rows high, k high. Gathered
// through the warp.
static unsigned lanes_left[12][32][4];
template <int N>
DEVICE void wgmma_turned(float (&sums)[N / 2], const unsigned (&left)[4], Matrix b) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  memcpy(lanes_left[warp][lane], left, 16);
  warp_bars[warp].arrive(32, true);
  float A[2][16];
  for (int h = 0; h < 2; h++)
    for (int k = 0; k < 16; k++) {
      unsigned from = lanes_left[warp][lane / 4 * 4 + k % 8 / 2][h + 2 * (k / 8)];
      A[h][k] = from_bf16(k % 2 ? from >> 16 : from & 0xffff);
    }
  warp_bars[warp].arrive(32, true);
  for (int j = 0; j < N / 8; j++)
    for (int e = 0; e < 2; e++)
      for (int k = 0; k < 16; k++) {
        float v = at_turned(b, 8 * j + lane % 4 * 2 + e, k);
        for (int h = 0; h < 2; h++) sums[4 * j + 2 * h + e] += A[h][k] * v;
      }
}
