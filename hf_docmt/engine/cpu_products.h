/* Products for cpu_kernels.c: rows of states as int8, times int8 weights, scaled to float32; and those of float32.
 *
 * The former sum up the same integers as int8_linear.py, whatever instructions the processor has for them. A row of the
 * latter is summed up in the same order, whatever rows are next to it.
 */
#define FOR(instructions) __attribute__((target(instructions)))
#define FOR_AVX2 FOR("avx2,fma")
#define WIDE "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni"
#define INLINE static inline __attribute__((always_inline))
#define BLOCK 16      /* outputs side by side: weights are [D_out / 16][D_in / 4][16][4] */
#define TILE 4        /* rows that share a load of weights */
#define TOGETHER_ROWS 96 /* that go through a group of blocks, a multiple of these */
#define TILE_ROWS 16  /* of a tile of AMX */
#define TILE_BYTES 64 /* of a row of it */
#define LEAST_ROWS 5  /* from this number on tiles are faster */
#define FLOAT_ROWS 8  /* that share a load of float32 weights, which are [D_out / 16][D_in][16] */

static int64_t level = NONE;

typedef struct {
    const void *weights, *x; /* integers, or float32 without scales */
    const float *scales, *row_scales, *bias;
    float *y;
    int64_t size, outputs, stride; /* the latter is of rows of y */
    int relu, adds;
} Product;

#if defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11
#define KNOWS_AMX /* the compiler does */
#endif

/* Tiles are the one thing that a process has to ask the kernel for. */
static int has_tiles(void) {
#if defined(KNOWS_AMX) && defined(__linux__) && defined(SYS_arch_prctl)
    uint32_t a = 7, b, c = 0, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (d >> 24 & 3) == 3 && syscall(SYS_arch_prctl, 0x1023, 18) == 0; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */
#else
    return 0;
#endif
}

/* Take the best instructions for products that the processor has, at most these; which ones they are */
int64_t docmt_level(int64_t most) {
    __builtin_cpu_init();
    level = NONE;
    if (most < AVX2 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return level;
    level = AVX2;
    if (most < VNNI || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512vnni"))
        return level;
    return level = most >= AMX && has_tiles() ? AMX : VNNI;
}

INLINE FOR_AVX2 float sum(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* the largest of values that are not negative, by their bits, so that NaN is the largest */
INLINE FOR_AVX2 float largest(__m256i v) {
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(s));
}

/* x / max |x| * 127, rounded, of a row of D values, as integers; returns max |x| / 127 */
FOR_AVX2 static float quantize(const float *x, int64_t size, int8_t *integers) {
    const __m256i unsign = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (int64_t i = 0; i < size; i += 8)
        most = _mm256_max_epi32(most, _mm256_and_si256(unsign, _mm256_loadu_si256((const __m256i *)(x + i))));
    float magnitude = largest(most), least = 1.17549435e-38f;
    __m256 divisor = _mm256_set1_ps(magnitude < least ? least : magnitude), levels = _mm256_set1_ps(127.0f);
    for (int64_t i = 0; i < size; i += 8) {
        __m256i v = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_div_ps(_mm256_loadu_ps(x + i), divisor), levels));
        __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storel_epi64((__m128i *)(integers + i), _mm_packs_epi16(packed, packed));
    }
    return magnitude / 127.0f;
}

/* `rows` (1 to 4, known when compiled) rows of integers times one block of weights.
 *
 * x w = |x| (w sign(x)): two products of 7 bits each are less than 2^15, so that 16 bits hold their sum.
 */
INLINE FOR_AVX2 void tile(const int rows, const int8_t *weights, const int8_t *x, int64_t size, const float *scales,
                 const float *row_scales, const float *bias, int64_t kept, float *y, int64_t stride, int relu, int adds) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sums[TILE][2];
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
    for (int64_t k = 0; k < size; k += 4) {
        __m256i w0 = _mm256_load_si256((const __m256i *)(weights + k * BLOCK));
        __m256i w1 = _mm256_load_si256((const __m256i *)(weights + k * BLOCK + 32));
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * size + k, 4);
            __m256i v = _mm256_set1_epi32(four), magnitude = _mm256_abs_epi8(v);
            __m256i p0 = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(w0, v));
            __m256i p1 = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(w1, v));
            sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(p0, ones));
            sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(p1, ones));
        }
    }
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) {
            int64_t left = kept - 8 * half;
            if (left <= 0) continue;
            float *out = y + r * stride + 8 * half, values[8];
            __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[r][half]), _mm256_set1_ps(row_scales[r]));
            v = _mm256_mul_ps(v, _mm256_loadu_ps(scales + 8 * half));
            v = _mm256_add_ps(v, _mm256_loadu_ps(bias + 8 * half));
            if (relu) v = _mm256_max_ps(_mm256_setzero_ps(), v);
            if (left >= 8) {
                _mm256_storeu_ps(out, adds ? _mm256_add_ps(_mm256_loadu_ps(out), v) : v);
                continue;
            }
            _mm256_storeu_ps(values, v);
            for (int64_t i = 0; i < left; i++) out[i] = adds ? out[i] + values[i] : values[i];
        }
}

/* Sums of one row and block become outputs, of which `kept` are there: scaled, with bias, ReLU, and what is there. */
INLINE FOR(WIDE) void finish(__m512i sums, const float *scales, float row_scale, const float *bias, int64_t kept,
                             float *y, int relu, int adds) {
    const __mmask16 there = kept < BLOCK ? (1 << kept) - 1 : 0xffff;
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(row_scale));
    v = _mm512_add_ps(_mm512_mul_ps(v, _mm512_loadu_ps(scales)), _mm512_loadu_ps(bias));
    if (relu) v = _mm512_max_ps(_mm512_setzero_ps(), v);
    if (adds) v = _mm512_add_ps(_mm512_maskz_loadu_ps(there, y), v);
    _mm512_mask_storeu_ps(y, there, v);
}


/* -128 times the sum of a row of integers */
INLINE FOR(WIDE) int32_t offset(const int8_t *x, int64_t size) {
    __m512i sums = _mm512_setzero_si512();
    for (int64_t i = 0; i < size; i += 64) {
        __mmask64 there = size - i < 64 ? (1ull << (size - i)) - 1 : ~0ull;
        sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(-128), _mm512_maskz_loadu_epi8(there, x + i));
    }
    return -_mm512_reduce_add_epi32(sums);
}

/* `rows` times `blocks` (known when compiled) by products of an unsigned and a signed integer: (w + 128) x - 128 x */
INLINE FOR(WIDE) void wide_tile(const int rows, const int blocks, const Product *p, int64_t row, int64_t output,
                                const int32_t *offsets) {
    const __m512i sign = _mm512_set1_epi8(-128);
    const int8_t *weights = (const int8_t *)p->weights + output * p->size, *x = (const int8_t *)p->x + row * p->size;
    int32_t all[TILE][4][BLOCK];
    __m512i sums[TILE][4], w[4];
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < blocks; b++) sums[r][b] = _mm512_set1_epi32(offsets[r]);
    for (int64_t k = 0; k < p->size; k += 4) {
        for (int b = 0; b < blocks; b++)
            w[b] = _mm512_xor_si512(_mm512_loadu_si512(weights + (b * p->size + k) * BLOCK), sign);
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * p->size + k, 4);
            for (int b = 0; b < blocks; b++)
                sums[r][b] = _mm512_dpbusd_epi32(sums[r][b], w[b], _mm512_set1_epi32(four));
        }
    }
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < blocks; b++) _mm512_storeu_si512(all[r][b], sums[r][b]);
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < blocks; b++) {
            const int64_t first = output + b * BLOCK;
            finish(_mm512_loadu_si512(all[r][b]), p->scales + first, p->row_scales[row + r], p->bias + first,
                   p->outputs - first, p->y + (row + r) * p->stride + first, p->relu, p->adds);
        }
}

FOR(WIDE) static void wide_product(const Product *p, int64_t rows) {
    int32_t offsets[TOGETHER_ROWS];
#define WIDE_ROWS(blocks)                                                                       \
    for (int64_t r = 0; r < count; r += TILE)                                                   \
        switch (count - r) {                                                                    \
            case 1: wide_tile(1, blocks, p, row + r, output, offsets + r); break;               \
            case 2: wide_tile(2, blocks, p, row + r, output, offsets + r); break;               \
            case 3: wide_tile(3, blocks, p, row + r, output, offsets + r); break;               \
            default: wide_tile(4, blocks, p, row + r, output, offsets + r);                     \
        }
    for (int64_t row = 0; row < rows; row += TOGETHER_ROWS) {
        const int64_t count = rows - row < TOGETHER_ROWS ? rows - row : TOGETHER_ROWS;
        int64_t output = 0;
        for (int64_t r = 0; r < count; r++) offsets[r] = offset((const int8_t *)p->x + (row + r) * p->size, p->size);
        for (; output + 3 * BLOCK < p->outputs; output += 4 * BLOCK) WIDE_ROWS(4)
        for (; output < p->outputs; output += BLOCK) WIDE_ROWS(1)
    }
}

#ifdef KNOWS_AMX
/* 16 rows times two blocks at once; rows after the last one are arbitrary, and are not kept */
FOR(WIDE ",amx-tile,amx-int8") static void tiled_product(const Product *p, int64_t rows) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } tiles = {1};
    for (int i = 0; i < 5; i++) tiles.bytes[i] = TILE_BYTES, tiles.rows[i] = TILE_ROWS;
    _tile_loadconfig(&tiles);
    for (int64_t output = 0; output < p->outputs; output += 2 * BLOCK)
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
            const int8_t *weights = (const int8_t *)p->weights + output * p->size, *x = (const int8_t *)p->x + row * p->size;
            const int pair = output + BLOCK < p->outputs;
            int32_t sums[2][TILE_ROWS][BLOCK];
            _tile_zero(0);
            _tile_zero(1);
            for (int64_t k = 0; k < p->size; k += TILE_BYTES) {
                _tile_loadd(2, x + k, p->size);
                _tile_loadd(3, weights + k * BLOCK, TILE_BYTES);
                _tile_dpbssd(0, 2, 3);
                if (!pair) continue;
                _tile_loadd(4, weights + (p->size + k) * BLOCK, TILE_BYTES);
                _tile_dpbssd(1, 2, 4);
            }
            _tile_stored(0, sums[0], TILE_BYTES);
            _tile_stored(1, sums[1], TILE_BYTES);
            for (int64_t r = 0; r < TILE_ROWS && row + r < rows; r++)
                for (int b = 0; b <= pair; b++) {
                    int64_t first = output + b * BLOCK;
                    finish(_mm512_loadu_si512(sums[b][r]), p->scales + first, p->row_scales[row + r], p->bias + first,
                           p->outputs - first, p->y + (row + r) * p->stride + first, p->relu, p->adds);
                }
        }
    _tile_release();
}
#else
#define tiled_product wide_product
#endif

FOR_AVX2 static void narrow_product(const Product *p, int64_t rows) {
    for (int64_t first = 0; first < p->outputs; first += BLOCK) {
        int64_t r = 0, kept = p->outputs - first < BLOCK ? p->outputs - first : BLOCK;
#define ROWS(count)                                                                                             \
    tile(count, (const int8_t *)p->weights + first * p->size, (const int8_t *)p->x + r * p->size, p->size, p->scales + first, p->row_scales + r, \
         p->bias + first, kept, p->y + r * p->stride + first, p->stride, p->relu, p->adds)
        for (; r + TILE <= rows; r += TILE) ROWS(4);
        switch (rows - r) {
            case 3: ROWS(3); break;
            case 2: ROWS(2); break;
            case 1: ROWS(1); break;
        }
    }
}

typedef float Floats __attribute__((vector_size(4 * BLOCK), aligned(4), may_alias));
typedef float HalfFloats __attribute__((vector_size(2 * BLOCK), aligned(4), may_alias));

/* Products of a tile in vectors that are registers: of a whole block, or `parts` of one */
#define SUM_UP(Vector, parts)                                                                                     \
    do {                                                                                                          \
        Vector sums[FLOAT_ROWS][2][parts];                                                                        \
        for (int r = 0; r < rows; r++)                                                                            \
            for (int b = 0; b < blocks; b++)                                                                      \
                for (int i = 0; i < parts; i++) sums[r][b][i] = (Vector){0};                                      \
        for (int64_t k = 0; k < p->size; k++)                                                                     \
            for (int r = 0; r < rows; r++)                                                                        \
                for (int b = 0; b < blocks; b++)                                                                  \
                    for (int i = 0; i < parts; i++)                                                               \
                        sums[r][b][i] += x[r * p->size + k] * ((const Vector *)(weights + (b * p->size + k) * BLOCK))[i]; \
        for (int r = 0; r < rows; r++)                                                                            \
            for (int b = 0; b < blocks; b++) memcpy(all[r][b], sums[r][b], sizeof all[r][b]);                     \
    } while (0)

/* `rows` times `blocks` (known when compiled) of float32 */
INLINE void float_tile(const int is_wide, const int rows, const int blocks, const Product *p, int64_t row, int64_t output) {
    const float *weights = (const float *)p->weights + output * p->size, *x = (const float *)p->x + row * p->size;
    float all[FLOAT_ROWS][2][BLOCK];
    if (is_wide) SUM_UP(Floats, 1);
    else SUM_UP(HalfFloats, 2);
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < blocks; b++) {
            const int64_t first = output + b * BLOCK, left = p->outputs - first, kept = left < BLOCK ? left : BLOCK;
            float *y = p->y + (row + r) * p->stride + first, *values = all[r][b];
            for (int i = 0; i < BLOCK; i++) values[i] += p->bias[first + i];
            if (p->relu)
                for (int i = 0; i < BLOCK; i++) values[i] = values[i] < 0 ? 0 : values[i];
            if (p->adds)
                for (int64_t i = 0; i < kept; i++) y[i] += values[i];
            else if (kept == BLOCK) memcpy(y, values, BLOCK * sizeof(float));
            else for (int64_t i = 0; i < kept; i++) y[i] = values[i];
        }
}

#define FLOATS(is_wide, most, blocks)                                                        \
    do {                                                                            \
        int64_t r = 0;                                                              \
        for (; r + most <= rows; r += most) float_tile(is_wide, most, blocks, p, r, output); \
        switch (rows - r) {                                                         \
            case 7: float_tile(is_wide, 7, blocks, p, r, output); break;                     \
            case 6: float_tile(is_wide, 6, blocks, p, r, output); break;                     \
            case 5: float_tile(is_wide, 5, blocks, p, r, output); break;                     \
            case 4: float_tile(is_wide, 4, blocks, p, r, output); break;                     \
            case 3: float_tile(is_wide, 3, blocks, p, r, output); break;                     \
            case 2: float_tile(is_wide, 2, blocks, p, r, output); break;                     \
            case 1: float_tile(is_wide, 1, blocks, p, r, output); break;                     \
        }                                                                           \
    } while (0)

FOR(WIDE) static void wide_floats(const Product *p, int64_t rows) {
    int64_t output = 0;
    for (; output + BLOCK < p->outputs; output += 2 * BLOCK) FLOATS(1, FLOAT_ROWS, 2);
    for (; output < p->outputs; output += BLOCK) FLOATS(1, FLOAT_ROWS, 1);
}

FOR_AVX2 static void narrow_floats(const Product *p, int64_t rows) {
    for (int64_t output = 0; output < p->outputs; output += BLOCK) FLOATS(0, 6, 1);
}
