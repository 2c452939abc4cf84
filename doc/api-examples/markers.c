/* Markers: dormant until a probe is attached. */
#include <netlogger.h>
#include <stdio.h>

/* The marker: a branch that is not taken until a probe is attached. */
static void read_block(int id)
{
    NL_MARKER(block_begin, "BLOCK.ID", id);
    NL_MARKER(block_end, "BLOCK.ID", id, "SIZE", 65536);
}

static void markers_on_block(void *user, const char *marker, const nl_field *fields, size_t field_count)
{
    int64_t id;
    if (field_count > 0 && nl_field_int(&fields[0], &id))
        fprintf(user, "%s of block %lld\n", marker, (long long)id);
}

static void print_place(void *user, const nl_marker_info *marker)
{
    fprintf(user, "%s at %s: %s; %zu probes\n", marker->name, marker->place, marker->fields, marker->probes);
}

static void print_probe(void *user, const nl_probe_info *probe)
{
    fprintf(user, "probe %u at %s: %llu\n", probe->probe, probe->pattern, (unsigned long long)probe->count);
}

int main(void)
{
    nl_log *log = nl_open("example", "memory:markers");
    nl_probe logged = nl_marker_attach_log("block_*", log, NL_USAGE);
    nl_probe counted = nl_marker_attach_count("block_begin");
    nl_probe timed = nl_marker_attach_time("block_begin", "block_end");
    nl_probe called = nl_marker_attach_call("block_end", markers_on_block, stdout);
    for (int id = 0; id < 3; id++)
        read_block(id);
    nl_marker_list(print_place, stdout);
    nl_probe_list(print_probe, stdout);

    nl_probe_info info;
    if (!nl_probe_read(timed, &info) || info.count != 3)
        return 1;
    printf("a block takes %lld ns on average\n", (long long)info.mean_ns);
    const nl_probe probes[] = {logged, counted, timed, called};
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++)
        if (nl_marker_detach(probes[i]) != NL_OK) /* NL_OK: no thread executes the probe any more */
            return 1;
    return nl_close(log) == NL_OK ? 0 : 1;
}
