/*
 * What is asked over the control socket, by netlogctl or by hand: how netlogd is, who is connected, what is lost; and
 * what it is told to do. Each function answers a request (request.h); doc/requests.md has what the records say.
 */
#ifndef NETLOGD_CONTROL_H
#define NETLOGD_CONTROL_H

#include "request.h"

void control_status(request *r, const nl_record *asked);
void control_clients(request *r, const nl_record *asked);
void control_streams(request *r, const nl_record *asked);
void control_subscribers(request *r, const nl_record *asked);
void control_clocks(request *r, const nl_record *asked);
void control_drops(request *r, const nl_record *asked);
void control_settings(request *r, const nl_record *asked);
void control_reload(request *r, const nl_record *asked);
void control_tell(request *r, const nl_record *asked);

#endif
