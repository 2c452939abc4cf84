#include "config.h"

#include "kernel_sum.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include "bpf/sum.h"
#include "events.h"
#include "kallsyms.h"
#include "program/program.h"
#include "rights.h"
#include "bpf/sum.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool kernel_sums_needed(const rules_file *file)
{
    for (size_t i = 0; i < file->sections.count; i++)
        if (strcmp(file->sections.list[i].kind, "kernel") == 0)
            return true;
    return false;
}

typedef struct kernel_sum {
    const char *name; /* event name of the records */
    struct sum_bpf *program;
    struct bpf_link *links[2];
    char *by[SUM_FIELDS]; /* names of fields; NULL in unused elements */
    bool has_program, has_caller;
} kernel_sum;

struct kernel_sums {
    kernel_sum *list;
    size_t count;
    kallsyms *symbols;
};

/* ---- the section ---- */

/* Splits SYSTEM:EVENT or SYSTEM.EVENT into its parts. Returns false if the text has another form, or if a part is
 * longer than 63 bytes. */
static bool split_event_name(const char *event, char system[64], char name[64])
{
    size_t size = strcspn(event, ":.");
    if (size == 0 || size > 63 || event[size] == '\0' || strlen(event + size + 1) > 63)
        return false;
    snprintf(system, 64, "%.*s", (int)size, event);
    snprintf(name, 64, "%s", event + size + 1);
    return true;
}

/* Finds the offset and size of a numeric field in the kernel's event. Returns false and sets the error on failure. */
static bool find_field(const tracing *t, const char *event, const char *field, struct sum_field *found)
{
    char system[64], name[64];
    kernel_event description;
    if (!split_event_name(event, system, name))
        return nl_error_false(NL_ERROR_INVALID, "%s: expected SYSTEM:EVENT", event);
    if (!kernel_event_read(t, system, name, &description))
        return false;
    const event_field *f = kernel_event_field(&description, nl_string_of(field));
    bool ok = f != NULL && f->kind <= FIELD_UINT64;
    if (ok)
        *found = (struct sum_field){f->offset, f->size};
    kernel_event_free(&description);
    return ok || nl_error_false(NL_ERROR_NOT_FOUND, "%s has no numeric field %s", event, field);
}

/* Parses "EVENT key FIELD,...". Returns the event's name, which the caller frees, and sets `fields`. Sets *by_thread if
 * a key field is TID. Returns NULL and sets the error on failure. */
static char *read_end(const tracing *t, const char *text, struct sum_field fields[SUM_FIELDS], bool *by_thread)
{
    char *event = nl_word_next(&text, ""), *word = nl_word_next(&text, ""), *field;
    unsigned count = 0;
    bool ok = event != NULL && word != NULL && strcmp(word, "key") == 0;
    if (!ok)
        nl_error_set(NL_ERROR_INVALID, "expected \"EVENT key FIELD,...\"");
    free(word);
    while (ok && (field = nl_word_next(&text, ",")) != NULL) {
        if (strcmp(field, "TID") == 0)
            *by_thread = true;
        else if (count == SUM_FIELDS)
            ok = nl_error_false(NL_ERROR_LIMIT, "more than %d key fields besides TID", SUM_FIELDS);
        else
            ok = find_field(t, event, field, &fields[count++]);
        free(field);
    }
    if (ok)
        return event;
    free(event);
    return NULL;
}

static bool read_by(const tracing *t, kernel_sum *sum, const char *event, const char *text,
                    struct sum_field fields[SUM_FIELDS])
{
    char *field;
    unsigned count = 0;
    bool ok = true;
    while (ok && text != NULL && (field = nl_word_next(&text, ",")) != NULL) {
        if (strcmp(field, "PROG") == 0) {
            sum->has_program = true;
        } else if (strcmp(field, "CALLER") == 0) {
            sum->has_caller = true;
        } else if (count == SUM_FIELDS) {
            ok = nl_error_false(NL_ERROR_LIMIT, "by: more than %d fields besides PROG and CALLER", SUM_FIELDS);
        } else {
            ok = find_field(t, event, field, &fields[count]);
            sum->by[count++] = strdup(field);
        }
        free(field);
    }
    return ok;
}

/* ---- the program ---- */

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

static bool attach(kernel_sum *sum, const char *begin, const char *end)
{
    char system[64], name[64];
    if (sum_bpf__load(sum->program) != 0)
        return rights_fail_bpf(errno);
    if (split_event_name(begin, system, name))
        sum->links[0] = bpf_program__attach_tracepoint(sum->program->progs.span_begin, system, name);
    if (sum->links[0] != NULL && split_event_name(end, system, name))
        sum->links[1] = bpf_program__attach_tracepoint(sum->program->progs.span_end, system, name);
    return sum->links[1] != NULL || rights_fail_bpf(errno);
}

static bool kernel_sum_start(kernel_sum *sum, const tracing *t, const nl_section *section)
{
    const char *begin = nl_section_value(section, "begin"), *end = nl_section_value(section, "end");
    struct sum_field begin_keys[SUM_FIELDS] = {{0}}, end_keys[SUM_FIELDS] = {{0}}, groups[SUM_FIELDS] = {{0}};
    bool by_thread = false;
    if (begin == NULL || end == NULL)
        return nl_error_false(NL_ERROR_INVALID, "[kernel %s]: missing begin = or end =", section->name);
    sum->name = section->name;
    char *first = read_end(t, begin, begin_keys, &by_thread), *last = NULL;
    bool ok = first != NULL && read_by(t, sum, first, nl_section_value(section, "by"), groups) &&
              (last = read_end(t, end, end_keys, &by_thread)) != NULL;
    sum->program = ok ? sum_bpf__open() : NULL;
    if (ok && sum->program == NULL)
        ok = rights_fail_bpf(errno);
    if (ok) {
        memcpy((void *)sum->program->rodata->begin_keys, begin_keys, sizeof begin_keys);
        memcpy((void *)sum->program->rodata->end_keys, end_keys, sizeof end_keys);
        memcpy((void *)sum->program->rodata->groups, groups, sizeof groups);
        sum->program->rodata->by_program = sum->has_program;
        sum->program->rodata->by_caller = sum->has_caller;
        sum->program->rodata->by_thread = by_thread;
        ok = attach(sum, first, last);
    }
    free(first);
    free(last);
    return ok;
}

kernel_sums *kernel_sums_start(const rules_file *file, const char *tracefs)
{
    tracing t;
    if (!tracing_open(&t, tracefs))
        return NULL;
    libbpf_set_print(print_nothing);
    kernel_sums *k = nl_memory_check(calloc(1, sizeof *k));
    k->list = nl_memory_check(calloc(file->sections.count + 1, sizeof *k->list));
    bool ok = true;
    for (size_t i = 0; ok && i < file->sections.count; i++)
        if (strcmp(file->sections.list[i].kind, "kernel") == 0)
            ok = kernel_sum_start(&k->list[k->count++], &t, &file->sections.list[i]);
    tracing_close(&t);
    if (ok)
        return k;
    kernel_sums_free(k);
    return NULL;
}

void kernel_sums_stop(kernel_sums *k)
{
    for (size_t i = 0; i < k->count; i++)
        for (int side = 0; side < 2; side++) {
            bpf_link__destroy(k->list[i].links[side]);
            k->list[i].links[side] = NULL;
        }
}

/* ---- the sums ---- */

/* Returns whether a function probably implements or traces locks, according to its name. CALLER is the first other
 * function on the stack. */
static bool implements_locks(nl_string name)
{
    static const char *const parts[] = {"lock", "mutex",  "rwsem", "down_",       "rtmutex", "contention",
                                        "bpf_", "trace_", "perf_", "__traceiter", "queued_", "schedule"};
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]) != NULL)
            return true;
    return false;
}

static void add_stack(kernel_sums *k, const kernel_sum *sum, nl_record *record, __s64 stack)
{
    __u64 addresses[SUM_STACK] = {0};
    char all[SUM_STACK * 64] = "";
    size_t size = 0;
    nl_string caller = {NULL, 0};
    __u32 id = (__u32)stack;
    if (stack >= 0 && k->symbols != NULL)
        bpf_map_lookup_elem(bpf_map__fd(sum->program->maps.stacks), &id, addresses);
    for (int i = 0; i < SUM_STACK && addresses[i] != 0; i++) {
        nl_string name = kallsyms_find(k->symbols, addresses[i]);
        if (name.data == NULL || (caller.data == NULL && implements_locks(name)))
            continue;
        if (caller.data == NULL)
            caller = name;
        if (size + name.size + 2 < sizeof all)
            size += (size_t)snprintf(all + size, sizeof all - size, "%s%.*s", size > 0 ? " " : "", (int)name.size,
                                     name.data);
    }
    nl_record_add_string(record, "CALLER", caller.data != NULL ? caller.data : "unknown",
                         caller.data != NULL ? caller.size : 7);
    nl_record_add_string(record, "STACK", all, size);
}

static void make_sum_record(kernel_sums *k, const kernel_sum *sum, const struct sum_key *key,
                            const struct sum_value *values, int cpus, nl_record *record)
{
    struct sum_value all = {0};
    for (int cpu = 0; cpu < cpus; cpu++) {
        all.count += values[cpu].count;
        all.total_ns += values[cpu].total_ns;
        all.max_ns = values[cpu].max_ns > all.max_ns ? values[cpu].max_ns : all.max_ns;
    }
    nl_record_clear(record);
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, sum->name, strlen(sum->name));
    if (sum->has_program)
        nl_record_set_prog(record, key->program, strnlen(key->program, SUM_PROGRAM));
    for (int i = 0; i < SUM_FIELDS && sum->by[i] != NULL; i++)
        nl_record_add_uint(record, sum->by[i], key->fields[i]);
    if (sum->has_caller)
        add_stack(k, sum, record, key->stack);
    nl_record_add_uint(record, "COUNT", all.count);
    nl_record_add_uint(record, "TOTAL.NS", all.total_ns);
    nl_record_add_uint(record, "MAX.NS", all.max_ns);
}

static void kernel_sum_read_all(kernel_sums *k, const kernel_sum *sum,
                                void (*take)(void *user, const nl_record *record), void *user)
{
    int map = bpf_map__fd(sum->program->maps.sums), cpus = libbpf_num_possible_cpus();
    struct sum_value *values = nl_memory_check(calloc(cpus > 0 ? (size_t)cpus : 1, sizeof *values));
    nl_record *record = nl_record_new();
    struct sum_key key, *before = NULL;
    char host[256];
    program_host(host, sizeof host);
    while (bpf_map_get_next_key(map, before, &key) == 0) {
        if (bpf_map_lookup_elem(map, &key, values) == 0) {
            make_sum_record(k, sum, &key, values, cpus, record);
            nl_record_set_host(record, host, strlen(host));
            take(user, record);
        }
        before = &key;
    }
    nl_record_free(record);
    free(values);
    uint64_t missed = sum->program->bss->missed_open + sum->program->bss->missed_sums;
    if (missed > 0)
        program_error("%s: %" PRIu64 " span%s not counted, because the kernel's tables are full", sum->name, missed,
                      missed == 1 ? " was" : "s were");
}

void kernel_sums_read(kernel_sums *k, void (*take)(void *user, const nl_record *record), void *user)
{
    k->symbols = kallsyms_read();
    for (size_t i = 0; i < k->count; i++)
        kernel_sum_read_all(k, &k->list[i], take, user);
    kallsyms_free(k->symbols);
    k->symbols = NULL;
}

void kernel_sums_free(kernel_sums *k)
{
    if (k == NULL)
        return;
    kernel_sums_stop(k);
    for (size_t i = 0; i < k->count; i++) {
        sum_bpf__destroy(k->list[i].program);
        for (int j = 0; j < SUM_FIELDS; j++)
            free(k->list[i].by[j]);
    }
    free(k->list);
    free(k);
}
