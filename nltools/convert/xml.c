/*
 * XML, as doc/netlogger.xsd says:
 *
 *   <log xmlns="urn:netlogger:log:1">
 *   <record time="2000-03-30T11:23:20.957943Z" event="WriteData" level="Info" host="h" prog="p"><f n="SEND.SZ"
 *     t="int">49332</f></record>
 *   </log>
 *
 * A value that XML can't hold (bytes that are no UTF-8, control characters) is in base64: an f says so with e="base64",
 * a record by naming its attributes that are, as in base64="host prog". Written by hand, for speed; read with libxml2.
 */
#include "config.h"

#include "convert/builder.h"
#include "convert/json_scan.h"
#include "convert/json_text.h"

#include <libxml/parser.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NAMESPACE "urn:netlogger:log:1"

static const char *const type_names[] = {[NL_TYPE_STRING] = NULL,
                                         [NL_TYPE_INT] = "int",
                                         [NL_TYPE_UINT] = "uint",
                                         [NL_TYPE_DOUBLE] = "double",
                                         [NL_TYPE_BOOL] = "bool"};
enum { TYPE_COUNT = sizeof type_names / sizeof type_names[0] };

/* ---- writing ---- */

typedef struct xml_writer {
    exporter base;
    time_text time;
} xml_writer;

static exporter *open_writer(void *shared)
{
    (void)shared;
    xml_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    w->base.kind = &xml_exporter;
    return &w->base;
}

static void close_writer(exporter *base)
{
    free(base);
}

/* What stands for a byte; NULL: itself. In attributes white space must be told from what parsers make of it. */
static const char *reference(char byte, bool attribute)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return attribute ? "&quot;" : NULL;
    case '\n':
        return attribute ? "&#10;" : NULL;
    case '\t':
        return attribute ? "&#9;" : NULL;
    case '\r':
        return "&#13;";
    }
    return NULL;
}

/* The size of the character at at, 0 when XML can't hold it. */
static size_t character(const unsigned char *at, const unsigned char *end)
{
    if (*at < 0x80)
        return *at >= ' ' || *at == '\n' || *at == '\t' || *at == '\r';
    size_t size = utf8_size(at, end);
    bool is_none = size == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe; /* U+FFFE and U+FFFF */
    return is_none ? 0 : size;
}

/* Appends text with what needs it replaced. False, with nothing appended, when XML can't hold it. */
static bool put_text(nl_buffer *out, nl_string text, bool attribute)
{
    nl_buffer_reserve(out, 6 * text.size);
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    char *to = out->data + out->size;
    while (at < end) {
        size_t size = character(at, end);
        if (size == 0)
            return false;
        const char *instead = reference((char)*at, attribute);
        if (instead != NULL)
            to = stpcpy(to, instead);
        else
            to = mempcpy(to, at, size);
        at += size;
    }
    out->size = (size_t)(to - out->data);
    return true;
}

#define PUT(out, literal) nl_buffer_append(out, literal, sizeof literal - 1)

/* Whether it had to be put in base64. */
static bool put_attribute(nl_buffer *out, const char *name, nl_string text)
{
    if (text.data == NULL)
        return false;
    PUT(out, " ");
    nl_buffer_append(out, name, strlen(name));
    PUT(out, "=\"");
    bool as_it_is = put_text(out, text, true);
    if (!as_it_is)
        json_put_base64(out, text);
    PUT(out, "\"");
    return !as_it_is;
}

static void put_field(nl_buffer *out, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    PUT(out, "<f n=\"");
    nl_buffer_append(out, field->name.data, field->name.size);
    if (field->type != NL_TYPE_STRING) {
        PUT(out, "\" t=\"");
        nl_buffer_append(out, type_names[field->type], strlen(type_names[field->type]));
    }
    size_t before = out->size;
    PUT(out, "\">");
    nl_string text = nl_field_text(field, scratch);
    if (!put_text(out, text, false)) {
        out->size = before;
        PUT(out, "\" e=\"base64\">");
        json_put_base64(out, text);
    }
    PUT(out, "</f>");
}

static void put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    xml_writer *w = (xml_writer *)base;
    nl_buffer *out = &s->bytes;
    const struct {
        const char *name;
        nl_string text;
    } members[] = {
        {"event", record->event}, {"level", level_as_text(record)}, {"host", record->host}, {"prog", record->prog}};
    char packed[40] = "";
    PUT(out, "<record time=\"");
    time_text_put(&w->time, record->time_ns, out);
    PUT(out, "\"");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (put_attribute(out, members[i].name, members[i].text))
            strcat(strcat(packed, packed[0] == '\0' ? "" : " "), members[i].name);
    if (packed[0] != '\0')
        put_attribute(out, "base64", (nl_string){packed, strlen(packed)});
    PUT(out, ">");
    for (size_t i = 0; i < record->field_count; i++)
        put_field(out, &record->fields[i]);
    PUT(out, "</record>\n");
}

static void begin(exporter *base, sink *s)
{
    (void)base;
    PUT(&s->bytes, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<log xmlns=\"" NAMESPACE "\">\n");
}

static void end(exporter *base, sink *s)
{
    (void)base;
    PUT(&s->bytes, "</log>\n");
}

const exporter_kind xml_exporter = {
    .name = "xml",
    .what = "XML, as doc/netlogger.xsd says",
    .open = open_writer,
    .close = close_writer,
    .begin = begin,
    .put = put,
    .end = end,
};

/* ---- reading ---- */

typedef struct field_slot {
    nl_type type;
    bool packed;
    size_t name, name_size, value, value_size; /* in text */
} field_slot;

typedef struct xml_reader {
    importer base;
    xmlParserCtxtPtr parser;
    sink *s;
    uint64_t bytes; /* given to the parser */
    int depth;      /* of elements */
    bool in_record, in_field, failed;
    uint64_t line;                      /* where the record begins, from the input's start */
    nl_buffer text;                     /* of the record: everything that is kept of it */
    size_t members[MEMBER_PROG + 1][2]; /* where in text, and its size; SIZE_MAX: none */
    char packed[64];                    /* attributes that are base64 */
    field_slot *fields;
    size_t count, capacity;
    const char *bad; /* what is wrong with the record */
    builder builder;
} xml_reader;

static bool is(const xmlChar *name, const char *word)
{
    return strcmp((const char *)name, word) == 0;
}

static size_t keep(xml_reader *r, const void *data, size_t size)
{
    size_t at = r->text.size;
    nl_buffer_append(&r->text, data, size);
    return at;
}

static void refuse(xml_reader *r, const char *why)
{
    if (r->bad == NULL)
        r->bad = why;
}

/* libxml2 gives an attribute as name, prefix, namespace, value, end of value. */
enum { ATTRIBUTE_WORDS = 5 };

static void begin_record(xml_reader *r, int count, const xmlChar **attributes)
{
    r->in_record = true;
    r->text.size = 0;
    r->count = 0;
    r->bad = NULL;
    r->packed[0] = '\0';
    r->line = (uint64_t)xmlSAX2GetLineNumber(r->parser);
    for (member m = MEMBER_NONE; m <= MEMBER_PROG; m++)
        r->members[m][0] = SIZE_MAX;
    for (int i = 0; i < count; i++, attributes += ATTRIBUTE_WORDS) {
        size_t size = (size_t)(attributes[4] - attributes[3]);
        nl_string name = {(const char *)attributes[0], strlen((const char *)attributes[0])};
        if (is(attributes[0], "time"))
            name = (nl_string){"ts", 2};
        member m = member_of(name);
        if (m != MEMBER_NONE) {
            r->members[m][0] = keep(r, attributes[3], size);
            r->members[m][1] = size;
        } else if (is(attributes[0], "base64") && size < sizeof r->packed) {
            memcpy(r->packed, attributes[3], size);
            r->packed[size] = '\0';
        } else {
            refuse(r, "a record has an attribute that is none of it");
        }
    }
}

static nl_type type_of(xml_reader *r, const xmlChar *name, size_t size)
{
    for (int type = NL_TYPE_INT; type < TYPE_COUNT; type++)
        if (strlen(type_names[type]) == size && memcmp(type_names[type], name, size) == 0)
            return (nl_type)type;
    if (size != strlen("string") || memcmp(name, "string", size) != 0)
        refuse(r, "a field's type is none");
    return NL_TYPE_STRING;
}

static void begin_field(xml_reader *r, int count, const xmlChar **attributes)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity == 0 ? 32 : 2 * r->capacity;
        r->fields = reallocarray(r->fields, r->capacity, sizeof *r->fields);
        if (r->fields == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
    }
    field_slot *field = &r->fields[r->count++];
    *field = (field_slot){.name = SIZE_MAX};
    for (int i = 0; i < count; i++, attributes += ATTRIBUTE_WORDS) {
        size_t size = (size_t)(attributes[4] - attributes[3]);
        if (is(attributes[0], "n")) {
            field->name = keep(r, attributes[3], size);
            field->name_size = size;
        } else if (is(attributes[0], "t")) {
            field->type = type_of(r, attributes[3], size);
        } else if (is(attributes[0], "e") && size == 6 && memcmp(attributes[3], "base64", 6) == 0) {
            field->packed = true;
        } else {
            refuse(r, "a field has an attribute that is none of it");
        }
    }
    if (field->name == SIZE_MAX)
        refuse(r, "a field has no name");
    field->value = r->text.size;
    r->in_field = true;
}

static void start_element(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int namespaces,
                          const xmlChar **uris, int count, int defaulted, const xmlChar **attributes)
{
    (void)prefix, (void)namespaces, (void)uris, (void)defaulted;
    xml_reader *r = user;
    int depth = r->depth++;
    bool ours = uri == NULL || is(uri, NAMESPACE);
    if (depth == 0 && !(ours && is(name, "log"))) {
        sink_malformed(r->s, 1, 0, "the document is no log", (const char *)name, strlen((const char *)name));
        r->failed = true;
        xmlStopParser(r->parser);
    } else if (depth == 1 && ours && is(name, "record")) {
        begin_record(r, count, attributes);
    } else if (depth == 2 && r->in_record && ours && is(name, "f")) {
        begin_field(r, count, attributes);
    } else if (r->in_record) {
        refuse(r, "a record holds an element that is none of it");
    } else if (depth == 1) {
        sink_malformed(r->s, (uint64_t)xmlSAX2GetLineNumber(r->parser) - r->s->lines_before, 0,
                       "an element that is no record", (const char *)name, strlen((const char *)name));
    }
}

static void characters(void *user, const xmlChar *text, int size)
{
    xml_reader *r = user;
    if (r->in_field)
        keep(r, text, (size_t)size);
}

static nl_string view(const xml_reader *r, size_t at, size_t size)
{
    return (nl_string){r->text.data + at, size};
}

/* Takes base64 out of a value, in place. */
static bool unpack(xml_reader *r, nl_string *value)
{
    char *bytes = r->text.data + (value->data - r->text.data);
    size_t size = json_base64(*value, bytes);
    if (size == SIZE_MAX) {
        refuse(r, "a value is no base64");
        return false;
    }
    value->size = size;
    return true;
}

static void take_member(xml_reader *r, member m)
{
    static const char *const names[] = {
        [MEMBER_EVENT] = "event", [MEMBER_LEVEL] = "level", [MEMBER_HOST] = "host", [MEMBER_PROG] = "prog"};
    if (r->members[m][0] == SIZE_MAX)
        return;
    nl_string text = view(r, r->members[m][0], r->members[m][1]);
    if (m != MEMBER_TIME && strstr(r->packed, names[m]) != NULL && !unpack(r, &text))
        return;
    if (!builder_set(&r->builder, m, text))
        refuse(r, "the time can't be read");
}

/* The value of a field as its type says; what is none stays text. */
static bool set_value(nl_field *field, nl_type type, nl_string text)
{
    const nl_field as_text = {.type = NL_TYPE_STRING, .string = text};
    field->type = type;
    switch (type) {
    case NL_TYPE_STRING:
        field->string = text;
        return true;
    case NL_TYPE_INT:
        return nl_field_int(&as_text, &field->int_value);
    case NL_TYPE_UINT:
        return json_unsigned(text, &field->uint_value);
    case NL_TYPE_DOUBLE:
        return nl_field_double(&as_text, &field->double_value);
    case NL_TYPE_BOOL:
        field->bool_value = text.size == 4 && memcmp(text.data, "true", 4) == 0;
        return field->bool_value || (text.size == 5 && memcmp(text.data, "false", 5) == 0);
    }
    return false;
}

static void take_field(xml_reader *r, const field_slot *slot)
{
    nl_string value = view(r, slot->value, slot->value_size);
    if (slot->name == SIZE_MAX || (slot->packed && !unpack(r, &value)))
        return;
    nl_field *field = builder_add_name(&r->builder, view(r, slot->name, slot->name_size), r->s);
    if (!set_value(field, slot->type, value))
        refuse(r, "a value is not of its type");
}

static void end_record(xml_reader *r)
{
    builder_begin(&r->builder, r->text.size);
    for (member m = MEMBER_TIME; m <= MEMBER_PROG; m++)
        take_member(r, m);
    for (size_t i = 0; i < r->count; i++)
        take_field(r, &r->fields[i]);
    if (r->bad == NULL && !builder_finish(&r->builder, true, r->s))
        refuse(r, "a record has no time");
    if (r->bad != NULL)
        sink_malformed(r->s, r->line - r->s->lines_before, 0, r->bad, "", 0);
    r->in_record = false;
}

static void end_element(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    (void)name, (void)prefix, (void)uri;
    xml_reader *r = user;
    r->depth--;
    if (r->depth == 2 && r->in_field) {
        field_slot *field = &r->fields[r->count - 1];
        field->value_size = r->text.size - field->value;
        r->in_field = false;
    } else if (r->depth == 1 && r->in_record) {
        end_record(r);
    }
}

/* Entities could make much of little; logs have no use for them. */
static void refuse_document_type(void *user, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    (void)external, (void)system;
    xml_reader *r = user;
    sink_malformed(r->s, (uint64_t)xmlSAX2GetLineNumber(r->parser) - r->s->lines_before, 0,
                   "a log has no document type", (const char *)name, strlen((const char *)name));
    r->failed = true;
    xmlStopParser(r->parser);
}

static void ignore(void *user, const char *format, ...)
{
    (void)user, (void)format;
}

static importer *open_reader(void *shared)
{
    (void)shared;
    xml_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    r->base.kind = &xml_importer;
    xmlSAXHandler handler = {.initialized = XML_SAX2_MAGIC,
                             .startElementNs = start_element,
                             .endElementNs = end_element,
                             .characters = characters,
                             .cdataBlock = characters,
                             .internalSubset = refuse_document_type,
                             .error = ignore,
                             .warning = ignore};
    r->parser = xmlCreatePushParserCtxt(&handler, r, NULL, 0, NULL);
    if (r->parser == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    /* Without NOENT an attribute's &amp; stays one; there are no entities but the five that XML has. */
    xmlCtxtUseOptions(r->parser, XML_PARSE_NOENT | XML_PARSE_NONET | XML_PARSE_HUGE | XML_PARSE_BIG_LINES);
    return &r->base;
}

static void close_reader(importer *base)
{
    xml_reader *r = (xml_reader *)base;
    if (r->parser->myDoc != NULL)
        xmlFreeDoc(r->parser->myDoc);
    xmlFreeParserCtxt(r->parser);
    builder_free(&r->builder);
    nl_buffer_free(&r->text);
    free(r->fields);
    free(r);
}

/* What libxml2 found; the rest of the document is lost, for nothing tells where it would be well-formed again. */
static void say_error(xml_reader *r)
{
    const xmlError *error = xmlCtxtGetLastError(r->parser);
    char words[200];
    snprintf(words, sizeof words, "%s",
             error != NULL && error->message != NULL ? error->message : "it is not well-formed");
    size_t size = strlen(words);
    while (size > 0 && words[size - 1] == '\n')
        words[--size] = '\0';
    uint64_t line = error != NULL && error->line > 0 ? (uint64_t)error->line : 1;
    sink_malformed(r->s, line - r->s->lines_before, 0, words, "", 0);
    r->failed = true;
}

static void parse(xml_reader *r, const char *data, size_t size, bool last, sink *s)
{
    enum { PIECE = 1 << 20 };
    r->s = s;
    do {
        size_t piece = size < PIECE ? size : PIECE;
        if (r->failed)
            return;
        if (xmlParseChunk(r->parser, data, (int)piece, last && piece == size) != 0 && !r->failed)
            say_error(r);
        data += piece;
        size -= piece;
    } while (size > 0);
}

static void read_piece(importer *base, const char *data, size_t size, sink *s)
{
    if (size > 0)
        parse((xml_reader *)base, data, size, false, s);
}

static void read_end(importer *base, sink *s)
{
    xml_reader *r = (xml_reader *)base;
    parse(r, "", 0, true, s);
}

/* The parser takes pieces that end anywhere. */
static size_t cut_anywhere(const char *data, size_t size)
{
    (void)data;
    return size;
}

static bool detect(const char *data, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *at = data, *end = data + size;
    if (size >= 3 && memcmp(at, mark, 3) == 0)
        at += 3;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at < end && *at == '<';
}

const importer_kind xml_importer = {
    .name = "xml",
    .what = "XML, as doc/netlogger.xsd says",
    .in_order = true,
    .detect = detect,
    .cut = cut_anywhere,
    .open = open_reader,
    .close = close_reader,
    .read = read_piece,
    .end = read_end,
};
