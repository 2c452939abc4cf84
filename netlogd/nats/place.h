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
 *   user, password             as before the host; password_file=FILE: its first line is the password
 *   creds=FILE                 credentials of NATS (a JWT and its key)
 *   tls=yes                    within TLS; ca=FILE, cert=FILE, key=FILE and name=HOST as of x-netlogs://, and imply it
 *   subject=PREFIX             subjects are PREFIX.HOST.PROG.SHARD; netlogger unless said
 *
 * When the streams are not there, they are made, by whoever comes first:
 *
 *   shards=N                   1 to 256, 4 unless said. When they are there already, as many as there are
 *   replicas=N                 how many servers keep each, 1 to 5; 1 unless said
 *   max_age=TIME               what is older is removed (0: never), a week unless said
 *   max_bytes=SIZE             the most that a shard may take (0: no limit but the server's)
 *   discard=new|old            what goes when there is no more room: new: publishers wait; old: the oldest, read or not
 *   window=TIME                for how long the servers remember the ids of messages, 2m unless said
 *
 * Of an output: by=program (a message a block, and a subject for each program) or by=shard (many blocks in a message,
 * under PREFIX._._.SHARD: fewer messages). Of a listener: durable=NAME, the name of the consumers (netlogd unless
 * said); share=K/N, of N netlogds that share a durable this is the one that reads every Nth shard from the Kth on.
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

/* The names of the options that an output may have; NULL behind the last. */
extern const char *const nats_output_options[];

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
