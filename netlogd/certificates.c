/*
 * The certificates follow RFC 5280. They use ECDSA on P-256 with SHA-256, which all OpenSSL versions of the last ten
 * years support. A host's certificate is valid for servers and clients, because netlogd forwards as a client and
 * collects as a server.
 */
#include "config.h"

#include "certificates.h"

#include "base/error.h"
#include "base/private_directory.h"
#include "base/replacement.h"
#include "base/write_some.h"
#include "program/program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAY_S = 86400, AUTHORITY_DAYS = 3650, HOST_DAYS = 365, HOST_NAME_MAX_BYTES = 253, SERIAL_BITS = 127 };

/* The validity of certificates begins an hour before they are created, because the clocks of hosts differ. */
enum { EARLIER_S = 3600 };

/* A key and its certificate. */
typedef struct identity {
    EVP_PKEY *key;
    X509 *certificate;
} identity;

static void identity_free(identity *i)
{
    EVP_PKEY_free(i->key);
    X509_free(i->certificate);
}

/* Sets the error to the text `what`, followed by OpenSSL's message. Returns false. */
static bool certificates_fail(const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return nl_error_false(NL_ERROR_SYSTEM, "%s: %s", what, reason != NULL ? reason : "failed");
}

/* ---- files ---- */

/*
 * Reads a key or a certificate from `path`. If the file does not exist, returns NULL and sets *ok to true. On failure,
 * returns NULL, sets *ok to false and sets the error.
 */
static void *certificates_read(const char *path, bool is_key, bool *ok)
{
    FILE *file = fopen(path, "re");
    *ok = file != NULL || errno == ENOENT || nl_error_false(NL_ERROR_SYSTEM, "%s: %s", path, strerror(errno));
    if (file == NULL)
        return NULL;
    void *read =
        is_key ? (void *)PEM_read_PrivateKey(file, NULL, NULL, NULL) : (void *)PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    *ok = read != NULL || certificates_fail(path);
    return read;
}

/*
 * Writes `key` to a file. If `key` is NULL, writes `certificate` instead. After a crash, path has either its complete
 * new content or its previous content. Returns false on failure.
 */
static bool certificates_write(const char *path, EVP_PKEY *key, X509 *certificate)
{
    BIO *text = BIO_new(BIO_s_mem());
    char *data;
    bool made = text != NULL && (key != NULL ? PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL)
                                             : PEM_write_bio_X509(text, certificate)) == 1;
    if (!made) {
        BIO_free(text);
        return certificates_fail(path);
    }
    long size = BIO_get_mem_data(text, &data);
    nl_replacement file;
    bool ok = nl_replacement_open(&file, path);
    if (ok) {
        ok = fchmod(file.fd, 0600) == 0 && nl_write_all(file.fd, data, (size_t)size) && nl_replacement_keep(&file);
        int problem = errno;
        close(file.fd);
        nl_replacement_free(&file);
        errno = problem;
    }
    if (!ok)
        nl_error_set(NL_ERROR_SYSTEM, "%s: %s", path, strerror(errno));
    BIO_free(text);
    return ok;
}

/* ---- certificates ---- */

static bool certificates_extend(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool ok = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool certificates_set_serial(X509 *certificate)
{
    BIGNUM *number = BN_new();
    bool ok = number != NULL && BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return ok;
}

typedef struct extension_row {
    int kind;
    const char *value;
} extension_row;

/*
 * Issues a certificate that binds `name` to `key`. `issuer` and `issuer_key` are NULL for a self-signed certificate.
 * `names` is the subjectAltName, or NULL. Returns NULL on failure, with OpenSSL's error set.
 */
static X509 *certificates_issue(EVP_PKEY *key, const char *name, const char *names, int days, X509 *issuer,
                                EVP_PKEY *issuer_key)
{
    static const extension_row authority[] = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                              {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                              {NID_subject_key_identifier, "hash"},
                                              {0, NULL}};
    const extension_row host[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                  {NID_key_usage, "critical,digitalSignature"},
                                  {NID_ext_key_usage, "serverAuth,clientAuth"},
                                  {NID_subject_key_identifier, "hash"},
                                  {NID_authority_key_identifier, "keyid:always"},
                                  {NID_subject_alt_name, names},
                                  {0, NULL}};
    X509 *certificate = X509_new();
    if (certificate == NULL)
        return NULL;
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509 *by = issuer != NULL ? issuer : certificate;
    /* The common name has at most 64 bytes. Programs check the subjectAltName, which contains the whole name. */
    int name_size = (int)strnlen(name, 64);
    bool ok =
        X509_set_version(certificate, X509_VERSION_3) == 1 && certificates_set_serial(certificate) &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -EARLIER_S) != NULL &&
        X509_time_adj_ex(X509_getm_notAfter(certificate), days, 0, NULL) != NULL &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, name_size, -1, 0) == 1 &&
        X509_set_issuer_name(certificate, X509_get_subject_name(by)) == 1 && X509_set_pubkey(certificate, key) == 1;
    for (const extension_row *row = issuer == NULL ? authority : host; ok && row->value != NULL; row++)
        ok = certificates_extend(certificate, by, row->kind, row->value);
    if (ok && X509_sign(certificate, issuer_key != NULL ? issuer_key : key, EVP_sha256()) > 0)
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* Returns the number of days until the certificate expires. The result is negative if the certificate has expired. */
static int certificates_days_left(const X509 *certificate)
{
    int days = -1, seconds;
    if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) != 1)
        return -1;
    return seconds < 0 && days == 0 ? -1 : days;
}

static void certificates_print(const char *path, const X509 *certificate, const char *what)
{
    struct tm end;
    char date[sizeof "2026-01-31"] = "?";
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1)
        strftime(date, sizeof date, "%F", &end);
    printf("%s: %s, valid until %s\n", path, what, date);
}

/* ---- the authority and the hosts ---- */

static bool authority_make(identity *ca, const char *key_path, const char *certificate_path)
{
    char host[256], *name;
    program_host(host, sizeof host);
    name = program_format("NetLogger CA of %s", host);
    ca->key = EVP_EC_gen("P-256");
    ca->certificate = ca->key != NULL ? certificates_issue(ca->key, name, NULL, AUTHORITY_DAYS, NULL, NULL) : NULL;
    free(name);
    if (ca->certificate == NULL)
        return certificates_fail("create a certificate authority");
    /* Write the certificate after the key, because the next run can replace a key that has no certificate. */
    if (!certificates_write(key_path, ca->key, NULL) || !certificates_write(certificate_path, NULL, ca->certificate))
        return false;
    certificates_print(certificate_path, ca->certificate, "new certificate authority");
    return true;
}

static bool authority_open(identity *ca, const char *directory)
{
    char *key_path = program_format("%s/ca.key", directory), *certificate_path = program_format("%s/ca.crt", directory);
    bool ok;
    ca->certificate = certificates_read(certificate_path, false, &ok);
    if (ok)
        ca->key = certificates_read(key_path, true, &ok);
    if (ok && ca->certificate == NULL) {
        EVP_PKEY_free(ca->key);
        ok = authority_make(ca, key_path, certificate_path);
    } else if (ok && ca->key == NULL) {
        ok = nl_error_false(NL_ERROR_NOT_FOUND, "%s is missing; restore it, or use another directory", key_path);
    } else if (ok && X509_check_private_key(ca->certificate, ca->key) != 1) {
        ok = nl_error_false(NL_ERROR_INVALID, "%s is not the private key that belongs to %s", key_path,
                            certificate_path);
    } else if (ok && certificates_days_left(ca->certificate) < 0) {
        ok = nl_error_false(NL_ERROR_INVALID, "%s has expired; create a new CA in another directory", certificate_path);
    } else if (ok && certificates_days_left(ca->certificate) < HOST_DAYS) {
        int days = certificates_days_left(ca->certificate);
        program_error("%s expires in %d day%s; create a new CA in another directory, and set every ca= option to a "
                      "file with both CA certificates until all hosts have new certificates",
                      certificate_path, days, days == 1 ? "" : "s");
    }
    free(key_path);
    free(certificate_path);
    return ok;
}

/* Returns the subjectAltName for a host name or address, which the caller frees. On failure, sets the error. */
static char *host_alternative_name(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return program_format("IP:%s", host);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t size = strlen(host);
    /* ca.crt and ca.key are the authority's files. */
    bool valid = size > 0 && size <= HOST_NAME_MAX_BYTES && strcmp(host, "ca") != 0;
    if (valid && strspn(host, letters) == size && host[0] != '-' && host[0] != '.')
        return program_format("DNS:%s", host);
    nl_error_set(NL_ERROR_INVALID, "%s: not a host name or address", host);
    return NULL;
}

/* Returns whether the host's certificate matches the key, was issued by the authority, and does not expire soon. */
static bool host_is_current(const identity *host, const identity *ca)
{
    return host->key != NULL && host->certificate != NULL &&
           X509_check_private_key(host->certificate, host->key) == 1 && X509_verify(host->certificate, ca->key) == 1 &&
           certificates_days_left(host->certificate) >= HOST_DAYS / 3;
}

static bool host_make(const char *directory, const char *host, const identity *ca)
{
    char *names = host_alternative_name(host);
    if (names == NULL)
        return false;
    char *key_path = program_format("%s/%s.key", directory, host), *path = program_format("%s/%s.crt", directory, host);
    identity own = {0};
    bool ok;
    own.certificate = certificates_read(path, false, &ok);
    if (ok)
        own.key = certificates_read(key_path, true, &ok);
    if (ok && host_is_current(&own, ca)) {
        certificates_print(path, own.certificate, "kept");
    } else if (ok) {
        const char *what = own.certificate != NULL ? "renewed" : "new";
        X509_free(own.certificate);
        bool has_key = own.key != NULL;
        own.key = has_key ? own.key : EVP_EC_gen("P-256");
        own.certificate =
            own.key != NULL ? certificates_issue(own.key, host, names, HOST_DAYS, ca->certificate, ca->key) : NULL;
        ok = own.certificate != NULL || certificates_fail(path);
        ok = ok && (has_key || certificates_write(key_path, own.key, NULL)) &&
             certificates_write(path, NULL, own.certificate);
        if (ok)
            certificates_print(path, own.certificate, what);
    }
    identity_free(&own);
    free(path);
    free(key_path);
    free(names);
    return ok;
}

static void certificates_print_use(const char *directory, char *const *hosts, size_t count)
{
    const char *client = count > 1 ? hosts[1] : hosts[0];
    const char *open = strchr(hosts[0], ':') != NULL ? "[" : "", *close = open[0] != '\0' ? "]" : "";
    printf("\nCopy to each HOST, into /etc/netlogger, readable only by the user that runs netlogd or the program:\n"
           "  %s/ca.crt  %s/HOST.crt  %s/HOST.key\n"
           "Keep %s/ca.key secret. It signs new certificates; no other host needs it.\n",
           directory, directory, directory, directory);
    printf("\nOn the collector %s:\n"
           "  netlogd --listen 'x-netlogs://0.0.0.0?cert=/etc/netlogger/%s.crt&key=/etc/netlogger/%s.key&"
           "ca=/etc/netlogger/ca.crt' --output all.log\n",
           hosts[0], hosts[0], hosts[0]);
    printf("On each other host (here %s), for nlwrite and all other programs:\n"
           "  nlwrite --dest 'x-netlogs://%s%s%s?cert=/etc/netlogger/%s.crt&key=/etc/netlogger/%s.key&"
           "ca=/etc/netlogger/ca.crt' Test.Event\n",
           client, open, hosts[0], close, client, client);
    printf("\nRun this command again to renew certificates. It replaces certificates that expire within %d days.\n",
           HOST_DAYS / 3);
}

int certificates_make(const char *directory, char *const *hosts, size_t count)
{
    identity ca = {0};
    bool ok = mkdir(directory, 0700) == 0 || errno == EEXIST
                  ? nl_private_directory_check_path(directory, false) == NL_OK
                  : nl_error_false(NL_ERROR_SYSTEM, "%s: %s", directory, strerror(errno));
    for (size_t i = 0; ok && i < count; i++) { /* check all names first, so that an invalid name leaves no files */
        char *names = host_alternative_name(hosts[i]);
        ok = names != NULL;
        free(names);
    }
    ok = ok && authority_open(&ca, directory);
    for (size_t i = 0; ok && i < count; i++)
        ok = host_make(directory, hosts[i], &ca);
    identity_free(&ca);
    if (!ok) {
        program_print_error();
        return PROGRAM_PROBLEM;
    }
    certificates_print_use(directory, hosts, count);
    return PROGRAM_DONE;
}
