/*
 * Decides which explanations of a place are ordinary: the time depends only on the requested work, as in a system
 * without faults. A field describes the requested work in six cases:
 * - a text names the operation, such as a URL, and the span's name does not
 * - a number is an amount of work, according to its name, and the time grows at most in proportion to the number, or
 *   larger amounts take less time
 * - a text is the result of a lookup in a cache
 * - the visits with the slow values have larger amounts of work, which explain their times
 * - most values of the field are slow; with a fault, slow values are the exception
 * - the values are kinds of work: the times of the other values also differ much
 *
 * In all cases, the slow visits must be as frequent on every host and at every time. Otherwise, the work is distributed
 * unevenly or has changed, and the explanation is a fault. No state.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "diag/search.h"

/* The time of ordinary work grows at most with this power of its amount. The limit exceeds 1 because random differences
 * between visits change the measured power. */
#define PROPORTIONAL_MAX 1.3

/* The slow visits are distributed unevenly if their share on a host or in a time range is at least UNEVEN_MIN times
 * their share elsewhere. The probability of this difference by chance must be at most UNEVEN_CHANCE. */
#define UNEVEN_MIN 1.5
#define UNEVEN_CHANCE 1e-4

/*
 * The time grows with an amount if the slope is at least GROWS_MIN standard errors. The slope of the slow visits may
 * exceed the slope of the other visits by SLOPE_ERRORS standard errors.
 */
#define GROWS_MIN 3
#define SLOPE_ERRORS 2

/* Maximum probability that kinds of work differ only by chance. */
#define KINDS_CHANCE 1e-6

/*
 * For kinds of work, the step from the other values to the slow values is at most this factor times the largest step
 * between other values. A step is the logarithm of the ratio of two mean times.
 */
#define GAP_FACTOR 2

/* Minimum share of the visits with a known amount. */
#define KNOWN_MIN 0.9

enum { PART_BINS = 16, LARGE_ONE_OF = 4 };

/* ---- names of fields ---- */

/* Returns whether a word looks like a plural. A field with a plural as its name usually contains a number of things. */
static bool is_plural(const char *word)
{
    size_t length = strlen(word);
    return length > 3 && word[length - 1] == 's' && strchr("aius", word[length - 2]) == NULL;
}

/*
 * A name with a word for waits, repetitions, failures or shared resources means contention. Otherwise, a name with a
 * word for a time, a part, a state or an identification has an unknown meaning. A remaining name with a unit, a plural,
 * or a word for a size or a count means an amount of work.
 */
number_meaning column_meaning(const column *c)
{
    static const char *const contention[] = {
        "queue",       "queued",       "queues",   "wait",     "waits",      "waited",      "waiting",  "waiters",
        "blocked",     "backlog",      "pending",  "depth",    "lock",       "locks",       "locked",   "pool",
        "busy",        "active",       "inflight", "flight",   "concurrent", "concurrency", "running",  "load",
        "retry",       "retries",      "retried",  "retrans",  "try",        "tries",       "attempt",  "attempts",
        "redelivered", "redeliveries", "error",    "errors",   "fail",       "failed",      "failures", "fault",
        "faults",      "drop",         "drops",    "dropped",  "lost",       "loss",        "losses",   "miss",
        "misses",      "timeout",      "timeouts", "conflict", "conflicts",  "collisions",  "restarts", "rollbacks",
        "deadlocks",   "evictions",    "stall",    "stalls",   "throttled",  "delay",       "delayed",  "lag",
        "latency",     "contention",   "waitms",   "sleep",    "paused",     "pauses"};
    static const char *const other[] = {
        "id",      "ids",      "key",         "port",     "version", "code",    "priority", "offset",    "address",
        "ns",      "us",       "ms",          "s",        "sec",     "secs",    "seconds",  "millis",    "micros",
        "nanos",   "minutes",  "hours",       "days",     "time",    "times",   "age",      "ttl",       "cpu",
        "cpus",    "cores",    "memory",      "heap",     "gc",      "free",    "used",     "available", "util",
        "percent", "pct",      "ratio",       "rate",     "speed",   "threads", "workers",  "servers",   "hosts",
        "nodes",   "replicas", "connections", "sessions", "clients", "users",   "sockets",  "status"};
    static const char *const work[] = {"byte",   "bit",      "octet", "size", "sz",  "length", "len",   "volume",
                                       "amount", "quantity", "count", "cnt",  "num", "number", "total", "kb",
                                       "mb",     "gb",       "tb",    "kib",  "mib", "gib"};
    number_meaning meaning = NUMBER_UNKNOWN;
    char word[WORD_SIZE];
    bool is_other = false;
    for (const char *rest = column_next_word(c->name, word); *word != '\0'; rest = column_next_word(rest, word)) {
        if (IS_AMONG(word, contention))
            return NUMBER_CONTENTION;
        is_other = is_other || IS_AMONG(word, other);
        if (IS_AMONG(word, work) || is_plural(word))
            meaning = NUMBER_WORK;
    }
    return is_other ? NUMBER_UNKNOWN : meaning;
}

/* Returns the length in nanoseconds of the unit of time that a word names, or 0 if the word is not a unit. */
static double unit_of_word(const char *word)
{
    static const struct {
        const char *word;
        double ns;
    } units[] = {{"ns", 1},       {"nanos", 1},   {"us", 1e3},       {"micros", 1e3},  {"ms", 1e6},
                 {"millis", 1e6}, {"s", 1e9},     {"sec", 1e9},      {"secs", 1e9},    {"seconds", 1e9},
                 {"min", 60e9},   {"mins", 60e9}, {"minutes", 60e9}, {"hours", 3600e9}};
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
        if (strcmp(word, units[i].word) == 0)
            return units[i].ns;
    return 0;
}

/*
 * Returns whether the numbers of a column are lengths of the requested work, such as the seconds of a recording. The
 * column's name has a unit of time, but the numbers cannot be times of the visits themselves: the start records already
 * contain them, or they are longer than the visits.
 */
static bool is_length_of_work(const sample *x, const column *c)
{
    const visits *v = x->visits;
    char word[WORD_SIZE];
    double unit_ns = 0;
    uint32_t known = 0, lengths = 0;
    for (const char *rest = column_next_word(c->name, word); *word != '\0'; rest = column_next_word(rest, word))
        unit_ns = fmax(unit_ns, unit_of_word(word));
    if (unit_ns <= 0 || column_meaning(c) != NUMBER_UNKNOWN)
        return false;
    if ((double)c->starts >= KNOWN_MIN * (double)(c->starts + c->others))
        return true;
    for (uint32_t i = 0; i < x->count; i++) {
        const visit *y = visit_at(v, x->index[i]);
        const double value = (double)column_of_visit(c, v, x->index[i]);
        if (!isfinite(value))
            continue;
        known++;
        lengths += value * unit_ns > (double)(y->to_ns - y->from_ns);
    }
    return lengths >= KNOWN_MIN * MAX(known, 1);
}

bool column_is_result(const column *c)
{
    static const char *const results[] = {"result",  "outcome", "reason",    "cause",   "code",    "message",  "msg",
                                          "detail",  "details", "exception", "state",   "level",   "severity", "stderr",
                                          "stdout",  "output",  "signal",    "exit",    "success", "ok",       "failed",
                                          "failure", "log",     "warning",   "warnings"};
    char word[WORD_SIZE];
    for (const char *rest = column_next_word(c->name, word); *word != '\0'; rest = column_next_word(rest, word))
        if (IS_AMONG(word, results))
            return true;
    return false;
}

bool column_value_is_failure(const column *c, float value)
{
    static const char *const failures[] = {"error",   "errors",      "fail",    "failed",      "failure",  "failures",
                                           "timeout", "refused",     "aborted", "exception",   "denied",   "reset",
                                           "killed",  "unavailable", "broken",  "unreachable", "rejected", "cancelled"};
    char *text = column_text(c, value), word[WORD_SIZE];
    bool is = false;
    for (const char *rest = column_next_word(text, word); *word != '\0' && !is; rest = column_next_word(rest, word))
        is = IS_AMONG(word, failures);
    g_free(text);
    return is;
}

/* Returns whether a span's name only means that the span is a request. Examples are "request" in an access log, whose
 * records have no event, and messages of loggers, such as "handled request". */
static bool is_any_request(const char *span)
{
    char word[WORD_SIZE];
    bool is_message = strchr(span, ' ') != NULL, is = strcmp(span, "request") == 0;
    for (const char *rest = column_next_word(span, word); is_message && *word != '\0';
         rest = column_next_word(rest, word))
        is = is || strcmp(word, "request") == 0;
    return is;
}

/*
 * Returns whether a column of texts names the operations of spans whose name does not. Operations differ like places:
 * some always take longer than others.
 */
bool column_is_operation(const visits *v, uint32_t number, const column *c)
{
    static const char *const operations[] = {"uri",   "url", "path",      "route",  "endpoint", "method",
                                             "verb",  "op",  "operation", "action", "command",  "cmd",
                                             "query", "sql", "statement", "page",   "api",      "rpc"};
    const place *p = place_at(v, number);
    char word[WORD_SIZE];
    bool is = false;
    if (p->span == NULL || !is_any_request(p->span))
        return false;
    for (const char *rest = column_next_word(c->name, word); c->has_text && *word != '\0';
         rest = column_next_word(rest, word))
        is = is || IS_AMONG(word, operations);
    return is;
}

/* ---- lookups in a cache ---- */

/* Results of a lookup. A miss is any lookup after which the program must fetch or check the value. */
typedef enum cache_result { CACHE_OTHER, CACHE_HIT, CACHE_MISS } cache_result;

/*
 * Returns the result that a text names, such as "HIT", "TCP_MISS" or "RefreshHit". "-" means that the cache was not
 * used.
 */
static cache_result result_of_text(const char *text)
{
    if (strcmp(text, "-") == 0)
        return CACHE_MISS;
    static const char *const misses[] = {"miss",    "misses",      "missed",   "expired", "stale",   "bypass",
                                         "refresh", "revalidated", "updating", "dynamic", "uncached"};
    static const char *const hits[] = {"hit", "hits", "cached"};
    cache_result result = CACHE_OTHER;
    char word[WORD_SIZE];
    for (const char *rest = column_next_word(text, word); *word != '\0'; rest = column_next_word(rest, word)) {
        if (IS_AMONG(word, misses))
            return CACHE_MISS;
        if (IS_AMONG(word, hits))
            result = CACHE_HIT;
    }
    return result;
}

/* Returns the result that a Boolean value means in a column with this name, such as CACHE.HIT. */
static cache_result result_of_boolean(const char *name, const char *text)
{
    static const char *const true_words[] = {"1", "true", "yes", "y"};
    static const char *const false_words[] = {"0", "false", "no", "n"};
    char *lower = g_ascii_strdown(text, -1), word[WORD_SIZE];
    bool is_true = IS_AMONG(lower, true_words), is_boolean = is_true || IS_AMONG(lower, false_words), is_cache = false,
         of_misses = false;
    g_free(lower);
    for (const char *rest = column_next_word(name, word); *word != '\0'; rest = column_next_word(rest, word)) {
        of_misses = of_misses || result_of_text(word) == CACHE_MISS;
        is_cache = is_cache || strcmp(word, "cache") == 0 || result_of_text(word) != CACHE_OTHER;
    }
    return !is_boolean || !is_cache ? CACHE_OTHER : is_true != of_misses ? CACHE_HIT : CACHE_MISS;
}

static cache_result result_of_value(const column *c, float value)
{
    char *text = column_text(c, value);
    cache_result result = result_of_text(text);
    if (result == CACHE_OTHER)
        result = result_of_boolean(c->name, text);
    g_free(text);
    return result;
}

/* Either all texts are results of a lookup, or there are few texts, of which one is a hit. The other texts, such as
 * "fetched", then name other ways to get the value. */
bool column_is_of_cache(const column *c)
{
    enum { RESULTS_MAX = 8 }; /* Varnish, Squid and nginx each log at most this number of results without details */
    bool has_hit = false, has_other = false;
    for (guint i = 0; c->has_text && i < c->texts->len; i++) {
        cache_result result = result_of_value(c, (float)i);
        has_hit = has_hit || result == CACHE_HIT;
        has_other = has_other || result == CACHE_OTHER;
    }
    return c->has_text && (!has_other || (has_hit && c->texts->len <= RESULTS_MAX));
}

bool column_is_hit(const column *c, float value)
{
    return result_of_value(c, value) == CACHE_HIT;
}

/*
 * Returns whether the slow visits are the misses of a cache: all values of the division are results of a lookup, and
 * no slow value is a hit.
 */
static bool is_of_misses(const column *c, const division *d)
{
    uint64_t present = 0;
    int slow_count = 0;
    if (c->has_text && !column_is_of_cache(c))
        return false;
    for (int b = 0; b < d->count; b++) {
        if (isnan(d->of_bin[b]))
            continue;
        cache_result result = result_of_value(c, d->of_bin[b]);
        present |= UINT64_C(1) << result;
        if ((result == CACHE_OTHER && !c->has_text) || ((d->slow >> b & 1) && result == CACHE_HIT))
            return false;
        slow_count += d->slow >> b & 1;
    }
    return slow_count > 0 && (present >> CACHE_HIT & 1) != 0;
}

/* ---- evenness ---- */

/* The requests in a part of the log: their number, and the sum of the shares of slow visits in each request. */
typedef struct part_counts {
    double all, slow;
} part_counts;

/*
 * Returns whether a part of the log has a significantly larger share of slow requests than the rest, by a factor of
 * at least UNEVEN_MIN. `tests` is the number of parts among which this part was chosen. Fisher's exact test requires
 * whole numbers of slow requests. It is also valid for sums of shares, because these vary less than whole numbers. The
 * function rounds the sums so that the probability becomes larger.
 */
static bool has_more(part_counts here, part_counts all, double tests)
{
    part_counts rest = {all.all - here.all, all.slow - here.slow};
    if (here.all < 1 || rest.all < 1 || here.slow * rest.all < UNEVEN_MIN * rest.slow * here.all)
        return false;
    return tests * hypergeometric_tail(all.all, fmin(all.all, ceil(all.slow)), here.all, floor(here.slow)) <
           UNEVEN_CHANCE;
}

/* Returns whether a part of the log has a larger share of slow requests, or of other requests, than the rest. */
static bool differs(part_counts here, part_counts all, double tests)
{
    const part_counts other_here = {here.all, here.all - here.slow}, other_all = {all.all, all.all - all.slow};
    return has_more(here, all, tests) || has_more(other_here, other_all, tests);
}

/*
 * Finds the time range in which the share of slow requests differs most from the rest of the log. Returns whether the
 * difference is significant.
 */
static bool differs_in_time(const part_counts *times, part_counts all)
{
    part_counts chosen = {0};
    double largest = 0;
    for (int from = 0; from < PART_BINS; from++) {
        part_counts here = {0};
        for (int to = from; to < PART_BINS; to++) {
            here.all += times[to].all;
            here.slow += times[to].slow;
            double rest = all.all - here.all, difference = here.slow * all.all - all.slow * here.all,
                   between = rest > 0 && here.all > 0 ? difference * difference / (here.all * rest) : 0;
            if (between > largest) {
                largest = between;
                chosen = here;
            }
        }
    }
    const part_counts rest = {all.all - chosen.all, all.slow - chosen.slow};
    const double ranges = PART_BINS * (PART_BINS + 1) / 2.0;
    return differs(chosen, all, ranges) || differs(rest, all, ranges);
}

/* The visits of one request on one host. */
typedef struct host_visits {
    guint host; /* index of the host */
    uint32_t all, slow;
} host_visits;

/* Adds a visit to its host's visits. */
static void add_visit(GArray *own, guint host, bool is_slow)
{
    guint i = 0;
    while (i < own->len && g_array_index(own, host_visits, i).host != host)
        i++;
    if (i == own->len) {
        const host_visits none = {host, 0, 0};
        g_array_append_val(own, none);
    }
    g_array_index(own, host_visits, i).all++;
    g_array_index(own, host_visits, i).slow += is_slow;
}

/* Adds the visits of a request to the hosts and to the times. The request began in time bin `when`. Clears `own`. */
static void add_request_visits(GArray *own, uint32_t when, GArray *hosts, part_counts *times)
{
    double all = 0, slow = 0;
    for (guint i = 0; i < own->len; i++) {
        const host_visits *of = &g_array_index(own, host_visits, i);
        part_counts *host = &g_array_index(hosts, part_counts, of->host);
        host->all++;
        host->slow += (double)of->slow / of->all;
        all += of->all;
        slow += of->slow;
    }
    times[when].all++;
    times[when].slow += slow / fmax(all, 1);
    g_array_set_size(own, 0);
}

/*
 * Returns whether one of the hosts or time ranges has a much larger share of slow visits, or of other visits, than
 * the rest. `slow` is the bit mask of the slow bins. Visits of one request depend on each other, so a request counts
 * once for each host, and once for its time. If a host has a larger share of slow visits, sets the candidate's
 * uneven_host, uneven_share and other_share.
 */
static bool is_part_uneven(const sample *x, const uint8_t *bins, uint64_t slow, candidate *c)
{
    const visits *v = x->visits;
    GHashTable *numbers = g_hash_table_new(NULL, NULL); /* maps a host to its index + 1 */
    GArray *hosts = g_array_new(FALSE, TRUE, sizeof(part_counts)),
           *own = g_array_new(FALSE, FALSE, sizeof(host_visits));
    part_counts times[PART_BINS] = {{0, 0}}, all = {0}, of_hosts = {0};
    uint32_t first = x->count;
    for (uint32_t n = 0; n < x->count; n++) {
        uint32_t i = x->order[n];
        const visit *y = visit_at(v, x->index[i]);
        gpointer host = (gpointer)site_at(v, y->site)->host;
        guint number = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, host));
        if (number == 0) {
            number = hosts->len + 1;
            g_array_set_size(hosts, number);
            g_hash_table_insert(numbers, host, GUINT_TO_POINTER(number));
        }
        add_visit(own, number - 1, bins[i] != BIN_NONE && (slow >> bins[i] & 1));
        first = MIN(first, i);
        if (n + 1 < x->count && visit_at(v, x->index[x->order[n + 1]])->request == y->request)
            continue;
        add_request_visits(own, (uint32_t)((uint64_t)first * PART_BINS / x->count), hosts, times);
        first = x->count;
    }
    for (int t = 0; t < PART_BINS; t++) {
        all.all += times[t].all;
        all.slow += times[t].slow;
    }
    for (guint i = 0; i < hosts->len; i++) {
        of_hosts.all += g_array_index(hosts, part_counts, i).all;
        of_hosts.slow += g_array_index(hosts, part_counts, i).slow;
    }
    bool uneven = differs_in_time(times, all);
    GHashTableIter each;
    gpointer name, index;
    g_hash_table_iter_init(&each, numbers);
    while (g_hash_table_iter_next(&each, &name, &index)) {
        const part_counts here = g_array_index(hosts, part_counts, GPOINTER_TO_UINT(index) - 1);
        uneven = uneven || differs(here, of_hosts, hosts->len);
        if (!has_more(here, of_hosts, hosts->len) || here.slow <= c->uneven_share * here.all)
            continue;
        c->uneven_host = name;
        c->uneven_share = here.slow / here.all;
        c->other_share = (of_hosts.slow - here.slow) / fmax(of_hosts.all - here.all, 1);
    }
    g_hash_table_destroy(numbers);
    g_array_free(hosts, TRUE);
    g_array_free(own, TRUE);
    return uneven;
}

/* ---- growth with an amount of work ---- */

double time_before_ordinary(const search *s, const sample *x, uint32_t i)
{
    double claimed = 0;
    for (guint n = 0; n < s->f->list->len; n++) {
        const finding *f = g_ptr_array_index(s->f->list, n);
        if (f->is_ordinary && f->cut != NULL)
            claimed += (double)f->cut[x->index[i]];
    }
    return x->y[i] + claimed * (x->factor != NULL ? x->factor[i] : 1);
}

/* The mean value and the mean time of some visits, and the range of their values. */
typedef struct part_means {
    double value, ns, low, high;
} part_means;

/* Uses the times before ordinary findings claimed a part, because this part also grows with the amount. */
static part_means means_of_bins(const search *s, const sample *x, const division *d, uint64_t bins)
{
    part_means sum = {0, 0, INFINITY, -INFINITY};
    double count = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (d->bins[i] != BIN_NONE && (bins >> d->bins[i] & 1)) {
            double value = (double)d->values[i];
            sum.value += value;
            sum.ns += time_before_ordinary(s, x, i);
            sum.low = fmin(sum.low, value);
            sum.high = fmax(sum.high, value);
            count++;
        }
    sum.value /= fmax(count, 1);
    sum.ns /= fmax(count, 1);
    return sum;
}

/*
 * Returns the exponent with which the time grows with the value: 1 if the time is proportional to the value, less if
 * the time also contains other work. Compares the middle bin with the last bin if the bins are ordered, and otherwise
 * the slow bins with the other bins. Returns 0 if the time does not grow with the value, or if a value is not positive.
 */
static double power_of_growth(const search *s, const sample *x, const division *d)
{
    uint64_t one = 1, all = d->count == 64 ? UINT64_MAX : (one << d->count) - 1;
    part_means low = means_of_bins(s, x, d, d->ordered ? one << (d->count - 1) / 2 : all & ~d->slow),
               high = means_of_bins(s, x, d, d->ordered ? one << (d->count - 1) : d->slow);
    if (!(low.value > 0 && high.value > low.value && high.low >= low.high && low.ns > 0 && high.ns > low.ns))
        return 0;
    return log(high.ns / low.ns) / log(high.value / low.value);
}

/* The largest amounts take longer than in proportion if their visits take this factor times the extrapolated time. */
#define FASTER_FACTOR EFFECT_MIN

/*
 * Returns whether the time grows faster than in proportion to the amount: the visits with the largest amounts take much
 * longer than the time that a line through the smaller amounts predicts. Unlike the exponent, this result does not
 * depend on the constant part of the time.
 */
static bool grows_faster(const search *s, const sample *x, const division *d)
{
    const uint64_t one = 1;
    const int third = d->count / 3;
    if (!d->ordered || third == 0)
        return false;
    const part_means low = means_of_bins(s, x, d, (one << third) - 1),
                     middle = means_of_bins(s, x, d, ((one << third) - 1) << third),
                     high = means_of_bins(s, x, d, one << (d->count - 1));
    if (!(middle.value > low.value && high.value > middle.value && middle.ns > low.ns))
        return false;
    const double slope = (middle.ns - low.ns) / (middle.value - low.value);
    return high.ns > FASTER_FACTOR * (middle.ns + slope * (high.value - middle.value));
}

/* A regression line of time on an amount, with the number of visits, and their mean amount and time. */
typedef struct line {
    double count, amount, ns, slope, error; /* error: the standard error of the slope */
} line;

/* Returns the line of the slow visits or, if `of_slow` is false, of the other visits. Ignores visits without a known
 * amount. */
static line line_of(const search *s, const sample *x, const division *d, const float *amounts, bool of_slow)
{
    line l = {0};
    double amounts_sum = 0, ns_sum = 0, squares = 0, products = 0, left = 0;
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < x->count; i++) {
            bool is_slow = d->bins[i] != BIN_NONE && (d->slow >> d->bins[i] & 1);
            if (is_slow != of_slow || !isfinite(amounts[i]))
                continue;
            double amount = (double)amounts[i] - l.amount, ns = time_before_ordinary(s, x, i) - l.ns;
            if (pass == 0) {
                l.count++;
                amounts_sum += amount;
                ns_sum += ns;
            } else if (pass == 1) {
                squares += amount * amount;
                products += amount * ns;
            } else {
                left += (ns - l.slope * amount) * (ns - l.slope * amount);
            }
        }
        if (pass == 0) {
            l.amount = amounts_sum / fmax(l.count, 1);
            l.ns = ns_sum / fmax(l.count, 1);
        } else if (pass == 1) {
            l.slope = squares > 0 ? products / squares : 0;
        }
    }
    l.error = squares > 0 && l.count > 2 ? sqrt(left / (l.count - 2) / squares) : INFINITY;
    return l;
}

/*
 * Returns whether an amount explains why the slow visits take longer than the other visits. The time of the slow visits
 * must grow with the amount, but not faster than the time of the other visits. If the slow visits had the amounts of
 * the other visits, they would take less than EFFECT_MIN times as long as the other visits.
 */
static bool is_explained_by(const search *s, const sample *x, const division *d, const float *amounts)
{
    line slow = line_of(s, x, d, amounts, true), other = line_of(s, x, d, amounts, false);
    if (slow.count + other.count < KNOWN_MIN * x->count || slow.amount <= other.amount ||
        !(slow.slope > GROWS_MIN * slow.error))
        return false;
    double slope = fmin(slow.slope, other.slope + SLOPE_ERRORS * other.error);
    return slow.ns - slope * (slow.amount - other.amount) <= EFFECT_MIN * other.ns;
}

/* Returns a column with amounts of work that explain why some values are slow, or NULL. */
static const column *find_amount(const search *s, const sample *x, const division *d, const column *own)
{
    const column *found = NULL;
    float *amounts = g_new(float, x->count + 1);
    for (uint32_t n = 0; n < s->v->columns->count && found == NULL; n++) {
        const column *c = &s->v->columns->all[n];
        if (c == own || c->closed || c->has_text || !column_is_amount(x, c))
            continue;
        for (uint32_t i = 0; i < x->count; i++)
            amounts[i] = column_of_visit(c, s->v, x->index[i]);
        if (is_explained_by(s, x, d, amounts))
            found = c;
    }
    g_free(amounts);
    return found;
}

/* Returns whether more than half of the values of a field are slow. The other values are then the exception. */
static bool are_most_values_slow(const division *d)
{
    int slow = 0, others = 0;
    for (int b = 0; b < d->count; b++)
        if (!isnan(d->of_bin[b]))
            *((d->slow >> b & 1) ? &slow : &others) += 1;
    return slow > others;
}

/*
 * Returns whether the visits of some bins differ from each other significantly, and by at least the factor EFFECT_MIN.
 * `bins` is the bit mask of these bins.
 */
static bool bins_differ(const sample *x, const division *d, uint64_t bins)
{
    uint8_t *inside = g_new(uint8_t, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        inside[i] = d->bins[i] != BIN_NONE && (bins >> d->bins[i] & 1) ? d->bins[i] : BIN_NONE;
    explanation e = sample_explain(x, inside, d->count, false);
    g_free(e.excess);
    g_free(inside);
    return e.p < KINDS_CHANCE && e.slow != 0 && e.slow_ns >= EFFECT_MIN * e.other_ns;
}

/*
 * Returns whether the values of a field of texts are kinds of work. In this case, the mean times of the other values
 * also differ much, and the mean times of the slow values continue this series. With a fault, the mean time of the slow
 * values exceeds the other mean times by more than GAP_FACTOR times the largest step between two of them. Steps are
 * logarithms of ratios.
 */
static bool are_kinds_of_work(const search *s, const sample *x, const division *d)
{
    uint64_t all = d->count == 64 ? UINT64_MAX : (UINT64_C(1) << d->count) - 1;
    if (!bins_differ(x, d, all & ~d->slow))
        return false;
    double others[BINS_MAX] = {0}, fastest_slow = INFINITY, step = 0;
    int count = 0;
    for (int b = 0; b < d->count; b++) {
        double mean = means_of_bins(s, x, d, UINT64_C(1) << b).ns;
        if (!(d->slow >> b & 1))
            others[count++] = mean;
        else
            fastest_slow = fmin(fastest_slow, mean);
    }
    sort_doubles(others, (size_t)count);
    for (int i = 1; i < count; i++)
        if (others[i - 1] > 0)
            step = fmax(step, log(others[i] / others[i - 1]));
    return log(fastest_slow / others[count - 1]) <= GAP_FACTOR * step;
}

/* Returns the bit mask of the bins with the largest quarter of an ordered column's values, or with the smallest. */
static uint64_t quarter_of_bins(int count, bool largest)
{
    uint64_t all = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1, one = 1;
    int quarter = MAX(count / LARGE_ONE_OF, 1);
    return largest ? all & ~((one << (count - quarter)) - 1) : (one << quarter) - 1;
}

/*
 * Makes the host that has the slow values more often the host of the candidate. The candidate claims only the time that
 * the host would save if it had the slow values as rarely as the other hosts, because only this difference is a fault.
 */
static void claim_only_host(candidate *c, const sample *x)
{
    double part = 1 - c->other_share / c->uneven_share;
    c->host = c->uneven_host;
    c->claim_ns = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        bool is_here = site_at(x->visits, visit_at(x->visits, x->index[i])->site)->host == c->host;
        float *cut = &c->cut[x->index[i]];
        *cut = is_here ? (float)((double)*cut * part) : 0;
        c->claim_ns += (double)*cut * x->weight[i] * x->scale;
    }
}

/* Returns whether a column contains sequence numbers of the visits or requests. */
static bool is_sequence(const sample *x, const column *c)
{
    float *values = g_new(float, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        values[i] = column_of_visit(c, x->visits, x->index[i]);
    bool counts = sample_values_count(x, values);
    g_free(values);
    return counts;
}

bool column_is_amount(const sample *x, const column *c)
{
    return (column_meaning(c) == NUMBER_WORK || is_length_of_work(x, c)) && !is_sequence(x, c);
}

bool division_is_proportional(const search *s, const sample *x, const division *d)
{
    double power = power_of_growth(s, x, d);
    return power > 0 && power <= PROPORTIONAL_MAX;
}

void candidate_find_ordinary(const search *s, candidate *c, const sample *x, const division *d)
{
    c->meaning = c->column->has_text               ? NUMBER_NONE
                 : is_length_of_work(x, c->column) ? NUMBER_WORK
                                                   : column_meaning(c->column);
    if (d->ordered)
        c->falls = !(d->slow >> (d->count - 1) & 1);
    if (d->slow == 0 || !effect_counts(c->explained, c->claim_ns / s->v->total_ns, c->slow_ns, c->other_ns))
        return;
    c->power = c->meaning == NUMBER_NONE || c->falls ? 0 : power_of_growth(s, x, d);
    /* Less work cannot take longer. If the time seems to fall with the amount, the amount depends on the kind of the
     * work. */
    bool is_work = c->meaning == NUMBER_WORK &&
                   (c->falls || (c->power > 0 && c->power <= PROPORTIONAL_MAX && !grows_faster(s, x, d)));
    if (!d->ordered && c->meaning != NUMBER_CONTENTION && !is_work) {
        is_work = column_is_operation(s->v, x->place, c->column) || is_of_misses(c->column, d) ||
                  (c->column->has_text && are_most_values_slow(d));
        is_work = is_work || (c->column->has_text && are_kinds_of_work(s, x, d));
        c->amount = is_work ? NULL : find_amount(s, x, d, c->column);
        is_work = is_work || c->amount != NULL;
    }
    c->is_uneven =
        is_work && is_part_uneven(x, d->bins, d->ordered ? quarter_of_bins(d->count, !c->falls) : d->slow, c);
    c->is_ordinary = is_work && !c->is_uneven;
    if (c->uneven_host != NULL && !d->ordered)
        claim_only_host(c, x);
}
