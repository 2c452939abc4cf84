/*
 * Protocols that a rules file describes, for nlkernel trace. A section [protocol NAME] describes messages that consist
 * of lines, or that begin with a length:
 *
 *   [protocol beanstalkd]               [protocol names]
 *   port = 11300                        port = 53
 *   frame = line                        frame = length at 0 size 2 big add 2
 *   request = put reserve quit          request-at = 4 2
 *   request-body = put 4                request = 0x0100 query
 *   silent = quit                       reply-at = 4 2
 *   reply = INSERTED RESERVED           reply = 0x8180 NOERROR
 *   reply-body = RESERVED 2             failed = 0x8183 NXDOMAIN
 *   failed = NOT_FOUND
 *
 * The manual page nlkernel(1) explains the keys. The verb of a request and the status of a reply are always names from
 * the rules file, so that the log contains no secret values of messages. With frame = line, # in a name matches a
 * digit.
 *
 * Messages may contain any bytes. Descriptions do not change after descriptions_add. Not thread-safe.
 */
#ifndef NLKERNEL_TRACE_DESCRIPTION_H
#define NLKERNEL_TRACE_DESCRIPTION_H

#include "synthesis/sections.h"
#include "trace/protocol.h"

typedef struct descriptions descriptions;

descriptions *descriptions_new(void);
void descriptions_free(descriptions *d); /* NULL is allowed */

/*
 * Adds the protocols of the sections [protocol NAME]. Returns false and sets the error if a description is invalid or
 * there is no description.
 */
bool descriptions_add(descriptions *d, const nl_sections *sections);

/* Returns the described protocol that has one of the two ports and recognizes the data as a request, and fills in
 * *request. Returns NULL if there is no such protocol. `d` may be NULL. The result is valid until descriptions_free. */
const protocol *descriptions_find(const descriptions *d, uint16_t port, uint16_t other_port,
                                  const protocol_bytes *bytes, protocol_request *request);

/* Read a request and a reply, like the functions of a protocol (protocol.h). */
bool description_read_request(const description *d, const protocol_bytes *bytes, protocol_request *request);
protocol_progress description_read_reply(const description *d, const protocol_bytes *bytes,
                                         const protocol_request *request, protocol_reply *reply);

#endif
