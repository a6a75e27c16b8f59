/* Products for cpu_kernels.c: rows of states as int8, times int8 weights, scaled to float32; and those of float32.
 *
 * The former sum up the same integers as int8_linear.py, whatever instructions the processor has for them. A row of the
 * latter is summed up in the same order, whatever rows are next to it.
 */
#define BLOCK 16     /* outputs side by side: weights are [D_out / 16][D_in / 4][16][4] */
#define TILE 4       /* rows that share a load of weights */
#define TILE_ROWS 16 /* of a tile of AMX */
#define FLOAT_ROWS 8 /* the most that share a load of float32 weights, which are [D_out / 16][D_in][16] */

typedef struct {
    const void *weights, *x; /* integers, or float32 without scales */
    const float *scales, *row_scales, *bias;
    float *y;
    int64_t size, outputs, stride; /* the latter is of rows of y */
    int relu, adds;
} Product;

typedef Integers Add(Integers sums, Integers weights, Integers x); /* add_products, or faster */

/* x / max |x| * 127, rounded, of a row of D values, as integers; returns max |x| / 127 */
VECTORS static float quantize(const float *x, int64_t size, int8_t *integers) {
    Integers most = {0}; /* by bits, so that NaN is the largest */
    float magnitude, least = 1.17549435e-38f;
    for (int64_t i = 0; i < size; i += LANES) most = larger_integers(most, (Integers)load(x + i) & INT32_MAX);
    const int32_t bits = largest(most);
    memcpy(&magnitude, &bits, sizeof magnitude);
    const Vector divisor = all(magnitude < least ? least : magnitude);
    for (int64_t i = 0; i < size; i += LANES) store_int8(integers + i, nearest(load(x + i) / divisor * all(127.0f)));
    return magnitude / 127.0f;
}

/* Values of one row and block become outputs, of which `kept` are there: with ReLU, and what is there. */
INLINE void finish_block(float *values, const Product *p, int64_t row, int64_t first) {
    const int64_t left = p->outputs - first, kept = left < BLOCK ? left : BLOCK;
    float *y = p->y + row * p->stride + first;
    if (p->relu)
        for (int i = 0; i < BLOCK; i++) values[i] = values[i] < 0 ? 0 : values[i];
    if (p->adds)
        for (int64_t i = 0; i < kept; i++) y[i] += values[i];
    else if (kept == BLOCK) memcpy(y, values, BLOCK * sizeof(float));
    else for (int64_t i = 0; i < kept; i++) y[i] = values[i];
}

/* `rows` of integers (1 to 4, known when compiled, as `add`) times one block of weights */
INLINE VECTORS void tile(const int rows, Add *add, const Product *p, int64_t row, int64_t output) {
    const int8_t *weights = (const int8_t *)p->weights + output * p->size, *x = (const int8_t *)p->x + row * p->size;
    Integers sums[TILE][BLOCK / LANES], w[BLOCK / LANES];
    float values[TILE][BLOCK];
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < BLOCK / LANES; i++) sums[r][i] = (Integers){0};
    for (int64_t k = 0; k < p->size; k += 4) {
        for (int i = 0; i < BLOCK / LANES; i++) w[i] = (Integers)load((const float *)(weights + k * BLOCK) + i * LANES);
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * p->size + k, 4);
            for (int i = 0; i < BLOCK / LANES; i++) sums[r][i] = add(sums[r][i], w[i], four + (Integers){0});
        }
    }
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < BLOCK / LANES; i++)
            store(values[r] + i * LANES, fused(floats(sums[r][i]) * all(p->row_scales[row + r]),
                                               load(p->scales + output + i * LANES), load(p->bias + output + i * LANES)));
    for (int r = 0; r < rows; r++) finish_block(values[r], p, row + r, output);
}

INLINE VECTORS void tiles(Add *add, const Product *p, int64_t rows) {
    for (int64_t output = 0; output < p->outputs; output += BLOCK)
        for (int64_t r = 0; r < rows; r += TILE)
            switch (rows - r) {
                case 1: tile(1, add, p, r, output); break;
                case 2: tile(2, add, p, r, output); break;
                case 3: tile(3, add, p, r, output); break;
                default: tile(4, add, p, r, output);
            }
}

VECTORS static void narrow_product(const Product *p, int64_t rows) { tiles(add_products, p, rows); }

typedef float WholeBlock __attribute__((vector_size(4 * BLOCK), aligned(4), may_alias));
typedef float BlockPart __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Products of a tile in vectors that are registers: of a whole block, or `parts` of one */
#define SUM_UP(Vector, parts)                                                                                     \
    do {                                                                                                          \
        Vector sums[FLOAT_ROWS][2][parts];                                                                        \
        for (int r = 0; r < rows; r++)                                                                            \
            for (int b = 0; b < blocks; b++)                                                                      \
                for (int i = 0; i < parts; i++) sums[r][b][i] = (Vector){0};                                      \
        for (int64_t k = 0; k < p->size; k += FACTORS) {                                                          \
            Factors factors[FLOAT_ROWS];                                                                          \
            for (int r = 0; r < rows; r++) factors[r] = factors_at(x + r * p->size + k);                          \
            for (int j = 0; j < FACTORS; j++)                                                                     \
                for (int r = 0; r < rows; r++)                                                                    \
                    for (int b = 0; b < blocks; b++)                                                              \
                        for (int i = 0; i < parts; i++)                                                           \
                            sums[r][b][i] += factors[r][j] * ((const Vector *)(weights + (b * p->size + k + j) * BLOCK))[i]; \
        }                                                                                                         \
        for (int r = 0; r < rows; r++)                                                                            \
            for (int b = 0; b < blocks; b++) memcpy(values[r][b], sums[r][b], sizeof values[r][b]);               \
    } while (0)

/* `rows` times `blocks` (known when compiled) of float32 */
INLINE void float_tile(const int is_wide, const int rows, const int blocks, const Product *p, int64_t row, int64_t output) {
    const float *weights = (const float *)p->weights + output * p->size, *x = (const float *)p->x + row * p->size;
    float values[FLOAT_ROWS][2][BLOCK];
    if (is_wide) SUM_UP(WholeBlock, 1);
    else SUM_UP(BlockPart, BLOCK / LANES);
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < blocks; b++) {
            for (int i = 0; i < BLOCK; i++) values[r][b][i] += p->bias[output + b * BLOCK + i];
            finish_block(values[r][b], p, row + r, output + b * BLOCK);
        }
}

#define FLOATS(is_wide, most, blocks)                                                         \
    do {                                                                                      \
        int64_t r = 0;                                                                        \
        for (; r + most <= rows; r += most) float_tile(is_wide, most, blocks, p, r, output);  \
        switch (rows - r) {                                                                   \
            case 7: float_tile(is_wide, 7, blocks, p, r, output); break;                      \
            case 6: float_tile(is_wide, 6, blocks, p, r, output); break;                      \
            case 5: float_tile(is_wide, 5, blocks, p, r, output); break;                      \
            case 4: float_tile(is_wide, 4, blocks, p, r, output); break;                      \
            case 3: float_tile(is_wide, 3, blocks, p, r, output); break;                      \
            case 2: float_tile(is_wide, 2, blocks, p, r, output); break;                      \
            case 1: float_tile(is_wide, 1, blocks, p, r, output); break;                      \
        }                                                                                     \
    } while (0)

VECTORS static void narrow_floats(const Product *p, int64_t rows) {
    for (int64_t output = 0; output < p->outputs; output += BLOCK) FLOATS(0, NARROW_ROWS, 1);
}

typedef uint64_t Words __attribute__((vector_size(64), aligned(1), may_alias));

/* A hash of some memory, by 32 lanes of words of 8 bytes: with whatever changes, all but certainly, it changes */
INLINE uint64_t checksum(const uint8_t *bytes, int64_t size) {
    const uint64_t odd = 0x9e3779b97f4a7c15;
    uint64_t lanes[32], sum = size;
    Words mixed[4], rest[4];
    for (int k = 0; k < 32; k++) lanes[k] = k;
    memcpy(mixed, lanes, sizeof mixed);
    for (int64_t i = 0; i < size; i += sizeof rest) {
        const Words *words = (const Words *)(bytes + i);
        if (size - i < (int64_t)sizeof rest) {
            memset(rest, 0, sizeof rest);
            memcpy(rest, bytes + i, size - i);
            words = rest;
        }
        for (int k = 0; k < 4; k++) {
            const Words product = (mixed[k] ^ words[k]) * odd;
            mixed[k] = product << 13 | product >> 51; /* so that the highest bits count, too */
        }
    }
    memcpy(lanes, mixed, sizeof lanes);
    for (int k = 0; k < 32; k++) sum = (sum ^ lanes[k]) * odd, sum ^= sum >> 32;
    return sum;
}

VECTORS static uint64_t narrow_checksum(const uint8_t *bytes, int64_t size) { return checksum(bytes, size); }

/* What computes with the best instructions that docmt_level has found */
static void (*int8_product)(const Product *p, int64_t rows), (*float_product)(const Product *p, int64_t rows);
static uint64_t (*checksum_of)(const uint8_t *bytes, int64_t size);

#ifdef __x86_64__
#include "cpu_wide.h"

int64_t docmt_level(int64_t most) {
    __builtin_cpu_init();
    int8_product = narrow_product, float_product = narrow_floats, checksum_of = narrow_checksum;
    if (most < AVX2 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return NONE;
    if (most < VNNI || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vnni"))
        return AVX2;
    const int is_tiled = most >= AMX && has_tiles();
    int8_product = is_tiled ? tiled_product : wide_product, float_product = wide_floats, checksum_of = wide_checksum;
    return is_tiled ? AMX : VNNI;
}
#else
#ifdef __linux__
#include <sys/auxv.h>
#endif
FOR_DOTS static void dots_product(const Product *p, int64_t rows) { tiles(add_fast, p, rows); }

static int has_dots(void) {
#if defined(__ARM_FEATURE_DOTPROD)
    return 1; /* as on every Mac */
#elif defined(__linux__)
    return getauxval(AT_HWCAP) >> 20 & 1; /* HWCAP_ASIMDDP */
#else
    return 0;
#endif
}

int64_t docmt_level(int64_t most) {
    const int is_fast = most >= DOTS && has_dots();
    int8_product = is_fast ? dots_product : narrow_product, float_product = narrow_floats, checksum_of = narrow_checksum;
    return most < NEON ? NONE : is_fast ? DOTS : NEON;
}
#endif
