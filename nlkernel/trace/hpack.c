#include "config.h"

#include "trace/hpack.h"

#include "base/memory.h"

#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <string.h>

/* STATIC_COUNT: number of entries in the static table. NAME_MAX_SIZE: maximum size of an encoded name of a field that
 * hpack_headers contains. */
enum { STATIC_COUNT = 61, NAME_MAX_SIZE = 32 };

/* The names of the fields that the module keeps. */
typedef enum field_name {
    FIELD_OTHER,
    FIELD_METHOD,
    FIELD_PATH,
    FIELD_STATUS,
    FIELD_GRPC_STATUS,
    FIELD_TRACEPARENT,
    FIELD_UNKNOWN,
} field_name;

typedef struct field {
    field_name name;
    char *value; /* in the form of hpack_headers; NULL for FIELD_OTHER */
} field;

struct hpack {
    field *fields; /* a ring of HPACK_FIELDS_MAX fields; NULL: no fields */
    size_t count;  /* number of known fields */
    size_t latest; /* index of the latest field; earlier fields are at lower indices */
};

/* The decoder of single strings for all directions. Its table is always empty. */
static nghttp2_hd_inflater *inflater;

/* The unread rest of a block. */
typedef struct rest {
    const uint8_t *at, *end;
} rest;

hpack *hpack_new(void)
{
    return g_new0(hpack, 1);
}

void hpack_forget(hpack *h)
{
    for (size_t i = 0; h->fields != NULL && i < HPACK_FIELDS_MAX; i++)
        g_clear_pointer(&h->fields[i].value, g_free);
    h->count = 0;
}

void hpack_free(hpack *h)
{
    if (h == NULL)
        return;
    hpack_forget(h);
    g_free(h->fields);
    g_free(h);
}

/* ---- integers and strings ---- */

/*
 * Reads an integer. The lower `bits` bits of its first byte belong to the integer. Returns false if the integer is
 * incomplete or too large.
 */
static bool read_integer(rest *r, unsigned bits, size_t *value)
{
    enum { SHIFT_MAX = 21 };
    size_t mask = ((size_t)1 << bits) - 1;
    if (r->at >= r->end)
        return false;
    *value = *r->at++ & mask;
    if (*value < mask)
        return true;
    for (unsigned shift = 0; shift <= SHIFT_MAX && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        *value += (size_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

/* Skips a string. Sets *string to the bytes that encode the string and its length. */
static bool skip_string(rest *r, rest *string)
{
    size_t length;
    string->at = r->at;
    if (!read_integer(r, 7, &length) || length > (size_t)(r->end - r->at))
        return false;
    string->end = r->at += length;
    return true;
}

/*
 * Decodes a string, which may have a Huffman code. libnghttp2 decodes only whole header fields. The function therefore
 * builds a field whose name or value is the string, in a form that libnghttp2 does not add to its table. Returns NULL
 * if the string is malformed. The caller frees the result, which has *length bytes and a NUL.
 */
static char *decode_string(rest string, bool is_name, size_t *length)
{
    static const uint8_t name[] = {0, 1, 'x'};
    size_t size = (size_t)(string.end - string.at), total = 0;
    uint8_t *block = g_malloc(size + sizeof name);
    if (is_name) {
        block[total++] = 0;
    } else {
        memcpy(block, name, sizeof name);
        total = sizeof name;
    }
    memcpy(block + total, string.at, size);
    total += size;
    if (is_name)
        block[total++] = 0;
    const uint8_t *at = block;
    nghttp2_nv found = {0};
    bool valid = false;
    int flags = 0;
    if (inflater == NULL && nghttp2_hd_inflate_new(&inflater) != 0)
        nl_memory_failed();
    while (!valid && (flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &found, &flags, at, (size_t)(block + total - at), 1);
        if (used < 0)
            break;
        at += used;
        valid = (flags & NGHTTP2_HD_INFLATE_EMIT) != 0;
    }
    char *text = NULL;
    if (valid) {
        *length = is_name ? found.namelen : found.valuelen;
        text = g_malloc0(*length + 1);
        memcpy(text, is_name ? found.name : found.value, *length);
        nghttp2_hd_inflate_end_headers(inflater);
    } else { /* replace the inflater, which accepts no more fields after an error */
        nghttp2_hd_inflate_del(inflater);
        inflater = NULL;
    }
    g_free(block);
    return text;
}

/* ---- fields ---- */

static field_name name_of_static(size_t index)
{
    enum { METHOD = 2, PATH = 4, SCHEME = 6, STATUS = 8, LATER = 15 };
    if (index < METHOD || index >= LATER || (index >= SCHEME && index < STATUS))
        return FIELD_OTHER;
    return index < PATH ? FIELD_METHOD : index < SCHEME ? FIELD_PATH : FIELD_STATUS;
}

static const char *value_of_static(size_t index)
{
    static const char *const values[] = {
        [2] = "GET",  [3] = "POST", [4] = "/",    [5] = "/index.html", [8] = "200", [9] = "204",
        [10] = "206", [11] = "304", [12] = "400", [13] = "404",        [14] = "500"};
    return index < G_N_ELEMENTS(values) ? values[index] : NULL;
}

/* Returns the field with an index above STATIC_COUNT. */
static field get_field(const hpack *h, size_t index)
{
    size_t back = index - STATIC_COUNT - 1;
    return back < h->count ? h->fields[(h->latest + HPACK_FIELDS_MAX - back) % HPACK_FIELDS_MAX]
                           : (field){.name = FIELD_UNKNOWN};
}

static field_name find_name(const char *name, size_t length)
{
    static const char *const names[] = {[FIELD_METHOD] = ":method",
                                        [FIELD_PATH] = ":path",
                                        [FIELD_STATUS] = ":status",
                                        [FIELD_GRPC_STATUS] = "grpc-status",
                                        [FIELD_TRACEPARENT] = "traceparent"};
    for (size_t i = FIELD_METHOD; i < G_N_ELEMENTS(names); i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return (field_name)i;
    return FIELD_OTHER;
}

static bool is_all(const char *text, bool (*is_member)(char))
{
    while (*text != '\0' && is_member(*text))
        text++;
    return *text == '\0';
}

static bool is_digit(char c)
{
    return g_ascii_isdigit(c);
}

static bool is_method(char c)
{
    return g_ascii_isupper(c) || c == '-' || c == '_';
}

/* Stores the value of a field in the headers. Ignores invalid values. */
static void set_header(hpack_headers *headers, field_name name, const char *value, size_t length)
{
    char text[PROTOCOL_VERB_SIZE];
    protocol_copy_name(text, sizeof text, value, length);
    bool is_whole = strlen(text) == length;
    switch (name) {
    case FIELD_METHOD:
        if (is_whole && is_all(text, is_method))
            memcpy(headers->request.verb, text, sizeof headers->request.verb);
        break;
    case FIELD_PATH:
        protocol_copy_path(&headers->request, value, length);
        break;
    case FIELD_STATUS:
        if (length == sizeof headers->status - 1 && is_whole && is_all(text, is_digit))
            g_strlcpy(headers->status, text, sizeof headers->status);
        break;
    case FIELD_GRPC_STATUS:
        if (length < sizeof headers->grpc_status && is_whole && is_all(text, is_digit))
            g_strlcpy(headers->grpc_status, text, sizeof headers->grpc_status);
        break;
    case FIELD_TRACEPARENT:
        protocol_read_traceparent(&headers->request, value, length);
        break;
    case FIELD_UNKNOWN:
        headers->has_unknown = true;
        break;
    case FIELD_OTHER:
        break;
    }
}

/* Returns a copy of only that part of a field's value that set_header uses, so that the table contains no query of a
 * path. */
static char *copy_value(field_name name, const char *value, size_t length)
{
    enum { TRACEPARENT_MAX = 64 };
    hpack_headers headers = {0};
    if (name == FIELD_TRACEPARENT)
        return g_strndup(value, MIN(length, TRACEPARENT_MAX));
    set_header(&headers, name, value, length);
    return g_strdup(name == FIELD_METHOD   ? headers.request.verb
                    : name == FIELD_PATH   ? headers.request.object
                    : name == FIELD_STATUS ? headers.status
                                           : headers.grpc_status);
}

static void add_field(hpack *h, field_name name, char *value)
{
    if (h->fields == NULL)
        h->fields = g_new0(field, HPACK_FIELDS_MAX);
    h->latest = (h->latest + 1) % HPACK_FIELDS_MAX;
    g_free(h->fields[h->latest].value);
    h->fields[h->latest] = (field){.name = name, .value = value};
    h->count = MIN(h->count + 1, HPACK_FIELDS_MAX);
}

static bool read_indexed(hpack *h, rest *r, hpack_headers *headers)
{
    size_t index;
    if (!read_integer(r, 7, &index) || index == 0)
        return false;
    field f = {.name = name_of_static(index)};
    const char *value = value_of_static(index);
    if (index > STATIC_COUNT) {
        f = get_field(h, index);
        value = f.value;
    }
    if (value != NULL || f.name == FIELD_UNKNOWN)
        set_header(headers, f.name, value != NULL ? value : "", value != NULL ? strlen(value) : 0);
    return true;
}

/* Reads a field with a value. The lower `bits` bits of the first byte are the start of the name's index. If the index
 * is 0, the name itself follows. */
static bool read_literal(hpack *h, rest *r, unsigned bits, bool adds, hpack_headers *headers)
{
    size_t index, length;
    rest string;
    char *text;
    field_name name = FIELD_OTHER;
    if (!read_integer(r, bits, &index))
        return false;
    if (index > STATIC_COUNT) {
        name = get_field(h, index).name;
    } else if (index > 0) {
        name = name_of_static(index);
    } else {
        if (!skip_string(r, &string))
            return false;
        if (string.end - string.at <= NAME_MAX_SIZE) {
            if ((text = decode_string(string, true, &length)) == NULL)
                return false;
            name = find_name(text, length);
            g_free(text);
        }
    }
    if (!skip_string(r, &string))
        return false;
    char *value = NULL;
    if (name == FIELD_UNKNOWN) {
        headers->has_unknown = true;
    } else if (name != FIELD_OTHER) {
        if ((text = decode_string(string, false, &length)) == NULL)
            return false;
        set_header(headers, name, text, length);
        value = adds ? copy_value(name, text, length) : NULL;
        g_free(text);
    }
    if (adds)
        add_field(h, name, value);
    return true;
}

static bool read_field(hpack *h, rest *r, hpack_headers *headers)
{
    enum { INDEXED = 0x80, ADDED = 0x40, SIZE_UPDATE = 0x20 };
    size_t table_size;
    if ((*r->at & INDEXED) != 0)
        return read_indexed(h, r, headers);
    if ((*r->at & ADDED) != 0)
        return read_literal(h, r, 6, true, headers);
    if ((*r->at & SIZE_UPDATE) != 0)
        return read_integer(r, 5, &table_size);
    return read_literal(h, r, 4, false, headers);
}

void hpack_read(hpack *h, const uint8_t *block, size_t size, hpack_headers *headers)
{
    memset(headers, 0, sizeof *headers);
    if (size == 0)
        return;
    rest r = {.at = block, .end = block + size};
    while (r.at < r.end)
        if (!read_field(h, &r, headers)) {
            hpack_forget(h);
            *headers = (hpack_headers){.has_unknown = true};
            return;
        }
}
