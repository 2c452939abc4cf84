#include "config.h"

#include "agents/soap.h"

#include "program/encoding.h"
#include "program/record_xml.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/time_internal.h"

#include <libxml/parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 16,
    ELEMENTS_MAX = 20000,
    ATTRIBUTES_MAX = 64, /* of an element, namespaces by themselves */
    ATTRIBUTE_MAX = 8 << 10,
    ATTRIBUTE_POINTERS = 5 /* of libxml2, for each attribute */
};

/* Where in a message an element is, by its depth. */
enum { ENVELOPE, HEADER_OR_BODY, OPERATION, ARGUMENT };

typedef struct soap_reader {
    soap_call *call;
    xmlParserCtxtPtr parser;
    int depth;
    size_t elements;
    bool refused, in_body, has_body, in_header, has_operation;
    char path[SOAP_NAME_SIZE];
    size_t starts[DEPTH_MAX]; /* of the path's parts */
    size_t open;              /* the argument whose text comes, from 1; 0: none */
    nl_record *record;        /* that is being read */
    char field[256];
    nl_type type;
    bool packed, in_field;
    nl_buffer value;
} soap_reader;

static bool soap_is(const xmlChar *name, const char *wanted)
{
    return name != NULL && strcmp((const char *)name, wanted) == 0;
}

/* Keeps the first error. */
static void soap_refuse(soap_reader *r, nl_error_code code, const char *message)
{
    if (!r->refused)
        nl_error_set(code, "%s", message);
    r->refused = true;
    xmlStopParser(r->parser);
}

/* ---- records within ---- */

/* One of an element's attributes, cut to size. */
static nl_string attribute(const xmlChar **attributes, int count, const char *name)
{
    for (int i = 0; i < count; i++, attributes += ATTRIBUTE_POINTERS)
        if (soap_is(attributes[0], name))
            return (nl_string){(const char *)attributes[3], (size_t)(attributes[4] - attributes[3])};
    return (nl_string){NULL, 0};
}

static bool equals(nl_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* A standard field, which may be in base64. */
static nl_string unpack_attribute(soap_reader *r, const xmlChar **attributes, int count, const char *name)
{
    nl_string text = attribute(attributes, count, name), packed = attribute(attributes, count, "base64");
    if (text.data == NULL || packed.data == NULL || memmem(packed.data, packed.size, name, strlen(name)) == NULL)
        return text;
    r->value.size = 0;
    nl_buffer_reserve(&r->value, text.size + 1);
    size_t size = base64_get(text, r->value.data);
    return (nl_string){r->value.data, size == SIZE_MAX ? 0 : size};
}

static void begin_record(soap_reader *r, const xmlChar **attributes, int count)
{
    int64_t time_ns = 0;
    nl_string time = attribute(attributes, count, "time");
    r->record = nl_record_new();
    bool good = time.data == NULL || nl_time_parse(time.data, time.size, NL_FRACTION_DECIMAL, &time_ns) == NL_OK;
    nl_record_set_time(r->record, time_ns);
    nl_string text = unpack_attribute(r, attributes, count, "level");
    if (text.data != NULL)
        nl_record_set_level(r->record, nl_level_parse(text.data, text.size));
    if ((text = unpack_attribute(r, attributes, count, "host")).data != NULL)
        nl_record_set_host(r->record, text.data, text.size);
    if ((text = unpack_attribute(r, attributes, count, "prog")).data != NULL)
        nl_record_set_prog(r->record, text.data, text.size);
    if ((text = unpack_attribute(r, attributes, count, "event")).data != NULL)
        nl_record_set_event(r->record, text.data, text.size);
    if (!good) /* at the end: a parser that is stopped has no attributes any more */
        soap_refuse(r, NL_ERROR_INVALID, "a record's time can't be read");
}

static void begin_field(soap_reader *r, const xmlChar **attributes, int count)
{
    nl_string name = attribute(attributes, count, "n"), type = attribute(attributes, count, "t");
    snprintf(r->field, sizeof r->field, "%.*s", (int)name.size, name.data != NULL ? name.data : "");
    r->type = NL_TYPE_STRING;
    for (nl_type t = NL_TYPE_INT; t <= NL_TYPE_BOOL; t++)
        if (type.data != NULL && equals(type, xml_type_name(t)))
            r->type = t;
    r->packed = equals(attribute(attributes, count, "e"), "base64");
    r->in_field = true;
    r->value.size = 0;
}

static void end_field(soap_reader *r)
{
    nl_buffer_append(&r->value, "", 1);
    size_t size = r->value.size - 1;
    const char *text = r->value.data;
    nl_field as_text = {.type = NL_TYPE_STRING, .string = {text, size}};
    double number;
    int64_t integer;
    r->in_field = false;
    if (r->packed && (size = base64_get((nl_string){text, size}, r->value.data)) == SIZE_MAX)
        soap_refuse(r, NL_ERROR_INVALID, "a value is no base64");
    else if (r->type == NL_TYPE_INT && nl_field_int(&as_text, &integer))
        nl_record_add_int(r->record, r->field, integer);
    else if (r->type == NL_TYPE_UINT)
        nl_record_add_uint(r->record, r->field, strtoull(text, NULL, 10));
    else if (r->type == NL_TYPE_DOUBLE && nl_field_double(&as_text, &number))
        nl_record_add_double(r->record, r->field, number);
    else if (r->type == NL_TYPE_BOOL)
        nl_record_add_bool(r->record, r->field, strcmp(text, "true") == 0);
    else
        nl_record_add_string(r->record, r->field, text, size);
}

/* ---- calls ---- */

static void add_argument(soap_reader *r, const char *name)
{
    soap_call *c = r->call;
    int level = r->depth - ARGUMENT;
    r->starts[level] = strlen(r->path);
    size_t used = r->starts[level];
    if (used + strlen(name) + 2 > sizeof r->path) {
        soap_refuse(r, NL_ERROR_INVALID, "a name is too long");
        return;
    }
    snprintf(r->path + used, sizeof r->path - used, "%s%s", used > 0 ? "." : "", name);
    if (c->count == c->capacity) {
        c->capacity = c->capacity * 2 + 16;
        c->arguments = nl_memory_check(realloc(c->arguments, c->capacity * sizeof *c->arguments));
    }
    soap_argument *a = &c->arguments[c->count++];
    memcpy(a->name, r->path, sizeof a->name); /* both are of that size */
    a->depth = level;
    a->value = c->text.size;
    nl_buffer_append(&c->text, "", 1);
    r->open = c->count;
}

/* A header that has to be understood is not. */
static void check_header(soap_reader *r, const xmlChar **attributes, int count)
{
    nl_string must = attribute(attributes, count, "mustUnderstand");
    if (must.data != NULL && !equals(must, "0"))
        soap_refuse(r, NL_ERROR_UNSUPPORTED, "there are no headers that are understood here");
}

static void begin_operation(soap_reader *r, const xmlChar *name, const xmlChar *uri)
{
    bool fault = soap_is(uri, SOAP_NAMESPACE) && soap_is(name, "Fault");
    if (r->has_operation)
        soap_refuse(r, NL_ERROR_INVALID, "there is more than one element in the Body");
    else if (!fault && !soap_is(uri, AGENT_NAMESPACE))
        soap_refuse(r, NL_ERROR_INVALID, "the operation is not of the namespace " AGENT_NAMESPACE);
    else if (strlen((const char *)name) >= SOAP_NAME_SIZE)
        soap_refuse(r, NL_ERROR_INVALID, "a name is too long");
    else
        snprintf(r->call->operation, sizeof r->call->operation, "%s", (const char *)name);
    r->has_operation = true;
}

static void begin_part(soap_reader *r, const xmlChar *name, const xmlChar *uri)
{
    bool ours = soap_is(uri, SOAP_NAMESPACE);
    r->in_header = ours && soap_is(name, "Header") && !r->has_body;
    r->in_body = ours && soap_is(name, "Body") && !r->has_body;
    if (!r->in_header && !r->in_body && ours)
        soap_refuse(r, NL_ERROR_INVALID, "an Envelope holds a Header and a Body");
    r->has_body = r->has_body || r->in_body;
}

/* What no message needs is there only to cost something; NULL when there is nothing of the kind. */
static const char *excess(int namespaces, const xmlChar **uris, int count, const xmlChar **attributes)
{
    if (namespaces > ATTRIBUTES_MAX || count > ATTRIBUTES_MAX)
        return "it has too many attributes";
    for (int i = 0; i < namespaces; i++)
        if (uris[2 * i + 1] != NULL && strlen((const char *)uris[2 * i + 1]) > ATTRIBUTE_MAX)
            return "an attribute is too large";
    for (int i = 0; i < count; i++)
        if (attributes[ATTRIBUTE_POINTERS * i + 4] - attributes[ATTRIBUTE_POINTERS * i + 3] > ATTRIBUTE_MAX)
            return "an attribute is too large";
    return NULL;
}

static void start_element(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int namespaces,
                          const xmlChar **uris, int count, int defaulted, const xmlChar **attributes)
{
    (void)prefix, (void)defaulted;
    soap_reader *r = user;
    const char *too_much = excess(namespaces, uris, count, attributes);
    if (too_much != NULL) {
        soap_refuse(r, NL_ERROR_INVALID, too_much);
        return;
    }
    if (r->depth >= DEPTH_MAX || ++r->elements > ELEMENTS_MAX) {
        soap_refuse(r, NL_ERROR_INVALID, r->depth >= DEPTH_MAX ? "it is nested too deep" : "it has too many elements");
        return;
    }
    if (r->record != NULL) {
        if (soap_is(uri, XML_NAMESPACE) && soap_is(name, "f") && !r->in_field)
            begin_field(r, attributes, count);
    } else if (r->depth == ENVELOPE) {
        if (!soap_is(name, "Envelope"))
            soap_refuse(r, NL_ERROR_INVALID, "it is no Envelope of SOAP");
        else if (!soap_is(uri, SOAP_NAMESPACE))
            soap_refuse(r, NL_ERROR_PROTOCOL, "only SOAP 1.1 is spoken here");
    } else if (r->depth == HEADER_OR_BODY) {
        begin_part(r, name, uri);
    } else if (r->depth == OPERATION && r->in_header) {
        check_header(r, attributes, count);
    } else if (r->depth == OPERATION && r->in_body) {
        begin_operation(r, name, uri);
    } else if (r->depth >= ARGUMENT && r->in_body) {
        if (soap_is(uri, XML_NAMESPACE) && soap_is(name, "record"))
            begin_record(r, attributes, count);
        else
            add_argument(r, (const char *)name);
    }
    r->depth++;
}

static void characters(void *user, const xmlChar *text, int size)
{
    soap_reader *r = user;
    if (r->record != NULL) {
        if (r->in_field)
            nl_buffer_append(&r->value, text, (size_t)size);
        return;
    }
    if (r->open == 0)
        return;
    r->call->text.size--; /* the NUL of the argument that is open, which is the last */
    nl_buffer_append(&r->call->text, text, (size_t)size);
    nl_buffer_append(&r->call->text, "", 1);
}

static void end_element(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    (void)prefix;
    soap_reader *r = user;
    r->depth--;
    if (r->record != NULL) {
        if (soap_is(name, "f") && soap_is(uri, XML_NAMESPACE) && r->in_field) {
            end_field(r);
        } else if (soap_is(name, "record") && soap_is(uri, XML_NAMESPACE)) {
            nl_record_encode(r->record, NL_FORMAT_ULM, &r->call->records);
            nl_record_free(r->record);
            r->record = NULL;
        }
        return;
    }
    r->open = 0;
    if (r->in_body && r->depth >= ARGUMENT)
        r->path[r->starts[r->depth - ARGUMENT]] = '\0';
}

/* Entities could make much of little, or have files read. */
static void refuse_document_type(void *user, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    (void)name, (void)external, (void)system;
    soap_refuse(user, NL_ERROR_INVALID, "a message of SOAP has no document type");
}

static void refuse_instruction(void *user, const xmlChar *target, const xmlChar *data)
{
    (void)target, (void)data;
    soap_refuse(user, NL_ERROR_INVALID, "a message of SOAP has no processing instructions");
}

static void ignore(void *user, const char *format, ...)
{
    (void)user, (void)format;
}

static void refuse_malformed(soap_reader *r)
{
    const xmlError *error = xmlCtxtGetLastError(r->parser);
    const char *problem = error != NULL && error->message != NULL ? error->message : "it is not well-formed";
    if (!r->refused)
        nl_error_set(NL_ERROR_INVALID, "line %d: %.*s", error != NULL ? error->line : 0, (int)strcspn(problem, "\n"),
                     problem);
    r->refused = true;
}

bool soap_read(const char *data, size_t size, soap_call *call)
{
    *call = (soap_call){0};
    soap_reader r = {.call = call};
    xmlSAXHandler handler = {.initialized = XML_SAX2_MAGIC,
                             .startElementNs = start_element,
                             .endElementNs = end_element,
                             .characters = characters,
                             .cdataBlock = characters,
                             .internalSubset = refuse_document_type,
                             .processingInstruction = refuse_instruction,
                             .error = ignore,
                             .warning = ignore};
    r.parser = nl_memory_check(xmlCreatePushParserCtxt(&handler, &r, NULL, 0, NULL));
    xmlCtxtUseOptions(r.parser, XML_PARSE_NOENT | XML_PARSE_NONET);
    if (size == 0 || size > INT32_MAX || xmlParseChunk(r.parser, data, (int)size, 1) != 0)
        refuse_malformed(&r);
    if (!r.has_operation)
        soap_refuse(&r, NL_ERROR_INVALID, "there is nothing in the Body");
    if (r.parser->myDoc != NULL)
        xmlFreeDoc(r.parser->myDoc);
    xmlFreeParserCtxt(r.parser);
    nl_record_free(r.record);
    nl_buffer_free(&r.value);
    return !r.refused;
}

void soap_call_free(soap_call *call)
{
    free(call->arguments);
    nl_buffer_free(&call->text);
    nl_buffer_free(&call->records);
}

const char *soap_next_value(const soap_call *call, const char *name, size_t *place)
{
    while (*place < call->count) {
        const soap_argument *a = &call->arguments[(*place)++];
        if (strcmp(a->name, name) == 0)
            return call->text.data + a->value;
    }
    return NULL;
}

const char *soap_value(const soap_call *call, const char *name)
{
    size_t place = 0;
    return soap_next_value(call, name, &place);
}

/* ---- writing ---- */

static void agents_soap_put(nl_buffer *out, const char *text)
{
    nl_buffer_append(out, text, strlen(text));
}

void soap_open(nl_buffer *out, const char *name)
{
    agents_soap_put(out, "<");
    agents_soap_put(out, name);
    agents_soap_put(out, ">");
}

void soap_close(nl_buffer *out, const char *name)
{
    agents_soap_put(out, "</");
    agents_soap_put(out, name);
    agents_soap_put(out, ">");
}

static void soap_put_text(nl_buffer *out, nl_string text)
{
    if (xml_put_text(out, text, false))
        return;
    for (size_t i = 0; i < text.size; i++)
        if (!xml_put_text(out, (nl_string){text.data + i, 1}, false))
            agents_soap_put(out, "?");
}

void soap_put(nl_buffer *out, const char *name, const char *value)
{
    soap_open(out, name);
    soap_put_text(out, (nl_string){value, strlen(value)});
    soap_close(out, name);
}

void soap_put_number(nl_buffer *out, const char *name, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    soap_put(out, name, text);
}

void soap_put_fields(nl_buffer *out, const nl_record *record)
{
    for (size_t i = 0; i < record->field_count; i++) {
        char name[SOAP_NAME_SIZE], scratch[NL_FIELD_TEXT_SIZE];
        const nl_field *f = &record->fields[i];
        snprintf(name, sizeof name, "%.*s", (int)f->name.size, f->name.data);
        soap_open(out, name);
        soap_put_text(out, nl_field_text(f, scratch));
        soap_close(out, name);
    }
}

void soap_put_record(nl_buffer *out, const nl_record *record)
{
    char time[NL_TIME_TEXT_SIZE];
    record_xml_put(record, (nl_string){time, nl_time_format_iso(record->time_ns, time)}, XML_NAMESPACE, out);
}

static void begin_envelope(nl_buffer *out)
{
    agents_soap_put(out,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<s:Envelope xmlns:s=\"" SOAP_NAMESPACE "\"><s:Body>");
}

void soap_begin(nl_buffer *out, const char *name)
{
    begin_envelope(out);
    agents_soap_put(out, "<");
    agents_soap_put(out, name);
    agents_soap_put(out, " xmlns=\"" AGENT_NAMESPACE "\">");
}

void soap_end(nl_buffer *out, const char *name)
{
    soap_close(out, name);
    agents_soap_put(out, "</s:Body></s:Envelope>\n");
}

void soap_put_fault(nl_buffer *out)
{
    static const struct {
        nl_error_code error;
        const char *code, *kind;
    } faults[] = {
        {NL_ERROR_INVALID, "Client", "BadRequest"},
        {NL_ERROR_NOT_FOUND, "Client", "NotFound"},
        {NL_ERROR_PERMISSION, "Client", "AccessDenied"},
        {NL_ERROR_LIMIT, "Client", "LimitReached"},
        {NL_ERROR_BUSY, "Client", "Busy"},
        {NL_ERROR_PROTOCOL, "VersionMismatch", "VersionMismatch"},
        {NL_ERROR_UNSUPPORTED, "MustUnderstand", "MustUnderstand"},
        {NL_ERROR_TIMEOUT, "Server", "NoData"},
    };
    enum { COUNT = sizeof faults / sizeof faults[0] };
    size_t i = 0;
    while (i < COUNT && faults[i].error != nl_error_get_code())
        i++;
    nl_error_prepend("%s", i < COUNT ? faults[i].kind : "Failed");
    begin_envelope(out);
    agents_soap_put(out, "<s:Fault><faultcode>s:");
    agents_soap_put(out, i < COUNT ? faults[i].code : "Server");
    agents_soap_put(out, "</faultcode>");
    soap_put(out, "faultstring", nl_error_message());
    agents_soap_put(out, "</s:Fault></s:Body></s:Envelope>\n");
}
