/*
 * Which streams of NATS JetStream a URL means:
 *
 *   nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/STREAM?name=value&name=value
 *
 * Port 4222 unless said; the servers are those of one cluster, and any that answers will do. STREAM is several streams:
 * its shards STREAM-1 to STREAM-N, each with a leader of its own in the cluster. What belongs together (a stream of
 * numbered records, doc/binary-format.md) is always in one shard, and a shard is read by one netlogd at a time, whose
 * journal therefore knows what it has had. One shard is STREAM itself.
 *
 * The options are rows: nats_rows, and nats_output_rows of an output or nats_listener_rows of a listener.
 */
#ifndef NETLOGD_NATS_PLACE_H
#define NETLOGD_NATS_PLACE_H

#include <netlogger.h>

#include "transport/url.h"

enum { NATS_SHARDS_MAX = 256 };

typedef struct nats_place {
    char *name; /* for messages: without user, password and options */
    char **servers;
    size_t server_count;
    char *stream, *subject;
    char *user, *password, *creds; /* NULL: none */
    char *ca, *cert, *key, *tls_name;
    bool tls;
    unsigned shards; /* 0: nothing was said */
    unsigned replicas;
    int64_t max_age_ns; /* 0: for ever */
    uint64_t max_bytes; /* 0: no limit */
    bool discard_old;
    int64_t window_ns;
    bool by_shard;
    char *durable;
    unsigned share, of_shares; /* from 1 */
} nats_place;

/* The options, about a nats_place. */
extern const nl_option nats_rows[], nats_output_rows[], nats_listener_rows[];

/*
 * Reads a URL of that scheme. output: of an output, whose options that are not in nats_output_options are somebody
 * else's; otherwise of a listener, and others are an error. NULL with the reason in nl_error_message(); to be freed
 * with nats_place_free (NULL is allowed).
 */
nats_place *nats_place_read(const nl_url *url, bool output);
void nats_place_free(nats_place *place);

/* Whether that shard, counted from 0, is in the place's share. */
bool nats_place_has_share(const nats_place *place, unsigned shard);

/* The name of a shard's stream into name. */
enum { NATS_NAME_SIZE = 160 };
void nats_stream_name(const nats_place *place, unsigned shard, unsigned shards, char name[NATS_NAME_SIZE]);

/*
 * Appends ".TEXT" to a subject, as one part of it: bytes that NATS forbids in one, dots, and what is no printable ASCII
 * become %HH; no text becomes "_", and a long one is cut.
 */
void nats_subject_add(nl_buffer *subject, nl_string text);

#endif
