/* The best tokens for cpu_kernels.c, and whole searches: sources that end make room for others that wait. */

/* Whether x precedes y in a list of the best: NaN comes first, as in torch */
INLINE int is_better(float x, float y) { return x > y || (x != x && y == y); }

/* The `count` best of B groups of scores (B, rows, V), best first, the first one of equal ones; a row may have a number
 * that is added to its scores: values, indices into rows times V, (B, count) each. Returns whether some are equal. */
VECTORS int64_t docmt_best(const float *scores, const float *added, int64_t groups, int64_t rows, int64_t size,
                            int64_t count, float *values, int64_t *indices) {
    int64_t ties = 0;
    for (int64_t group = 0; group < groups; group++, values += count, indices += count) {
        int64_t kept = 0;
        for (int64_t r = 0; r < rows; r++, scores += size) {
            const float plus = added ? added[group * rows + r] : 0.0f;
            for (int64_t i = 0; i < size; i++) {
                if (kept == count) {
                    const Vector worst = all(values[count - 1]), sum = all(plus);
                    while (i + LANES <= size && at_most(load(scores + i) + sum, worst)) i += LANES;
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

/* The logarithm of the sum of the exponentials of what V scores have less than the largest one */
VECTORS static float log_total(const float *scores, int64_t size, float largest) {
    Vector total = all(0);
    float rest = 0;
    int64_t whole = size / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) total += exponential(load(scores + i) - all(largest));
    for (int64_t i = whole; i < size; i++) rest += expf(scores[i] - largest);
    return logf(sum(total) + rest);
}

/* log softmax of a row of V scores; returns whether its largest one is finite and none is NaN */
VECTORS static int log_softmax(const float *scores, int64_t size, float *log_probs) {
    Vector most = all(-INFINITY);
    float peak = -INFINITY;
    int64_t whole = size / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) most = larger(load(scores + i), most);
    for (int i = 0; i < LANES; i++) peak = most[i] > peak ? most[i] : peak;
    for (int64_t i = whole; i < size; i++) peak = scores[i] > peak ? scores[i] : peak;
    const float total = log_total(scores, size, peak);
    if (peak - peak != 0 || total != total) return 0; /* the latter from NaN anywhere */
    for (int64_t i = 0; i < whole; i += LANES) store(log_probs + i, load(scores + i) - all(peak) - all(total));
    for (int64_t i = whole; i < size; i++) log_probs[i] = scores[i] - peak - total;
    return 1;
}

/* The token of a score, by its place among those of one or more rows */
static int64_t token_at(const Search *s, int64_t place) {
    return s->words ? s->words[place % s->scored] : place % s->scored;
}

static int is_end(const Search *search, int64_t token) {
    for (int64_t i = 0; i < search->end_count; i++)
        if (search->ends[i] == token) return 1;
    return 0;
}

typedef struct {
    const float *scores;       /* (R, V) */
    const Step *step;
    const Search *search;
    const int64_t *begins;     /* of each origin its first row, and the end */
} Choice;

/* The best token of each target in greedy search, or the best continuations of the beams of each source; an index less
 * than 0 where some are equal, or one has no number. */
static void choose(const void *context, Share share) {
    const Choice *choice = context;
    const Search *s = choice->search;
    const int64_t size = s->scored, kept = s->kept, end = end_of(share, s->most, 1);
    for (int64_t m = begin_of(share, s->most, 1); m < end; m++) {
        const int64_t first = choice->begins[m], rows = choice->begins[m + 1] - first;
        float *values = s->values + m * kept;
        int64_t *indices = s->indices + m * kept;
        const float *scores = choice->scores + first * size;
        int is_number = 1, are_equal = 0;
        for (int64_t r = 0; s->beams > 1 && is_number && r < rows; r++)
            is_number = log_softmax(scores + r * size, size, s->log_probs + (first + r) * size);
        if (s->beams > 1) scores = s->log_probs + first * size;
        if (rows && is_number)
            are_equal = docmt_best(scores, s->beams > 1 ? s->sums + m * s->beams : 0, 1, rows, size, kept, values, indices);
        if (s->totals && s->beams == 1 && rows && values[0] - values[0] == 0)
            values[0] = -log_total(scores, size, values[0]); /* whose score is the largest */
        if (!is_number || (s->beams > 1 ? are_equal : rows && values[0] - values[0] != 0)) indices[0] = -1;
    }
}

static float score_of(const Search *s, int64_t source, float sum, int64_t length) {
    return sum / (float)pow((double)(length - s->given[source]), s->penalty);
}

/* Add a translation of a source to those that have ended, as many as beams, best first; returns whether it is equal to
 * another in its score. */
static int add_found(const Search *s, int64_t source, const int64_t *ids, const float *totals, int64_t length, int64_t token,
                     float total, float score) {
    const int64_t first = source * s->beams, last = first + s->beams - 1;
    int64_t place = last;
    for (int64_t i = first; i <= last; i++)
        if (s->found_lengths[i] && s->found_scores[i] == score) return 1;
    if (s->found_lengths[last] && s->found_scores[last] > score) return 0;
    for (; place > first && (!s->found_lengths[place - 1] || score > s->found_scores[place - 1]); place--) {
        s->found_scores[place] = s->found_scores[place - 1], s->found_lengths[place] = s->found_lengths[place - 1];
        memcpy(s->found + place * s->room, s->found + (place - 1) * s->room, s->found_lengths[place] * sizeof *ids);
        if (totals) memcpy(s->found_totals + place * s->room, s->found_totals + (place - 1) * s->room, s->found_lengths[place] * sizeof *totals);
    }
    memcpy(s->found + place * s->room, ids, (length - 1) * sizeof *ids);
    s->found[place * s->room + length - 1] = token;
    if (totals) memcpy(s->found_totals + place * s->room, totals, (length - 1) * sizeof *totals), s->found_totals[place * s->room + length - 1] = total;
    s->found_scores[place] = score, s->found_lengths[place] = length;
    return 0;
}

/* Append the best token to the target of a source, or let its best beams go on; returns whether it is done. */
static int go_on(const Step *step, const Search *s, int64_t m) {
    const int64_t beams = s->beams, source = s->current[m], slot = m * beams, *best = s->indices + m * s->kept;
    const int64_t length = ++step->lengths[slot], is_last = length >= s->limits[source], bytes = length * sizeof *best;
    const float *values = s->values + m * s->kept;
    int64_t *ids = s->ids + slot * s->room, from[32];
    float *totals = s->totals ? s->totals + slot * s->room : 0;
    if (best[0] < 0) return s->is_open[source] = 1;
    if (beams == 1) {
        ids[length - 1] = token_at(s, best[0]);
        if (totals) totals[length - 1] = totals[length - 2] + values[0];
        if (!is_last && !is_end(s, ids[length - 1])) return 0;
        return add_found(s, source, ids, totals, length, ids[length - 1], totals ? totals[length - 1] : 0, 0), 1;
    }
    for (int64_t b = 0; b < beams; b++) memcpy(s->copies + b * s->room, ids + b * s->room, bytes);
    for (int64_t b = 0; totals && b < beams; b++)
        memcpy(s->total_copies + b * s->room, totals + b * s->room, length * sizeof *totals);
    for (int64_t i = 0, next = 0; i < s->kept - 1 && next < beams; i++) {
        const int64_t token = token_at(s, best[i]), beam = best[i] / s->scored, *before = s->copies + beam * s->room;
        const float *totals_before = totals ? s->total_copies + beam * s->room : 0;
        if (is_last || is_end(s, token)) {
            if (i < beams && add_found(s, source, before, totals_before, length, token, values[i], score_of(s, source, values[i], length)))
                return s->is_open[source] = 1;
            continue;
        }
        memcpy(ids + next * s->room, before, bytes);
        ids[next * s->room + length - 1] = token, step->lengths[slot + next] = length;
        if (totals) memcpy(totals + next * s->room, totals_before, length * sizeof *totals), totals[next * s->room + length - 1] = values[i];
        s->sums[slot + next] = values[i], from[next++] = beam;
    }
    const float worst = s->found_scores[(source + 1) * beams - 1];
    const int is_full = s->found_lengths[(source + 1) * beams - 1] > 0;
    if (is_last || (is_full && (s->is_early || !(score_of(s, source, s->sums[slot], length) > worst)))) return 1;
    for (int64_t t = 0; t < length - 1; t++) {
        int32_t *row = step->ancestors + t * step->written + slot, before[32];
        memcpy(before, row, beams * sizeof *row);
        for (int64_t b = 0; b < beams; b++) row[b] = before[from[b]];
    }
    return 0;
}

/* Give the states of a source to attention at an origin. */
static void read_source(const Step *step, const Search *s, int64_t source, int64_t m) {
    const Operation *readers = s->readers;
    float **buffers = (float **)s->reading->buffers;
    step->counts[m] = s->visible[source], s->reading->rows = s->visible[source];
    buffers[readers->input] = (float *)s->states + source * step->places * readers->sizes[0];
    for (const Operation *o = readers; o < readers + s->reader_count; o++)
        buffers[o->output] = step->buffers[o->output] + m * step->places * o->sizes[1];
    docmt_run(readers, s->reader_count, s->reading);
}

/* Read the first tokens of the target at a slot in one pass, up to the last operation that later tokens read from. */
static void read_prefix(const Operation *operations, int64_t count, Step *step, const Search *s, int64_t slot, int64_t tokens) {
    while (count && operations[count - 1].kind != SELF_ATTENTION && operations[count - 1].kind != RECURRENCE) count--;
    for (int64_t t = 0; t < tokens; t++) step->ancestors[t * step->written + slot] = slot;
    memcpy(step->tokens, s->ids + slot * s->room, tokens * sizeof *s->ids);
    step->rows = step->fresh = step->lengths[slot] = tokens, step->slots[0] = slot;
    docmt_run(operations, count, step);
    step->fresh = 1;
}

/* Put the next source that waits, if there is one, at an origin. */
static void begin(const Operation *operations, int64_t count, Step *step, Search *s, int64_t m) {
    const int64_t source = s->current[m] = s->next < s->sources ? s->next++ : -1, slot = m * s->beams;
    if (source < 0) return;
    const int64_t given = s->given[source];
    s->sums[slot] = 0;
    if (s->totals) memset(s->totals + slot * s->room, 0, given * sizeof *s->totals);
    for (int64_t b = 0; b < s->beams; b++) s->found_lengths[source * s->beams + b] = 0;
    memcpy(s->ids + slot * s->room, s->prompts + source * s->prompt, given * sizeof *s->ids);
    for (int64_t b = 0; b < s->beams; b++) step->origins[slot + b] = s->readers ? m : source;
    if (s->readers) read_source(step, s, source, m);
    if (given > 1 && !s->is_read) read_prefix(operations, count, step, s, slot, given - 1);
    step->lengths[slot] = given;
}

/* Search for translations of all sources, `most` at once: where one is done the next one begins. Returns 0, or the length
 * of a target for which there is no room, or -1 after its steps: with more it goes on at the same place. */
int64_t docmt_search(const Operation *operations, int64_t count, Step *step, Search *s) {
    float *scores = step->buffers[operations[count - 1].output];
    int64_t begins[s->most + 1];
    step->ids = s->ids, step->room = s->room;
    for (int64_t m = s->next ? s->most : 0; m < s->most; m++) begin(operations, count, step, s, m);
    for (;;) {
        int64_t rows = 0;
        if (s->steps-- < 1) return -1;
        for (int64_t m = 0; m < s->most; m++) {
            const int64_t slot = m * s->beams, length = step->lengths[slot];
            begins[m] = rows;
            if (s->current[m] < 0) continue;
            for (int64_t b = 0; b < (length > s->given[s->current[m]] ? s->beams : 1); b++, rows++) {
                if (length >= s->room) return length + 1;
                step->slots[rows] = slot + b, step->tokens[rows] = s->ids[(slot + b) * s->room + length - 1];
                step->ancestors[(length - 1) * step->written + slot + b] = slot + b;
            }
        }
        if (!rows) return 0;
        step->rows = begins[s->most] = rows;
        if (!s->is_read) docmt_run(operations, count, step);
        s->is_read = 0;
        for (int64_t r = 0; s->is_absent && r < rows; r++) {
            const uint8_t *is_absent = s->is_absent + s->current[step->slots[r] / s->beams] * s->scored;
            for (int64_t i = 0; i < s->scored; i++)
                scores[r * s->scored + i] = is_absent[i] ? -INFINITY : scores[r * s->scored + i];
        }
        const Choice choice = {scores, step, s, begins};
        share_work(choose, &choice, rows * s->scored < LEAST_WORK / 8 * step->threads ? 1 : step->threads);
        for (int64_t m = 0; m < s->most; m++)
            if (s->current[m] >= 0 && go_on(step, s, m)) begin(operations, count, step, s, m);
    }
}
