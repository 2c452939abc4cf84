#include "config.h"

#include "diag/visit_ends.h"

#include "connections/connection_causes.h"

#include <glib.h>
#include <math.h>
#include <string.h>

enum { ADDRESS_MAX = 64 /* bytes */ };

struct visit_ends {
    GHashTable *numbers; /* text of a connection -> its number */
    GArray *parts;       /* visit_part, for each number; the first is number 1 */
    GString *key;
};

visit_ends *visit_ends_new(void)
{
    visit_ends *e = g_new0(visit_ends, 1);
    e->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    e->parts = g_array_new(FALSE, FALSE, sizeof(visit_part));
    e->key = g_string_new("");
    return e;
}

void visit_ends_free(visit_ends *e)
{
    g_hash_table_destroy(e->numbers);
    g_array_unref(e->parts);
    g_string_free(e->key, TRUE);
    g_free(e);
}

static void set_key(visit_ends *e, const char *host, const char *local, const char *peer)
{
    bool in_order = strcmp(local, peer) < 0;
    connection_set_ends_key(e->key, host, in_order ? local : peer, in_order ? peer : local);
}

uint32_t visit_ends_find(visit_ends *e, const char *host, const char *local, const char *peer)
{
    set_key(e, host, local, peer);
    return GPOINTER_TO_UINT(g_hash_table_lookup(e->numbers, e->key->str));
}

/* Copies the text of a field. Returns false if the record lacks the field, or if its text is too long. */
static bool read_address(const nl_record *record, const char *name, char address[ADDRESS_MAX])
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (!nl_record_find(record, name, &field))
        return false;
    nl_string text = nl_field_text(&field, scratch);
    if (text.size == 0 || text.size >= ADDRESS_MAX)
        return false;
    memcpy(address, text.data, text.size);
    address[text.size] = '\0';
    return true;
}

/* Returns the value of a field, or 0. */
static double read_count(const nl_record *record, const char *name)
{
    nl_field field;
    double value;
    return nl_record_find(record, name, &field) && nl_field_double(&field, &value) && value > 0 && isfinite(value)
               ? value
               : 0;
}

/* Adds a part of a connection, or a connection if the part's connection is 0. Returns its number, or 0. */
static uint32_t add_part(visit_ends *e, visit_part part)
{
    if (visit_ends_count(e) >= VISIT_ENDS_MAX)
        return 0;
    uint32_t number = visit_ends_count(e) + 1;
    part.connection = part.connection != 0 ? part.connection : number;
    g_array_append_val(e->parts, part);
    return number;
}

uint32_t visit_ends_read(visit_ends *e, const nl_record *record)
{
    char local[ADDRESS_MAX], peer[ADDRESS_MAX];
    bool named = (read_address(record, "TCP.LOCAL", local) && read_address(record, "TCP.PEER", peer)) ||
                 (read_address(record, "LOCAL", local) && read_address(record, "PEER", peer));
    if (!named)
        return 0;
    char *host = g_strndup(record->host.data, record->host.size);
    uint32_t number = visit_ends_find(e, host, local, peer);
    if (number == 0 && (number = add_part(e, (visit_part){0})) != 0)
        g_hash_table_insert(e->numbers, g_strdup(e->key->str), GUINT_TO_POINTER(number));
    g_free(host);
    double size = read_count(record, "TCP.SIZE");
    uint32_t part =
        number != 0 && size > 0 ? add_part(e, (visit_part){number, read_count(record, "TCP.OFFSET"), size}) : 0;
    return part != 0 ? part : number;
}

visit_part visit_ends_part(const visit_ends *e, uint32_t number)
{
    return g_array_index(e->parts, visit_part, number - 1);
}

uint32_t visit_ends_count(const visit_ends *e)
{
    return e->parts->len;
}
