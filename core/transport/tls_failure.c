#include "config.h"

#include "transport/tls_failure.h"

#include "transport/openssl.h"
#include "transport/tls_names.h"

#include <stdio.h>
#include <time.h>

enum { NAMES_SIZE = 200, TIME_SIZE = 64 };

static const char *print_time(const ASN1_TIME *time, char out[TIME_SIZE])
{
    struct tm when;
    if (ASN1_TIME_to_tm(time, &when) != 1)
        return "an invalid time";
    snprintf(out, TIME_SIZE, "%d-%02d-%02d %02d:%02d UTC", when.tm_year + 1900, when.tm_mon + 1, when.tm_mday,
             when.tm_hour, when.tm_min); /* not strftime, which would read a time zone file */
    return out;
}

/* Sets `out` to the common name of a certificate's issuer, or to the issuer's whole name. Returns `out`. */
static const char *print_issuer(X509 *certificate, char out[NAMES_SIZE])
{
    X509_NAME *issuer = X509_get_issuer_name(certificate);
    if (X509_NAME_get_text_by_NID(issuer, NID_commonName, out, NAMES_SIZE) <= 0 &&
        X509_NAME_oneline(issuer, out, NAMES_SIZE) == NULL)
        *out = '\0';
    nl_tls_names_make_printable(out);
    return out;
}

static bool is_unknown_issuer(int error)
{
    return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN || error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE || error == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

void nl_tls_describe_rejected(char out[NL_TLS_FAILURE_SIZE], X509_STORE_CTX *verifying, bool server, const char *name,
                              const char *ca)
{
    char text[NAMES_SIZE], when[TIME_SIZE];
    const int error = X509_STORE_CTX_get_error(verifying);
    X509 *certificate = X509_STORE_CTX_get_current_cert(verifying);
    const char *whose = X509_STORE_CTX_get_error_depth(verifying) > 0 ? "the certificate of the CA"
                        : server                                      ? "the client's certificate"
                                                                      : "the certificate";
    if (certificate == NULL) {
        snprintf(out, NL_TLS_FAILURE_SIZE, "%s", X509_verify_cert_error_string(error));
    } else if (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        nl_tls_names_print(certificate, text, sizeof text);
        snprintf(out, NL_TLS_FAILURE_SIZE,
                 "%s is for %s, not for %s; add the name with netlogctl certificates, or set the option name", whose,
                 *text != '\0' ? text : "no name", name != NULL ? name : "this host");
    } else if (error == X509_V_ERR_CERT_HAS_EXPIRED) {
        snprintf(out, NL_TLS_FAILURE_SIZE, "%s expired at %s; renew it with netlogctl certificates", whose,
                 print_time(X509_get0_notAfter(certificate), when));
    } else if (error == X509_V_ERR_CERT_NOT_YET_VALID) {
        snprintf(out, NL_TLS_FAILURE_SIZE, "%s is valid only from %s; check the clocks of both hosts", whose,
                 print_time(X509_get0_notBefore(certificate), when));
    } else if (is_unknown_issuer(error)) {
        snprintf(out, NL_TLS_FAILURE_SIZE,
                 "%s is signed by \"%s\", which is not in %s; set the option ca to a file with %s", whose,
                 print_issuer(certificate, text),
                 server       ? "the ca file"
                 : ca != NULL ? ca
                              : "this host's list of CAs",
                 server ? "the clients' CA" : "this CA");
    } else {
        snprintf(out, NL_TLS_FAILURE_SIZE, "%s is invalid: %s", whose, X509_verify_cert_error_string(error));
    }
}

static const char no_client_certificate[] =
    "the server requires a client certificate; set the options cert and key (netlogctl certificates creates the files)";

/* Returns the reason why a server rejected this client; NULL if the reason is unknown. */
static const char *alert_to_client(int reason, bool asked)
{
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return no_client_certificate;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the server does not trust the CA of this program's certificate (option cert); add the CA to the "
               "server's "
               "ca file";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "this program's certificate (option cert) has expired; renew it with netlogctl certificates";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        return "this program's certificate (option cert) is revoked; create a new certificate with netlogctl "
               "certificates";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        return asked ? "the server rejects this program's certificate (option cert) or requires one; the server's log "
                       "has the reason"
                     : NULL;
    default:
        return NULL;
    }
}

/*
 * Returns the reason why a client rejected this server, or why this server rejected a client without a certificate;
 * NULL if the reason is unknown.
 */
static const char *failure_of_client(int reason)
{
    switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "the client has no certificate; set its options cert and key (netlogctl certificates creates the files)";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the client does not trust the CA of this certificate; set the client's option ca to a file with that "
               "CA";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the client reports that this certificate has expired; renew it with netlogctl certificates";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        return "the client rejects this certificate, perhaps because of its names; the client's messages give the "
               "reason";
    default:
        return NULL;
    }
}

const char *nl_tls_failure_message(unsigned long error, bool server, bool asked)
{
    if (ERR_GET_LIB(error) != ERR_LIB_SSL)
        return NULL;
    return server ? failure_of_client(ERR_GET_REASON(error)) : alert_to_client(ERR_GET_REASON(error), asked);
}
