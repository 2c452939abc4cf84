/* In place of all else here, where libnats is not. */
#include "config.h"

#include "nats_reader.h"

#include "base/error.h"
#include "output/kind.h"

#include "program/program.h"

static const char absent[] = "this netlogd was built without libnats";

static nl_status check(const nl_url *url, const output_options *options)
{
    (void)url, (void)options;
    return nl_error_set(NL_ERROR_UNSUPPORTED, "%s", absent);
}

static nl_status deliver(void *peer, const char *data, size_t size, output_place place, size_t *taken)
{
    (void)peer, (void)data, (void)size, (void)place, (void)taken;
    return nl_error_set(NL_ERROR_UNSUPPORTED, "%s", absent);
}

const output_kind output_kind_nats = {.name = "nats", .format = NL_FORMAT_NLB, .check = check, .deliver = deliver};

const char *nats_reader_check(const nl_url *url, char **name)
{
    (void)url, (void)name;
    return absent;
}

/* The others are never called. */
void nats_reader_new(server *srv, const char *url, const char *name)
{
    (void)srv, (void)url;
    program_fail(PROGRAM_PROBLEM, "%s: %s", name, absent);
}

void nats_reader_pause(nats_reader *r, bool pause)
{
    (void)r, (void)pause;
}

void nats_reader_acknowledge(nats_reader *r)
{
    (void)r;
}

void nats_reader_describe(const nats_reader *r, nl_record *record)
{
    (void)r, (void)record;
}

nats_counts nats_readers_count(const server *srv)
{
    (void)srv;
    return (nats_counts){0};
}

void nats_reader_free(nats_reader *r)
{
    (void)r;
}

nats_reader *nats_reader_next(const nats_reader *r)
{
    (void)r;
    return NULL;
}
