/* The primitives of a decoding step (decoding_kernels.py) for x86-64: float32 states, int8 weights.
 *
 * A step is a list of `Operation`s over R rows, run by one call of `docmt_run`. A library with a plain C interface: no
 * headers of torch or Python. Products sum up the same integers as int8_linear.py, whatever instructions the processor
 * has for them. One thread.
 */
#include <stdint.h>

#define ABI 5
enum { PRODUCT, NORM, SELF_ATTENTION, SOURCE_ATTENTION, EMBEDDING };
enum { NONE, AVX2, VNNI, AMX }; /* instructions for products: 256 bits, 512 bits, tiles */

typedef struct {
    int64_t kind, input, output; /* the numbers of buffers */
    int64_t sizes[5];
    const void *weights[3];
    float number; /* epsilon of a norm, scaling of attention, scale of embeddings */
} Operation;

typedef struct {
    float *const *buffers;    /* states that operations read and write */
    int64_t rows;             /* R */
    int64_t length;           /* tokens that self-attention reads, the new one included */
    int64_t shared;           /* rows of one source, side by side */
    int64_t places;           /* L: states of a source */
    const int32_t *ancestors; /* (T, R): in which row the state of a token lies that a row has read */
    const int32_t *first;     /* (R,): the first token that is seen, behind padding on the left */
    const int32_t *seen;      /* (S, L): which states of a source are seen, first; none: all are */
    const int32_t *counts;    /* (S,): how many */
    const int64_t *tokens;    /* (R,): the new ones, for embeddings */
    const float *encoding;    /* (D,): of their position */
    const float *bias;        /* of products that have none of their own */
    int8_t *integers;         /* scratch, (R up to a multiple of 16, D_in) */
    float *numbers;           /* scratch, max(R, tokens + 8) */
    int64_t *offsets;         /* scratch, (tokens,) */
} Step;

int64_t docmt_abi(void) { return ABI; }

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#include <math.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#define FOR(instructions) __attribute__((target(instructions)))
#define FOR_AVX2 FOR("avx2,fma")
#define WIDE "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni"
#define INLINE static inline __attribute__((always_inline))
#define BLOCK 16      /* outputs side by side: weights are [D_out / 16][D_in / 4][16][4] */
#define TILE 4        /* rows that share a load of weights */
#define TILE_ROWS 16  /* of a tile of AMX */
#define TILE_BYTES 64 /* of a row of it */
#define LEAST_ROWS 5  /* from so many on tiles are faster */

static int64_t level = NONE;

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
    if (most < VNNI || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512vnni"))
        return level;
    return level = most >= AMX && has_tiles() ? AMX : VNNI;
}

INLINE FOR_AVX2 float sum(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* the largest of values that are not negative, by their bits, so that one that is no number is the largest */
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
            if (relu) v = _mm256_max_ps(v, _mm256_setzero_ps());
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
    if (relu) v = _mm512_max_ps(v, _mm512_setzero_ps());
    if (adds) v = _mm512_add_ps(_mm512_maskz_loadu_ps(there, y), v);
    _mm512_mask_storeu_ps(y, there, v);
}

typedef struct {
    const int8_t *weights, *x;
    const float *scales, *row_scales, *bias;
    float *y;
    int64_t size, outputs;
    int relu, adds;
} Product;

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
INLINE FOR(WIDE) void wide_tile(const int rows, const int blocks, const Product *p, int64_t row, int64_t output) {
    const __m512i sign = _mm512_set1_epi8(-128);
    const int8_t *weights = p->weights + output * p->size, *x = p->x + row * p->size;
    __m512i sums[TILE][4];
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < blocks; b++) sums[r][b] = _mm512_setzero_si512();
    for (int64_t k = 0; k < p->size; k += 4) {
        __m512i w[4];
        for (int b = 0; b < blocks; b++)
            w[b] = _mm512_xor_si512(_mm512_loadu_si512(weights + (b * p->size + k) * BLOCK), sign);
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * p->size + k, 4);
            for (int b = 0; b < blocks; b++)
                sums[r][b] = _mm512_dpbusd_epi32(sums[r][b], w[b], _mm512_set1_epi32(four));
        }
    }
    for (int r = 0; r < rows; r++) {
        __m512i least = _mm512_set1_epi32(offset(x + r * p->size, p->size));
        for (int b = 0; b < blocks; b++) {
            int64_t first = output + b * BLOCK;
            finish(_mm512_add_epi32(sums[r][b], least), p->scales + first, p->row_scales[row + r], p->bias + first,
                   p->outputs - first, p->y + (row + r) * p->outputs + first, p->relu, p->adds);
        }
    }
}

FOR(WIDE) static void wide_product(const Product *p, int64_t rows) {
    int64_t output = 0;
#define WIDE_ROWS(blocks)                                                        \
    do {                                                                         \
        int64_t r = 0;                                                           \
        for (; r + TILE <= rows; r += TILE) wide_tile(4, blocks, p, r, output);  \
        switch (rows - r) {                                                      \
            case 3: wide_tile(3, blocks, p, r, output); break;                   \
            case 2: wide_tile(2, blocks, p, r, output); break;                   \
            case 1: wide_tile(1, blocks, p, r, output); break;                   \
        }                                                                        \
    } while (0)
    for (; output + 3 * BLOCK < p->outputs; output += 4 * BLOCK) WIDE_ROWS(4);
    for (; output < p->outputs; output += BLOCK) WIDE_ROWS(1);
}

#ifdef KNOWS_AMX
/* 16 rows times two blocks at once; rows behind the last one are whatever is there, and are not kept */
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
            const int8_t *weights = p->weights + output * p->size, *x = p->x + row * p->size;
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
                           p->outputs - first, p->y + (row + r) * p->outputs + first, p->relu, p->adds);
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
    tile(count, p->weights + first * p->size, p->x + r * p->size, p->size, p->scales + first, p->row_scales + r, \
         p->bias + first, kept, p->y + r * p->outputs + first, p->outputs, p->relu, p->adds)
        for (; r + TILE <= rows; r += TILE) ROWS(4);
        switch (rows - r) {
            case 3: ROWS(3); break;
            case 2: ROWS(2); break;
            case 1: ROWS(1); break;
        }
    }
}

/* y = x W^T + b (R, D_out), or y += x W^T + b; scales and bias are padded to whole blocks */
FOR_AVX2 static void product(const Operation *o, const Step *step) {
    const int64_t size = o->sizes[0], rows = step->rows;
    const float *x = step->buffers[o->input];
    const Product p = {o->weights[0], step->integers, o->weights[1], step->numbers,
                       o->weights[2] ? o->weights[2] : step->bias, step->buffers[o->output], size, o->sizes[1], o->sizes[2], o->sizes[3]};
    for (int64_t r = 0; r < rows; r++) step->numbers[r] = quantize(x + r * size, size, step->integers + r * size);
    if (level == AMX && rows >= LEAST_ROWS && size % TILE_BYTES == 0) tiled_product(&p, rows);
    else if (level >= VNNI) wide_product(&p, rows);
    else narrow_product(&p, rows);
}

/* (x - mean) / sqrt(variance + epsilon) * weight + bias of rows of D values, which may stay where they are */
FOR_AVX2 static void norm(const Operation *o, const Step *step) {
    const int64_t size = o->sizes[0];
    const float *weight = o->weights[0], *bias = o->weights[1];
    for (int64_t r = 0; r < step->rows; r++) {
        const float *x = step->buffers[o->input] + r * size;
        float *y = step->buffers[o->output] + r * size;
        __m256 total = _mm256_setzero_ps(), squares = _mm256_setzero_ps();
        for (int64_t i = 0; i < size; i += 8) total = _mm256_add_ps(total, _mm256_loadu_ps(x + i));
        __m256 mean = _mm256_set1_ps(sum(total) / size);
        for (int64_t i = 0; i < size; i += 8) {
            __m256 v = _mm256_sub_ps(_mm256_loadu_ps(x + i), mean);
            squares = _mm256_fmadd_ps(v, v, squares);
        }
        __m256 factor = _mm256_set1_ps(1.0f / sqrtf(sum(squares) / size + o->number));
        for (int64_t i = 0; i < size; i += 8) {
            __m256 v = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), mean), factor);
            _mm256_storeu_ps(y + i, _mm256_fmadd_ps(v, _mm256_loadu_ps(weight + i), _mm256_loadu_ps(bias + i)));
        }
    }
}

/* e^x for x <= 0: 2^n times a polynomial of the rest (Cephes) */
INLINE FOR_AVX2 __m256 exponential(__m256 x) {
    x = _mm256_max_ps(x, _mm256_set1_ps(-87.0f));
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
    __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

/* softmax of `count` scores, in place, with room for a whole vector behind them */
INLINE FOR_AVX2 void softmax(float *scores, int64_t count) {
    float most = scores[0];
    for (int64_t i = 1; i < count; i++) most = scores[i] > most ? scores[i] : most;
    int64_t padded = (count + 7) / 8 * 8;
    for (int64_t i = count; i < padded; i++) scores[i] = -INFINITY;
    __m256 total = _mm256_setzero_ps(), peak = _mm256_set1_ps(most);
    for (int64_t i = 0; i < padded; i += 8) {
        __m256 v = _mm256_loadu_ps(scores + i);
        v = _mm256_and_ps(exponential(_mm256_sub_ps(v, peak)), _mm256_cmp_ps(v, _mm256_set1_ps(-INFINITY), _CMP_NEQ_UQ));
        _mm256_storeu_ps(scores + i, v);
        total = _mm256_add_ps(total, v);
    }
    __m256 factor = _mm256_set1_ps(1.0f / sum(total));
    for (int64_t i = 0; i < padded; i += 8)
        _mm256_storeu_ps(scores + i, _mm256_mul_ps(_mm256_loadu_ps(scores + i), factor));
}

INLINE FOR_AVX2 float dot(const float *x, const float *y, int64_t size) {
    __m256 total = _mm256_setzero_ps();
    for (int64_t i = 0; i < size; i += 8) total = _mm256_fmadd_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i), total);
    return sum(total);
}

/* out = sum of weights times states, `width` values of them (8 or 32, known when compiled) */
INLINE FOR_AVX2 void read_states(const int width, const float *states, const int64_t *places, const float *weights,
                        int64_t count, float *out) {
    __m256 sums[4];
    for (int i = 0; i < width / 8; i++) sums[i] = _mm256_setzero_ps();
    for (int64_t t = 0; t < count; t++)
        for (int i = 0; i < width / 8; i++)
            sums[i] = _mm256_fmadd_ps(_mm256_set1_ps(weights[t]), _mm256_loadu_ps(states + places[t] + 8 * i), sums[i]);
    for (int i = 0; i < width / 8; i++) _mm256_storeu_ps(out + 8 * i, sums[i]);
}

/* softmax(q k / sqrt(d)) v of one head, over the states at `places` */
INLINE FOR_AVX2 void attend(const float *query, const float *keys, const float *values, const int64_t *places, int64_t count,
                   int64_t dim, float scaling, float *scores, float *out) {
    for (int64_t t = 0; t < count; t++) scores[t] = dot(query, keys + places[t], dim) * scaling;
    softmax(scores, count);
    int64_t i = 0;
    for (; i + 32 <= dim; i += 32) read_states(32, values + i, places, scores, count, out + i);
    for (; i < dim; i += 8) read_states(8, values + i, places, scores, count, out + i);
}

/* One new token a row reads all that its row has written: projections (R, 3 H Dh), states (T, R, 2 H Dh) */
FOR_AVX2 static void self_attention(const Operation *o, const Step *step) {
    const int64_t heads = o->sizes[0], dim = o->sizes[1], size = heads * dim, rows = step->rows, last = step->length - 1;
    const float *projections = step->buffers[o->input];
    float *states = step->buffers[o->sizes[2]], *output = step->buffers[o->output];
    for (int64_t r = 0; r < rows; r++)
        memcpy(states + (last * rows + r) * 2 * size, projections + (3 * r + 1) * size, 2 * size * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = step->first[r];
        for (int64_t t = first; t <= last; t++)
            step->offsets[t - first] = (t * rows + step->ancestors[t * rows + r]) * 2 * size;
        for (int64_t h = 0; h < heads; h++)
            attend(projections + 3 * r * size + h * dim, states + h * dim, states + size + h * dim, step->offsets,
                   last + 1 - first, dim, o->number, step->numbers, output + r * size + h * dim);
    }
}

/* Queries of the rows of one source, side by side, read its states: keys (H Dh) and values side by side, which begin
 * `first` numbers into a place of a buffer (S, L, stride). Queries are (R, H Dh), or of the same places (R, stride). */
FOR_AVX2 static void source_attention(const Operation *o, const Step *step) {
    const int64_t heads = o->sizes[0], dim = o->sizes[1], size = heads * dim, stride = o->sizes[3], first = o->sizes[4];
    const float *queries = step->buffers[o->input], *states = step->buffers[o->sizes[2]] + first;
    const int64_t by_query = o->input == o->sizes[2] ? stride : size, places = step->places;
    float *output = step->buffers[o->output];
    for (int64_t r = 0; r < step->rows; r++) {
        const int64_t source = r / step->shared, count = step->seen ? step->counts[source] : places;
        if (r % step->shared == 0)
            for (int64_t i = 0, place = source * places; i < count; i++)
                step->offsets[i] = (place + (step->seen ? step->seen[place + i] : i)) * stride;
        for (int64_t h = 0; h < heads; h++)
            attend(queries + r * by_query + h * dim, states + h * dim, states + size + h * dim, step->offsets, count,
                   dim, o->number, step->numbers, output + r * size + h * dim);
    }
}

/* scale * table[token] + encoding, (R, D) */
FOR_AVX2 static void embedding(const Operation *o, const Step *step) {
    const int64_t size = o->sizes[0];
    const float *table = o->weights[0];
    float *y = step->buffers[o->output];
    for (int64_t r = 0; r < step->rows; r++)
        for (int64_t i = 0; i < size; i += 8) {
            __m256 v = _mm256_mul_ps(_mm256_loadu_ps(table + step->tokens[r] * size + i), _mm256_set1_ps(o->number));
            _mm256_storeu_ps(y + r * size + i, _mm256_add_ps(v, _mm256_loadu_ps(step->encoding + i)));
        }
}

/* Whether x stands before y in a list of the best: numbers come behind what is none, as in torch */
INLINE int is_better(float x, float y) { return x > y || (x != x && y == y); }

/* The `count` best of B groups of scores (B, rows, V), best first, the first one of equal ones; a row may have a number
 * that is added to its scores: values, indices into rows times V, (B, count) each. Returns whether some are equal. */
FOR_AVX2 int64_t docmt_best(const float *scores, const float *added, int64_t groups, int64_t rows, int64_t size,
                            int64_t count, float *values, int64_t *indices) {
    int64_t ties = 0;
    for (int64_t group = 0; group < groups; group++, values += count, indices += count) {
        int64_t kept = 0;
        for (int64_t r = 0; r < rows; r++, scores += size) {
            const float plus = added ? added[group * rows + r] : 0.0f;
            for (int64_t i = 0; i < size; i++) {
                if (kept == count) {
                    const __m256 worst = _mm256_set1_ps(values[count - 1]), sum = _mm256_set1_ps(plus);
                    for (; i + 8 <= size; i += 8) {
                        __m256 v = _mm256_add_ps(_mm256_loadu_ps(scores + i), sum);
                        if (_mm256_movemask_ps(_mm256_cmp_ps(v, worst, _CMP_NLE_UQ))) break;
                    }
                    if (i == size || !is_better(scores[i] + plus, values[count - 1])) continue;
                } else kept++;
                const float value = scores[i] + plus;
                int64_t place = kept - 1;
                for (; place && is_better(value, values[place - 1]); place--)
                    values[place] = values[place - 1], indices[place] = indices[place - 1];
                values[place] = value, indices[place] = r * size + i;
            }
        }
        for (int64_t i = 1; i < count; i++) ties |= !(values[i - 1] > values[i]);
    }
    return ties;
}

void docmt_run(const Operation *operations, int64_t count, const Step *step) {
    for (const Operation *o = operations; o < operations + count; o++) switch (o->kind) {
            case PRODUCT: product(o, step); break;
            case NORM: norm(o, step); break;
            case SELF_ATTENTION: self_attention(o, step); break;
            case SOURCE_ATTENTION: source_attention(o, step); break;
            case EMBEDDING: embedding(o, step); break;
        }
}

#else
int64_t docmt_level(int64_t most) { return NONE; }
void docmt_run(const Operation *operations, int64_t count, const Step *step) {}
int64_t docmt_best(const float *scores, const float *added, int64_t groups, int64_t rows, int64_t size, int64_t count,
                   float *values, int64_t *indices) {
    return 0;
}
#endif
