#include "config.h"

#include "connections/classic_transfers.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 256 };

typedef enum operation {
    OPERATION_NONE,
    OPERATION_READ,
    OPERATION_WRITE,
    OPERATION_SEND,
    OPERATION_RECEIVE,
    OPERATION_NETWORK
} operation;

typedef struct classic_transfer {
    connection_result result;
    char *key;
    int64_t last_ns;        /* time of the last event; 0: no event yet */
    unsigned disk, network; /* numbers of open spans */
    bool reads, writes, sends, receives;
    double disk_ns, network_ns, idle_ns;
} classic_transfer;

struct classic_transfers {
    GHashTable *streams; /* key -> classic_transfer */
    GPtrArray *all;      /* classic_transfer *, in order of their first records */
    GStringChunk *names;
};

static void classic_transfer_free(gpointer data)
{
    classic_transfer *x = data;
    g_clear_pointer(&x->result.slices, g_array_unref);
    g_free(x->key);
    g_free(x);
}

classic_transfers *classic_transfers_new(void)
{
    classic_transfers *t = g_new0(classic_transfers, 1);
    t->streams = g_hash_table_new(g_str_hash, g_str_equal);
    t->all = g_ptr_array_new_with_free_func(classic_transfer_free);
    t->names = g_string_chunk_new(4096);
    return t;
}

void classic_transfers_free(classic_transfers *t)
{
    if (t == NULL)
        return;
    g_hash_table_destroy(t->streams);
    g_ptr_array_unref(t->all);
    g_string_chunk_free(t->names);
    g_free(t);
}

/* ---- fields ---- */

/* Copies the text of the first named field that the record has. Returns false if the record has none of the fields. */
static bool classic_copy_text(const nl_record *record, const char *const *names, char text[NAME_SIZE])
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_field field;
    for (; *names != NULL; names++)
        if (nl_record_find(record, *names, &field)) {
            nl_string found = nl_field_text(&field, scratch);
            snprintf(text, NAME_SIZE, "%.*s", (int)MIN(found.size, NAME_SIZE - 1), found.data);
            return true;
        }
    text[0] = '\0';
    return false;
}

/* Returns the value of the first named field that is a non-negative number, or 0. */
static double classic_find_number(const nl_record *record, const char *const *names)
{
    nl_field field;
    double value;
    for (; *names != NULL; names++)
        if (nl_record_find(record, *names, &field) && nl_field_double(&field, &value) && value >= 0 && value < 1e18)
            return value;
    return 0;
}

static const char *classic_keep(classic_transfers *t, const char *text, size_t size)
{
    char copy[NAME_SIZE];
    snprintf(copy, sizeof copy, "%.*s", (int)MIN(size, sizeof copy - 1), text);
    return g_string_chunk_insert_const(t->names, copy);
}

static classic_transfer *classic_transfer_add(classic_transfers *t, const nl_record *record, connection_origin origin)
{
    if (t->all->len == CONNECTIONS_MAX)
        return NULL;
    classic_transfer *x = g_new0(classic_transfer, 1);
    const char *host = classic_keep(t, record->host.data, record->host.size);
    const char *program = classic_keep(t, record->prog.data, record->prog.size);
    x->result = (connection_result){.host = host,
                                    .local = host,
                                    .program = program,
                                    .peer = "(unknown)",
                                    .peer_host = "",
                                    .peer_program = "",
                                    .ends = ENDS_SENDER,
                                    .origin = origin,
                                    .slices = g_array_new(FALSE, TRUE, sizeof(connection_slice)),
                                    .distance = DISTANCE_UNKNOWN,
                                    .first = CAUSE_UNKNOWN};
    g_ptr_array_add(t->all, x);
    return x;
}

/*
 * Exchanges the two ends of a result. A result is from the sender's point of view, but here the receiver wrote the
 * records.
 */
static void classic_transfer_turn(connection_result *r)
{
    r->ends = ENDS_RECEIVER;
    const char *local = r->local;
    r->local = r->peer;
    r->peer = local;
    r->peer_host = r->host;
    r->peer_program = r->program;
    r->host = r->program = "";
}

/* ---- GridFTP ---- */

static void add_ftp_info(classic_transfers *t, const nl_record *record)
{
    static const char *const bytes[] = {"NBYTES", NULL}, *const buffer[] = {"BUFFER", NULL},
                             *const streams[] = {"STREAMS", NULL}, *const peer[] = {"DEST", NULL},
                             *const type[] = {"TYPE", NULL};
    static const char *const start[] = {"START", NULL};
    char text[NAME_SIZE];
    int64_t begin_ns;
    if (!classic_copy_text(record, start, text) ||
        nl_time_parse(text, strlen(text), NL_FRACTION_DECIMAL, &begin_ns) != NL_OK || begin_ns >= record->time_ns)
        return;
    classic_transfer *x = classic_transfer_add(t, record, ORIGIN_TRANSFER);
    if (x == NULL)
        return;
    connection_result *r = &x->result;
    if (classic_copy_text(record, peer, text)) { /* [ADDRESS] */
        size_t skip = text[0] == '[', size = strcspn(text + skip, "]");
        r->peer = classic_keep(t, text + skip, size);
    }
    r->bytes = classic_find_number(record, bytes);
    r->window = classic_find_number(record, buffer);
    r->streams = fmax(1, classic_find_number(record, streams));
    r->wall_ns = (double)((uint64_t)record->time_ns - (uint64_t)begin_ns);
    r->intervals = 1;
    r->cause_ns[CAUSE_UNKNOWN] = r->wall_ns;
    if (classic_copy_text(record, type, text) && (strcmp(text, "STOR") == 0 || strcmp(text, "ESTO") == 0))
        classic_transfer_turn(r);
}

/* ---- reads and writes ---- */

/* Replaces a word in the text with spaces. Returns whether the text contained the word. */
static bool remove_word(char *text, const char *word)
{
    size_t size = strlen(word);
    for (char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[size])) {
            memset(at, ' ', size);
            return true;
        }
    return false;
}

/* Returns the operation that an event begins or ends, and sets *ends. */
static operation classic_operation(const nl_record *record, bool *ends)
{
    char name[NAME_SIZE];
    if (record->event.size >= sizeof name)
        return OPERATION_NONE;
    for (size_t i = 0; i < record->event.size; i++)
        name[i] = (char)tolower((unsigned char)record->event.data[i]);
    name[record->event.size] = '\0';
    bool begins = remove_word(name, "start") || remove_word(name, "begin");
    *ends = !begins && (remove_word(name, "end") || remove_word(name, "stop"));
    if (begins == *ends)
        return OPERATION_NONE;
    bool reads = remove_word(name, "read"), writes = remove_word(name, "write");
    if (remove_word(name, "send"))
        return OPERATION_SEND;
    if (remove_word(name, "recv") || remove_word(name, "receive"))
        return OPERATION_RECEIVE;
    if (remove_word(name, "net") || remove_word(name, "network"))
        return reads ? OPERATION_RECEIVE : writes ? OPERATION_SEND : OPERATION_NETWORK;
    return reads ? OPERATION_READ : writes ? OPERATION_WRITE : OPERATION_NONE;
}

static classic_transfer *find_stream(classic_transfers *t, const nl_record *record)
{
    static const char *const ids[] = {"guid", "GUID", "XFER.ID", "TRANSFER.ID", "ID", NULL}, *const streams[] = {
                                                                                                 "stream.id",
                                                                                                 "STREAM.ID", "STREAM",
                                                                                                 "STREAM.NUM", NULL};
    char id[NAME_SIZE], stream[NAME_SIZE];
    classic_copy_text(record, ids, id);
    classic_copy_text(record, streams, stream);
    char *key = g_strdup_printf("%.*s\n%.*s\n%s\n%s", (int)record->host.size, record->host.data, (int)record->prog.size,
                                record->prog.data, id, stream);
    classic_transfer *x = g_hash_table_lookup(t->streams, key);
    if (x == NULL && (x = classic_transfer_add(t, record, ORIGIN_SPANS)) != NULL) {
        x->key = g_steal_pointer(&key);
        g_hash_table_insert(t->streams, x->key, x);
        char *name = g_strdup_printf("%s%s%s%s%s", x->result.host, id[0] != '\0' ? " " : "", id,
                                     stream[0] != '\0' ? " stream " : "", stream);
        x->result.local = classic_keep(t, name, strlen(name));
        g_free(name);
    }
    g_free(key);
    return x;
}

static void add_operation(classic_transfers *t, const nl_record *record, operation done, bool ends)
{
    static const char *const bytes[] = {"bytes", "nbytes", "BYTES", "NBYTES", "SIZE", NULL};
    classic_transfer *x = find_stream(t, record);
    if (x == NULL)
        return;
    if (x->last_ns != 0 && record->time_ns > x->last_ns) {
        double passed_ns = (double)((uint64_t)record->time_ns - (uint64_t)x->last_ns);
        *(x->network > 0 ? &x->network_ns : x->disk > 0 ? &x->disk_ns : &x->idle_ns) += passed_ns;
        x->result.intervals++;
    }
    x->last_ns = record->time_ns;
    bool on_disk = done == OPERATION_READ || done == OPERATION_WRITE;
    unsigned *open = on_disk ? &x->disk : &x->network;
    *open += ends ? (*open > 0 ? -1U : 0) : 1;
    x->reads |= done == OPERATION_READ;
    x->writes |= done == OPERATION_WRITE;
    x->sends |= done == OPERATION_SEND;
    x->receives |= done == OPERATION_RECEIVE;
    if (ends && !on_disk)
        x->result.bytes += classic_find_number(record, bytes);
}

static void finish_stream(classic_transfer *x)
{
    connection_result *r = &x->result;
    bool receives = x->receives || (x->writes && !x->reads && !x->sends);
    r->wall_ns = x->disk_ns + x->network_ns + x->idle_ns;
    r->cause_ns[receives ? CAUSE_RECEIVER_HOST : CAUSE_SENDER_HOST] = x->disk_ns;
    r->cause_ns[receives ? CAUSE_RECEIVER_PROGRAM : CAUSE_SENDER_IDLE] = x->idle_ns;
    r->cause_ns[CAUSE_UNKNOWN] = x->network_ns;
    memcpy(r->estimated_ns, r->cause_ns, sizeof r->estimated_ns);
    if (receives)
        classic_transfer_turn(r);
}

/* ---- results ---- */

void classic_transfers_add(classic_transfers *t, const nl_record *record)
{
    static const char ftp_info[] = "FTP_INFO";
    bool ends;
    if (record->event.size == strlen(ftp_info) && memcmp(record->event.data, ftp_info, strlen(ftp_info)) == 0) {
        add_ftp_info(t, record);
        return;
    }
    operation done = classic_operation(record, &ends);
    if (done != OPERATION_NONE)
        add_operation(t, record, done, ends);
}

void classic_transfers_finish(classic_transfers *t, GPtrArray *results)
{
    for (guint i = 0; i < t->all->len; i++) {
        classic_transfer *x = g_ptr_array_index(t->all, i);
        connection_result *r = &x->result;
        if (r->origin == ORIGIN_SPANS)
            finish_stream(x);
        if (r->wall_ns <= 0 || (r->origin == ORIGIN_SPANS && x->network_ns <= 0))
            continue;
        r->rate = r->bytes / r->wall_ns * 1e9;
        r->total = r->bytes;
        for (int c = 0; c < CAUSE_COUNT; c++)
            r->first = r->cause_ns[c] > r->cause_ns[r->first] ? (connection_cause)c : r->first;
        g_ptr_array_add(results, r);
    }
}
