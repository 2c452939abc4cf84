/*
 * Loads records from a collector.
 *
 * The records of a subscription have no sequence numbers. A later load therefore requests the records from the time
 * OVERLAP_NS before the latest record in the database, and skips the records that the database already has. To
 * recognize these records, the module counts how often each hash of a packed record occurs in the database.
 */
#include "config.h"

#include "archive/load.h"
#include "archive/seen.h"
#include "base/monotonic.h"
#include "base/time_internal.h"

#include <stdlib.h>
#include <string.h>

#define OVERLAP_NS (600 * NL_NS_PER_SECOND)
#define COMMIT_NS NL_NS_PER_SECOND

typedef struct live {
    loader *loader;
    store_place *place;
    seen known; /* the database's records at or after since_ns */
    row_maker maker;
    int64_t since_ns;
    int64_t committed_ns; /* time of the latest commit on the monotonic clock */
} live;

/* Returns a hash of the packed record, or 0 if the record is too large. */
static uint64_t hash_of(live *v, const nl_record *record)
{
    row r;
    return row_make(&v->maker, record, &r) ? seen_hash(r.packed.data, r.packed.size) : 0;
}

static bool live_add_known(void *user, const nl_string *columns)
{
    live *v = user;
    seen_add(&v->known, seen_hash(columns[0].data, columns[0].size));
    return true;
}

/* Sets since_ns, and adds the database's records at or after since_ns to `known`. Returns false and sets the error on
 * failure. */
static bool live_find_since(live *v)
{
    store *s = v->loader->store;
    if (v->place->id == 0 || v->place->latest_ns == 0)
        return true;
    v->since_ns = v->place->latest_ns - OVERLAP_NS;
    nl_buffer sql = {0};
    store_add(&sql, "SELECT packed FROM entry WHERE source = %lld AND time_ns >= %lld", (long long)v->place->id,
              (long long)v->since_ns);
    nl_buffer_append(&sql, "", 1);
    nl_status status = s->kind->select(s, sql.data, live_add_known, v);
    nl_buffer_free(&sql);
    return status == NL_OK;
}

/* Appends `url` without its since= option. */
static void add_without_since(nl_buffer *out, const char *url)
{
    const char *mark = strchr(url, '?'), *since = mark;
    while (since != NULL && strncmp(since + 1, "since=", 6) != 0)
        since = strchr(since + 1, '&');
    if (since == NULL) {
        store_add(out, "%s", url);
        return;
    }
    const char *end = since + 1 + strcspn(since + 1, "&");
    store_add(out, "%.*s%s", (int)(since + 1 - url), url, end + (*end == '&'));
}

/* Returns the URL with format=ulm. If since_ns is not 0, the URL also has since=. The caller frees the URL. */
static char *make_url(const live *v, const char *url)
{
    nl_buffer out = {0};
    if (v->since_ns != 0)
        add_without_since(&out, url);
    else
        store_add(&out, "%s", url);
    store_add(&out, "%sformat=ulm", strchr(url, '?') == NULL ? "?" : "&");
    if (v->since_ns != 0) {
        char time[NL_TIME_TEXT_SIZE];
        nl_time_format_iso(v->since_ns, time);
        store_add(&out, "&since=%s", time);
    }
    nl_buffer_append(&out, "", 1);
    return out.data;
}

static bool live_take_records(live *v, nl_decoder *decoder)
{
    const nl_record *record;
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        if (v->known.used > 0 && record->time_ns >= v->since_ns && seen_take(&v->known, hash_of(v, record)))
            continue;
        if (!loader_put(v->loader, v->place, record))
            return false;
    }
    return true;
}

/* Commits if the transaction is full or the latest commit is COMMIT_NS ago. If `idle` is true, because no records
 * arrive, a tenth of COMMIT_NS is sufficient. On failure, reports the error and returns false. */
static bool commit_now_and_then(live *v, bool idle)
{
    int64_t now_ns = nl_monotonic_ns();
    if (v->loader->in_batch == 0 ||
        (!loader_is_full(v->loader) && now_ns - v->committed_ns < (idle ? COMMIT_NS / 10 : COMMIT_NS)))
        return true;
    v->committed_ns = now_ns;
    return loader_commit(v->loader, v->place);
}

static bool live_read_all(live *v, nl_source *source, const char *name)
{
    nl_decoder *decoder = loader_decoder(v->loader, name);
    nl_status status = NL_OK;
    bool good = true;
    while (good && !program_was_stopped() && (status == NL_OK || status == NL_AGAIN)) {
        const char *data;
        size_t size;
        status = nl_source_read(source, &data, &size);
        if (status == NL_OK) {
            loader_is_well(v->loader, name);
            nl_decoder_feed(decoder, data, size);
            good = live_take_records(v, decoder);
        } else if (status == NL_AGAIN) {
            program_pause();
        }
        good = good && commit_now_and_then(v, status == NL_AGAIN);
    }
    if (good && status == NL_FAILED)
        loader_trouble(v->loader, name);
    nl_decoder_finish(decoder);
    good = good && live_take_records(v, decoder);
    if (good && v->loader->in_batch > 0)
        good = loader_commit(v->loader, v->place);
    nl_decoder_free(decoder);
    return good && status != NL_FAILED;
}

static store_place *live_place_of(loader *l, const char *url)
{
    for (size_t i = 0; i < l->place_count; i++)
        if (strcmp(l->places[i].name, url) == 0)
            return &l->places[i];
    return loader_add_place(l, url);
}

bool load_collector(loader *l, const char *url)
{
    live v = {.loader = l, .place = live_place_of(l, url)};
    bool good = live_find_since(&v) || loader_fail(l);
    char *text = make_url(&v, url);
    nl_url *parsed = good ? nl_url_parse_for(text, NL_URL_READ) : NULL;
    nl_source *source = parsed != NULL ? nl_source_open(parsed, false, true) : NULL;
    if (good && source == NULL)
        loader_trouble(l, url);
    if (source != NULL)
        program_await_signal(url);
    good = source != NULL && live_read_all(&v, source, url);
    nl_source_close(source);
    nl_url_free(parsed);
    seen_free(&v.known);
    row_maker_free(&v.maker);
    free(text);
    return good;
}
