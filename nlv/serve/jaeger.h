/*
 * Jaeger's query API (its JSON over HTTP, as jaeger-ui and Grafana's data source "Jaeger" use it) for the logs of a
 * model. A program is a service, a span's name is an operation, and a request is a trace. If a request has no trace ID
 * that is valid in W3C Trace Context, its trace ID is computed from its name and its start.
 *
 * A search reads the newest records first, in parts, until it has found enough traces. It ends early after a few
 * seconds, or when its answer is large, and reports this in the answer's "errors". Only one search runs at a time.
 * Two further searches wait, and jaeger_answer rejects others. Any thread may call jaeger_answer.
 */
#ifndef NLV_SERVE_JAEGER_H
#define NLV_SERVE_JAEGER_H

#include "model/model.h"

#define JAEGER_PATH "/api/"

typedef struct jaeger jaeger;

/* The parameters of a request, in their order. */
typedef struct jaeger_parameter {
    const char *name, *value;
} jaeger_parameter;

/* Returns the API for a model, which must outlive it. */
jaeger *jaeger_new(model *m);
void jaeger_free(jaeger *j);

/*
 * Answers a request for a path that begins with JAEGER_PATH. Returns the HTTP status. Sets *body to a JSON text, which
 * the caller frees with g_free.
 */
unsigned jaeger_answer(jaeger *j, const char *path, const jaeger_parameter *parameters, size_t count, char **body);

#endif
