/* Vectors for cpu_kernels.c, of float32 and of int32: 8 lanes of AVX2 (x86-64), or 4 of NEON (aarch64). The compiler has
 * operators for them; what it has none for is here, once for each.
 */
#define FOR(instructions) __attribute__((target(instructions)))
#define INLINE static inline __attribute__((always_inline))

#ifdef __x86_64__
#include <immintrin.h>
#define VECTORS FOR("avx2,fma") /* of each function that has vectors */
#define LANES 8
#define NARROW_ROWS 6 /* whose sums of a block are kept in registers */
typedef __m256 Vector;
typedef const float *Factors; /* numbers that vectors are multiplied by */
#define FACTORS 1
#else
#include <arm_neon.h>
#define VECTORS
#define LANES 4
#define NARROW_ROWS 4
typedef float32x4_t Vector, Factors;
#define FACTORS 4
#endif
typedef int32_t Integers __attribute__((vector_size(4 * LANES)));

/* Where both say "of NaN", the second one is taken if one is NaN. `add_products` adds those of four int8 in each lane to sums;
 * `at_most` is whether all are, and none is NaN; `if_negative` takes lanes of x where the sign bit is set, or y. */
#ifdef __x86_64__
INLINE VECTORS Vector load(const float *x) { return _mm256_loadu_ps(x); }
INLINE VECTORS void store(float *x, Vector v) { _mm256_storeu_ps(x, v); }
INLINE VECTORS Vector all(float x) { return _mm256_set1_ps(x); }
INLINE VECTORS Vector fused(Vector x, Vector y, Vector sum) { return _mm256_fmadd_ps(x, y, sum); } /* x y + sum */
INLINE VECTORS Vector larger(Vector x, Vector y) { return _mm256_max_ps(x, y); } /* of NaN y */
INLINE VECTORS Vector if_negative(Vector sign, Vector x, Vector y) { return _mm256_blendv_ps(y, x, sign); }
INLINE VECTORS int at_most(Vector x, Vector most) { return !_mm256_movemask_ps(_mm256_cmp_ps(x, most, _CMP_NLE_UQ)); }
INLINE Factors factors_at(const float *x) { return x; }
INLINE VECTORS Integers nearest(Vector x) { return (Integers)_mm256_cvtps_epi32(x); }
INLINE VECTORS Vector floats(Integers x) { return _mm256_cvtepi32_ps((__m256i)x); }

INLINE VECTORS float sum(Vector v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE VECTORS Integers larger_integers(Integers x, Integers y) { return (Integers)_mm256_max_epi32((__m256i)x, (__m256i)y); }

INLINE VECTORS int32_t largest(Integers v) {
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

INLINE VECTORS void store_int8(int8_t *x, Integers v) {
    __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((__m128i *)x, _mm_packs_epi16(packed, packed));
}

/* x w = |x| (w sign(x)): two products of 7 bits each are less than 2^15, so that 16 bits hold their sum */
INLINE VECTORS Integers add_products(Integers sums, Integers weights, Integers x) {
    __m256i v = (__m256i)x, pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8((__m256i)weights, v));
    return sums + (Integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#else
INLINE Vector load(const float *x) { return vld1q_f32(x); }
INLINE void store(float *x, Vector v) { vst1q_f32(x, v); }
INLINE Vector all(float x) { return vdupq_n_f32(x); }
INLINE Vector fused(Vector x, Vector y, Vector sum) { return vfmaq_f32(sum, x, y); }
INLINE Vector larger(Vector x, Vector y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
INLINE Vector if_negative(Vector sign, Vector x, Vector y) { return vbslq_f32(vcltzq_s32(vreinterpretq_s32_f32(sign)), x, y); }
INLINE int at_most(Vector x, Vector most) { return vminvq_u32(vcleq_f32(x, most)) != 0; }
INLINE Factors factors_at(const float *x) {
    Vector v = vld1q_f32(x);
    __asm__("" : "+w"(v)); /* one load, not one of each number */
    return v;
}

INLINE Integers nearest(Vector x) { return (Integers)vcvtnq_s32_f32(x); }
INLINE Vector floats(Integers x) { return vcvtq_f32_s32((int32x4_t)x); }
INLINE float sum(Vector v) { return vaddvq_f32(v); }
INLINE Integers larger_integers(Integers x, Integers y) { return (Integers)vmaxq_s32((int32x4_t)x, (int32x4_t)y); }
INLINE int32_t largest(Integers v) { return vmaxvq_s32((int32x4_t)v); }

INLINE void store_int8(int8_t *x, Integers v) {
    const int16x4_t half = vqmovn_s32((int32x4_t)v);
    const int8x8_t packed = vqmovn_s16(vcombine_s16(half, half));
    memcpy(x, &packed, 4);
}

/* Two products of 7 bits each are less than 2^15, so that 16 bits hold their sum. */
INLINE Integers add_products(Integers sums, Integers weights, Integers x) {
    const int8x16_t w = (int8x16_t)weights, v = (int8x16_t)x;
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(v)), high = vmull_high_s8(w, v);
    return (Integers)vpadalq_s16((int32x4_t)sums, vpaddq_s16(low, high));
}

#if defined(__ARM_FEATURE_DOTPROD)
#define FOR_DOTS
#elif defined(__clang__)
#define FOR_DOTS FOR("dotprod")
#else
#define FOR_DOTS FOR("arch=armv8.2-a+dotprod")
#endif
INLINE FOR_DOTS Integers add_fast(Integers sums, Integers weights, Integers x) {
    return (Integers)vdotq_s32((int32x4_t)sums, (int8x16_t)weights, (int8x16_t)x);
}
#endif
