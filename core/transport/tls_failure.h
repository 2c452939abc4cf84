/*
 * Messages for failed TLS handshakes. Each message names the remedy. The module has no state. Any thread may call its
 * functions.
 */
#ifndef NETLOGGER_TRANSPORT_TLS_FAILURE_H
#define NETLOGGER_TRANSPORT_TLS_FAILURE_H

#include <openssl/x509.h>
#include <stdbool.h>

enum { NL_TLS_FAILURE_SIZE = 512 };

/*
 * Sets `out` to the reason why a certificate was rejected. `name` is the required name, and `ca` is the file of trusted
 * CAs, or NULL. If server is true, this side is the server, and the certificate is a client's.
 */
void nl_tls_describe_rejected(char out[NL_TLS_FAILURE_SIZE], X509_STORE_CTX *verifying, bool server, const char *name,
                              const char *ca);

/*
 * Returns the message for an OpenSSL error, in static storage, or NULL if OpenSSL's own message is equally clear.
 * `server` means that this side is the server. `asked` means that the server has requested a client certificate.
 */
const char *nl_tls_failure_message(unsigned long error, bool server, bool asked);

#endif
