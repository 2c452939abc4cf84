/* The operations of the agent, as nlagent.wsdl describes them. */
#ifndef NLAGENT_SERVICE_H
#define NLAGENT_SERVICE_H

#include "agent/agent.h"
#include "agent/http_server.h"

/* Executes the operation that a SOAP message requests. Sends the reply through the exchange, during this call or later.
 * `consumer` is the client's name. `rights` is a set of RIGHT_ constants. */
void service_do(agent *a, exchange *x, const char *message, size_t size, const char *consumer, unsigned rights);

#endif
