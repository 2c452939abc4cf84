/*
 * Reads the TCP connections of this network namespace with BPF iterators (tcp_state.bpf.c). The kernel passes only
 * connections that have changed since they were last passed, and passes each connection at least every 10 s. Needs
 * CAP_BPF, CAP_PERFMON and a kernel with type information (BTF).
 *
 * Since Linux 6.3, hooks in the kernel mark the connections in use. A reading then examines only these, and every 2 s
 * all connections. The hooks cost about 100 ns per segment that arrives and per call that sends, in all network
 * namespaces. Caller: connections.c. Not thread-safe.
 */
#ifndef NLAGENT_SOCKET_STATES_H
#define NLAGENT_SOCKET_STATES_H

#include "sensors/tcp_state.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct socket_states socket_states;

/*
 * Returns a reader, or NULL if the kernel or the process's rights do not permit the iterator. `port` selects
 * connections with this local or remote port; 0: any port. If `all` is true, the kernel also passes connections that
 * have not changed.
 */
socket_states *socket_states_new(uint16_t port, bool all);
void socket_states_free(socket_states *s); /* s may be NULL */

/* Receives the state of a connection, which is valid during the call. */
typedef void socket_states_take(void *user, const struct tcp_state *state);

/*
 * Reads the connections, and passes each to `take`. Sets *count to the number of connections with the port, and
 * *examined to the number of connections that this reading examined. Returns false on failure.
 */
bool socket_states_read(socket_states *s, socket_states_take *take, void *user, uint64_t *count, uint64_t *examined);

#endif
