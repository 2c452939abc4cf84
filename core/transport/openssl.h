/*
 * OpenSSL, which the library loads for the first TLS connection. OpenSSL takes half of the start time of a small
 * program, and 1 MB of memory, and most programs use no TLS.
 *
 * Include this header instead of OpenSSL's headers, and call OpenSSL's functions by their names. A function that is
 * called for the first time needs a line in both lists. The pointers are valid after nl_openssl_load has succeeded.
 */
#ifndef NETLOGGER_TRANSPORT_OPENSSL_H
#define NETLOGGER_TRANSPORT_OPENSSL_H

#include "base/library.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>

/* clang-format off */
#define NL_OPENSSL_FUNCTIONS(FUNCTION) \
    FUNCTION(, ASN1_STRING_get0_data) \
    FUNCTION(, ASN1_STRING_length) \
    FUNCTION(, ASN1_STRING_to_UTF8) \
    FUNCTION(, ASN1_TIME_to_tm) \
    FUNCTION(, BIO_clear_flags) \
    FUNCTION(, BIO_get_data) \
    FUNCTION(, BIO_get_new_index) \
    FUNCTION(, BIO_meth_new) \
    FUNCTION(, BIO_meth_set_ctrl) \
    FUNCTION(, BIO_meth_set_read) \
    FUNCTION(, BIO_meth_set_write) \
    FUNCTION(, BIO_new) \
    FUNCTION(, BIO_set_data) \
    FUNCTION(, BIO_set_flags) \
    FUNCTION(, BIO_set_init) \
    FUNCTION(, CRYPTO_free) \
    FUNCTION(, CRYPTO_get_ex_new_index) \
    FUNCTION(, ERR_get_error) \
    FUNCTION(, ERR_new) \
    FUNCTION(, ERR_peek_last_error) \
    FUNCTION(, ERR_pop_to_mark) \
    FUNCTION(, ERR_reason_error_string) \
    FUNCTION(, ERR_set_debug) \
    FUNCTION(, ERR_set_error) \
    FUNCTION(, ERR_set_mark) \
    FUNCTION(, EVP_sha256) \
    FUNCTION(, GENERAL_NAMES_free) \
    FUNCTION(, OPENSSL_atexit) \
    FUNCTION(, OPENSSL_init_ssl) \
    FUNCTION(, OPENSSL_sk_num) \
    FUNCTION(, OPENSSL_sk_value) \
    FUNCTION(, PEM_read_X509) \
    FUNCTION(, SSL_CTX_ctrl) \
    FUNCTION(, SSL_CTX_free) \
    FUNCTION(, SSL_CTX_get0_certificate) \
    FUNCTION(, SSL_CTX_get_cert_store) \
    FUNCTION(, SSL_CTX_get_ex_data) \
    FUNCTION(, SSL_CTX_load_verify_file) \
    FUNCTION(, SSL_CTX_new) \
    FUNCTION(, SSL_CTX_sess_set_new_cb) \
    FUNCTION(, SSL_CTX_set_alpn_protos) \
    FUNCTION(, SSL_CTX_set_alpn_select_cb) \
    FUNCTION(, SSL_CTX_set_cert_cb) \
    FUNCTION(, SSL_CTX_set_client_CA_list) \
    FUNCTION(, SSL_CTX_set_default_passwd_cb) \
    FUNCTION(, SSL_CTX_set_default_read_buffer_len) \
    FUNCTION(, SSL_CTX_set_default_verify_paths) \
    FUNCTION(, SSL_CTX_set_ex_data) \
    FUNCTION(, SSL_CTX_set_options) \
    FUNCTION(, SSL_CTX_set_session_id_context) \
    FUNCTION(, SSL_CTX_set_timeout) \
    FUNCTION(, SSL_CTX_set_verify) \
    FUNCTION(, SSL_CTX_use_PrivateKey_file) \
    FUNCTION(, SSL_CTX_use_certificate_chain_file) \
    FUNCTION(, SSL_SESSION_free) \
    FUNCTION(, SSL_ctrl) \
    FUNCTION(, SSL_do_handshake) \
    FUNCTION(, SSL_free) \
    FUNCTION(, SSL_get0_param) \
    FUNCTION(, SSL_get0_peer_certificate) \
    FUNCTION(, SSL_get_SSL_CTX) \
    FUNCTION(, SSL_get_ex_data) \
    FUNCTION(, SSL_get_ex_data_X509_STORE_CTX_idx) \
    FUNCTION(, SSL_get_peer_cert_chain) \
    FUNCTION(, SSL_get_shutdown) \
    FUNCTION(, SSL_get_verify_result) \
    FUNCTION(, SSL_has_pending) \
    FUNCTION(, SSL_is_init_finished) \
    FUNCTION(, SSL_is_server) \
    FUNCTION(, SSL_load_client_CA_file) \
    FUNCTION(, SSL_new) \
    FUNCTION(, SSL_peek) \
    FUNCTION(, SSL_read_ex) \
    FUNCTION(, SSL_set_accept_state) \
    FUNCTION(, SSL_set_bio) \
    FUNCTION(, SSL_set_connect_state) \
    FUNCTION(, SSL_set_ex_data) \
    FUNCTION(, SSL_set_session) \
    FUNCTION(, SSL_shutdown) \
    FUNCTION(, SSL_version) \
    FUNCTION(, SSL_want) \
    FUNCTION(, SSL_write_ex) \
    FUNCTION(, TLS_client_method) \
    FUNCTION(, TLS_server_method) \
    FUNCTION(, X509_LOOKUP_file) \
    FUNCTION(, X509_NAME_ENTRY_get_data) \
    FUNCTION(, X509_NAME_get_entry) \
    FUNCTION(, X509_NAME_get_index_by_NID) \
    FUNCTION(, X509_NAME_get_text_by_NID) \
    FUNCTION(, X509_NAME_oneline) \
    FUNCTION(, X509_STORE_CTX_free) \
    FUNCTION(, X509_STORE_CTX_get_current_cert) \
    FUNCTION(, X509_STORE_CTX_get_error) \
    FUNCTION(, X509_STORE_CTX_get_error_depth) \
    FUNCTION(, X509_STORE_CTX_get_ex_data) \
    FUNCTION(, X509_STORE_CTX_init) \
    FUNCTION(, X509_STORE_CTX_new) \
    FUNCTION(, X509_STORE_CTX_set_default) \
    FUNCTION(, X509_STORE_CTX_set_error) \
    FUNCTION(, X509_STORE_add_lookup) \
    FUNCTION(, X509_STORE_set_flags) \
    FUNCTION(, X509_VERIFY_PARAM_set1_host) \
    FUNCTION(, X509_VERIFY_PARAM_set1_ip_asc) \
    FUNCTION(, X509_VERIFY_PARAM_set_hostflags) \
    FUNCTION(, X509_check_host) \
    FUNCTION(, X509_check_ip_asc) \
    FUNCTION(, X509_digest) \
    FUNCTION(, X509_free) \
    FUNCTION(, X509_get0_notAfter) \
    FUNCTION(, X509_get0_notBefore) \
    FUNCTION(, X509_get_ext_d2i) \
    FUNCTION(, X509_get_issuer_name) \
    FUNCTION(, X509_get_subject_name) \
    FUNCTION(, X509_load_crl_file) \
    FUNCTION(, X509_verify_cert) \
    FUNCTION(, X509_verify_cert_error_string)

NL_LIBRARY_DECLARE(nl_openssl, NL_OPENSSL_FUNCTIONS);

#define ASN1_STRING_get0_data nl_openssl.ASN1_STRING_get0_data
#define ASN1_STRING_length nl_openssl.ASN1_STRING_length
#define ASN1_STRING_to_UTF8 nl_openssl.ASN1_STRING_to_UTF8
#define ASN1_TIME_to_tm nl_openssl.ASN1_TIME_to_tm
#define BIO_clear_flags nl_openssl.BIO_clear_flags
#define BIO_get_data nl_openssl.BIO_get_data
#define BIO_get_new_index nl_openssl.BIO_get_new_index
#define BIO_meth_new nl_openssl.BIO_meth_new
#define BIO_meth_set_ctrl nl_openssl.BIO_meth_set_ctrl
#define BIO_meth_set_read nl_openssl.BIO_meth_set_read
#define BIO_meth_set_write nl_openssl.BIO_meth_set_write
#define BIO_new nl_openssl.BIO_new
#define BIO_set_data nl_openssl.BIO_set_data
#define BIO_set_flags nl_openssl.BIO_set_flags
#define BIO_set_init nl_openssl.BIO_set_init
#define CRYPTO_free nl_openssl.CRYPTO_free
#define CRYPTO_get_ex_new_index nl_openssl.CRYPTO_get_ex_new_index
#define ERR_get_error nl_openssl.ERR_get_error
#define ERR_new nl_openssl.ERR_new
#define ERR_peek_last_error nl_openssl.ERR_peek_last_error
#define ERR_pop_to_mark nl_openssl.ERR_pop_to_mark
#define ERR_reason_error_string nl_openssl.ERR_reason_error_string
#define ERR_set_debug nl_openssl.ERR_set_debug
#define ERR_set_error nl_openssl.ERR_set_error
#define ERR_set_mark nl_openssl.ERR_set_mark
#define EVP_sha256 nl_openssl.EVP_sha256
#define GENERAL_NAMES_free nl_openssl.GENERAL_NAMES_free
#define OPENSSL_atexit nl_openssl.OPENSSL_atexit
#define OPENSSL_init_ssl nl_openssl.OPENSSL_init_ssl
#define OPENSSL_sk_num nl_openssl.OPENSSL_sk_num
#define OPENSSL_sk_value nl_openssl.OPENSSL_sk_value
#define PEM_read_X509 nl_openssl.PEM_read_X509
#define SSL_CTX_ctrl nl_openssl.SSL_CTX_ctrl
#define SSL_CTX_free nl_openssl.SSL_CTX_free
#define SSL_CTX_get0_certificate nl_openssl.SSL_CTX_get0_certificate
#define SSL_CTX_get_cert_store nl_openssl.SSL_CTX_get_cert_store
#define SSL_CTX_get_ex_data nl_openssl.SSL_CTX_get_ex_data
#define SSL_CTX_load_verify_file nl_openssl.SSL_CTX_load_verify_file
#define SSL_CTX_new nl_openssl.SSL_CTX_new
#define SSL_CTX_sess_set_new_cb nl_openssl.SSL_CTX_sess_set_new_cb
#define SSL_CTX_set_alpn_protos nl_openssl.SSL_CTX_set_alpn_protos
#define SSL_CTX_set_alpn_select_cb nl_openssl.SSL_CTX_set_alpn_select_cb
#define SSL_CTX_set_cert_cb nl_openssl.SSL_CTX_set_cert_cb
#define SSL_CTX_set_client_CA_list nl_openssl.SSL_CTX_set_client_CA_list
#define SSL_CTX_set_default_passwd_cb nl_openssl.SSL_CTX_set_default_passwd_cb
#define SSL_CTX_set_default_read_buffer_len nl_openssl.SSL_CTX_set_default_read_buffer_len
#define SSL_CTX_set_default_verify_paths nl_openssl.SSL_CTX_set_default_verify_paths
#define SSL_CTX_set_ex_data nl_openssl.SSL_CTX_set_ex_data
#define SSL_CTX_set_options nl_openssl.SSL_CTX_set_options
#define SSL_CTX_set_session_id_context nl_openssl.SSL_CTX_set_session_id_context
#define SSL_CTX_set_timeout nl_openssl.SSL_CTX_set_timeout
#define SSL_CTX_set_verify nl_openssl.SSL_CTX_set_verify
#define SSL_CTX_use_PrivateKey_file nl_openssl.SSL_CTX_use_PrivateKey_file
#define SSL_CTX_use_certificate_chain_file nl_openssl.SSL_CTX_use_certificate_chain_file
#define SSL_SESSION_free nl_openssl.SSL_SESSION_free
#define SSL_ctrl nl_openssl.SSL_ctrl
#define SSL_do_handshake nl_openssl.SSL_do_handshake
#define SSL_free nl_openssl.SSL_free
#define SSL_get0_param nl_openssl.SSL_get0_param
#define SSL_get0_peer_certificate nl_openssl.SSL_get0_peer_certificate
#define SSL_get_SSL_CTX nl_openssl.SSL_get_SSL_CTX
#define SSL_get_ex_data nl_openssl.SSL_get_ex_data
#define SSL_get_ex_data_X509_STORE_CTX_idx nl_openssl.SSL_get_ex_data_X509_STORE_CTX_idx
#define SSL_get_peer_cert_chain nl_openssl.SSL_get_peer_cert_chain
#define SSL_get_shutdown nl_openssl.SSL_get_shutdown
#define SSL_get_verify_result nl_openssl.SSL_get_verify_result
#define SSL_has_pending nl_openssl.SSL_has_pending
#define SSL_is_init_finished nl_openssl.SSL_is_init_finished
#define SSL_is_server nl_openssl.SSL_is_server
#define SSL_load_client_CA_file nl_openssl.SSL_load_client_CA_file
#define SSL_new nl_openssl.SSL_new
#define SSL_peek nl_openssl.SSL_peek
#define SSL_read_ex nl_openssl.SSL_read_ex
#define SSL_set_accept_state nl_openssl.SSL_set_accept_state
#define SSL_set_bio nl_openssl.SSL_set_bio
#define SSL_set_connect_state nl_openssl.SSL_set_connect_state
#define SSL_set_ex_data nl_openssl.SSL_set_ex_data
#define SSL_set_session nl_openssl.SSL_set_session
#define SSL_shutdown nl_openssl.SSL_shutdown
#define SSL_version nl_openssl.SSL_version
#define SSL_want nl_openssl.SSL_want
#define SSL_write_ex nl_openssl.SSL_write_ex
#define TLS_client_method nl_openssl.TLS_client_method
#define TLS_server_method nl_openssl.TLS_server_method
#define X509_LOOKUP_file nl_openssl.X509_LOOKUP_file
#define X509_NAME_ENTRY_get_data nl_openssl.X509_NAME_ENTRY_get_data
#define X509_NAME_get_entry nl_openssl.X509_NAME_get_entry
#define X509_NAME_get_index_by_NID nl_openssl.X509_NAME_get_index_by_NID
#define X509_NAME_get_text_by_NID nl_openssl.X509_NAME_get_text_by_NID
#define X509_NAME_oneline nl_openssl.X509_NAME_oneline
#define X509_STORE_CTX_free nl_openssl.X509_STORE_CTX_free
#define X509_STORE_CTX_get_current_cert nl_openssl.X509_STORE_CTX_get_current_cert
#define X509_STORE_CTX_get_error nl_openssl.X509_STORE_CTX_get_error
#define X509_STORE_CTX_get_error_depth nl_openssl.X509_STORE_CTX_get_error_depth
#define X509_STORE_CTX_get_ex_data nl_openssl.X509_STORE_CTX_get_ex_data
#define X509_STORE_CTX_init nl_openssl.X509_STORE_CTX_init
#define X509_STORE_CTX_new nl_openssl.X509_STORE_CTX_new
#define X509_STORE_CTX_set_default nl_openssl.X509_STORE_CTX_set_default
#define X509_STORE_CTX_set_error nl_openssl.X509_STORE_CTX_set_error
#define X509_STORE_add_lookup nl_openssl.X509_STORE_add_lookup
#define X509_STORE_set_flags nl_openssl.X509_STORE_set_flags
#define X509_VERIFY_PARAM_set1_host nl_openssl.X509_VERIFY_PARAM_set1_host
#define X509_VERIFY_PARAM_set1_ip_asc nl_openssl.X509_VERIFY_PARAM_set1_ip_asc
#define X509_VERIFY_PARAM_set_hostflags nl_openssl.X509_VERIFY_PARAM_set_hostflags
#define X509_check_host nl_openssl.X509_check_host
#define X509_check_ip_asc nl_openssl.X509_check_ip_asc
#define X509_digest nl_openssl.X509_digest
#define X509_free nl_openssl.X509_free
#define X509_get0_notAfter nl_openssl.X509_get0_notAfter
#define X509_get0_notBefore nl_openssl.X509_get0_notBefore
#define X509_get_ext_d2i nl_openssl.X509_get_ext_d2i
#define X509_get_issuer_name nl_openssl.X509_get_issuer_name
#define X509_get_subject_name nl_openssl.X509_get_subject_name
#define X509_load_crl_file nl_openssl.X509_load_crl_file
#define X509_verify_cert nl_openssl.X509_verify_cert
#define X509_verify_cert_error_string nl_openssl.X509_verify_cert_error_string
/* clang-format on */

/* Loads OpenSSL, unless it is loaded. Returns false and sets the error on failure. Any thread may call this function.
 */
bool nl_openssl_load(void);

#endif
