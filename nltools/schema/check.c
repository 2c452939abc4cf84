#include "config.h"

#include "check.h"

#include "base/text.h"
#include "program/json_document.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHOWN = 10, VALUE_SHOWN = 60 };

typedef enum kind {
    UNKNOWN_EVENT,
    WRONG_LEVEL,
    MISSING_FIELD,
    WRONG_TYPE,
    OUT_OF_RANGE,
    NOT_IN_ENUM,
    UNEXPECTED_FIELD,
    REPEATED_FIELD,
    KINDS,
} kind;

static const char *const kind_names[KINDS] = {
    [UNKNOWN_EVENT] = "unknown event",   [WRONG_LEVEL] = "wrong level",           [MISSING_FIELD] = "missing field",
    [WRONG_TYPE] = "wrong type",         [OUT_OF_RANGE] = "out of range",         [NOT_IN_ENUM] = "not in enum",
    [REPEATED_FIELD] = "repeated field", [UNEXPECTED_FIELD] = "unexpected field",
};

typedef struct finding {
    char *source;
    uint64_t number;
    char *event;
    char *what;
} finding;

struct schema_check {
    const schema *schema;
    bool strict;
    GHashTable *events; /* maps a name to a schema_event * */
    GString *name;      /* name of the current event, NUL-terminated */
    uint64_t records;
    uint64_t counts[KINDS];
    GPtrArray *findings[KINDS]; /* finding *, at most SHOWN per kind */
};

/* The record that the module currently checks. */
typedef struct subject {
    schema_check *check;
    const nl_record *record;
    const char *source;
    uint64_t number;
} subject;

static void free_finding(gpointer data)
{
    finding *f = data;
    g_free(f->source);
    g_free(f->event);
    g_free(f->what);
    g_free(f);
}

schema_check *schema_check_new(const schema *s, bool strict)
{
    schema_check *c = g_new0(schema_check, 1);
    c->schema = s;
    c->strict = strict;
    c->events = g_hash_table_new(g_str_hash, g_str_equal);
    c->name = g_string_new(NULL);
    for (guint i = 0; i < s->events->len; i++) {
        schema_event *e = g_ptr_array_index(s->events, i);
        g_hash_table_insert(c->events, e->name, e);
    }
    for (int k = 0; k < KINDS; k++)
        c->findings[k] = g_ptr_array_new_with_free_func(free_finding);
    return c;
}

void schema_check_free(schema_check *c)
{
    g_hash_table_unref(c->events);
    g_string_free(c->name, TRUE);
    for (int k = 0; k < KINDS; k++)
        g_ptr_array_unref(c->findings[k]);
    g_free(c);
}

/* Returns the beginning of a text, for use in a message. The caller frees it with g_free. */
static char *shorten(nl_string text)
{
    size_t size = MIN(text.size, VALUE_SHOWN);
    while (size < text.size && size > 0 && ((unsigned char)text.data[size] & 0xc0) == 0x80)
        size--; /* do not divide a UTF-8 character */
    char *cut = g_strndup(size > 0 ? text.data : "", size), *plain = schema_plain(cut);
    char *out = g_strconcat(plain, size < text.size ? "..." : "", NULL);
    g_free(cut);
    g_free(plain);
    return out;
}

/* Counts a deviation. Stores the text of the deviation if it is among the first SHOWN deviations of its kind. */
NL_PRINTF(3, 4)
static void found(const subject *s, kind k, const char *format, ...)
{
    schema_check *c = s->check;
    if (c->counts[k]++ >= SHOWN)
        return;
    finding *f = g_new0(finding, 1);
    va_list arguments;
    va_start(arguments, format);
    f->what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    f->source = g_strdup(s->source);
    f->number = s->number;
    f->event = shorten(s->record->event);
    g_ptr_array_add(c->findings[k], f);
}

static void found_value(const subject *s, kind k, const schema_field *f, nl_string text)
{
    if (s->check->counts[k] >= SHOWN) {
        s->check->counts[k]++;
        return;
    }
    char *value = shorten(text), *type = schema_field_type(f), *plain = schema_plain(type);
    found(s, k, "%s: \"%s\" %s %s", f->name, value,
          k == WRONG_TYPE     ? "is not of type"
          : k == OUT_OF_RANGE ? "is out of the range of"
                              : "is not in",
          plain);
    g_free(value);
    g_free(type);
    g_free(plain);
}

static void check_integer(const subject *s, const schema_field *f, nl_string text)
{
    static const struct {
        gint64 minimum, maximum;
    } ranges[] = {
        [SCHEMA_INT8] = {INT8_MIN, INT8_MAX},    [SCHEMA_INT16] = {INT16_MIN, INT16_MAX},
        [SCHEMA_INT32] = {INT32_MIN, INT32_MAX}, [SCHEMA_INT64] = {INT64_MIN, INT64_MAX},
        [SCHEMA_UINT8] = {0, UINT8_MAX},         [SCHEMA_UINT16] = {0, UINT16_MAX},
        [SCHEMA_UINT32] = {0, UINT32_MAX},       [SCHEMA_UINT64] = {0, 0}, /* not used */
    };
    size_t sign = text.size > 0 && (text.data[0] == '-' || text.data[0] == '+'), at = sign;
    while (at < text.size && g_ascii_isdigit(text.data[at]))
        at++;
    if (at < text.size || at == sign) {
        found_value(s, WRONG_TYPE, f, text);
        return;
    }
    char *copy = g_strndup(text.data, text.size), *number = copy + (text.data[0] == '+');
    bool ok = f->type == SCHEMA_UINT64
                  ? g_ascii_string_to_unsigned(number, 10, 0, UINT64_MAX, NULL, NULL)
                  : g_ascii_string_to_signed(number, 10, ranges[f->type].minimum, ranges[f->type].maximum, NULL, NULL);
    if (!ok)
        found_value(s, OUT_OF_RANGE, f, text);
    g_free(copy);
}

static void check_fraction(const subject *s, const schema_field *f, const nl_field *field, nl_string text)
{
    double value;
    if (!nl_field_double(field, &value))
        found_value(s, WRONG_TYPE, f, text);
    else if (f->type == SCHEMA_FLOAT && isfinite(value) && fabs(value) > (double)FLT_MAX)
        found_value(s, OUT_OF_RANGE, f, text);
}

static bool is_one_of(nl_string text, const char *const *choices)
{
    for (; *choices != NULL; choices++)
        if (strlen(*choices) == text.size && memcmp(*choices, text.data, text.size) == 0)
            return true;
    return false;
}

static void check_enum(const subject *s, const schema_field *f, nl_string text)
{
    for (guint i = 0; i < f->values->len; i++)
        if (is_one_of(text, (const char *const[]){g_ptr_array_index(f->values, i), NULL}))
            return;
    found_value(s, NOT_IN_ENUM, f, text);
}

static void check_value(const subject *s, const schema_field *f, const nl_field *field)
{
    static const char *const bools[] = {"true", "false", "1", "0", NULL};
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    switch (f->type) {
    case SCHEMA_BOOL:
        if (!is_one_of(text, bools))
            found_value(s, WRONG_TYPE, f, text);
        break;
    case SCHEMA_FLOAT:
    case SCHEMA_DOUBLE:
        check_fraction(s, f, field, text);
        break;
    case SCHEMA_ENUM:
        check_enum(s, f, text);
        break;
    case SCHEMA_STRING:
    case SCHEMA_BYTES:
        break; /* any value is valid */
    default:
        check_integer(s, f, text);
    }
}

static void check_level(const subject *s, const schema_event *e)
{
    const nl_record *r = s->record;
    /* Accept a missing level, because many logs have no levels. */
    if (r->level == e->level || (r->level == NL_LEVEL_NONE && r->level_text.data == NULL))
        return;
    const char *name = nl_level_name(r->level);
    char *level = shorten(r->level == NL_LEVEL_NONE ? r->level_text : nl_string_of(name));
    found(s, WRONG_LEVEL, "level %s instead of %s", level, nl_level_name(e->level));
    g_free(level);
}

static const schema_field *find_field(const schema_event *e, nl_string name, guint *index)
{
    for (guint i = 0; i < e->fields->len; i++) {
        const schema_field *f = g_ptr_array_index(e->fields, i);
        if (strlen(f->name) != name.size || memcmp(f->name, name.data, name.size) != 0)
            continue;
        *index = i;
        return f;
    }
    return NULL;
}

static void check_fields(const subject *s, const schema_event *e)
{
    unsigned seen = 0;
    G_STATIC_ASSERT(SCHEMA_FIELDS_MAX < 8 * sizeof seen);
    for (size_t i = 0; i < s->record->field_count; i++) {
        const nl_field *field = &s->record->fields[i];
        guint index;
        const schema_field *f = find_field(e, field->name, &index);
        if (f != NULL && (seen & 1u << index) != 0)
            found(s, REPEATED_FIELD, "%s is repeated", f->name);
        else if (f != NULL)
            check_value(s, f, field);
        else if (field->name.size < 3 ||
                 memcmp(field->name.data, "NL.", 3) != 0) /* names of NetLogger's own fields begin with NL. */
            found(s, UNEXPECTED_FIELD, "%.*s is not a declared field", (int)MIN(field->name.size, VALUE_SHOWN),
                  field->name.data);
        if (f != NULL)
            seen |= 1u << index;
    }
    for (guint i = 0; i < e->fields->len; i++) {
        const schema_field *f = g_ptr_array_index(e->fields, i);
        if (!f->optional && (seen & 1u << i) == 0)
            found(s, MISSING_FIELD, "%s is missing", f->name);
    }
}

void schema_check_record(schema_check *c, const nl_record *record, const char *source, uint64_t number)
{
    subject s = {c, record, source, number};
    c->records++;
    g_string_truncate(c->name, 0);
    if (record->event.size > 0)
        g_string_append_len(c->name, record->event.data, (gssize)record->event.size);
    const schema_event *e = g_hash_table_lookup(c->events, c->name->str);
    if (e == NULL || c->name->len != strlen(e->name)) {
        found(&s, UNKNOWN_EVENT, "not an event of %s", c->schema->name);
        return;
    }
    check_level(&s, e);
    check_fields(&s, e);
}

static bool is_deviation(const schema_check *c, kind k)
{
    return k != UNKNOWN_EVENT || c->strict;
}

uint64_t schema_check_deviations(const schema_check *c)
{
    uint64_t sum = 0;
    for (int k = 0; k < KINDS; k++)
        sum += is_deviation(c, (kind)k) ? c->counts[k] : 0;
    return sum;
}

void schema_check_report(const schema_check *c, GString *out)
{
    for (int k = 0; k < KINDS; k++) {
        for (guint i = 0; i < c->findings[k]->len; i++) {
            const finding *f = g_ptr_array_index(c->findings[k], i);
            g_string_append_printf(out, "%s: record %" PRIu64 ": %s%s: %s\n", f->source, f->number,
                                   is_deviation(c, (kind)k) ? "" : "warning: ", f->event, f->what);
        }
        if (c->counts[k] > SHOWN)
            g_string_append_printf(out, "  and %" PRIu64 " more: %s\n", c->counts[k] - SHOWN, kind_names[k]);
    }
    if (out->len > 0)
        g_string_append_c(out, '\n');
    g_string_append_printf(out, "%" PRIu64 " record%s, %" PRIu64 " deviation%s from %s\n", c->records,
                           nl_plural(c->records), schema_check_deviations(c), nl_plural(schema_check_deviations(c)),
                           c->schema->name);
    for (int k = 0; k < KINDS; k++)
        if (c->counts[k] > 0)
            g_string_append_printf(out, "  %-16s %8" PRIu64 "%s\n", kind_names[k], c->counts[k],
                                   is_deviation(c, (kind)k) ? "" : "  (warning)");
}

json_object *schema_check_report_json(const schema_check *c)
{
    json_object *report = json_object_new_object(), *kinds = json_object_new_array();
    json_add_int(report, "records", (int64_t)c->records);
    json_add_int(report, "deviations", (int64_t)schema_check_deviations(c));
    for (int k = 0; k < KINDS; k++) {
        if (c->counts[k] == 0)
            continue;
        json_object *object = json_object_new_object(), *first = json_object_new_array();
        json_add_text(object, "kind", kind_names[k]);
        json_add_int(object, "count", (int64_t)c->counts[k]);
        json_add_bool(object, "deviation", is_deviation(c, (kind)k));
        for (guint i = 0; i < c->findings[k]->len; i++) {
            const finding *f = g_ptr_array_index(c->findings[k], i);
            json_object *shown = json_object_new_object();
            json_add_text(shown, "file", f->source);
            json_add_int(shown, "record", (int64_t)f->number);
            json_add_text(shown, "event", f->event);
            json_add_text(shown, "what", f->what);
            json_object_array_add(first, shown);
        }
        json_object_object_add(object, "first", first);
        json_object_array_add(kinds, object);
    }
    json_object_object_add(report, "kinds", kinds);
    return report;
}
