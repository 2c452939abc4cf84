/*
 * The NATS JetStream streams that a URL names:
 *
 *   nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/STREAM?name=value&name=value
 *
 * The default port is 4222. The hosts are servers of one cluster; netlogd connects to any of them. STREAM consists of
 * shards: the JetStream streams STREAM-1 to STREAM-N, each of which has its own leader in the cluster. If there is only
 * one shard, its name is STREAM. The records of a numbered stream (doc/binary-format.md) are always in the same shard.
 * Only one netlogd at a time reads a shard, so its journal contains the numbers of all records received from the shard.
 *
 * The options are in nats_rows; outputs also have nats_output_rows, and listeners also have nats_listener_rows. This
 * module has no state.
 */
#ifndef NETLOGD_NATS_PLACE_H
#define NETLOGD_NATS_PLACE_H

#include <netlogger.h>

#include "transport/url.h"

enum { NATS_SHARDS_MAX = 256 };

typedef struct nats_place {
    char *name; /* the URL without user, password and options */
    char **servers;
    size_t server_count;
    char *stream, *subject;
    char *user, *password, *creds; /* NULL: not given */
    char *ca, *cert, *key, *tls_name;
    bool tls;
    unsigned shards; /* 0: not given */
    unsigned replicas;
    int64_t max_age_ns; /* 0: no limit */
    uint64_t max_bytes; /* 0: no limit */
    bool discard_old;
    int64_t window_ns;
    bool by_shard;
    char *durable;
    unsigned share;     /* number of the share, from 1 */
    unsigned of_shares; /* number of shares */
} nats_place;

/* The option rows for a nats_place. */
extern const nl_option nats_rows[], nats_output_rows[], nats_listener_rows[];

/*
 * Parses a nats URL. If `output` is true, the URL names an output and may have an output's options; otherwise, it names
 * a listener and may have a listener's options. On failure, sets the error and returns NULL. Free the result with
 * nats_place_free, which accepts NULL.
 */
nats_place *nats_place_read(const nl_url *url, bool output);
void nats_place_free(nats_place *place);

/* Returns whether a shard, counted from 0, belongs to the place's share. */
bool nats_place_has_share(const nats_place *place, unsigned shard);

/* Writes the name of a shard's stream to name. */
enum { NATS_NAME_SIZE = 160 };
void nats_stream_name(const nats_place *place, unsigned shard, unsigned shards, char name[NATS_NAME_SIZE]);

/*
 * Appends "." and `text` to a subject, as one part of the subject. Dots, bytes that NATS forbids, and bytes that are
 * not printable ASCII become %HH. An empty text becomes "_". A text of more than 100 bytes is truncated.
 */
void nats_subject_add(nl_buffer *subject, nl_string text);

#endif
