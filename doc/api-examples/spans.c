/* The spans of a request, and the context that connects the spans of several threads and processes. */
#include <netlogger.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Work for another thread, with the context of the request to which it belongs. */
struct work {
    nl_log *log;
    nl_context context;
};

static void *do_work(void *user)
{
    struct work *work = user;
    nl_context before = nl_context_attach(&work->context);
    NL_SPAN (work->log, NL_USAGE, "Work") {
        NL_EVENT(work->log, NL_USAGE, "Step", "N", 1); /* has the span ID of Work */
    }
    nl_context_attach(&before);
    return NULL;
}

/* A request arrives with the headers traceparent and tracestate. */
static int serve(nl_log *log, const char *traceparent, const char *tracestate)
{
    nl_context caller;
    char state[NL_TRACESTATE_SIZE] = "";
    if (nl_traceparent_parse(traceparent, strlen(traceparent), &caller) == NL_OK)
        nl_tracestate_append(state, tracestate, strlen(tracestate));

    /* Two overlapping spans: the request, and a query whose result arrives later. */
    nl_span request = nl_span_begin(log, NL_USAGE, "Request", &caller, "PATH", "/search");
    nl_span query = nl_span_begin(log, NL_USAGE, "Query", &request.context);

    struct work work = {log, request.context};
    pthread_t thread;
    pthread_create(&thread, NULL, do_work, &work);
    pthread_join(thread, NULL);

    /* The headers of the request to the next server. */
    char header[NL_TRACEPARENT_SIZE];
    if (nl_traceparent_format(&query.context, header) > 0)
        printf("traceparent: %s\ntracestate: %s\n", header, state);

    nl_span_end(&query, "ROWS", 12);
    request.status = 200;
    nl_span_end(&request);
    return 0;
}

/* The span of a program that another program started. Its name is known only at run time. */
static nl_status run(nl_log *log, const char *name)
{
    nl_context parent;
    nl_span span;
    nl_traceparent_parse(NULL, 0, &parent); /* read the environment variable TRACEPARENT */
    const nl_field fields[] = {{.name = {"USER", 4}, .type = NL_TYPE_STRING, .string = {"jane", 4}}};
    nl_status status = nl_span_begin_fields(&span, log, NL_USAGE, name, &parent, fields, 1);
    nl_context before = nl_context_attach(&span.context);
    nl_context current = nl_context_current();
    char text[NL_TRACEPARENT_SIZE];
    if (nl_traceparent_format(&current, text) > 0)
        setenv("TRACEPARENT", text, 1); /* for the programs that this program starts */
    nl_context_attach(&before);
    nl_span_end_fields(&span, NULL, 0);
    return status;
}

int main(void)
{
    nl_log *log = nl_open("example", "memory:spans");
    NL_SPAN (log, NL_USAGE, "Main") {
        if (serve(log, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=x") != 0)
            nl_span_set_status(-1);
    }
    nl_status status = run(log, "Job");
    return nl_close(log) == NL_OK && status == NL_OK ? 0 : 1;
}
