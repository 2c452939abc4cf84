/* The ten events of README.md in C: cc -std=gnu11 ten.c $(pkg-config --cflags --libs netlogger) */
#include <netlogger.h>
#include <math.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    nl_log *log = argc > 1 ? nl_open("ten", argv[1]) : NULL;
    if (log == NULL)
        return fprintf(stderr, "ten: %s\n", argc > 1 ? nl_error_message() : "URL?"), 2;
    static char huge[100001];
    for (size_t i = 0; i < 100000; i++)
        huge[i] = (char)('0' + i % 10);

    NL_EVENT(log, NL_USAGE, "Ten.Integers", "ZERO", 0, "NEGATIVE", -49332, "LEAST", INT64_MIN, "MOST", INT64_MAX);
    NL_EVENT(log, NL_USAGE, "Ten.Reals", "TENTH", 0.1, "LARGE", -1.5e300, "NAN", (double)NAN, "INFINITE",
             (double)INFINITY, "NEGATIVE", -(double)INFINITY);
    NL_EVENT(log, NL_DEBUG, "Ten.Truth", "YES", (bool)true, "NO", (bool)false);
    NL_EVENT(log, NL_WARNING, "Ten.Quotes", "TEXT", "say \"hello\", \\ and 'goodbye' A=1");
    NL_EVENT(log, NL_ERROR, "Ten.Lines", "TEXT", "one\ntwo\tthree\r\n");
    NL_EVENT(log, NL_IMPORTANT, "Ten.Utf8", "TEXT",
             "Gr\xc3\xbc\xc3\x9f"
             "e, \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x8c\x8d");
    NL_EVENT(log, NL_SYSTEM, "Ten.Empty", "TEXT", "");
    nl_write(log, NL_USAGE, "Ten.Huge", "TEXT=%s AFTER=%d", huge, 1); /* NL_EVENT would truncate this text */
    NL_EVENT(log, NL_ALERT, "Ten.Nothing");
    NL_EVENT(log, NL_USAGE, "Ten.Many", "F01", 1, "F02", 2, "F03", 3, "F04", 4, "F05", 5, "F06", 6, "F07", 7, "F08", 8,
             "F09", 9, "F10", 10, "F11", 11, "F12", 12, "F13", 13, "F14", 14, "F15", 15, "F16", 16);

    if (nl_close(log) == NL_OK)
        return 0;
    return fprintf(stderr, "ten: %s\n", nl_error_message()), 1;
}
