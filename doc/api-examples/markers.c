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
    if (probe->kind == NL_PROBE_TIME)
        fprintf(user, "a block takes %lld ns on average\n", (long long)probe->mean_ns);
}

int main(void)
{
    nl_log *log = nl_open("example", "memory:markers");
    const nl_probe_options options[] = {
        {.kind = NL_PROBE_LOG, .pattern = "block_*", .log = log, .level = NL_USAGE},
        {.kind = NL_PROBE_COUNT, .pattern = "block_begin"},
        {.kind = NL_PROBE_TIME, .pattern = "block_begin", .to = "block_end"},
        {.kind = NL_PROBE_CALL, .pattern = "block_end", .function = markers_on_block, .user = stdout},
    };
    nl_probe probes[4];
    for (size_t i = 0; i < 4; i++)
        if ((probes[i] = nl_marker_attach(&options[i])) == 0)
            return 1;
    for (int id = 0; id < 3; id++)
        read_block(id);
    nl_marker_list(print_place, stdout);
    nl_probe_list(print_probe, stdout);

    for (size_t i = 0; i < 4; i++)
        if (nl_marker_detach(probes[i]) != NL_OK) /* NL_OK: no thread executes the probe any more */
            return 1;
    return nl_close(log) == NL_OK ? 0 : 1;
}
