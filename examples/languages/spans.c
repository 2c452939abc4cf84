/* The spans of README.md in C: cc -std=gnu11 spans.c $(pkg-config --cflags --libs netlogger) */
#include <netlogger.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    nl_log *log = argc > 1 ? nl_open("spans", argv[1]) : NULL;
    if (log == NULL)
        return fprintf(stderr, "spans: %s\n", argc > 1 ? nl_error_message() : "URL?"), 2;
    NL_SPAN (log, NL_USAGE, "Request", "ID", 7) {
        NL_SPAN (log, NL_USAGE, "Query", "SQL", "SELECT 1") {
            NL_EVENT(log, NL_USAGE, "Row", "N", 1);
            nl_span_set_status(3);
        }
        nl_span copy = nl_span_begin(log, NL_USAGE, "Copy", NULL);
        nl_span_end(&copy, "BYTES", 700);
        NL_EVENT(log, NL_USAGE, "Reply");
    }
    NL_EVENT(log, NL_USAGE, "Idle");
    return nl_close(log) == NL_OK ? 0 : 1;
}
