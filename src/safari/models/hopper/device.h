// The primitives on Hopper. wgmma_128, wgmma_136 and wgmma_turned are written by build.py.
#define DEVICE __device__ __forceinline__
#define ENTRY extern "C" __global__ void __launch_bounds__(384, 1)
#define CONSTANT extern "C" __constant__
typedef unsigned short bf16;

DEVICE int same(int warps) { return __shfl_sync(0xffffffffu, warps, 0); }
DEVICE void bar_sync(int id, int all) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(all) : "memory"); }
DEVICE void bar_arrive(int id, int all) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(all) : "memory"); }
DEVICE void block_sync() { __syncthreads(); }
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }
extern __shared__ uint4 shared_memory[];
DEVICE unsigned shared_slot() { return unsigned(__cvta_generic_to_shared(shared_memory)) / 16; }
DEVICE void copy_slot(unsigned to, const uint4* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to * 16), "l"(from) : "memory");
}
DEVICE void store_slot(unsigned to, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to * 16), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
DEVICE bf16 to_bf16(float f) {
  bf16 out;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(f));
  return out;
}
DEVICE float as_float(unsigned bits) { return __uint_as_float(bits); }
// The sign bit of every byte that is equal, for bytes below 128.
DEVICE unsigned bytes_equal(unsigned a, unsigned b) { return ~((a ^ b) + 0x7f7f7f7fu) & 0x80808080u; }
DEVICE unsigned permute_bytes(unsigned a, unsigned how) {
  unsigned out;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(out) : "r"(a), "r"(how));
  return out;
}
DEVICE unsigned spread_low(unsigned signs) { return permute_bytes(signs, 0x9988); }
DEVICE unsigned spread_high(unsigned signs) { return permute_bytes(signs, 0xbbaa); }

typedef unsigned long long Matrix;
// Core matrices of 8 x 16 bytes: `leading` slots from one to the next along what is summed over,
// `stride` along the other direction.
DEVICE Matrix matrix(unsigned start, unsigned leading, unsigned stride) {
  return Matrix(start) | Matrix(leading) << 16 | Matrix(stride) << 32;
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT>
DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
DEVICE void load_turned(unsigned (&r)[4], unsigned mine) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(mine * 16)
               : "memory");
}
