/* URLs of HTTP servers. Any thread may call this function. */
#ifndef NETLOGGER_SERVICE_HTTP_URL_H
#define NETLOGGER_SERVICE_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Converts http://HOST[:PORT] or https://, with options, to the x-netlog or x-netlogs URL of the same address, so that
 * nl_url_parse can read it. Returns false if text is not such a URL, has no port and default_port is NULL, or does not
 * fit.
 */
bool url_from_http(const char *text, const char *default_port, char *url, size_t capacity);

#endif
