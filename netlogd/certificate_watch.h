/*
 * Warns before netlogd's own certificates expire: the certificates of listeners with TLS, and of outputs with the
 * option cert=.
 *
 * The module owns the time of the next check and the result of the latest check. Only the server's thread may call it.
 */
#ifndef NETLOGD_CERTIFICATE_WATCH_H
#define NETLOGD_CERTIFICATE_WATCH_H

#include <stdint.h>

enum { CERTIFICATE_WARN_DAYS = 14 };

/*
 * Checks the certificates if a day has passed since the latest check, or if the settings have changed. Writes an event
 * (Netlogd.CertificateExpires) for each certificate that expires within CERTIFICATE_WARN_DAYS days. `now_ns` is the
 * time of nl_monotonic_ns. Called every second.
 */
void certificate_watch_tick(int64_t now_ns);

/* Returns the time when the first certificate expires, in seconds since 1970, or 0 if there are no certificates. */
uint64_t certificate_watch_get_first(void);

#endif
