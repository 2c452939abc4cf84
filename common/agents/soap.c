#include "config.h"

#include "agents/soap.h"

#include "program/encoding.h"
#include "program/record_xml.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/time_internal.h"

#include <libxml/parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 16,
    ELEMENTS_MAX = 20000,
    ATTRIBUTES_MAX = 64, /* maximum number of an element's attributes, and of its namespaces */
    ATTRIBUTE_SIZE_MAX = 8 << 10,
    ATTRIBUTE_POINTERS = 5 /* pointers per attribute: name, prefix, namespace, start and end of the value */
};

/* The depths of the elements in a message. */
enum { ENVELOPE, HEADER_OR_BODY, OPERATION, ARGUMENT };

typedef struct soap_reader {
    soap_call *call;
    xmlParserCtxtPtr parser;
    int depth;
    size_t elements;
    bool rejected, in_body, has_body, in_header, has_operation;
    char path[SOAP_NAME_SIZE];
    size_t starts[DEPTH_MAX]; /* start of each part of the path */
    bool in_argument;         /* the last argument's text follows */
} soap_reader;

static bool soap_is(const xmlChar *name, const char *expected)
{
    return name != NULL && strcmp((const char *)name, expected) == 0;
}

/* Stops reading. Keeps only the first error. */
static void soap_reject(soap_reader *r, nl_error_code code, const char *message)
{
    if (!r->rejected)
        nl_error_set(code, "%s", message);
    r->rejected = true;
    xmlStopParser(r->parser);
}

static void soap_add_argument(soap_reader *r, const char *name)
{
    soap_call *c = r->call;
    size_t start = r->starts[r->depth - ARGUMENT] = strlen(r->path);
    if (start + strlen(name) + 2 > sizeof r->path) {
        soap_reject(r, NL_ERROR_INVALID, "an element name is too long");
        return;
    }
    snprintf(r->path + start, sizeof r->path - start, "%s%s", start > 0 ? "." : "", name);
    NL_ARRAY_GROW(c->arguments, c->count, c->capacity);
    soap_argument *a = &c->arguments[c->count++];
    memcpy(a->name, r->path, sizeof a->name);
    a->value = c->text.size;
    nl_buffer_append(&c->text, "", 1);
    r->in_argument = true;
}

/* Rejects a mandatory header, because this module supports no headers. */
static void soap_check_header(soap_reader *r, const xmlChar **attributes, int count)
{
    for (int i = 0; i < count; i++, attributes += ATTRIBUTE_POINTERS)
        if (soap_is(attributes[0], "mustUnderstand") && (attributes[4] - attributes[3] != 1 || *attributes[3] != '0'))
            soap_reject(r, NL_ERROR_UNSUPPORTED, "a header has mustUnderstand set, but no headers are supported");
}

static void soap_begin_operation(soap_reader *r, const xmlChar *name, const xmlChar *uri)
{
    bool fault = soap_is(uri, SOAP_NAMESPACE) && soap_is(name, "Fault");
    if (r->has_operation)
        soap_reject(r, NL_ERROR_INVALID, "the Body has more than one element");
    else if (!fault && !soap_is(uri, AGENT_NAMESPACE))
        soap_reject(r, NL_ERROR_INVALID, "the operation is not in the namespace " AGENT_NAMESPACE);
    else if (strlen((const char *)name) >= SOAP_NAME_SIZE)
        soap_reject(r, NL_ERROR_INVALID, "an element name is too long");
    else
        strcpy(r->call->operation, (const char *)name);
    r->has_operation = true;
}

static void soap_begin_part(soap_reader *r, const xmlChar *name, const xmlChar *uri)
{
    bool is_soap = soap_is(uri, SOAP_NAMESPACE);
    r->in_header = is_soap && soap_is(name, "Header") && !r->has_body;
    r->in_body = is_soap && soap_is(name, "Body") && !r->has_body;
    if (!r->in_header && !r->in_body && is_soap)
        soap_reject(r, NL_ERROR_INVALID, "the Envelope has an element other than Header and Body");
    r->has_body = r->has_body || r->in_body;
}

/* Returns the reason why an element exceeds a limit, or NULL. */
static const char *find_excess(int namespaces, const xmlChar **uris, int count, const xmlChar **attributes)
{
    if (namespaces > ATTRIBUTES_MAX || count > ATTRIBUTES_MAX)
        return "an element has too many attributes";
    for (int i = 0; i < namespaces; i++)
        if (uris[2 * i + 1] != NULL && strlen((const char *)uris[2 * i + 1]) > ATTRIBUTE_SIZE_MAX)
            return "an attribute is too large";
    for (int i = 0; i < count; i++)
        if (attributes[ATTRIBUTE_POINTERS * i + 4] - attributes[ATTRIBUTE_POINTERS * i + 3] > ATTRIBUTE_SIZE_MAX)
            return "an attribute is too large";
    return NULL;
}

static void soap_start_element(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
                               int namespaces, const xmlChar **uris, int count, int defaulted,
                               const xmlChar **attributes)
{
    (void)prefix, (void)defaulted;
    soap_reader *r = user;
    const char *excess = find_excess(namespaces, uris, count, attributes);
    if (excess == NULL && r->depth >= DEPTH_MAX)
        excess = "the elements are nested too deeply";
    if (excess == NULL && ++r->elements > ELEMENTS_MAX)
        excess = "the message has too many elements";
    if (excess != NULL) {
        soap_reject(r, NL_ERROR_INVALID, excess);
        return;
    }
    if (r->depth == ENVELOPE && !soap_is(name, "Envelope"))
        soap_reject(r, NL_ERROR_INVALID, "the message is not a SOAP Envelope");
    else if (r->depth == ENVELOPE && !soap_is(uri, SOAP_NAMESPACE))
        soap_reject(r, NL_ERROR_PROTOCOL, "only SOAP 1.1 is supported");
    else if (r->depth == HEADER_OR_BODY)
        soap_begin_part(r, name, uri);
    else if (r->depth == OPERATION && r->in_header)
        soap_check_header(r, attributes, count);
    else if (r->depth == OPERATION && r->in_body)
        soap_begin_operation(r, name, uri);
    else if (r->depth >= ARGUMENT && r->in_body)
        soap_add_argument(r, (const char *)name);
    r->depth++;
}

static void soap_characters(void *user, const xmlChar *text, int size)
{
    soap_reader *r = user;
    if (!r->in_argument)
        return;
    r->call->text.size--; /* removes the NUL of the last argument */
    nl_buffer_append(&r->call->text, text, (size_t)size);
    nl_buffer_append(&r->call->text, "", 1);
}

static void soap_end_element(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    (void)name, (void)prefix, (void)uri;
    soap_reader *r = user;
    r->depth--;
    r->in_argument = false;
    if (r->in_body && r->depth >= ARGUMENT)
        r->path[r->starts[r->depth - ARGUMENT]] = '\0';
}

/* Rejects a DOCTYPE, because entities could expand without bound or make libxml2 read files. */
static void soap_reject_document_type(void *user, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    (void)name, (void)external, (void)system;
    soap_reject(user, NL_ERROR_INVALID, "a SOAP message must not have a DOCTYPE declaration");
}

static void soap_reject_instruction(void *user, const xmlChar *target, const xmlChar *data)
{
    (void)target, (void)data;
    soap_reject(user, NL_ERROR_INVALID, "a SOAP message must not have processing instructions");
}

static void soap_ignore(void *user, const char *format, ...)
{
    (void)user, (void)format;
}

static void soap_reject_malformed(soap_reader *r)
{
    const xmlError *error = xmlCtxtGetLastError(r->parser);
    const char *problem = error != NULL && error->message != NULL ? error->message : "not well-formed";
    if (!r->rejected)
        nl_error_set(NL_ERROR_INVALID, "line %d: %.*s", error != NULL ? error->line : 0, (int)strcspn(problem, "\n"),
                     problem);
    r->rejected = true;
}

bool soap_read(const char *data, size_t size, soap_call *call)
{
    *call = (soap_call){0};
    soap_reader r = {.call = call};
    xmlSAXHandler handler = {.initialized = XML_SAX2_MAGIC,
                             .startElementNs = soap_start_element,
                             .endElementNs = soap_end_element,
                             .characters = soap_characters,
                             .cdataBlock = soap_characters,
                             .internalSubset = soap_reject_document_type,
                             .processingInstruction = soap_reject_instruction,
                             .error = soap_ignore,
                             .warning = soap_ignore};
    r.parser = nl_memory_check(xmlCreatePushParserCtxt(&handler, &r, NULL, 0, NULL));
    xmlCtxtUseOptions(r.parser, XML_PARSE_NOENT | XML_PARSE_NONET | XML_PARSE_HUGE);
    if (size == 0 || size > INT32_MAX || xmlParseChunk(r.parser, data, (int)size, 1) != 0)
        soap_reject_malformed(&r);
    if (!r.has_operation)
        soap_reject(&r, NL_ERROR_INVALID, "the Body is empty");
    if (r.parser->myDoc != NULL)
        xmlFreeDoc(r.parser->myDoc);
    xmlFreeParserCtxt(r.parser);
    return !r.rejected;
}

void soap_call_free(soap_call *call)
{
    free(call->arguments);
    nl_buffer_free(&call->text);
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

bool soap_lines(const soap_call *call, nl_buffer *lines)
{
    const char *text = soap_value(call, "lines");
    nl_string packed = {text, text != NULL ? strlen(text) : 0};
    nl_buffer_reserve(lines, packed.size + 1);
    size_t size = packed.size > 0 ? base64_get(packed, lines->data) : 0;
    lines->size = size != SIZE_MAX ? size : 0;
    return size != SIZE_MAX || nl_error_false(NL_ERROR_PROTOCOL, "the reply contains invalid base64");
}

/* ---- writing ---- */

void soap_open(nl_buffer *out, const char *name)
{
    nl_buffer_append_text(out, "<");
    nl_buffer_append_text(out, name);
    nl_buffer_append_text(out, ">");
}

void soap_close(nl_buffer *out, const char *name)
{
    nl_buffer_append_text(out, "</");
    nl_buffer_append_text(out, name);
    nl_buffer_append_text(out, ">");
}

static void soap_put_text(nl_buffer *out, nl_string text)
{
    if (xml_put_text(out, text))
        return;
    for (size_t i = 0; i < text.size; i++)
        if (!xml_put_text(out, (nl_string){text.data + i, 1}))
            nl_buffer_append_text(out, "?");
}

void soap_put(nl_buffer *out, const char *name, const char *value)
{
    soap_open(out, name);
    soap_put_text(out, nl_string_of(value));
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

void soap_put_lines(nl_buffer *out, const nl_buffer *lines)
{
    soap_open(out, "lines");
    base64_put(out, (nl_string){lines->data, lines->size});
    soap_close(out, "lines");
}

void soap_put_agent(nl_buffer *out, const char *host, const char *url, double ttl_s, const directory_sensor *sensors,
                    size_t count)
{
    soap_open(out, "agent");
    soap_put(out, "host", host);
    soap_put(out, "url", url);
    if (ttl_s > 0)
        soap_put_number(out, "ttl", ttl_s);
    for (size_t i = 0; i < count; i++) {
        soap_open(out, "sensor");
        soap_put(out, "name", sensors[i].name);
        soap_put(out, "what", sensors[i].what);
        soap_put(out, "events", sensors[i].events);
        soap_close(out, "sensor");
    }
    soap_close(out, "agent");
}

static void begin_envelope(nl_buffer *out)
{
    nl_buffer_append_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<s:Envelope xmlns:s=\"" SOAP_NAMESPACE
                               "\"><s:Body>");
}

void soap_begin(nl_buffer *out, const char *name)
{
    begin_envelope(out);
    nl_buffer_append_text(out, "<");
    nl_buffer_append_text(out, name);
    nl_buffer_append_text(out, " xmlns=\"" AGENT_NAMESPACE "\">");
}

void soap_end(nl_buffer *out, const char *name)
{
    soap_close(out, name);
    nl_buffer_append_text(out, "</s:Body></s:Envelope>\n");
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
    nl_buffer_append_text(out, "<s:Fault><faultcode>s:");
    nl_buffer_append_text(out, i < COUNT ? faults[i].code : "Server");
    nl_buffer_append_text(out, "</faultcode>");
    soap_put(out, "faultstring", nl_error_message());
    nl_buffer_append_text(out, "</s:Fault></s:Body></s:Envelope>\n");
}
