/* The names in a certificate: its common names, and its DNS names, addresses and URIs (subjectAltName). */
#ifndef NETLOGGER_TRANSPORT_TLS_NAMES_H
#define NETLOGGER_TRANSPORT_TLS_NAMES_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Whether a name of the certificate matches one of patterns, which have commas between. A pattern is a name, compared
 * without regard to case, except a URI; an IP address; or *.DOMAIN, which any name matches that has exactly one label
 * before DOMAIN. A name in the certificate that has a wildcard itself matches nothing.
 */
bool nl_tls_names_match(X509 *certificate, const char *patterns);

/* Whether the certificate is for that name, an address among them; its own wildcards stand for one label. */
bool nl_tls_names_include(X509 *certificate, const char *name, size_t size);

#endif
