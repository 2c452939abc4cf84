/*
 * SOAP 1.1 messages, document/literal wrapped, as nlagent.wsdl says: read into calls, and written.
 *
 * What is read may come from anybody. It is rejected, with an error for soap_put_fault, when it is no XML, has a
 * document type (and so cannot declare entities), is nested deeper than 16 elements, holds more than 20000 elements, an
 * attribute of more than 8 KiB or an element with more than 64 of them, or is not what a SOAP message is; memory is
 * bounded by a small multiple of the message's size, which the caller bounds. libxml2 loads nothing from anywhere.
 */
#ifndef NLAGENT_SOAP_H
#define NLAGENT_SOAP_H

#include <netlogger.h>

#define SOAP_NAMESPACE "http://schemas.xmlsoap.org/soap/envelope/"
#define AGENT_NAMESPACE "urn:netlogger:agent:1"

enum { SOAP_NAME_SIZE = 64 };

/* An element within the operation's. Its name is the path to it, "agent.sensor"; those that hold others come before
 * them, with what text they have. */
typedef struct soap_argument {
    char name[SOAP_NAME_SIZE];
    size_t value; /* where in the call's text it begins, NUL-terminated */
    int depth;
} soap_argument;

typedef struct soap_call {
    char operation[SOAP_NAME_SIZE];
    soap_argument *arguments;
    size_t count, capacity;
    nl_buffer text;
    nl_buffer records; /* of an answer: the records in it, as lines of ULM */
} soap_call;

/* Reads a message. Returns false and sets the error when it is invalid. Free it with soap_call_free in any case. */
bool soap_read(const char *data, size_t size, soap_call *call);
void soap_call_free(soap_call *call);

/* The first argument of that name; NULL when there is none. */
const char *soap_value(const soap_call *call, const char *name);

/* The one after the one at *place (0 to begin with), of that name; NULL when there is no more. */
const char *soap_next_value(const soap_call *call, const char *name, size_t *place);

/* ---- writing ---- */

/* Begins a message whose body is an element of that name; ends it. */
void soap_begin(nl_buffer *out, const char *name);
void soap_end(nl_buffer *out, const char *name);

/* An element with text. What XML cannot hold is in it as "?". */
void soap_put(nl_buffer *out, const char *name, const char *value);
void soap_put_number(nl_buffer *out, const char *name, double value);
void soap_open(nl_buffer *out, const char *name);
void soap_close(nl_buffer *out, const char *name);

/* An element for each field of a record, by its name. */
void soap_put_fields(nl_buffer *out, const nl_record *record);

/* The record itself, as doc/netlogger.xsd says. */
void soap_put_record(nl_buffer *out, const nl_record *record);

/* A whole message: a fault that reports this thread's error. Its code selects the fault's code and kind. */
void soap_put_fault(nl_buffer *out);

#endif
