/* The primitives of a decoding step (decoding_kernels.py) for x86-64 and aarch64: float32 states, int8 or float32 weights.
 *
 * A step is a list of `Operation`s over R rows, run by one call of `docmt_run`. A library with a plain C interface: no
 * headers of torch or Python. Products sum up the same integers as int8_linear.py, whatever instructions the processor
 * has for them, and how many threads share them.
 */
#include <stdint.h>

#define ABI 19
enum { PRODUCT, NORM, SELF_ATTENTION, SOURCE_ATTENTION, EMBEDDING, RECURRENCE, MIXTURE, ADDITION };
enum { ALL, LIMITED, CONTEXT };   /* what attention reads: CONTEXT is another source */
enum { SENTENCE, GROUP, WINDOW }; /* what limits it */
enum { NONE, AVX2, VNNI, AMX, NEON, DOTS }; /* instructions for products, of x86-64: 256 bits, 512 bits, tiles; of aarch64 */

typedef struct {
    int64_t kind, input, output; /* the numbers of buffers */
    int64_t sizes[6];
    const void *weights[3];
    float number; /* epsilon of a norm, scaling of attention, scale of embeddings */
} Operation;

typedef struct {
    int64_t kind, separator; /* the latter is a token */
    int64_t width;           /* of a window: tokens before, and those after in a source */
    int64_t count;           /* N: the most sentences of a source */
    const int32_t *borders;  /* (S, N + 1): where they begin among the states that are seen, and the end */
    double ratio;            /* source tokens a token, along which windows go; 0: each sentence begins with its own */
} Limits;

/* A target has a slot, at which tables are read, whatever its row is in a step: W slots, as many origins as there are
 * sources side by side in the buffers of their states. */
typedef struct {
    float *const *buffers;    /* states that operations read and write */
    int64_t rows;             /* R */
    int64_t fresh;            /* new tokens of a target, rows side by side: R is targets (B) times these */
    int64_t *lengths;         /* (W,): tokens that self-attention reads, the new ones included */
    int64_t shared;           /* rows of one source, side by side, where there are no origins */
    int64_t places;           /* L: states of a source */
    int32_t *ancestors;       /* (T, W): the slot of the state of each token that a target has read */
    const int32_t *first;     /* (W,): the first visible token, after padding on the left */
    const int32_t *seen;      /* (S, L): which states of a source are seen, first; none: the first ones */
    int32_t *counts;          /* (S,): how many; none: all are */
    int64_t *tokens;          /* (R,): the new ones, for embeddings */
    const float *encodings;   /* (positions, D), from the first token that is seen on */
    const float *bias;        /* of products that have none of their own */
    int8_t *integers;         /* scratch, (R up to a multiple of 16, D_in) */
    float *numbers;           /* scratch, (threads, room for R and for tokens + 8), of a target, source or context */
    int64_t *offsets;         /* scratch, (threads, the same) */
    const Limits *limits;     /* of mechanisms that have some */
    const int64_t *ids;       /* (W, room): all tokens of the targets, for limits */
    int64_t room;
    int32_t *ranges;          /* (R, 3): the first token that is read, first state of the source and the one after the last */
    int64_t context_places;   /* as those of the source */
    const int32_t *context_seen, *context_counts;
    int64_t threads, scratch; /* the most threads, and the scratch numbers of each */
    int64_t written, kept;    /* W; T: the tokens that there is room for */
    int32_t *slots;           /* (B,) */
    int32_t *origins;         /* (W,): the source of a target in these buffers; none: of an encoder */
} Step;

typedef struct {
    int64_t sources, most;    /* N; how many are searched at once, which is the number of origins (M): W is M times beams */
    const int64_t *prompts;   /* (N, prompt) */
    int64_t prompt;
    const int64_t *given;     /* (N,): how many tokens of a prompt there are, the first ones */
    const int64_t *limits;    /* (N,): the most tokens of a target, prompt included */
    int64_t *ids, *copies;    /* (W, room): the tokens of targets; scratch, (beams, room) */
    int64_t room;             /* a step whose targets have more tokens is not begun */
    const int64_t *ends;      /* tokens that translations end at */
    int64_t end_count, beams; /* 1: greedy search */
    double penalty;           /* scores are sums of log-probabilities over new tokens to the power of this */
    int64_t is_early;         /* whether as many translations as beams are enough, whatever may follow */
    int64_t scored;           /* V */
    const int64_t *words;     /* (V,): the tokens that are scored, or these are all */
    const uint8_t *is_absent; /* (N, V): which of them are not for a source, or all are */
    float *log_probs, *sums;  /* scratch, (W, V) of beams; (W,): log-probabilities of beams */
    float *values;            /* scratch, (M, kept): the best continuations of each source */
    int64_t *indices;         /* scratch, (M, kept): their places in its rows of scores */
    int64_t kept;             /* 1, of beams more than the candidates of a source */
    int64_t *current;         /* (M,): the source at an origin, or less than 0 */
    int64_t next;             /* the next source that waits */
    int64_t is_read;          /* whether prompts were read, scores of what follows are there, and M = N */
    int64_t steps;            /* the most until it returns */
    int64_t *found;           /* (N, beams, room): translations that have ended, best first */
    float *found_scores;      /* (N, beams) */
    int64_t *found_lengths;   /* (N, beams): of these, prompt included; 0: none */
    uint8_t *is_open;         /* (N,): whether beams tie or have no number, so that the source is for another search */
    const Operation *readers; /* give states of a source to attention, or these are there */
    int64_t reader_count;
    Step *reading;            /* of these */
    const float *states;      /* (N, L, D) */
    const int32_t *visible;   /* (N,): how many of L, the first ones */
    float *totals;            /* (W, room): sums of log-probabilities up to each token, if asked for */
    float *total_copies, *found_totals; /* scratch, (beams, room); (N, beams, room) */
} Search;

int64_t docmt_abi(void) { return ABI; }

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__GNUC__)
#include <math.h>
#include <string.h>
#include "cpu_vectors.h"
#include "cpu_products.h"
#include "cpu_threads.h"

#define TOGETHER (4 * BLOCK) /* outputs that a thread has at least, so that they are computed side by side */
#ifndef LEAST_WORK
#define LEAST_WORK 1000000   /* multiplications of float32 a thread from which on threads share a step; of integers four */
#endif

typedef struct {
    Share share;        /* of a step */
    int64_t begin, end; /* rows of it */
} Part;

/* y = x W^T + b (R, D_out), or y += x W^T + b, perhaps columns of wider rows; scales and bias are padded to whole blocks.
 * Weights without scales are float32. Threads share outputs, and where these are too few, groups of threads share rows
 * (none after the last group). */
VECTORS static void product(const Operation *o, const Step *step, const Part *part) {
    const int64_t size = o->sizes[0], all = o->sizes[1], units = (all + TOGETHER - 1) / TOGETHER;
    const int64_t stride = o->sizes[4] ? o->sizes[4] : all, count = part->share.count, across = count < units ? count : units;
    const Share column = {part->share.number % across, across}, group = {part->share.number / across, count / across};
    const int64_t first = begin_of(column, all, TOGETHER), end = end_of(column, all, TOGETHER), place = first * size;
    const int64_t row = begin_of(group, step->rows, TILE_ROWS), rows = end_of(group, step->rows, TILE_ROWS) - row;
    const float *x = step->buffers[o->input], *scales = o->weights[1], *bias = o->weights[2] ? o->weights[2] : step->bias;
    const void *weights = scales ? (const void *)((const int8_t *)o->weights[0] + place) : (const float *)o->weights[0] + place;
    const Product p = {weights, scales ? (const void *)(step->integers + row * size) : x + row * size, scales ? scales + first : 0,
                       step->numbers + row, bias + first, step->buffers[o->output] + o->sizes[5] + row * stride + first,
                       size, end - first, stride, o->sizes[2], o->sizes[3]};
    for (int64_t r = part->begin; scales && r < part->end; r++)
        step->numbers[r] = quantize(x + r * size, size, step->integers + r * size);
    if (scales) meet(part->share);
    (scales ? int8_product : float_product)(&p, rows);
}

/* (x - mean) / sqrt(variance + epsilon) * weight + bias of rows of D values, which may stay where they are */
VECTORS static void norm(const Operation *o, const Step *step, const Part *part) {
    const int64_t size = o->sizes[0];
    const float *weight = o->weights[0], *bias = o->weights[1];
    for (int64_t r = part->begin; r < part->end; r++) {
        const float *x = step->buffers[o->input] + r * size;
        float *y = step->buffers[o->output] + r * size;
        Vector total = all(0), squares = all(0);
        for (int64_t i = 0; i < size; i += LANES) total += load(x + i);
        const Vector mean = all(sum(total) / size);
        for (int64_t i = 0; i < size; i += LANES) squares = fused(load(x + i) - mean, load(x + i) - mean, squares);
        const Vector factor = all(1.0f / sqrtf(sum(squares) / size + o->number));
        for (int64_t i = 0; i < size; i += LANES)
            store(y + i, fused((load(x + i) - mean) * factor, load(weight + i), load(bias + i)));
    }
}

/* e^x for x <= 0: 2^n times a polynomial of the rest (Cephes); NaN stays NaN */
INLINE VECTORS Vector exponential(Vector x) {
    x = larger(all(-87.0f), x);
    const Integers n = nearest(x * all(1.44269504f));
    const Vector r = fused(floats(n), all(2.12194440e-4f), fused(floats(n), all(-0.693359375f), x));
    Vector p = fused(all(1.9875691500e-4f), r, all(1.3981999507e-3f));
    p = fused(p, r, all(8.3334519073e-3f));
    p = fused(p, r, all(4.1665795894e-2f));
    p = fused(p, r, all(1.6666665459e-1f));
    p = fused(p, r, all(5.0000001201e-1f));
    return fused(p, r * r, r + all(1.0f)) * (Vector)((n + 127) << 23);
}

/* softmax of `count` scores, in place, with room for a whole vector after them */
INLINE VECTORS void softmax(float *scores, int64_t count) {
    float most = scores[0];
    for (int64_t i = 1; i < count; i++) most = scores[i] > most ? scores[i] : most;
    int64_t padded = (count + LANES - 1) / LANES * LANES;
    for (int64_t i = count; i < padded; i++) scores[i] = -INFINITY;
    Vector total = all(0), peak = all(most);
    for (int64_t i = 0; i < padded; i += LANES) {
        Vector v = load(scores + i);
        v = (Vector)((Integers)exponential(v - peak) & (Integers)(v != all(-INFINITY)));
        store(scores + i, v);
        total += v;
    }
    const Vector factor = all(1.0f / sum(total));
    for (int64_t i = 0; i < padded; i += LANES) store(scores + i, load(scores + i) * factor);
}

INLINE VECTORS float dot(const float *x, const float *y, int64_t size) {
    Vector total = all(0);
    for (int64_t i = 0; i < size; i += LANES) total = fused(load(x + i), load(y + i), total);
    return sum(total);
}

/* out = sum of weights times states, `width` values of them (8 or 32, known when compiled) */
INLINE VECTORS void read_states(const int width, const float *states, const int64_t *places, const float *weights,
                        int64_t count, float *out) {
    Vector sums[32 / LANES];
    for (int i = 0; i < width / LANES; i++) sums[i] = all(0);
    for (int64_t t = 0; t < count; t++)
        for (int i = 0; i < width / LANES; i++)
            sums[i] = fused(all(weights[t]), load(states + places[t] + LANES * i), sums[i]);
    for (int i = 0; i < width / LANES; i++) store(out + LANES * i, sums[i]);
}

/* softmax(q k / sqrt(d)) v of one head, over the states at `places`; vectors (count, stride), where there are some, are
 * added to keys */
INLINE VECTORS void attend(const float *query, const float *keys, const float *values, const int64_t *places, int64_t count,
                           int64_t dim, float scaling, const float *vectors, int64_t stride, float *scores, float *out) {
    for (int64_t t = 0; t < count; t++) scores[t] = dot(query, keys + places[t], dim) * scaling;
    for (int64_t t = 0; vectors && t < count; t++) scores[t] += dot(query, vectors + t * stride, dim) * scaling;
    softmax(scores, count);
    int64_t i = 0;
    for (; i + 32 <= dim; i += 32) read_states(32, values + i, places, scores, count, out + i);
    for (; i < dim; i += 8) read_states(8, values + i, places, scores, count, out + i);
}

INLINE int64_t slot_of(const Step *step, int64_t row) { return step->slots[row / step->fresh]; }

INLINE int64_t origin_of(const Step *step, int64_t row) {
    return step->origins ? step->origins[slot_of(step, row)] : row / step->shared;
}

/* The position of the new token of a row */
INLINE int64_t place_of(const Step *step, int64_t row) {
    return step->lengths[slot_of(step, row)] - step->fresh + row % step->fresh;
}

INLINE int64_t clamp(int64_t least, int64_t value, int64_t most) {
    value = value < most ? value : most;
    return value > least ? value : least;
}

/* Ranges that new tokens read, from all ids. A separator ends its sentence, but for GROUP and WINDOW it begins the next
 * one. A group missing in the source reads all of it; a window that would pass its end stays there. */
static void find_ranges(const Step *step) {
    const Limits *limits = step->limits;
    for (int64_t r = 0; r < step->rows; r++) {
        const int64_t slot = slot_of(step, r), place = place_of(step, r), padding = step->first[slot];
        const int64_t first = padding < place ? padding : place, *ids = step->ids + slot * step->room;
        int64_t begin = first, number = 0; /* of the sentence */
        for (int64_t t = 0; t < place + (limits->kind != SENTENCE); t++)
            if (ids[t] == limits->separator) begin = clamp(first, t + (limits->kind == SENTENCE), place), number++;
        int32_t *range = step->ranges + 3 * r;
        range[0] = begin;
        if (limits->kind == SENTENCE) continue;
        const int32_t *borders = limits->borders + origin_of(step, r) * (limits->count + 1), end = borders[limits->count];
        range[1] = 0, range[2] = end;
        if (limits->kind == WINDOW) {
            const int64_t width = limits->width, position = place - first;
            int64_t centre = borders[number < limits->count ? number : limits->count] + place - begin;
            if (limits->ratio > 0) centre = (int64_t)floor(limits->ratio * (position + 1) + 0.5) - 1;
            centre = clamp(0, centre, end - 1);
            range[0] = clamp(first, place - width, place);
            range[1] = clamp(0, centre - width, end), range[2] = clamp(0, centre + width + 1, end);
        } else if (number < limits->count && borders[number] < borders[number + 1])
            range[1] = borders[number], range[2] = borders[number + 1];
    }
}

/* New tokens read all that their targets have written, or what limits let through, up to themselves: projections
 * (R, 3 H Dh), states (W, T, 2 H Dh) */
VECTORS static void self_attention(const Operation *o, const Step *step, const Part *part) {
    const int64_t heads = o->sizes[0], dim = o->sizes[1], size = heads * dim;
    int64_t *offsets = step->offsets + part->share.number * step->scratch;
    float *scores = step->numbers + part->share.number * step->scratch;
    const float *projections = step->buffers[o->input];
    float *states = step->buffers[o->sizes[2]], *output = step->buffers[o->output];
    for (int64_t r = part->begin; r < part->end; r++)
        memcpy(states + (slot_of(step, r) * step->kept + place_of(step, r)) * 2 * size,
               projections + (3 * r + 1) * size, 2 * size * sizeof(float));
    if (step->fresh > 1) meet(part->share); /* tokens of a target may be of several threads */
    for (int64_t r = part->begin; r < part->end; r++) {
        const int64_t slot = slot_of(step, r), last = place_of(step, r);
        int64_t first = step->first[slot] < last ? step->first[slot] : last; /* padding reads itself */
        if (o->sizes[3]) first = step->ranges[3 * r];
        const float *vectors = o->weights[0]; /* (w + 1, H Dh), from the farthest token of a window on */
        if (vectors) vectors += (o->sizes[4] - 1 - (last - first)) * size;
        for (int64_t t = first; t <= last; t++)
            offsets[t - first] = (step->ancestors[t * step->written + slot] * step->kept + t) * 2 * size;
        for (int64_t h = 0; h < heads; h++)
            attend(projections + 3 * r * size + h * dim, states + h * dim, states + size + h * dim, offsets,
                   last + 1 - first, dim, o->number, vectors ? vectors + h * dim : 0, size, scores,
                   output + r * size + h * dim);
    }
}

/* Queries of the rows of one source, side by side, read its states: keys (H Dh) and values side by side, which begin
 * `first` numbers into a place of a buffer (S, L, stride). Queries are (R, H Dh), or of the same places (R, stride). */
VECTORS static void source_attention(const Operation *o, const Step *step, const Part *part) {
    const int64_t heads = o->sizes[0], dim = o->sizes[1], size = heads * dim, stride = o->sizes[3], first = o->sizes[4];
    const float *queries = step->buffers[o->input], *states = step->buffers[o->sizes[2]] + first;
    int64_t *offsets = step->offsets + part->share.number * step->scratch;
    float *scores = step->numbers + part->share.number * step->scratch;
    const int64_t by_query = o->input == o->sizes[2] ? stride : size, which = o->sizes[5];
    const int64_t places = which == CONTEXT ? step->context_places : step->places;
    const int32_t *seen = which == CONTEXT ? step->context_seen : step->seen;
    const int32_t *counts = which == CONTEXT ? step->context_counts : step->counts;
    float *output = step->buffers[o->output];
    for (int64_t r = part->begin, before = -1; r < part->end; r++) {
        const int64_t source = origin_of(step, r), count = counts ? counts[source] : places;
        const int64_t end = which == LIMITED ? clamp(0, step->ranges[3 * r + 2], count) : count;
        const int64_t start = which == LIMITED ? clamp(0, step->ranges[3 * r + 1], end) : 0;
        for (int64_t i = 0; source != before && i < count; i++)
            offsets[i] = (source * places + (seen ? seen[source * places + i] : i)) * stride;
        before = source;
        for (int64_t h = 0; h < heads; h++)
            attend(queries + r * by_query + h * dim, states + h * dim, states + size + h * dim, offsets + start,
                   end - start, dim, o->number, 0, 0, scores, output + r * size + h * dim);
    }
}

INLINE VECTORS Vector sigmoid(Vector x) {
    const Vector one = all(1.0f), power = exponential((Vector)((Integers)x | INT32_MIN));
    return if_negative(x, power, one) / (one + power); /* neither power is too large */
}

/* y += relu(c), c = f c' + (1 - f) x, f the sigmoid of a gate, c' of the token before: x and gates (R, 2 D), states c in
 * the first half of (W, T, 2 D) (ssru.py) */
VECTORS static void recurrence(const Operation *o, const Step *step, const Part *part) {
    const int64_t size = o->sizes[0];
    float *states = step->buffers[o->sizes[1]];
    for (int64_t r = begin_of(part->share, step->rows, step->fresh); r < end_of(part->share, step->rows, step->fresh); r++) {
        const int64_t slot = slot_of(step, r), last = place_of(step, r), past = last - 1;
        const float *x = step->buffers[o->input] + 2 * r * size, *gates = x + size, *before = 0;
        float *c = states + (slot * step->kept + last) * 2 * size, *y = step->buffers[o->output] + r * size;
        if (last > step->first[slot])
            before = states + (step->ancestors[past * step->written + slot] * step->kept + past) * 2 * size;
        for (int64_t i = 0; i < size; i += LANES) {
            const Vector input = load(x + i), kept = before ? load(before + i) : all(0);
            const Vector state = fused(sigmoid(load(gates + i)), kept - input, input);
            store(c + i, state);
            store(y + i, load(y + i) + larger(all(0), state));
        }
    }
}

/* y += g a + (1 - g) b, g the sigmoid of a gate: a and b side by side (R, 2 D), gates (R, D) */
VECTORS static void mixture(const Operation *o, const Step *step, const Part *part) {
    const int64_t size = o->sizes[0];
    for (int64_t r = part->begin; r < part->end; r++) {
        const float *a = step->buffers[o->input] + 2 * r * size, *gates = step->buffers[o->sizes[1]] + r * size;
        float *y = step->buffers[o->output] + r * size;
        for (int64_t i = 0; i < size; i += LANES) {
            const Vector b = load(a + size + i);
            store(y + i, load(y + i) + fused(sigmoid(load(gates + i)), load(a + i) - b, b));
        }
    }
}

/* Where a source has context y += x, or y = g y + (1 - g) x, g the sigmoid of a gate, (R, D) each */
VECTORS static void addition(const Operation *o, const Step *step, const Part *part) {
    const int64_t size = o->sizes[0];
    for (int64_t r = part->begin; r < part->end; r++) {
        const float *x = step->buffers[o->input] + r * size;
        float *y = step->buffers[o->output] + r * size;
        const float *gates = o->sizes[1] ? step->buffers[o->sizes[1]] + r * size : 0;
        if (step->context_seen && !step->context_counts[origin_of(step, r)]) continue;
        for (int64_t i = 0; i < size; i += LANES) {
            const Vector before = load(y + i), added = load(x + i);
            if (gates) store(y + i, fused(sigmoid(load(gates + i)), before - added, added));
            else store(y + i, before + added);
        }
    }
}

/* scale * table[token] + encoding of its position, (R, D) */
VECTORS static void embedding(const Operation *o, const Step *step, const Part *part) {
    const int64_t size = o->sizes[0];
    const float *table = o->weights[0];
    float *y = step->buffers[o->output];
    for (int64_t r = part->begin; r < part->end; r++) {
        const int64_t first = o->sizes[1] ? step->ranges[3 * r] : step->first[slot_of(step, r)];
        const int64_t position = place_of(step, r) - first; /* within the sentence, where limits are its */
        const float *token = table + step->tokens[r] * size, *encoding = step->encodings + (position > 0 ? position : 0) * size;
        for (int64_t i = 0; i < size; i += LANES)
            store(y + r * size + i, load(token + i) * all(o->number) + load(encoding + i));
    }
}

typedef struct {
    const Operation *operations;
    int64_t count;
    const Step *step;
} Program;

static void run_share(const void *context, Share share) {
    const Program *program = context;
    const Step *step = program->step;
    const Part rows = {share, begin_of(share, step->rows, 1), end_of(share, step->rows, 1)}, *part = &rows;
    for (const Operation *o = program->operations; o < program->operations + program->count; o++) {
        switch (o->kind) {
            case PRODUCT: product(o, step, part); break;
            case NORM: norm(o, step, part); break;
            case SELF_ATTENTION: self_attention(o, step, part); break;
            case SOURCE_ATTENTION: source_attention(o, step, part); break;
            case EMBEDDING: embedding(o, step, part); break;
            case RECURRENCE: recurrence(o, step, part); break;
            case MIXTURE: mixture(o, step, part); break;
            case ADDITION: addition(o, step, part); break;
        }
        meet(share);
    }
}

void docmt_run(const Operation *operations, int64_t count, const Step *step) {
    const Program program = {operations, count, step};
    int64_t work = 0;
    for (const Operation *o = operations; o < operations + count; o++)
        if (o->kind == PRODUCT) work += step->rows * o->sizes[0] * o->sizes[1] / (o->weights[1] ? 4 : 1);
    if (step->limits) find_ranges(step);
    share_work(run_share, &program, work < LEAST_WORK * step->threads ? 1 : step->threads);
}

uint64_t docmt_checksum(const uint8_t *bytes, int64_t size) { return checksum_of(bytes, size); }

#include "cpu_search.h"

#else
uint64_t docmt_checksum(const uint8_t *bytes, int64_t size) { return 0; }
int64_t docmt_level(int64_t most) { return NONE; }
void docmt_openmp(void *const *functions) {}
void docmt_run(const Operation *operations, int64_t count, const Step *step) {}
int64_t docmt_best(const float *scores, const float *added, int64_t groups, int64_t rows, int64_t size, int64_t count,
                   float *values, int64_t *indices) {
    return 0;
}
int64_t docmt_search(const Operation *operations, int64_t count, Step *step, Search *search) { return 0; }
#endif
