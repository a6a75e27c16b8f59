/* The best tokens for cpu_kernels.c, and the steps of a search in which nothing is to decide but these. */

/* Whether x precedes y in a list of the best: NaN comes first, as in torch */
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

/* The logarithm of the sum of the exponentials of what V scores have less than the largest one */
FOR_AVX2 static float log_total(const float *scores, int64_t size, float largest) {
    const __m256 peaks = _mm256_set1_ps(largest);
    __m256 total = _mm256_setzero_ps();
    float rest = 0;
    int64_t whole = size / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8)
        total = _mm256_add_ps(total, exponential(_mm256_sub_ps(_mm256_loadu_ps(scores + i), peaks)));
    for (int64_t i = whole; i < size; i++) rest += expf(scores[i] - largest);
    return logf(sum(total) + rest);
}

/* log softmax of a row of V scores; returns whether its largest one is finite and none is NaN */
FOR_AVX2 static int log_softmax(const float *scores, int64_t size, float *log_probs) {
    __m256 most = _mm256_set1_ps(-INFINITY), none = _mm256_setzero_ps();
    float peak = -INFINITY;
    int64_t whole = size / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8) {
        const __m256 v = _mm256_loadu_ps(scores + i);
        most = _mm256_max_ps(most, v), none = _mm256_or_ps(none, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, most);
    for (int i = 0; i < 8; i++) peak = lanes[i] > peak ? lanes[i] : peak;
    for (int64_t i = whole; i < size; i++) {
        if (scores[i] != scores[i]) return 0;
        peak = scores[i] > peak ? scores[i] : peak;
    }
    if (_mm256_movemask_ps(none) || peak - peak != 0) return 0;
    const float total = log_total(scores, size, peak);
    for (int64_t i = 0; i < whole; i += 8) {
        const __m256 v = _mm256_sub_ps(_mm256_loadu_ps(scores + i), _mm256_set1_ps(peak));
        _mm256_storeu_ps(log_probs + i, _mm256_sub_ps(v, _mm256_set1_ps(total)));
    }
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
    const float *scores; /* (R, N) */
    const Search *search;
    int64_t sources;
    int *is_undecided; /* whether beams tie, or one has no number */
} Choice;

/* The best token of each row in greedy search, or the best of the beams of each source */
static void choose(const void *context, Share share) {
    const Choice *choice = context;
    const Search *s = choice->search;
    const int64_t beams = s->beams, kept = s->kept, begin = begin_of(share, choice->sources, 1);
    const int64_t count = end_of(share, choice->sources, 1) - begin, first = begin * beams;
    const float *scores = choice->scores + first * s->scored;
    int is_number = 1;
    if (beams > 1) {
        float *log_probs = s->log_probs + first * s->scored;
        for (int64_t r = 0; is_number && r < count * beams; r++)
            is_number = log_softmax(scores + r * s->scored, s->scored, log_probs + r * s->scored);
        scores = log_probs;
    }
    if (!is_number || (docmt_best(scores, beams > 1 ? s->scores + first : 0, count, beams, s->scored, kept,
                                  s->values + begin * kept, s->indices + begin * kept) && beams > 1))
        __atomic_store_n(choice->is_undecided, 1, __ATOMIC_RELAXED);
    for (int64_t r = first; beams == 1 && s->sums && r < first + count; r++)
        s->log_probs[r] = log_total(choice->scores + r * s->scored, s->scored, s->values[r]);
}

/* By the threads of a step; returns whether there is nothing that is undecided. */
static int is_chosen(const float *scores, const Step *step, const Search *s) {
    int is_undecided = 0;
    const Choice choice = {scores, s, step->rows / s->beams, &is_undecided};
    share_work(choose, &choice, step->rows * s->scored < LEAST_WORK / 8 * step->threads ? 1 : step->threads);
    return !is_undecided;
}

/* Append the best token to each row; 0: nothing was done, since one of them ends its row, or is of NaN. */
static int go_on(const float *scores, const Step *step, Search *s) {
    is_chosen(scores, step, s);
    for (int64_t r = 0; r < step->rows; r++) {
        if (s->values[r] - s->values[r] != 0) return 0;
        s->indices[r] = s->ended && s->ended[r] ? s->pad : token_at(s, s->indices[r]);
        if (!(s->ended && s->ended[r]) && is_end(s, s->indices[r])) return 0;
    }
    for (int64_t r = 0; r < step->rows; r++) {
        float *sum = s->sums ? s->sums + r * s->room + s->length : 0;
        s->ids[r * s->room + s->length] = s->indices[r];
        if (sum) sum[0] = sum[-1] - s->log_probs[r];
    }
    return 1;
}

/* Let the best beams of each source go on; 0: nothing was done, since one of them ends, ties, or is of no number. */
static int go_on_with_beams(const float *scores, const Step *step, Search *s) {
    const int64_t rows = step->rows, beams = s->beams, sources = rows / beams, kept = s->kept;
    s->is_decided = is_chosen(scores, step, s);
    if (!s->is_decided || s->is_single) return 0;
    for (int64_t i = 0; i < sources * kept; i++)
        if (i % kept < beams && is_end(s, token_at(s, s->indices[i]))) return 0;
    float *sums = (float *)(s->copies + rows * s->room);
    memcpy(s->copies, s->ids, rows * s->room * sizeof(int64_t)), memcpy(sums, s->sums, rows * s->room * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t best = r / beams * kept + r % beams, from = r / beams * beams + s->indices[best] / s->scored;
        memcpy(s->ids + r * s->room, s->copies + from * s->room, s->length * sizeof(int64_t));
        memcpy(s->sums + r * s->room, sums + from * s->room, s->length * sizeof(float));
        s->ids[r * s->room + s->length] = token_at(s, s->indices[best]);
        s->sums[r * s->room + s->length] = s->scores[r] = s->values[best], s->indices[r] = from;
    }
    for (int64_t t = 0; t < step->length; t++) {
        int32_t *row = step->ancestors + t * rows, *before = memcpy(s->copies, row, rows * sizeof(int32_t));
        for (int64_t r = 0; r < rows; r++) row[r] = before[s->indices[r]];
    }
    return 1;
}

/* Steps after the present ids, as long as these are no more than `most` and the best tokens go on; after the
 * last step its scores are there, and nothing is decided. */
void docmt_search(const Operation *operations, int64_t count, Step *step, Search *s) {
    float *scores = step->buffers[operations[count - 1].output];
    step->ids = s->ids, step->room = s->room;
    for (;; s->length++) {
        for (int64_t r = 0; r < step->rows; r++) step->tokens[r] = s->ids[r * s->room + s->length - 1];
        step->length = s->length, s->is_decided = 0;
        docmt_run(operations, count, step);
        for (int64_t r = 0; s->is_absent && r < step->rows; r++)
            for (int64_t i = 0; i < s->scored; i++)
                if (s->is_absent[r / step->shared * s->scored + i]) scores[r * s->scored + i] = -INFINITY;
        if (s->length >= s->most || !(s->beams > 1 ? go_on_with_beams : go_on)(scores, step, s)) return;
    }
}
