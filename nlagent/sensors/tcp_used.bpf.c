/* Like tcp_state.bpf.c; also marks the connections in use. */
#define MARKS
#include "tcp_state.bpf.c"
