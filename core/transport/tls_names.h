/* The names in a certificate. These are common names, and the DNS names, addresses and URIs of subjectAltName. */
#ifndef NETLOGGER_TRANSPORT_TLS_NAMES_H
#define NETLOGGER_TRANSPORT_TLS_NAMES_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether a name of the certificate matches one of several patterns, separated by commas. A pattern is a name
 * (case matters only in URIs), an IP address, or *.DOMAIN, which matches names with exactly one more label. Names in
 * the certificate that contain a wildcard match nothing.
 */
bool nl_tls_names_match(X509 *certificate, const char *patterns);

/*
 * Returns whether the certificate is valid for a DNS name or address. A wildcard in the certificate stands for one
 * label.
 */
bool nl_tls_names_include(X509 *certificate, const char *name, size_t size);

/*
 * Writes the names and addresses in a certificate to out[0..size), separated by ", ". Writes "..." for names that do
 * not fit.
 */
void nl_tls_names_print(X509 *certificate, char *out, size_t size);

/* Replaces bytes that are not printable ASCII with '?'. */
void nl_tls_names_make_printable(char *text);

#endif
