/*
 * SOAP 1.1 messages, document/literal wrapped, as nlagent.wsdl describes them.
 *
 * A message may come from any client. soap_read rejects a message that is not SOAP 1.1, or that has a processing
 * instruction or a DOCTYPE declaration, which could declare entities. A message may have at most 16 levels of elements,
 * 20,000 elements, 64 attributes of an element, and 8 KiB in an attribute. Memory is bounded by a small multiple of the
 * message's size, which the caller limits. libxml2 loads no files or URLs. Any thread may call these functions.
 */
#ifndef NLAGENT_SOAP_H
#define NLAGENT_SOAP_H

#include "agents/directory.h"

#include <netlogger.h>

#define SOAP_NAMESPACE "http://schemas.xmlsoap.org/soap/envelope/"
#define AGENT_NAMESPACE "urn:netlogger:agent:1"

enum { SOAP_NAME_SIZE = 64 };

/* An element within the operation's element. An element precedes the elements that it contains. */
typedef struct soap_argument {
    char name[SOAP_NAME_SIZE]; /* the path from the operation: "agent.sensor" */
    size_t value;              /* offset of the NUL-terminated value in the call's text */
} soap_argument;

typedef struct soap_call {
    char operation[SOAP_NAME_SIZE];
    soap_argument *arguments;
    size_t count, capacity;
    nl_buffer text;
} soap_call;

/* Reads a message. Returns false and sets the error if the message is invalid. Call soap_call_free in either case. */
bool soap_read(const char *data, size_t size, soap_call *call);
void soap_call_free(soap_call *call);

/* Returns the value of the first argument with the name, or NULL. */
const char *soap_value(const soap_call *call, const char *name);

/* Returns the value of the next argument with the name after *place, which is 0 at first. Returns NULL at the end. */
const char *soap_next_value(const soap_call *call, const char *name, size_t *place);

/*
 * Replaces the content of `lines` with the records of a reply, as ULM. The request must contain <format>ulm</format>.
 * Returns false and sets the error if the reply has invalid base64.
 */
bool soap_lines(const soap_call *call, nl_buffer *lines);

/* ---- writing ---- */

/* Begin and end a message whose body is an element called `name`. */
void soap_begin(nl_buffer *out, const char *name);
void soap_end(nl_buffer *out, const char *name);

/*
 * Append an element with a value. If XML cannot represent the value, each byte that is not a valid character by itself
 * becomes "?".
 */
void soap_put(nl_buffer *out, const char *name, const char *value);
void soap_put_number(nl_buffer *out, const char *name, double value);

/* Begin and end an element that contains other elements. */
void soap_open(nl_buffer *out, const char *name);
void soap_close(nl_buffer *out, const char *name);

/* Appends an element for each field of a record. */
void soap_put_fields(nl_buffer *out, const nl_record *record);

/* Appends a record as doc/netlogger.xsd describes it. */
void soap_put_record(nl_buffer *out, const nl_record *record);

/* Appends records, which are lines of ULM, in base64, because their bytes may not be valid in XML. */
void soap_put_lines(nl_buffer *out, const nl_buffer *lines);

/*
 * Appends an agent with its sensors. If ttl_s is 0, the message contains no time after which the registration expires.
 */
void soap_put_agent(nl_buffer *out, const char *host, const char *url, double ttl_s, const directory_sensor *sensors,
                    size_t count);

/* Appends a whole message: a fault with this thread's error. The error's code selects the fault's code. */
void soap_put_fault(nl_buffer *out);

#endif
