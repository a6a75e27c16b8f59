/* Products of cpu_products.h by AVX-512 VNNI and by AMX */
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#define WIDE "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni"
#define TOGETHER_ROWS 96 /* that go through a group of blocks, a multiple of these */
#define TILE_BYTES 64    /* of a row of a tile of AMX */
#define LEAST_ROWS 5     /* from this number on tiles are faster */

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
    if (rows < LEAST_ROWS || p->size % TILE_BYTES) return wide_product(p, rows);
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

FOR(WIDE) static void wide_floats(const Product *p, int64_t rows) {
    int64_t output = 0;
    for (; output + BLOCK < p->outputs; output += 2 * BLOCK) FLOATS(1, FLOAT_ROWS, 2);
    for (; output < p->outputs; output += BLOCK) FLOATS(1, FLOAT_ROWS, 1);
}

FOR(WIDE ",avx512dq") static uint64_t wide_checksum(const uint8_t *bytes, int64_t size) { return checksum(bytes, size); }
