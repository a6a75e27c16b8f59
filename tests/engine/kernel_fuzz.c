/* The primitives on random shapes, in buffers of exactly the sizes that they need: for sanitizers, and to compare
 * processors by the outputs that a file gets. Arguments: rounds, file.
 */
#define LEAST_WORK 0
#include "cpu_kernels.c"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *buffer(int64_t bytes) { return aligned_alloc(64, (bytes + 63) / 64 * 64); }

static float *numbers(int64_t count) { /* of exactly this size, so that what is read behind it is seen */
    float *values = malloc(count * sizeof(float));
    for (int64_t i = 0; i < count; i++) values[i] = (float)(rand() % 2001 - 1000) / 500;
    return values;
}

static int64_t between(int64_t least, int64_t most) { return least + rand() % (most - least + 1); }

/* What OpenMP does, in threads that a sanitizer of them knows */
static pthread_barrier_t at;
static __thread int mine;
static int members;

typedef struct {
    void (*work)(void *);
    void *context;
    int number;
} Member;

static void *take_part(void *given) {
    Member *member = given;
    mine = member->number;
    return member->work(member->context), (void *)0;
}

static void in_parallel(void (*work)(void *), void *context, unsigned count, unsigned flags) {
    pthread_t threads[8];
    Member all[8];
    members = count;
    pthread_barrier_init(&at, 0, count);
    for (unsigned i = 1; i < count; i++) all[i] = (Member){work, context, i}, pthread_create(threads + i, 0, take_part, all + i);
    work(context);
    for (unsigned i = 1; i < count; i++) pthread_join(threads[i], 0);
    pthread_barrier_destroy(&at);
}

static void wait_there(void) { pthread_barrier_wait(&at); }
static int which(void) { return mine; }
static int how_many(void) { return members; }

/* Whether a product is the sum of the products: of integers that scales do not change */
static int is_exact(void) {
    int64_t rows = between(1, 40), size = 8 * between(1, 40), outputs = between(1, 100), padded = (outputs + 15) / 16 * 16, wrong = 0;
    float *x = numbers(rows * size), *y = numbers(rows * outputs), *ones = numbers(padded), *none = calloc(padded, 4), *row_scales = numbers(rows);
    int8_t *weights = buffer(padded * size), *integers = malloc((rows + 15) / 16 * 16 * size);
    for (int64_t i = 0; i < rows * size; i++) x[i] = i % size ? between(-127, 127) : 127;
    for (int64_t i = 0; i < padded * size; i++) weights[i] = between(-127, 127);
    for (int64_t i = 0; i < padded; i++) ones[i] = 1;
    Step step = {(float *[]){x, y}, rows, .integers = integers, .numbers = row_scales, .threads = 1};
    docmt_run(&(Operation){PRODUCT, 0, 1, {size, outputs}, {weights, ones, none}, 0}, 1, &step);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < outputs; o++) {
            int64_t sum = 0;
            for (int64_t k = 0; k < size; k++)
                sum += (int64_t)x[r * size + k] * weights[((o / 16 * size + k / 4 * 4) * 16) + o % 16 * 4 + k % 4];
            wrong += y[r * outputs + o] != sum;
        }
    free(x), free(y), free(ones), free(none), free(row_scales), free(weights), free(integers);
    return !wrong;
}

/* A whole search over random scores, of more sources than there is room for at once, with room that grows. */
static void search_sources(void) {
    enum { SIZE = 8, L = 3, KEYS_OF = 16 };
    int64_t sources = between(1, 5), most = between(1, sources), beams = between(1, 2), prompt = between(1, 3), given[5];
    int64_t slots = most * beams, kept = beams > 1 ? 2 * beams + 1 : 1, scored = between(kept, 40), room = prompt + 1;
    int64_t prompts[15] = {0}, limits[5], ends[] = {1}, current[5], found_lengths[10], lengths[10], tokens[10], words[40];
    float sums[10], found_scores[10], scales[KEYS_OF] = {1}, bias[KEYS_OF] = {0};
    int32_t slots_of[10], first[10] = {0}, origins[10], counts[5], visible[5];
    int8_t weights[KEYS_OF * SIZE] __attribute__((aligned(64))) = {1}, integers[16 * SIZE];
    uint8_t is_open[5] = {0};
    float *logits = numbers(slots * scored), *log_probs = numbers(slots * scored), *keys = numbers(most * L * KEYS_OF);
    float *states = numbers(sources * L * SIZE), *values = numbers(most * kept), row_scales[L];
    int64_t *indices = malloc(most * kept * 8), *ids = calloc(slots * 12, 8), *copies = malloc(beams * 96), *found = malloc(sources * beams * 96);
    int32_t *ancestors = calloc(slots * 12, 4);
    for (int64_t i = 0; i < 40; i++) words[i] = 3 * i;
    for (int64_t i = 0; i < sources; i++) given[i] = between(1, prompt), limits[i] = given[i] + between(1, 9), visible[i] = between(1, L);
    for (int64_t i = 0; i < slots; i++) origins[i] = i / beams;
    float *buffers[] = {logits, logits, keys, logits}, *others[] = {0, 0, 0};
    Operation idle[] = {{RECURRENCE, 3, 1, {0, 3}, {0}, 0}, {NORM, 0, 0, {0}, {0}, 1}}, reader = {PRODUCT, 1, 2, {SIZE, KEYS_OF}, {weights, scales, bias}, 0};
    Step reading = {others, .integers = integers, .numbers = row_scales, .threads = 1};
    Step step = {buffers, slots, 1, lengths, 1, L, ancestors, first, 0, counts, tokens, .threads = between(1, 3), .written = slots, .kept = 12,
                 .slots = slots_of, .origins = origins};
    Search search = {sources, most, prompts, prompt, given, limits, ids, copies, room, ends, 1, beams, 1.0, between(0, 1), scored,
                     between(0, 1) ? words : 0, 0, log_probs, sums, values, indices, kept, current, 0, 0, 0, found, found_scores,
                     found_lengths, is_open, &reader, 1, &reading, states, visible};
    float *totals = numbers(slots * 12), *total_copies = numbers(beams * 12), *found_totals = numbers(sources * beams * 12);
    if (between(0, 1)) search.totals = totals, search.total_copies = total_copies, search.found_totals = found_totals;
    for (int64_t needed; (needed = docmt_search(idle, 2, &step, &search));) {
        search.steps = between(1, 4);
        if (needed < 0) continue;
        if (needed <= search.room) puts("no more room is needed"), exit(1);
        search.room = 12; /* what was written is lost, and would be copied */
    }
    for (int64_t i = 0; i < sources; i++)
        if (!is_open[i] && (found_lengths[i * beams] <= given[i] || found_lengths[i * beams] > limits[i])) puts("a wrong length"), exit(1);
    void *all[] = {logits, log_probs, keys, states, values, indices, ids, copies, found, ancestors, totals, total_copies, found_totals};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

int main(int count, char **arguments) {
    FILE *file = count > 2 ? fopen(arguments[2], "wb") : 0;
    if (docmt_level(DOTS) == NONE) return puts("unsupported"), 0;
    docmt_openmp((void *[]){in_parallel, wait_there, which, how_many});
    for (int round = 0; round < atoi(arguments[1]); round++) {
        docmt_level(AVX2 + rand() % 5);
        if (!is_exact()) return puts("another sum"), 1;
        int64_t sources = between(1, 7), fresh = between(1, 3), rows = sources * fresh, heads = between(1, 4), dim = 8 * between(1, 9), size = heads * dim;
        int64_t outputs = between(1, rand() % 4 ? 70 : 300), blocks = (outputs + 15) / 16, length = between(fresh, 20);
        int64_t tokens = 3 * (length > 20 ? length : 20) + 8;
        const int64_t slots_in_all = sources + between(0, 3);
        int32_t *ancestors = malloc(length * slots_in_all * 4), *first = malloc(slots_in_all * 4);
        int32_t *seen = malloc(sources * length * 4), *counts = malloc(sources * 4);
        int32_t *slots = malloc(sources * 4), *origins = malloc(slots_in_all * 4);
        int64_t *lengths = malloc(slots_in_all * 8);
        const int is_apart = rand() % 2; /* targets of different lengths do not read each other */
        for (int64_t i = 0; i < length * slots_in_all; i++) ancestors[i] = is_apart ? i % slots_in_all : rand() % slots_in_all;
        for (int64_t w = 0; w < slots_in_all; w++)
            origins[w] = rand() % sources, first[w] = rand() % length, lengths[w] = is_apart ? between(fresh, length) : length;
        for (int64_t r = 0; r < sources; r++) {
            slots[r] = slots_in_all - 1 - r;
            for (int64_t t = lengths[slots[r]] - fresh; t < lengths[slots[r]]; t++) ancestors[t * slots_in_all + slots[r]] = slots[r];
            counts[r] = between(1, length);
            for (int64_t i = 0; i < length; i++) seen[r * length + i] = rand() % length;
        }
        int64_t *ids = malloc(rows * 8), *indices = malloc(outputs * 8);
        float *table = numbers(outputs * size), *encodings = numbers(length * size), *best = numbers(outputs);
        for (int64_t r = 0; r < rows; r++) ids[r] = rand() % outputs;
        int8_t *weights = buffer(blocks * 16 * size);
        for (int64_t i = 0; i < blocks * 16 * size; i++) weights[i] = rand() % 255 - 127;
        float *floats = numbers(blocks * 16 * size);
        const uint64_t before = docmt_checksum((uint8_t *)floats, 4 * blocks * 16 * size);
        float *x = numbers(rows * size), *y = numbers(rows * outputs), *scales = numbers(blocks * 16);
        float *bias = numbers(blocks * 16), *projections = numbers(rows * 3 * size), *read = numbers(rows * size);
        float *inputs = numbers(rows * 2 * size), *history = numbers(length * slots_in_all * 2 * size), *keys = numbers(sources * length * 2 * size);
        float *norms = numbers(size > rows ? size : rows);
        int64_t stride = outputs + between(0, 9), column = between(0, stride - outputs), kind = between(SENTENCE, WINDOW);
        float *wide = numbers(rows * stride), *pair = numbers(rows * 2 * size), *mixed = numbers(rows * size);
        int64_t others = between(1, 3 * length); /* states of context */
        int32_t *other_seen = malloc(sources * others * 4), *other_counts = malloc(sources * 4);
        for (int64_t r = 0; r < sources; r++) {
            other_counts[r] = between(0, others);
            for (int64_t i = 0; i < others; i++) other_seen[r * others + i] = rand() % others;
        }
        float *context = numbers(sources * others * 2 * size);
        float *buffers[] = {x, y, projections, history, read, keys, inputs, wide, pair, mixed, context};
        enum { X, Y, PROJECTIONS, HISTORY, READ, KEYS, INPUTS, WIDE_ROWS_OF, PAIR, MIXED, OTHERS };
        int is_masked = rand() % 2;
        int64_t threads = between(1, 7), scratch = rows > tokens ? rows : tokens;
        Step step = {buffers, rows, fresh, lengths, fresh, length, ancestors, first, is_masked ? seen : 0, is_masked ? counts : 0, ids,
                     encodings, bias, malloc((rows + 15) / 16 * 16 * size), numbers(threads * scratch),
                     malloc(threads * scratch * 8), .threads = threads, .scratch = scratch, .written = slots_in_all, .kept = length, .slots = slots,
                     .origins = rand() % 2 ? origins : 0};
        int64_t width = between(0, 5), groups = between(1, 4), *targets = malloc(slots_in_all * length * 8);
        int32_t *borders = malloc(sources * (groups + 1) * 4);
        float *vectors = numbers((width + 1) * size);
        for (int64_t i = 0; i < slots_in_all * length; i++) targets[i] = between(0, 2);
        for (int64_t r = 0; r < sources; r++) { /* rising, up to what is seen */
            int32_t *own = borders + r * (groups + 1), end = is_masked ? counts[r] : length;
            own[0] = 0, own[groups] = end;
            for (int64_t i = 1; i < groups; i++) own[i] = between(own[i - 1], end);
        }
        Limits limits = {kind, 1, width, groups, borders, between(0, 2) * 0.7};
        if (rand() % 8 == 0) for (int64_t r = 0; r < sources; r++) borders[r * (groups + 1) + groups] += between(0, 90); /* of another mask */
        step.context_places = others;
        if (rand() % 2) step.context_seen = other_seen, step.context_counts = other_counts;
        step.ids = targets, step.room = length, step.limits = &limits, step.ranges = malloc(rows * 3 * 4);
        int is_limited = rand() % 2, is_narrow = kind == WINDOW && rand() % 2;
        Operation list[] = {
            {EMBEDDING, X, X, {size, is_limited}, {table}, 2.0f},
            {PRODUCT, X, Y, {size, outputs, rand() % 2, rand() % 2}, {weights, scales, rand() % 2 ? bias : 0}, 0},
            {PRODUCT, X, WIDE_ROWS_OF, {size, outputs, rand() % 2, rand() % 2, stride, column}, {weights, scales, bias}, 0},
            {PRODUCT, X, Y, {size, outputs, rand() % 2, rand() % 2}, {floats, 0, rand() % 2 ? bias : 0}, 0},
            {PRODUCT, X, WIDE_ROWS_OF, {size, outputs, rand() % 2, rand() % 2, stride, column}, {floats, 0, bias}, 0},
            {NORM, X, X, {size}, {norms, norms}, 1e-5f},
            {SELF_ATTENTION, PROJECTIONS, READ, {heads, dim, HISTORY, is_limited || is_narrow, width + 1},
             {is_narrow ? vectors : 0}, 0.3f},
            {SOURCE_ATTENTION, PROJECTIONS, READ, {heads, dim, KEYS, 2 * size, 0, is_limited && kind != SENTENCE}, {0}, 0.3f},
            {RECURRENCE, INPUTS, READ, {size, HISTORY}, {0}, 0},
            {MIXTURE, PAIR, READ, {size, MIXED}, {0}, 0},
            {SOURCE_ATTENTION, PROJECTIONS, MIXED, {heads, dim, OTHERS, 2 * size, 0, CONTEXT}, {0}, 0.3f},
            {ADDITION, MIXED, READ, {size, rand() % 2 ? PAIR : 0}, {0}, 0},
        };
        const int64_t sizes[] = {rows * size, rows * outputs, 3 * rows * size, 2 * length * slots_in_all * size, rows * size, 2 * sources * length * size,
                                 2 * rows * size, rows * stride, 2 * rows * size, rows * size, 2 * sources * others * size};
        for (int i = 0; i < 12; i++) { /* each operation by one thread, then by several */
            float *before[11], *alone[11];
            for (int b = 0; b < 11; b++) before[b] = memcpy(malloc(4 * sizes[b]), buffers[b], 4 * sizes[b]);
            step.threads = 1;
            docmt_run(list + i, 1, &step);
            for (int b = 0; b < 11; b++) {
                alone[b] = memcpy(malloc(4 * sizes[b]), buffers[b], 4 * sizes[b]);
                memcpy(buffers[b], before[b], 4 * sizes[b]);
            }
            step.threads = threads;
            docmt_run(list + i, 1, &step);
            for (int b = 0; b < 11; b++) {
                if (memcmp(alone[b], buffers[b], 4 * sizes[b])) return puts("threads differ"), 1;
                if (file && b == list[i].output) fwrite(buffers[b], 4, sizes[b], file);
                memcpy(buffers[b], before[b], 4 * sizes[b]);
                free(before[b]), free(alone[b]);
            }
        }
        docmt_run(list, 12, &step);
        step.shared = rows, step.places = rows, step.seen = 0, step.counts = 0; /* of an encoder: all rows are of one source */
        step.limits = 0, step.origins = 0;
        Operation among = {SOURCE_ATTENTION, PROJECTIONS, READ, {heads, dim, PROJECTIONS, 3 * size, size}, {0}, 0.3f};
        if (rows <= length) docmt_run(&among, 1, &step);
        if (docmt_checksum((uint8_t *)floats, 4 * blocks * 16 * size) != before) return puts("another checksum"), 1;
        docmt_checksum((uint8_t *)floats + between(0, 3), between(0, 400)); /* of any address and size */
        docmt_best(y, norms, 1, rows, outputs, between(1, outputs), best, indices);
        search_sources();
        for (int64_t i = 0; i < rows * size; i++)
            if (!(read[i] == read[i])) return puts("not a number"), 1;
        void *all[] = {floats, ids, indices, table, encodings, best, ancestors, first, seen, counts, step.integers, step.numbers, step.offsets, weights, x, y, scales,
                       bias, projections, read, history, keys, norms, inputs, wide, pair, mixed, targets, borders, vectors, step.ranges, context, other_seen, other_counts, slots, origins, lengths};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    }
    return puts("done"), 0;
}
