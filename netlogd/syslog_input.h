/*
 * Reads the syslog messages of a connection or of datagrams, and keeps the beginning of an incomplete message.
 *
 *   bytes -> syslog_find_frame -> syslog_read (convert/syslog.h) -> put
 *
 * Each connection (connection.c) and each UDP socket (datagrams.c) with a syslog URL has a syslog_input. Only the
 * server's thread may call this module.
 */
#ifndef NETLOGD_SYSLOG_INPUT_H
#define NETLOGD_SYSLOG_INPUT_H

#include <netlogger.h>

struct sockaddr;

enum { SYSLOG_WORK_PER_BYTE = 5 }; /* units of work (reader/decoder_work.h) */

typedef struct syslog_input syslog_input;

typedef struct syslog_input_options {
    void (*put)(void *user, const nl_record *record);
    void (*reject)(void *user, const nl_malformed *what); /* called after the input has counted the malformed part */
    void *user;
} syslog_input_options;

syslog_input *syslog_input_new(const syslog_input_options *options);
void syslog_input_free(syslog_input *in); /* accepts NULL */

/* Sets the sender, which determines the HOST of messages without a host name (peer_host.h). */
void syslog_input_set_sender(syslog_input *in, const struct sockaddr *peer);

/* Reads bytes of a stream of messages. */
void syslog_input_feed(syslog_input *in, const char *data, size_t size);

/*
 * Ends the stream. A last message without a newline is complete if it is the only message of the stream, and its size
 * was not announced. Otherwise, rejects it, because the sender may have been killed while it sent the message.
 */
void syslog_input_finish(syslog_input *in);

/* Reads a datagram, which is one message. */
void syslog_input_read_datagram(syslog_input *in, const char *data, size_t size);

/* Returns whether a message is incomplete. */
bool syslog_input_is_midway(const syslog_input *in);

/* Returns the number of bytes of memory for the incomplete message. */
size_t syslog_input_held(const syslog_input *in);

/* Returns the counts so far; the input owns them. */
const nl_reader_stats *syslog_input_get_stats(const syslog_input *in);

#endif
