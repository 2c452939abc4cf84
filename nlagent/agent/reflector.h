/*
 * Replies to the probes of path sensors (sensors/stamp.h), and accepts and discards the data of their transfers. A
 * reflector listens on all addresses, but serves only the networks of --reflect. reflector_limits.h limits the rates. A
 * reply is never larger than the probe, and the reflector sends no data to a client that transfers data.
 *
 * A reflector runs in libevent's loop. Only the thread of this loop may use a reflector.
 */
#ifndef NLAGENT_REFLECTOR_H
#define NLAGENT_REFLECTOR_H

#include "service/network.h"

#include <event2/event.h>
#include <stdint.h>

typedef struct reflector reflector;

/* Opens the sockets. Returns NULL and sets the error on failure. */
reflector *reflector_open(uint16_t port);

/* Begins to serve the networks of the list, which must remain valid until the next call or until reflector_free. */
void reflector_serve(reflector *r, struct event_base *base, const network_list *networks);
void reflector_change(reflector *r, const network_list *networks);

void reflector_free(reflector *r); /* r may be NULL */

#endif
