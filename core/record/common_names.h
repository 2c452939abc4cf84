/*
 * Names that programs in general use for the members of a record, in the JSON and logfmt of loggers such as Go's slog
 * and zap, pino and logrus.
 */
#ifndef NETLOGGER_RECORD_COMMON_NAMES_H
#define NETLOGGER_RECORD_COMMON_NAMES_H

#include <netlogger.h>

/*
 * If a record has no event, sets the event, the program and the host from its fields: the event from msg or message,
 * the program from service or service.name, the host from hostname or host.name. The fields stay, and do not replace
 * members that the record has. A record with an event is probably from a program that uses NetLogger's names, so its
 * fields may have other meanings. A message with digits or of more than 64 bytes names no event, because it probably
 * contains values, so that each record would have a different event.
 */
void nl_record_use_common_names(nl_record *record);

#endif
