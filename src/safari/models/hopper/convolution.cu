// A layer of the convolutional network on Hopper's tensor cores: convolution, bias, 2 x 2 maxima
// and ReLU in one kernel; backwards one kernel for the slope of the images and one for the kernel's.
//
// An image lies in shared memory plane by plane: a plane holds 16 bytes, eight channels, of every
// pixel. Eight pixels side by side are then a core matrix of wgmma wherever they begin, so a tap
// of the convolution is nothing but another start address: no patches are copied.
// All addresses into shared memory count slots of 16 bytes.
//
// `Layer1` sees blocks of 2 x 2 pixels as pixels of 16 channels (the last are empty) under 3 x 3 taps;
// its 128 outputs are the four places of a pool by 32 channels. `Layer2` is 5 x 5 taps, 32 channels to 64.
// Weights come rearranged: [tap][plane][output], eight channels each.

constexpr int SIDE = 16, PIXELS = SIDE * SIDE, STRIP = 8;
constexpr int CONSUMERS = 256, THREADS = CONSUMERS + 128;
constexpr int FULL = 1, EMPTY = 8;  // named barriers: for every stage and group of consumers, for every stage

constexpr int spread(int slots, int planes) {  // so that a pixel's planes lie in different banks
  int apart = planes >= 8 ? 1 : 8 / planes;
  return slots + ((apart - slots) % 8 + 8) % 8;
}

struct Layer1 {
  static constexpr int IN = 2, TAPS = 3, PAD = 1, OUT = 128, CHANNELS = 32, POOLED = PIXELS;
};
struct Layer2 {
  static constexpr int IN = 4, TAPS = 5, PAD = 2, OUT = 64, CHANNELS = 64, POOLED = PIXELS / 4;
};

struct Warp {
  int group, warp, lane;  // warp within its group of four
};

DEVICE Warp whoami() {  // `same` tells the compiler what all threads of a warp agree on
  int warp = same(int(threadIdx.x) / 32);
  return {warp / 4, warp % 4, int(threadIdx.x) % 32};
}

template <int STAGES, class Fill, class Consume>
DEVICE void pipeline(int images, int first, int step, Fill fill, Consume consume) {
  int stage = 0, turn = 0;
  auto next = [&] {
    if (++stage == STAGES) stage = 0, turn = 1;
  };
  if (whoami().group == 2) {
    for (int image = first; image < images; image += step, next()) {
      if (turn) bar_sync(EMPTY + stage, THREADS);
      fill(image, stage);
      fence_async();
      for (int group = 0; group < 2; group++) bar_arrive(FULL + 2 * stage + group, 256);
    }
    int mine = first < images ? (images - first + step - 1) / step : 0;  // every arrival is met
    for (int left = mine < STAGES ? mine : STAGES; left > 0; left--)
      bar_sync(EMPTY + (mine - left) % STAGES, THREADS);
  } else {
    for (int image = first; image < images; image += step, next()) {
      bar_sync(FULL + 2 * stage + whoami().group, 256);
      consume(image, stage, [&] { bar_arrive(EMPTY + stage, THREADS); });
    }
  }
}

// What is copied as it is: an image's planes into a padded image.
template <int IN, int PITCH, int PLANE, int PAD>
DEVICE void copy_image(unsigned to, const uint4* from) {
  int thread = threadIdx.x - CONSUMERS;
#pragma unroll 8
  for (int i = thread; i < PIXELS * IN; i += 128) {
    int plane = i % IN, pixel = i / IN;
    copy_slot(to + plane * PLANE + (pixel / SIDE + PAD) * PITCH + pixel % SIDE + PAD, from + i);
  }
}

DEVICE uint4 only(uint4 slope, uint2 places, unsigned place) {  // the channels whose maximum was there
  unsigned like = place * 0x01010101u;
  unsigned low = bytes_equal(places.x, like), high = bytes_equal(places.y, like);
  slope.x &= spread_low(low), slope.y &= spread_high(low);
  slope.z &= spread_low(high), slope.w &= spread_high(high);
  return slope;
}

// Adds eight slopes to eight sums, except where ReLU cut the maximum off (place 4).
DEVICE void add_slopes(float (&sums)[8], uint4 slope, uint2 places) {
  unsigned pairs[4] = {slope.x, slope.y, slope.z, slope.w};
#pragma unroll
  for (int c = 0; c < 8; c++) {
    bool cut = (c < 4 ? places.x : places.y) >> (c % 4 * 8 + 2) & 1;
    unsigned bits = c % 2 ? pairs[c / 2] & 0xffff0000u : pairs[c / 2] << 16;
    sums[c] += cut ? 0.0f : as_float(bits);
  }
}

// Slopes of maxima go back to where the maxima were. Eight channels at a time, always the same ones in
// a thread, are shown to `seen`.
template <int POOLED, int PLANES, class Slot, class Seen>
DEVICE void unpool(const uint4* slope, const uint2* place, Slot slot, Seen seen) {
  static_assert(128 % PLANES == 0);
  constexpr int EACH = POOLED * PLANES / 128;
  int thread = threadIdx.x - CONSUMERS;
#pragma unroll
  for (int start = 0; start < EACH; start += 4) {
    uint4 slopes[4];
    uint2 places[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      slopes[k] = slope[thread + (start + k) * 128];
      places[k] = place[thread + (start + k) * 128];
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
      seen(slopes[k], places[k]);
      int i = thread + (start + k) * 128;
#pragma unroll
      for (int at = 0; at < 4; at++)
        store_slot(slot(i / PLANES, i % PLANES, at), only(slopes[k], places[k], at));
    }
  }
}

DEVICE void clear(unsigned from, int slots) {
  for (int i = threadIdx.x; i < slots; i += THREADS) store_slot(from + i, uint4{0, 0, 0, 0});
}

DEVICE void fetch_weights(unsigned to, const uint4* from, int slots) {
  for (int i = threadIdx.x; i < slots; i += THREADS) copy_slot(to + i, from + i);
}

DEVICE void ready() {
  copies_done();
  fence_async();
  block_sync();
}

// ---------------------------------------------------------------- forwards

template <class L>
struct Forward {
  static constexpr int PITCH = SIDE + 2 * L::PAD, PLANE = spread(PITCH * PITCH, L::IN), IMAGE = L::IN * PLANE;
  static constexpr int WEIGHTS = L::TAPS * L::TAPS * L::IN * L::OUT, TILES = L::OUT / 64;
  static constexpr int STAGES = 3, SLOTS = WEIGHTS + STAGES * IMAGE;
};

DEVICE void pool(float a, float b, float c, float d, float bias, long at, bf16* pooled,
                 unsigned char* place) {
  float left = fmaxf(a, b), right = fmaxf(c, d), most = fmaxf(left, right) + bias;
  int where = right > left ? 2 + (d > c) : int(b > a);
  pooled[at] = to_bf16(fmaxf(most, 0.0f));
  place[at] = most > 0.0f ? where : 4;
}

template <class L>
DEVICE void forward(const int* many, const uint4* x, const uint4* weights, const float* bias, bf16* pooled,
                    unsigned char* place) {
  using F = Forward<L>;
  unsigned smem = shared_slot(), images = smem + F::WEIGHTS;
  fetch_weights(smem, weights, F::WEIGHTS);
  clear(images, F::STAGES * F::IMAGE);
  ready();
  Warp me = whoami();
  auto fill = [&](int image, int stage) {
    copy_image<L::IN, F::PITCH, F::PLANE, L::PAD>(images + stage * F::IMAGE,
                                                  x + long(image) * PIXELS * L::IN);
    copies_done();
  };
  auto consume = [&](int image, int stage, auto done) {
    float sums[F::TILES][64];
#pragma unroll
    for (int tile = 0; tile < F::TILES; tile++)
#pragma unroll
      for (int i = 0; i < 64; i++) sums[tile][i] = 0;
#pragma unroll 1
    for (int row = 0; row < L::TAPS; row++) {
      wgmma_fence();
#pragma unroll
      for (int column = 0; column < L::TAPS; column++)
#pragma unroll
        for (int plane = 0; plane < L::IN; plane += 2)
#pragma unroll
          for (int tile = 0; tile < F::TILES; tile++) {
            unsigned tap = row * L::TAPS + column;
            unsigned a = smem + (tap * L::IN + plane) * L::OUT + tile * 64;
            unsigned b =
                images + stage * F::IMAGE + plane * F::PLANE + row * F::PITCH + column + me.group * STRIP;
            wgmma_128(sums[tile], matrix(a, L::OUT, 8), matrix(b, F::PLANE, F::PITCH));
          }
    }
    wgmma_commit();
    wgmma_wait<0>();
    done();
    int quad = me.lane % 4, eighth = me.lane / 4;
    if constexpr (F::TILES == 1) {  // four pixels of one output
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int channel = me.warp * 16 + half * 8 + eighth;
        float b = bias[channel];
#pragma unroll
        for (int i = 0; i < SIDE / 2; i++) {
          const float *top = &sums[0][8 * i + 2 * half], *low = top + 4;
          long at = (long(image) * L::POOLED + i * 8 + me.group * 4 + quad) * L::CHANNELS + channel;
          pool(top[0], top[1], low[0], low[1], b, at, pooled, place);
        }
      }
    } else {  // four outputs of one block
      int channel = me.warp * 8 + eighth;
      float b = bias[channel];
#pragma unroll
      for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          int k = 4 * i + e;
          long at =
              (long(image) * L::POOLED + i * SIDE + me.group * STRIP + 2 * quad + e) * L::CHANNELS + channel;
          pool(sums[0][k], sums[0][k + 2], sums[F::TILES - 1][k], sums[F::TILES - 1][k + 2], b, at, pooled,
               place);
        }
    }
  };
  pipeline<F::STAGES>(*many, blockIdx.x, gridDim.x, fill, consume);
}

// ---------------------------------------------------------------- backwards, to the images

// Rows 0, 2, 4 of the turned kernel and rows 1, 3 (and none) lie in one tile; the second half belongs
// one row of pixels higher. A thread holds both halves of a channel.
struct Back2 {
  static constexpr int PLANES = 8, PITCH = SIDE + 4, PLANE = spread(PITCH * PITCH, PLANES), STAGES = 2;
  static constexpr int IMAGE = PLANES * PLANE, PAIRS = 15, WEIGHTS = PAIRS * PLANES * 64;
  static constexpr int SLOTS =
      WEIGHTS + STAGES * IMAGE + PITCH + 2 * STRIP;  // the last row reads beyond, times zero
};

DEVICE void back2(const int* many, const uint4* slope, const uint2* place, const uint4* weights, bf16* dx) {
  using B = Back2;
  unsigned smem = shared_slot(), images = smem + B::WEIGHTS;
  fetch_weights(smem, weights, B::WEIGHTS);
  clear(images, B::SLOTS - B::WEIGHTS);
  ready();
  Warp me = whoami();
  auto fill = [&](int image, int stage) {
    unsigned to = images + stage * B::IMAGE;
    constexpr int MANY = Layer2::POOLED * B::PLANES;
    unpool<Layer2::POOLED, B::PLANES>(
        slope + long(image) * MANY, place + long(image) * MANY,
        [=](int at, int plane, int which) {
          return to + plane * B::PLANE + (at / 8 * 2 + which / 2 + 2) * B::PITCH + at % 8 * 2 + which % 2 + 2;
        },
        [](uint4, uint2) {});
  };
  auto consume = [&](int image, int stage, auto done) {
    float sums[68];
#pragma unroll
    for (int i = 0; i < 68; i++) sums[i] = 0;
#pragma unroll 1
    for (int pair = 0; pair < 3; pair++) {
      wgmma_fence();
#pragma unroll
      for (int column = 0; column < 5; column++)
#pragma unroll
        for (int plane = 0; plane < B::PLANES; plane += 2) {
          unsigned a = smem + ((pair * 5 + column) * B::PLANES + plane) * 64;
          unsigned b =
              images + stage * B::IMAGE + plane * B::PLANE + 2 * pair * B::PITCH + column + me.group * STRIP;
          wgmma_136(sums, matrix(a, 64, 8), matrix(b, B::PLANE, B::PITCH));
        }
    }
    wgmma_commit();
    wgmma_wait<0>();
    done();
    int channel = me.warp * 8 + me.lane / 4;
#pragma unroll
    for (int row = 0; row < SIDE; row++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        int pixel = row * SIDE + me.group * STRIP + me.lane % 4 * 2 + e;
        dx[(long(image) * PIXELS + pixel) * 32 + channel] =
            to_bf16(sums[4 * row + e] + sums[4 * row + 6 + e]);
      }
  };
  pipeline<B::STAGES>(*many, blockIdx.x, gridDim.x, fill, consume);
}

// ---------------------------------------------------------------- backwards, to the kernel

// Sums over pixels: slopes, turned, are the left factor and come from registers, one row of 16
// pixels at a time; the shifted image is the right one. Each block writes the sums over its images.
// Who goes through all slopes to place them also sums them up for the bias.
template <class L>
struct Kernel {
  static constexpr int PITCH = SIDE + 2 * L::PAD, PLANE = spread(PITCH * PITCH, L::IN), IMAGE = L::IN * PLANE;
  static constexpr int PLANES = L::OUT / 8, FLAT = spread(PIXELS, 8), SLOPES = PLANES * FLAT;
  static constexpr int STAGES = L::IN == 4 ? 3 : 2, SLOTS = STAGES * (IMAGE + SLOPES);
  static constexpr int SETS = L::IN == 4 ? 2 : 1, TAPS = L::IN == 4 ? 7 : 9, N = L::IN * 8;
};

template <class L>
DEVICE void kernel_slope(const int* many, const uint4* x, const uint4* slope, const uint2* place,
                         float* sums_out, float* bias_out) {
  using K = Kernel<L>;
  unsigned smem = shared_slot();
  clear(smem, K::SLOTS);
  ready();
  Warp me = whoami();
  int set = blockIdx.x % K::SETS, split = blockIdx.x / K::SETS, splits = gridDim.x / K::SETS;
  float of_bias[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  auto fill = [&](int image, int stage) {
    unsigned to = smem + stage * (K::IMAGE + K::SLOPES), flat = to + K::IMAGE;
    copy_image<L::IN, K::PITCH, K::PLANE, L::PAD>(to, x + long(image) * PIXELS * L::IN);
    constexpr int PER = L::CHANNELS / 8, MANY = L::POOLED * PER;
    unpool<L::POOLED, PER>(
        slope + long(image) * MANY, place + long(image) * MANY,
        [=](int at, int plane, int which) {
          if constexpr (L::POOLED == PIXELS)
            return flat + (which / 2 * 8 + plane * 2 + which % 2) * K::FLAT + at;
          else
            return flat + plane * K::FLAT + (at / 8 * 2 + which / 2) * SIDE + at % 8 * 2 + which % 2;
        },
        [&](uint4 slopes, uint2 places) { add_slopes(of_bias, slopes, places); });
    copies_done();
  };
  int tile = K::SETS == 1 ? me.group : 0, first = K::SETS == 1 ? 0 : (set * 2 + me.group) * K::TAPS;
  float sums[K::TAPS][K::N / 2];
  if (me.group < 2) {
#pragma unroll
    for (int t = 0; t < K::TAPS; t++)
#pragma unroll
      for (int i = 0; i < K::N / 2; i++) sums[t][i] = 0;
  }
  unsigned starts[K::TAPS];
#pragma unroll
  for (int t = 0; t < K::TAPS; t++) {
    int tap =
        first + t < L::TAPS * L::TAPS ? first + t : 0;  // the last set has too few: those sums are dropped
    starts[t] = tap / L::TAPS * K::PITCH + tap % L::TAPS;
  }
  auto consume = [&](int, int stage, auto done) {
    unsigned image = smem + stage * (K::IMAGE + K::SLOPES), flat = image + K::IMAGE;
    int part = me.lane / 8;
    unsigned mine = flat + (tile * 8 + me.warp * 2 + part % 2) * K::FLAT + part / 2 * 8 + me.lane % 8;
    unsigned left[2][4];
    wgmma_fence();
#pragma unroll
    for (int row = 0; row < SIDE; row++) {
      load_turned(left[row % 2], mine + row * SIDE);
      wgmma_fence();
#pragma unroll
      for (int t = 0; t < K::TAPS; t++)
        wgmma_turned<K::N>(sums[t], left[row % 2], matrix(image + starts[t] + row * K::PITCH, 8, K::PLANE));
      wgmma_commit();
      wgmma_wait<1>();
    }
    wgmma_wait<0>();
    done();
  };
  pipeline<K::STAGES>(*many, split, splits, fill, consume);
  if (me.group < 2) {
#pragma unroll
    for (int t = 0; t < K::TAPS; t++) {
      int tap = first + t;
      if (tap >= L::TAPS * L::TAPS) continue;
      float* out = sums_out + (long(split) * L::TAPS * L::TAPS + tap) * K::N * L::OUT;
#pragma unroll
      for (int i = 0; i < K::N / 2; i++) {
        int input = i / 4 * 8 + me.lane % 4 * 2 + i % 2,
            output = tile * 64 + me.warp * 16 + i % 4 / 2 * 8 + me.lane / 4;
        out[input * L::OUT + output] = sums[t][i];
      }
    }
  } else if (set == 0) {
#pragma unroll
    for (int c = 0; c < 8; c++) bias_out[(split * 128 + int(threadIdx.x) - CONSUMERS) * 8 + c] = of_bias[c];
  }
}

// What build.py makes a kernel of, one to a file.
#define SHARED(all) CONSTANT int shared_bytes = 16 * (all)
#define FORWARD(name, Layer)                                                                         \
  ENTRY name(const int* many, const uint4* x, const uint4* weights, const float* bias, bf16* pooled, \
             unsigned char* place) {                                                                 \
    forward<Layer>(many, x, weights, bias, pooled, place);                                           \
  }                                                                                                  \
  SHARED(Forward<Layer>::SLOTS);
#define BACKWARD(name)                                                                                  \
  ENTRY name(const int* many, const uint4* slope, const uint2* place, const uint4* weights, bf16* dx) { \
    back2(many, slope, place, weights, dx);                                                             \
  }                                                                                                     \
  SHARED(Back2::SLOTS);
#define KERNEL(name, Layer)                                                                        \
  ENTRY name(const int* many, const uint4* x, const uint4* slope, const uint2* place, float* sums, \
             float* bias) {                                                                        \
    kernel_slope<Layer>(many, x, slope, place, sums, bias);                                        \
  }                                                                                                \
  SHARED(Kernel<Layer>::SLOTS);
