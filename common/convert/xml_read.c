/*
 * Reads XML with libxml2's push parser; xml_write.c describes the format. The reader's memory is proportional to the
 * largest record, for three reasons. The handlers build no tree. libxml2's limits apply, because XML_PARSE_HUGE is not
 * set. The reader rejects a DOCTYPE before its first declaration, so a document cannot define entities.
 */
#include "config.h"

#include "convert/builder.h"
#include "convert/json_scan.h"
#include "base/library.h"
#include "program/record_xml.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <libxml/parser.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    RECORD_SIZE_MAX = 64 << 20,
    DEPTH_MAX = 64,
    TAG_SIZE_MAX = 1 << 20, /* bytes; libxml2's time for a tag is quadratic in the number of attributes */
    FOREIGN_MAX = 1000,     /* limited because libxml2 stores the names of all elements and attributes */
    PIECE_SIZE = 64 << 10,
};

/* The functions of libxml2. */
#define XML_FUNCTIONS(FUNCTION)                                                                                        \
    FUNCTION(xml, ByteConsumed)                                                                                        \
    FUNCTION(xml, CreatePushParserCtxt)                                                                                \
    FUNCTION(xml, CtxtGetLastError)                                                                                    \
    FUNCTION(xml, CtxtUseOptions)                                                                                      \
    FUNCTION(xml, FreeDoc)                                                                                             \
    FUNCTION(xml, FreeParserCtxt)                                                                                      \
    FUNCTION(xml, ParseChunk)                                                                                          \
    FUNCTION(xml, SAX2GetLineNumber)                                                                                   \
    FUNCTION(xml, SetGenericErrorFunc)                                                                                 \
    FUNCTION(xml, StopParser)

NL_LIBRARY_DEFINE(xml, XML_LIBRARY, XML_FUNCTIONS);

typedef struct field_slot {
    nl_type type;
    bool packed;
    size_t name, name_size, value, value_size; /* offsets and sizes in `text`, in bytes */
} field_slot;

typedef struct xml_reader {
    importer base;
    xmlParserCtxtPtr parser;
    sink *s;
    uint64_t bytes; /* number of bytes given to the parser */
    int depth;      /* nesting depth of elements */
    int foreign;    /* number of unknown elements, attributes and namespaces so far */
    bool in_record, in_field, failed;
    uint64_t line;                      /* line of the record in the input */
    nl_buffer text;                     /* the texts of the record */
    size_t members[MEMBER_PROG + 1][2]; /* offset in text (SIZE_MAX: no member) and size */
    char packed[64];                    /* names of the attributes in base64 */
    field_slot *fields;
    size_t count, capacity;
    const char *problem; /* the first error in the record, or NULL */
    builder builder;
} xml_reader;

/* Returns the line number of the parser's position in the input. */
static uint64_t line_now(const xml_reader *r)
{
    return (uint64_t)xml.SAX2GetLineNumber(r->parser);
}

static bool xml_read_is(const xmlChar *name, const char *word)
{
    return strcmp((const char *)name, word) == 0;
}

static void xml_read_refuse(xml_reader *r, const char *problem)
{
    if (r->problem == NULL)
        r->problem = problem;
}

/* Reports an error and stops reading. */
static void xml_read_fail(xml_reader *r, const char *problem, const xmlChar *name)
{
    if (r->failed)
        return;
    sink_malformed(r->s, line_now(r) - r->s->lines_before, 0, problem, (const char *)name, strlen((const char *)name));
    r->failed = true;
    xml.StopParser(r->parser);
}

static void refuse_foreign(xml_reader *r, const char *problem)
{
    xml_read_refuse(r, problem);
    r->foreign++;
}

/* Returns whether the record may grow by `size` bytes. Otherwise, reports the record as malformed. */
static bool fits(xml_reader *r, size_t size)
{
    bool good = size <= RECORD_SIZE_MAX - r->text.size - r->count * sizeof *r->fields;
    if (!good)
        xml_read_refuse(r, "record is larger than 64 MiB");
    return good;
}

static size_t xml_read_keep(xml_reader *r, const void *data, size_t size)
{
    size_t at = r->text.size;
    if (fits(r, size))
        nl_buffer_append(&r->text, data, size);
    return at;
}

/* libxml2 describes an attribute by five pointers: name, prefix, namespace, value, end of value */
enum { ATTRIBUTE_POINTERS = 5 };

static void begin_record(xml_reader *r, int count, const xmlChar **attributes)
{
    r->in_record = true;
    r->text.size = 0;
    r->count = 0;
    r->problem = NULL;
    r->packed[0] = '\0';
    r->line = line_now(r);
    for (member m = MEMBER_NONE; m <= MEMBER_PROG; m++)
        r->members[m][0] = SIZE_MAX;
    for (int i = 0; i < count; i++, attributes += ATTRIBUTE_POINTERS) {
        size_t size = (size_t)(attributes[4] - attributes[3]);
        nl_string name = {(const char *)attributes[0], strlen((const char *)attributes[0])};
        if (xml_read_is(attributes[0], "time"))
            name = (nl_string){"ts", 2};
        member m = member_of(name);
        if (m != MEMBER_NONE) {
            r->members[m][0] = xml_read_keep(r, attributes[3], size);
            r->members[m][1] = size;
        } else if (xml_read_is(attributes[0], "base64") && size < sizeof r->packed) {
            memcpy(r->packed, attributes[3], size);
            r->packed[size] = '\0';
        } else {
            refuse_foreign(r, "a record has an unknown attribute");
        }
    }
}

static bool xml_type(nl_string name, nl_type *type)
{
    static const nl_type types[] = {NL_TYPE_INT, NL_TYPE_UINT, NL_TYPE_DOUBLE, NL_TYPE_BOOL};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const char *known = xml_type_name(types[i]);
        *type = types[i];
        if (strlen(known) == name.size && memcmp(known, name.data, name.size) == 0)
            return true;
    }
    *type = NL_TYPE_STRING;
    return nl_string_is(name, "string");
}

static nl_type type_of(xml_reader *r, const xmlChar *name, size_t size)
{
    nl_type type;
    if (!xml_type((nl_string){(const char *)name, size}, &type))
        xml_read_refuse(r, "a field has an invalid type");
    return type;
}

static void begin_field(xml_reader *r, int count, const xmlChar **attributes)
{
    if (!fits(r, sizeof *r->fields))
        return;
    NL_ARRAY_GROW(r->fields, r->count, r->capacity);
    field_slot *field = &r->fields[r->count++];
    *field = (field_slot){.name = SIZE_MAX};
    for (int i = 0; i < count; i++, attributes += ATTRIBUTE_POINTERS) {
        size_t size = (size_t)(attributes[4] - attributes[3]);
        if (xml_read_is(attributes[0], "n")) {
            field->name = xml_read_keep(r, attributes[3], size);
            field->name_size = size;
        } else if (xml_read_is(attributes[0], "t")) {
            field->type = type_of(r, attributes[3], size);
        } else if (xml_read_is(attributes[0], "e") && size == 6 && memcmp(attributes[3], "base64", 6) == 0) {
            field->packed = true;
        } else {
            refuse_foreign(r, "a field has an unknown attribute");
        }
    }
    if (field->name == SIZE_MAX)
        xml_read_refuse(r, "a field has no name");
    field->value = r->text.size;
    r->in_field = true;
}

static void start_element(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int namespaces,
                          const xmlChar **uris, int count, int defaulted, const xmlChar **attributes)
{
    (void)prefix, (void)uris, (void)defaulted;
    xml_reader *r = user;
    int depth = r->depth++;
    bool ours = uri == NULL || xml_read_is(uri, XML_NAMESPACE);
    r->foreign += depth > 0 ? namespaces : 0;
    if (depth == 0 && !(ours && xml_read_is(name, "log"))) {
        xml_read_fail(r, "not a NetLogger log", name);
    } else if (depth == 1 && ours && xml_read_is(name, "record")) {
        begin_record(r, count, attributes);
    } else if (depth == 2 && r->in_record && ours && xml_read_is(name, "f")) {
        begin_field(r, count, attributes);
    } else {
        refuse_foreign(r, "a record contains an unknown element");
        if (depth == 1)
            sink_malformed(r->s, line_now(r) - r->s->lines_before, 0, "unknown element", (const char *)name,
                           strlen((const char *)name));
    }
    if (r->foreign > FOREIGN_MAX || depth > DEPTH_MAX)
        xml_read_fail(r, "too many unknown elements, or elements nested too deeply", name);
}

static void characters(void *user, const xmlChar *text, int size)
{
    xml_reader *r = user;
    if (r->in_field)
        xml_read_keep(r, text, (size_t)size);
}

static nl_string view(const xml_reader *r, size_t at, size_t size)
{
    return size > 0 ? (nl_string){r->text.data + at, size} : (nl_string){"", 0};
}

/* Decodes base64 in place. Returns false if the text is malformed. */
static bool unpack(xml_reader *r, nl_string *value)
{
    if (value->size == 0)
        return true;
    char *bytes = r->text.data + (value->data - r->text.data);
    size_t size = base64_get(*value, bytes);
    if (size == SIZE_MAX) {
        xml_read_refuse(r, "invalid base64");
        return false;
    }
    value->size = size;
    return true;
}

static void xml_read_member(xml_reader *r, member m)
{
    static const char *const names[] = {
        [MEMBER_EVENT] = "event", [MEMBER_LEVEL] = "level", [MEMBER_HOST] = "host", [MEMBER_PROG] = "prog"};
    if (r->members[m][0] == SIZE_MAX)
        return;
    nl_string text = view(r, r->members[m][0], r->members[m][1]);
    if (m != MEMBER_TIME && strstr(r->packed, names[m]) != NULL && !unpack(r, &text))
        return;
    if (!builder_set(&r->builder, m, text))
        xml_read_refuse(r, "invalid time");
}

static bool xml_set_value(nl_field *field, nl_type type, nl_string text)
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
        field->bool_value = nl_string_is(text, "true");
        return field->bool_value || nl_string_is(text, "false");
    }
    return false;
}

static void xml_read_field(xml_reader *r, const field_slot *slot)
{
    nl_string value = view(r, slot->value, slot->value_size);
    if (slot->name == SIZE_MAX || (slot->packed && !unpack(r, &value)))
        return;
    nl_field *field = builder_add_name(&r->builder, view(r, slot->name, slot->name_size), r->s);
    if (!xml_set_value(field, slot->type, value))
        xml_read_refuse(r, "a value does not match its type");
}

static void end_record(xml_reader *r)
{
    builder_begin(&r->builder, r->text.size);
    for (member m = MEMBER_TIME; m <= MEMBER_PROG && r->problem == NULL; m++)
        xml_read_member(r, m);
    for (size_t i = 0; i < r->count && r->problem == NULL; i++)
        xml_read_field(r, &r->fields[i]);
    if (r->problem == NULL && !builder_finish(&r->builder, true, r->s))
        xml_read_refuse(r, nl_error_message());
    if (r->problem != NULL)
        sink_malformed(r->s, r->line - r->s->lines_before, 0, r->problem, "", 0);
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

/* Rejects the document, because a DOCTYPE could define entities that expand without bound. */
static void refuse_document_type(void *user, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    (void)external, (void)system;
    xml_read_fail(user, "XML with a DOCTYPE declaration is not supported", name);
}

static void ignore(void *user, const char *format, ...)
{
    (void)user, (void)format;
}

static void xml_read_open_reader(importer *base)
{
    xml_reader *r = (xml_reader *)base;
    r->failed = !*(const bool *)base->shared;
    if (r->failed)
        return;
    xmlSAXHandler handler = {.initialized = XML_SAX2_MAGIC,
                             .startElementNs = start_element,
                             .endElementNs = end_element,
                             .characters = characters,
                             .cdataBlock = characters,
                             .internalSubset = refuse_document_type,
                             .error = ignore,
                             .warning = ignore};
    xml.SetGenericErrorFunc(NULL, ignore); /* otherwise, libxml2 would print some errors */
    r->parser = nl_memory_check(xml.CreatePushParserCtxt(&handler, r, NULL, 0, NULL));
    /* NOENT makes libxml2 expand &amp; in attributes. Documents cannot define other entities. */
    xml.CtxtUseOptions(r->parser, XML_PARSE_NOENT | XML_PARSE_NONET | XML_PARSE_BIG_LINES);
}

static void xml_read_close_reader(importer *base)
{
    xml_reader *r = (xml_reader *)base;
    if (r->parser != NULL) {
        if (r->parser->myDoc != NULL)
            xml.FreeDoc(r->parser->myDoc);
        xml.FreeParserCtxt(r->parser);
    }
    builder_free(&r->builder);
    nl_buffer_free(&r->text);
    free(r->fields);
}

/* Reports libxml2's error and stops reading, because the parser cannot continue. */
static void xml_read_report_error(xml_reader *r)
{
    const xmlError *error = xml.CtxtGetLastError(r->parser);
    char message[200];
    snprintf(message, sizeof message, "%s",
             error != NULL && error->message != NULL ? error->message : "not well-formed");
    size_t size = strlen(message);
    while (size > 0 && message[size - 1] == '\n')
        message[--size] = '\0';
    uint64_t line = (error != NULL && error->line > 0 ? (uint64_t)error->line : 1);
    sink_malformed(r->s, line - r->s->lines_before, 0, message, "", 0);
    r->failed = true;
}

/*
 * Returns the number of bytes in the parser's buffer. Returns 0 if the encoding is not UTF-8, because libxml2 cannot
 * determine the number in this case.
 */
static int64_t waiting_size(const xml_reader *r)
{
    long consumed = xml.ByteConsumed(r->parser);
    return consumed >= 0 ? (int64_t)r->bytes - consumed : 0;
}

static void parse(xml_reader *r, const char *data, size_t size, bool last, sink *s)
{
    r->s = s;
    do {
        size_t piece = size < PIECE_SIZE ? size : PIECE_SIZE;
        if (r->failed)
            return;
        r->bytes += piece;
        if (xml.ParseChunk(r->parser, data, (int)piece, last && piece == size) != 0 && !r->failed)
            xml_read_report_error(r);
        else if (!r->failed && waiting_size(r) > TAG_SIZE_MAX)
            xml_read_fail(r, "a tag, comment or CDATA section is larger than 1 MiB", (const xmlChar *)"");
        data += piece;
        size -= piece;
    } while (size > 0);
}

static void read_piece(importer *base, const char *data, size_t size, sink *s)
{
    parse((xml_reader *)base, data, size, false, s);
}

static void read_end(importer *base, sink *s)
{
    xml_reader *r = (xml_reader *)base;
    parse(r, "", 0, true, s);
}

/*
 * Returns the size of the whole records, or of all bytes if the data ends no record. The parser accepts any pieces.
 * With pieces of whole records, programs get the records earlier.
 */
static size_t xml_read_cut_records(const char *data, size_t size)
{
    static const char close[] = "</record>";
    const size_t close_size = sizeof close - 1;
    for (const char *at = data + size; at > data;) {
        const char *newline = memrchr(data, '\n', (size_t)(at - data));
        if (newline == NULL)
            break;
        if ((size_t)(newline - data) >= close_size && memcmp(newline - close_size, close, close_size) == 0)
            return (size_t)(newline + 1 - data);
        at = newline;
    }
    return size;
}

/* ---- the head ---- */

/*
 * The encodings that the reader accepts. libxml2 would convert other encodings with iconv, which stops at invalid bytes
 * and does not report their position. The reader reads US-ASCII as UTF-8.
 */
static const char *const encodings[] = {"UTF-8", "US-ASCII", "ASCII", "ISO-8859-1", "UTF-16", "UTF-16LE", "UTF-16BE"};
enum { DECLARATION_SIZE_MAX = 1024 };

/* xml_read_head sets the importers' shared state to the address of one of these flags. */
static bool document_is_readable = true, document_is_unreadable = false;

/* Returns the encoding that an XML declaration names. `data` is NULL if the declaration names no encoding. */
static nl_string xml_declared_encoding(nl_string declaration)
{
    static const char name[] = "encoding";
    const char *end = declaration.data + declaration.size;
    const char *at = memmem(declaration.data, declaration.size, name, sizeof name - 1);
    if (at == NULL)
        return (nl_string){0};
    at += sizeof name - 1;
    while (at < end && strchr(" \t\r\n=", *at) != NULL)
        at++;
    if (at == end || (*at != '"' && *at != '\''))
        return (nl_string){0};
    const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
    return close != NULL ? (nl_string){at + 1, (size_t)(close - at - 1)} : (nl_string){0};
}

/*
 * Loads libxml2, and checks the encoding in the XML declaration. Consumes no bytes, because the parser also needs the
 * declaration.
 */
static size_t xml_read_head(const char *data, size_t size, bool all, void **shared, sink *s)
{
    static const char mark[] = "\xef\xbb\xbf", begin[] = "<?xml";
    size_t at = size >= 3 && memcmp(data, mark, 3) == 0 ? 3 : 0, compared = size - at;
    if (compared > sizeof begin - 1)
        compared = sizeof begin - 1;
    bool is_declaration = compared == 0 || memcmp(data + at, begin, compared) == 0;
    const char *close =
        size > 0 ? memmem(data, size < DECLARATION_SIZE_MAX ? size : DECLARATION_SIZE_MAX, "?>", 2) : NULL;
    if (is_declaration && close == NULL && size < DECLARATION_SIZE_MAX && !all)
        return 0;
    if (!nl_library_load(&xml_library)) {
        *shared = &document_is_unreadable;
        sink_malformed(s, 1, 0, nl_error_message(), "", 0);
        return 0;
    }
    *shared = &document_is_readable;
    if (!is_declaration || close == NULL)
        return 0;
    nl_string encoding = xml_declared_encoding((nl_string){data + at, (size_t)(close - data) - at});
    bool known = encoding.data == NULL;
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0] && !known; i++)
        known = strlen(encodings[i]) == encoding.size && strncasecmp(encodings[i], encoding.data, encoding.size) == 0;
    if (!known) {
        *shared = &document_is_unreadable;
        sink_malformed(s, 1, 0, "unsupported encoding; convert the document to UTF-8", encoding.data, encoding.size);
    }
    return 0;
}

static void xml_read_unshare(void *shared)
{
    (void)shared;
}

/*
 * Returns whether the data begins with an XML declaration, a comment, a DOCTYPE or a log element. A "<" is not
 * sufficient, because lines of other formats may begin with text such as <idle>-0.
 */
static bool xml_read_detect(const char *data, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf";
    char name[64] = "";
    const char *at = data, *end = data + size;
    if (size >= 3 && memcmp(at, mark, 3) == 0)
        at += 3;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    for (size_t i = 0; at < end && i + 1 < sizeof name && strchr(" \t\r\n/>", *at) == NULL; i++)
        name[i] = *at++;
    const char *colon = strchr(name, ':');
    return strcmp(name, "<?xml") == 0 || strncmp(name, "<!", 2) == 0 || strcmp(name, "<log") == 0 ||
           (name[0] == '<' && colon != NULL && strcmp(colon, ":log") == 0);
}

const importer_kind xml_importer = {
    .name = "xml",
    .what = "XML that conforms to doc/netlogger.xsd",
    .in_order = true,
    .detect = xml_read_detect,
    .head = xml_read_head,
    .unshare = xml_read_unshare,
    .cut = xml_read_cut_records,
    .size = sizeof(xml_reader),
    .open = xml_read_open_reader,
    .close = xml_read_close_reader,
    .read = read_piece,
    .end = read_end,
};
