/* What can be asked of an agent: the operations of nlagent.wsdl. */
#ifndef NLAGENT_SERVICE_H
#define NLAGENT_SERVICE_H

#include "agent/agent.h"
#include "agent/http_server.h"

/* Does what a message asks, and answers the exchange, now or later. consumer is who asks, rights what it may. */
void service_do(agent *a, exchange *x, const char *message, size_t size, const char *consumer, unsigned rights);

#endif
