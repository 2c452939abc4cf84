/* nlstat: the time of lifelines in numbers: each segment's share, mean, percentiles, and what is missing. */
#include "config.h"

#include "analysis/infer.h"
#include "analysis/json.h"
#include "analysis/lifelines.h"
#include "analysis/segments.h"
#include "program/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    char **ids;
    char *by;
    const char *config;
    bool json;
    char **files;
    int file_count;
    nl_filter *where;
    program_reading reading;
} arguments;

static const struct argp_option options[] = {
    {"id", 'i', "FIELD,...", 0, "The fields that name an object (default: found from the log)", 0},
    {"by", 'b', "FIELD", 0, "Tell objects apart by that field; HOST is the least common host that an object visits", 0},
    {"config", 'c', "FILE", 0, "Take the lifelines from an nlv file", 0},
    {"json", 'j', NULL, 0, "Print JSON; times are nanoseconds", 0},
    {0},
};

static const struct argp_child children[] = {
    {&program_where_argp, 0, NULL, 0}, {&program_reading_argp, 0, NULL, 1}, {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->where;
        state->child_inputs[1] = &a->reading;
        return 0;
    case 'i':
        g_strfreev(a->ids);
        a->ids = g_strsplit(argument, ",", 0);
        if (*argument == '\0')
            argp_error(state, "--id needs a field's name");
        return 0;
    case 'b':
        a->by = argument;
        return 0;
    case 'c':
        a->config = argument;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case ARGP_KEY_ARGS:
        a->files = state->argv + state->next;
        a->file_count = state->argc - state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[FILE...]",
    .doc = "Say where the time of requests, blocks, jobs goes: the time between each event of an object and its next."
           "\vExample: nlstat --id BLOCK.ID --by HOST dpss.log",
    .children = children,
};

static bool read_logs(arguments *a, trace *t)
{
    static char *standard_input[] = {"-"};
    bool good = true;
    char **files = a->file_count > 0 ? a->files : standard_input;
    for (int i = 0; i < (a->file_count > 0 ? a->file_count : 1); i++) {
        nl_reader *reader = program_reading_open(&a->reading, files[i], false, false);
        const nl_record *record;
        nl_status status = reader == NULL ? NL_FAILED : NL_OK;
        while (reader != NULL && (status = program_next_where(reader, a->where, &record)) == NL_OK)
            trace_add(t, record);
        if (reader != NULL && status == NL_FAILED)
            program_error("%s", nl_error_message());
        good = good && status != NL_FAILED;
        program_reading_close(&a->reading, reader);
    }
    trace_sort(t);
    return good;
}

/* A time in the unit that suits it; 32 bytes of out are enough. */
static const char *words(double ns, char *out)
{
    if (ns < 0) {
        out[0] = '-';
        words(-ns, out + 1);
    } else if (ns < 1e3) {
        snprintf(out, 31, "%.0f ns", ns);
    } else if (ns < 1e6) {
        snprintf(out, 31, "%.1f us", ns / 1e3);
    } else if (ns < 1e9) {
        snprintf(out, 31, "%.2f ms", ns / 1e6);
    } else {
        snprintf(out, 31, "%.3f s", ns / 1e9);
    }
    return out;
}

static char *segment_name(const trace *t, const lifelines *l, const segment *s)
{
    const char *from = trace_string(t, l->events[s->from]);
    if (s->from == s->to)
        return g_strdup_printf("%s (first to last)", from);
    return g_strdup_printf("%s -> %s", from, trace_string(t, l->events[s->to]));
}

/* Objects that lack the first or last event of the order. */
static void count_missing(const lifelines *l, size_t *no_start, size_t *no_end)
{
    *no_start = *no_end = 0;
    for (size_t i = 0; i < l->object_count; i++) {
        const lifeline_object *object = &l->objects[i];
        bool start = false, end = false;
        for (uint32_t s = 0; s < object->step_count; s++) {
            start |= l->steps[object->first_step + s].event == 0;
            end |= l->steps[object->first_step + s].event + 1 == l->event_count;
        }
        *no_start += !start;
        *no_end += !end;
    }
}

static void print_table(const trace *t, const lifelines *l, GPtrArray *segments, double total_ns, const char *by)
{
    size_t no_start, no_end;
    count_missing(l, &no_start, &no_end);
    char *ids = g_strjoinv(", ", l->definition->ids);
    char time[7][32];
    printf("Lifelines by %s: %zu, %s in all, %s each\n", ids, l->object_count, words(total_ns, time[0]),
           words(l->object_count > 0 ? total_ns / (double)l->object_count : 0, time[1]));
    g_free(ids);
    if (no_start > 0)
        printf("  %zu of them without %s, their first event\n", no_start, l->definition->events[0]);
    if (no_end > 0)
        printf("  %zu of them without %s, their last event\n", no_end, l->definition->events[l->event_count - 1]);
    printf("\n  %-44s", "segment");
    if (by != NULL)
        printf(" %-16s", by);
    printf(" %7s %7s %10s %10s %10s %10s %10s\n", "share", "count", "mean", "p50", "p90", "p99", "max");
    for (guint i = 0; i < segments->len; i++) {
        const segment *s = g_ptr_array_index(segments, i);
        char *name = segment_name(t, l, s);
        printf("  %-44s", name);
        if (by != NULL)
            printf(" %-16s", trace_string(t, s->color));
        printf(" %5.1f %% %7u %10s %10s %10s %10s %10s\n", total_ns > 0 ? 100 * s->total_ns / total_ns : 0,
               s->times_ns->len, words(s->total_ns / s->times_ns->len, time[2]),
               words((double)segment_quantile_ns(s, 0.5), time[3]), words((double)segment_quantile_ns(s, 0.9), time[4]),
               words((double)segment_quantile_ns(s, 0.99), time[5]), words((double)segment_quantile_ns(s, 1), time[6]));
        g_free(name);
    }
    printf("\n");
}

static void print_json_string(const char *text)
{
    GString *json = g_string_new(NULL);
    json_append_string(json, text);
    fputs(json->str, stdout);
    g_string_free(json, TRUE);
}

static void print_json(const trace *t, const lifelines *l, GPtrArray *segments, double total_ns, bool last)
{
    size_t no_start, no_end;
    count_missing(l, &no_start, &no_end);
    printf("  {\"id\": [");
    for (char **id = l->definition->ids; *id != NULL; id++) {
        printf("%s", id == l->definition->ids ? "" : ", ");
        print_json_string(*id);
    }
    printf("], \"objects\": %zu, \"without_first\": %zu, \"without_last\": %zu, \"total_ns\": %.0f, \"segments\": [",
           l->object_count, no_start, no_end, total_ns);
    for (guint i = 0; i < segments->len; i++) {
        const segment *s = g_ptr_array_index(segments, i);
        printf("%s\n    {\"from\": ", i == 0 ? "" : ",");
        print_json_string(trace_string(t, l->events[s->from]));
        printf(", \"to\": ");
        print_json_string(trace_string(t, l->events[s->to]));
        if (s->color != TRACE_NONE) {
            printf(", \"by\": ");
            print_json_string(trace_string(t, s->color));
        }
        printf(", \"count\": %u, \"share\": %.6f, \"mean_ns\": %.0f, \"p50_ns\": %" PRId64 ", \"p90_ns\": %" PRId64
               ", \"p99_ns\": %" PRId64 ", \"max_ns\": %" PRId64 "}",
               s->times_ns->len, total_ns > 0 ? s->total_ns / total_ns : 0, s->total_ns / s->times_ns->len,
               segment_quantile_ns(s, 0.5), segment_quantile_ns(s, 0.9), segment_quantile_ns(s, 0.99),
               segment_quantile_ns(s, 1));
    }
    printf("\n  ]}%s\n", last ? "" : ",");
}

static void report(const arguments *a, const trace *t, const drawing *d)
{
    if (a->json)
        printf("[\n");
    for (guint i = 0; i < d->lifelines->len; i++) {
        drawing_lifeline *definition = g_ptr_array_index(d->lifelines, i);
        if (a->by != NULL) {
            g_free(definition->color);
            definition->color = g_strdup(a->by);
        }
        lifelines *l = lifelines_build(t, definition);
        GPtrArray *segments = segments_measure(t, l, a->by != NULL);
        double total_ns = 0;
        for (guint s = 0; s < segments->len; s++)
            total_ns += ((segment *)g_ptr_array_index(segments, s))->total_ns;
        if (a->json)
            print_json(t, l, segments, total_ns, i + 1 == d->lifelines->len);
        else
            print_table(t, l, segments, total_ns, a->by);
        segments_free(segments);
        lifelines_free(l);
    }
    if (a->json)
        printf("]\n");
}

static drawing *find_drawing(const arguments *a, const trace *t)
{
    if (a->config == NULL)
        return infer_drawing_by(t, (const char *const *)a->ids);
    char *message;
    drawing *d = drawing_read(a->config, &message);
    if (d == NULL)
        program_fail(PROGRAM_PROBLEM, "%s", message);
    return d;
}

int main(int argc, char **argv)
{
    program_start("nlstat", argv);
    arguments a = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    trace *t = trace_new();
    bool good = read_logs(&a, t);
    drawing *d = find_drawing(&a, t);
    if (d->lifelines->len == 0) {
        program_error(a.ids != NULL ? "no two different events share those ids"
                                    : "no field ties events together: say with --id which one does");
        good = false;
    }
    report(&a, t, d);
    drawing_free(d);
    trace_free(t);
    g_strfreev(a.ids);
    nl_filter_free(a.where);
    if (program_reading_finish(&a.reading) != PROGRAM_DONE || a.reading.malformed > 0 || a.reading.lost > 0)
        good = false;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
