/* For nlkernel: names in place of the kernel's addresses, for rules that ask for them. */
#ifndef NETLOGGER_SYNTHESIS_SYMBOLS_H
#define NETLOGGER_SYNTHESIS_SYMBOLS_H

#include <netlogger.h>

#include "synthesis/synthesis.h"

/* The name of what lies at an address, which lasts; data is NULL when there is nothing. */
typedef nl_string nl_symbol_finder(void *user, uint64_t address);

/* Whether a rule asks for any. */
bool nl_synthesis_wants_symbols(const nl_synthesis *s);

void nl_synthesis_set_symbols(nl_synthesis *s, nl_symbol_finder *find, void *user);

#endif
