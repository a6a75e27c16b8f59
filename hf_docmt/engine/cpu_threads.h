/* Threads for cpu_kernels.c: those of torch, by the OpenMP that it runs on. Other ones would have to wait for these, which
 * look for work for a while before they sleep.
 */
typedef struct {
    int64_t number, count; /* which thread of how many */
} Share;

typedef void Work(const void *context, Share share);

static struct { /* functions of OpenMP as GCC calls them, or none */
    void (*parallel)(void (*work)(void *), void *context, unsigned threads, unsigned flags);
    void (*barrier)(void);
    int (*number)(void), (*count)(void);
} openmp;

/* From now on share work by these functions, in the order above; without the first one there is one thread. */
void docmt_openmp(void *const *functions) { memcpy(&openmp, functions, sizeof openmp); }

/* Where the share of `total` things begins, of which `unit` stay together */
static int64_t begin_of(Share share, int64_t total, int64_t unit) {
    const int64_t begin = (total + unit - 1) / unit * share.number / share.count * unit;
    return begin < total ? begin : total;
}

static int64_t end_of(Share share, int64_t total, int64_t unit) {
    return begin_of((Share){share.number + 1, share.count}, total, unit);
}

/* Wait until all threads are here */
static void meet(Share share) {
    if (share.count > 1) openmp.barrier();
}

typedef struct {
    Work *work;
    const void *context;
} Job;

static void do_share(void *given) {
    const Job *job = given;
    job->work(job->context, (Share){openmp.number(), openmp.count()});
}

/* Do the work with at most `threads` threads; when it returns all have done their share. */
static void share_work(Work *work, const void *context, int64_t threads) {
    Job job = {work, context};
    if (threads > 1 && openmp.parallel) openmp.parallel(do_share, &job, threads, 0);
    else work(context, (Share){0, 1});
}
