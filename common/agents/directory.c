#include "config.h"

#include "agents/directory.h"

#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "filter/filter_internal.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, KIND_BUCKETS = 1024, REMEMBERED = 16 };

/* Results of a filter's tests: 0 is unknown, 1 is false, and 2 is true. */
typedef struct answers {
    unsigned char of[REMEMBERED];
} answers;

/* A sensor that several agents may have. The directory stores it once, and tests it once for each search. */
typedef struct kind {
    struct kind *next;
    directory_sensor sensor;
    nl_record *row; /* the sensor's fields, to which filters are applied */
    size_t users;
    uint64_t search; /* the search to which the answers belong */
    answers answers;
} kind;

typedef struct entry {
    struct entry *next;
    char *host, *url;
    int64_t expires_ns;
    nl_record *row; /* the agent's fields, to which filters are applied */
    kind **kinds;
    size_t count;
} entry;

struct directory {
    entry *buckets[BUCKETS];
    kind *kinds[KIND_BUCKETS];
    size_t count;
    uint64_t search; /* number of the latest search */
};

static uint64_t hash(uint64_t seed, const char *text)
{
    return hash_bytes(seed, text, strlen(text));
}

static size_t bucket_of(const char *url)
{
    return hash(0, url) % BUCKETS;
}

/* ---- kinds of sensors ---- */

static kind **kind_bucket(directory *d, const directory_sensor *s)
{
    return &d->kinds[hash(hash(hash(0, s->name), s->what), s->events) % KIND_BUCKETS];
}

static kind *use_kind(directory *d, const directory_sensor *s)
{
    kind **bucket = kind_bucket(d, s);
    for (kind *k = *bucket; k != NULL; k = k->next)
        if (strcmp(k->sensor.name, s->name) == 0 && strcmp(k->sensor.what, s->what) == 0 &&
            strcmp(k->sensor.events, s->events) == 0) {
            k->users++;
            return k;
        }
    kind *k = nl_memory_check(calloc(1, sizeof *k));
    *k = (kind){.next = *bucket,
                .sensor = {program_copy(s->name), program_copy(s->what), program_copy(s->events)},
                .row = nl_record_new(),
                .users = 1};
    nl_record_add_text(k->row, "sensor", s->name);
    nl_record_add_text(k->row, "events", s->events);
    nl_record_add_text(k->row, "what", s->what);
    *bucket = k;
    return k;
}

static void release_kind(directory *d, kind *k)
{
    if (--k->users > 0)
        return;
    kind **link = kind_bucket(d, &k->sensor);
    while (*link != k)
        link = &(*link)->next;
    *link = k->next;
    free((char *)k->sensor.name);
    free((char *)k->sensor.what);
    free((char *)k->sensor.events);
    nl_record_free(k->row);
    free(k);
}

/* ---- agents ---- */

static void free_entry(directory *d, entry *e)
{
    for (size_t i = 0; i < e->count; i++)
        release_kind(d, e->kinds[i]);
    nl_record_free(e->row);
    free(e->kinds);
    free(e->host);
    free(e->url);
    free(e);
}

directory *directory_new(void)
{
    return nl_memory_check(calloc(1, sizeof(directory)));
}

void directory_free(directory *d)
{
    for (size_t b = 0; d != NULL && b < BUCKETS; b++)
        for (entry *e = d->buckets[b], *next; e != NULL; e = next) {
            next = e->next;
            free_entry(d, e);
        }
    free(d);
}

size_t directory_size(const directory *d)
{
    return d->count;
}

void directory_withdraw(directory *d, const char *url)
{
    entry **link = &d->buckets[bucket_of(url)];
    while (*link != NULL && strcmp((*link)->url, url) != 0)
        link = &(*link)->next;
    if (*link == NULL)
        return;
    entry *gone = *link;
    *link = gone->next;
    free_entry(d, gone);
    d->count--;
}

void directory_expire(directory *d)
{
    int64_t now_ns = nl_monotonic_ns();
    for (size_t b = 0; b < BUCKETS; b++)
        for (entry **link = &d->buckets[b], *e; (e = *link) != NULL;) {
            if (now_ns < e->expires_ns) {
                link = &e->next;
                continue;
            }
            *link = e->next;
            free_entry(d, e);
            d->count--;
        }
}

bool directory_register(directory *d, const char *host, const char *url, double ttl_s, const directory_sensor *sensors,
                        size_t count)
{
    directory_withdraw(d, url);
    if (d->count >= DIRECTORY_AGENTS_MAX || count > DIRECTORY_SENSORS_MAX)
        return false;
    entry *e = nl_memory_check(calloc(1, sizeof *e));
    e->kinds = nl_memory_check(calloc(count + 1, sizeof(kind *)));
    e->host = program_copy(host);
    e->url = program_copy(url);
    e->expires_ns = nl_monotonic_ns() + (int64_t)(ttl_s * 1e9);
    e->row = nl_record_new();
    nl_record_set_host(e->row, host, strlen(host));
    nl_record_add_text(e->row, "url", url);
    for (; e->count < count; e->count++)
        e->kinds[e->count] = use_kind(d, &sensors[e->count]);
    entry **bucket = &d->buckets[bucket_of(url)];
    e->next = *bucket;
    *bucket = e;
    d->count++;
    return true;
}

/* ---- finding ---- */

/* Returns whether the value at the start of a text is a pattern. */
static bool is_pattern(const char *value)
{
    value += strspn(value, " ");
    size_t size = *value == '"' || *value == '\'' ? 1 + strcspn(value + 1, "\"'") : strcspn(value, " &|)");
    for (size_t i = 0; i < size; i++)
        if (strchr("*?[", value[i]) != NULL)
            return true;
    return false;
}

nl_filter *directory_filter(const char *expression)
{
    nl_buffer text = {0};
    char quote = '\0';
    for (const char *at = expression; *at != '\0'; at++) {
        bool doubled = at[1] == at[0] || (at > expression && at[-1] == at[0]);
        bool compares = at > expression && strchr("=!<>", at[-1]) != NULL;
        if (quote == '\0' && (*at == '&' || *at == '|') && !doubled)
            nl_buffer_append(&text, *at == '&' ? "&&" : "||", 2);
        else if (quote == '\0' && *at == '=' && at[1] != '=' && at[1] != '~' && !compares && is_pattern(at + 1))
            nl_buffer_append(&text, "~", 1);
        else
            nl_buffer_append(&text, at, 1);
        if (*at == '"' || *at == '\'')
            quote = quote == '\0' ? *at : quote == *at ? '\0' : quote;
    }
    nl_buffer_append(&text, "", 1);
    nl_filter *filter = nl_filter_parse(text.data);
    nl_buffer_free(&text);
    return filter;
}

/* Returns whether a test examines the agent (its host or URL) and not the sensor. */
static bool is_of_agent(const nl_filter_test *test)
{
    return test->member == NL_MEMBER_HOST || nl_string_is(test->name, "url");
}

/* Returns the result of one test. Evaluates each of the first REMEMBERED tests only once. */
static bool answer(const nl_filter *filter, size_t number, const nl_record *row, answers *known)
{
    if (number < REMEMBERED && known->of[number] != 0)
        return known->of[number] == 2;
    nl_filter_test test = filter->tests[number];
    nl_filter alone = *filter;
    test.next[0] = NL_FILTER_NO;
    test.next[1] = NL_FILTER_YES;
    alone.tests = &test;
    alone.test_count = 1;
    bool result = nl_filter_matches(&alone, row);
    if (number < REMEMBERED)
        known->of[number] = result ? 2 : 1;
    return result;
}

/*
 * Returns whether a sensor of an agent matches. A test examines either the agent or the sensor. Therefore, one
 * evaluation per agent, or per kind of sensor, is sufficient.
 */
static bool is_match(const nl_filter *filter, const entry *e, answers *of_agent, kind *k)
{
    size_t number = 0;
    while (number < filter->test_count) {
        bool agents = is_of_agent(&filter->tests[number]);
        bool result = answer(filter, number, agents ? e->row : k->row, agents ? of_agent : &k->answers);
        number = filter->tests[number].next[result];
    }
    return number == NL_FILTER_YES;
}

void directory_find(directory *d, const nl_filter *filter,
                    void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                     size_t count),
                    void *user)
{
    directory_sensor matching[DIRECTORY_SENSORS_MAX];
    d->search++;
    for (size_t b = 0; b < BUCKETS; b++)
        for (const entry *e = d->buckets[b]; e != NULL; e = e->next) {
            size_t count = 0;
            answers of_agent = {{0}};
            for (size_t i = 0; i < e->count; i++) {
                kind *k = e->kinds[i];
                if (k->search != d->search)
                    k->answers = (answers){{0}};
                k->search = d->search;
                if (filter == NULL || is_match(filter, e, &of_agent, k))
                    matching[count++] = k->sensor;
            }
            if (count > 0)
                function(user, e->host, e->url, matching, count);
        }
}
