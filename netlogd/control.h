/*
 * The verbs of the control socket, which netlogctl and other programs use. They report the state of netlogd, its
 * clients and lost records, and they execute commands. Each function answers a request (request.h); doc/requests.md
 * describes the records. On failure, a function sets the error, which becomes the reply, and returns NL_FAILED. This
 * module has no state.
 */
#ifndef NETLOGD_CONTROL_H
#define NETLOGD_CONTROL_H

#include "request.h"

nl_status control_status(request *r, const nl_record *asked);
nl_status control_clients(request *r, const nl_record *asked);
nl_status control_streams(request *r, const nl_record *asked);
nl_status control_subscribers(request *r, const nl_record *asked);
nl_status control_clocks(request *r, const nl_record *asked);
nl_status control_drops(request *r, const nl_record *asked);
nl_status control_settings(request *r, const nl_record *asked);
nl_status control_reload(request *r, const nl_record *asked);
nl_status control_tell(request *r, const nl_record *asked);

#endif
