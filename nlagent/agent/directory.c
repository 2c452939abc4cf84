#include "config.h"

#include "agent/directory.h"

#include "base/time_internal.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

typedef struct entry {
    struct entry *next;
    char *host, *url;
    int64_t expires_ns;
    directory_sensor *sensors;
    nl_record **rows; /* of each sensor, for filters */
    size_t count;
} entry;

struct directory {
    entry *buckets[BUCKETS];
    size_t count;
};

static char *copy(const char *text)
{
    char *result = strdup(text);
    if (result == NULL)
        abort();
    return result;
}

static size_t bucket_of(const char *url)
{
    uint32_t hash = 2166136261u;
    for (; *url != '\0'; url++)
        hash = (hash ^ (unsigned char)*url) * 16777619u;
    return hash % BUCKETS;
}

static void free_entry(entry *e)
{
    for (size_t i = 0; i < e->count; i++) {
        free((char *)e->sensors[i].name);
        free((char *)e->sensors[i].what);
        free((char *)e->sensors[i].events);
        nl_record_free(e->rows[i]);
    }
    free(e->sensors);
    free(e->rows);
    free(e->host);
    free(e->url);
    free(e);
}

directory *directory_new(void)
{
    directory *d = calloc(1, sizeof *d);
    if (d == NULL)
        abort();
    return d;
}

void directory_free(directory *d)
{
    for (size_t b = 0; d != NULL && b < BUCKETS; b++)
        for (entry *e = d->buckets[b], *next; e != NULL; e = next) {
            next = e->next;
            free_entry(e);
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
    free_entry(gone);
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
            free_entry(e);
            d->count--;
        }
}

static nl_record *make_row(const entry *e, const directory_sensor *s)
{
    nl_record *row = nl_record_new();
    nl_record_set_host(row, e->host, strlen(e->host));
    nl_record_add_string(row, "sensor", s->name, strlen(s->name));
    nl_record_add_string(row, "url", e->url, strlen(e->url));
    nl_record_add_string(row, "events", s->events, strlen(s->events));
    nl_record_add_string(row, "what", s->what, strlen(s->what));
    return row;
}

bool directory_register(directory *d, const char *host, const char *url, double ttl_s, const directory_sensor *sensors,
                        size_t count)
{
    directory_withdraw(d, url);
    if (d->count >= DIRECTORY_AGENTS_MOST || count > DIRECTORY_SENSORS_MOST)
        return false;
    entry *e = calloc(1, sizeof *e);
    if (e == NULL || (e->sensors = calloc(count + 1, sizeof *e->sensors)) == NULL ||
        (e->rows = calloc(count + 1, sizeof *e->rows)) == NULL)
        abort();
    e->host = copy(host);
    e->url = copy(url);
    e->expires_ns = nl_monotonic_ns() + (int64_t)(ttl_s * 1e9);
    for (e->count = 0; e->count < count; e->count++) {
        const directory_sensor *s = &sensors[e->count];
        e->sensors[e->count] = (directory_sensor){copy(s->name), copy(s->what), copy(s->events)};
        e->rows[e->count] = make_row(e, &e->sensors[e->count]);
    }
    entry **bucket = &d->buckets[bucket_of(url)];
    e->next = *bucket;
    *bucket = e;
    d->count++;
    return true;
}

/* ---- finding ---- */

/* Whether the value that begins there, up to a blank or what ends a test, is a pattern. */
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

void directory_find(directory *d, const nl_filter *filter,
                    void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                     size_t count),
                    void *user)
{
    directory_sensor meant[DIRECTORY_SENSORS_MOST];
    for (size_t b = 0; b < BUCKETS; b++)
        for (const entry *e = d->buckets[b]; e != NULL; e = e->next) {
            size_t count = 0;
            for (size_t i = 0; i < e->count; i++)
                if (nl_filter_matches(filter, e->rows[i]))
                    meant[count++] = e->sensors[i];
            if (count > 0)
                function(user, e->host, e->url, meant, count);
        }
}
