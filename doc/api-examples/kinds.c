/* Events whose names are known only at run time, as in an interpreter or a proxy. */
#include <netlogger.h>
#include <stdio.h>

/* Creates the event kind once, and then writes many events of this kind. */
static nl_status transfer(nl_log *log, int64_t bytes)
{
    const nl_string names[] = {{"SEND.SZ", 7}, {"FILE", 4}};
    nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"WriteData", 9}, names, 2);
    nl_field values[2] = {{.type = NL_TYPE_INT}, {.type = NL_TYPE_STRING}};
    values[0].int_value = bytes;
    values[1].string = (nl_string){"a.dat", 5};
    /* If the event might have to wait for space, first release the locks that other threads need. */
    if (!nl_event_has_space(log, 16 + 8 + 4 + 5))
        puts("an event may have to wait");
    nl_status status = nl_event_write(log, kind, values);
    nl_event_kind_free(kind);
    return status;
}

static void print_cost(void *user, const nl_event_cost *cost)
{
    fprintf(user, "%-12s %6.1f ns %4zu bytes\n", cost->event, cost->ns, cost->bytes);
}

int main(void)
{
    nl_log *log = nl_open("example", "memory:kinds");
    NL_EVENT(log, NL_USAGE, "Started", "PARTS", 2);
    nl_status status = transfer(log, 49332);
    if (nl_event_costs(print_cost, stdout) != NL_OK)
        return 1;
    return nl_close(log) == NL_OK && status == NL_OK ? 0 : 1;
}
