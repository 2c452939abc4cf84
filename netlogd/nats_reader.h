/*
 * A place of NATS JetStream that netlogd reads, in the server's event loop: each message goes through a decoder into
 * the outputs, as what a client sends does, and is acknowledged when clients would be.
 *
 * Whatever is in a message costs only itself: what cannot be read is counted, reported and acknowledged, so that it
 * does not come again.
 */
#ifndef NETLOGD_NATS_READER_H
#define NETLOGD_NATS_READER_H

#include "server.h"
#include "transport/url.h"

/*
 * Whether the URL can be read, as far as can be seen in it: NULL, and *name is the place with durable and share,
 * without secrets, to be freed. Otherwise the reason.
 */
const char *nats_reader_check(const nl_url *url, char **name);

/* Begins to read what url, for which that is so, says, under that name; joins the list of the server. */
void nats_reader_new(server *srv, const char *url, const char *name);

/* Starts or stops taking messages, while the outputs are blocked. */
void nats_reader_pause(nats_reader *r, bool pause);

/* All that was taken is settled. */
void nats_reader_acknowledge(nats_reader *r);

typedef struct nats_counts {
    uint64_t places;   /* that are read */
    uint64_t away;     /* of these, nothing comes from now */
    uint64_t records;  /* taken */
    uint64_t messages; /* taken */
    uint64_t again;    /* of these, given to somebody before */
    uint64_t waiting;  /* here, and not acknowledged */
} nats_counts;

/* All of the server's together. */
nats_counts nats_readers_count(const server *srv);

/* Adds what is known of it to a record. */
void nats_reader_describe(const nats_reader *r, nl_record *record);

/* Says at the servers what was acknowledged, and frees it. */
void nats_reader_free(nats_reader *r);

/* The list that the server keeps. */
nats_reader *nats_reader_next(const nats_reader *r);

#endif
