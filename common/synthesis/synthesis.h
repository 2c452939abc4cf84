/*
 * Synthesis: derives records from other records, according to rules.
 *
 * A rules file defines the derived records. Rules join two events into a span, sum by key, compute rates and
 * histograms, account for the states of a thread, or follow a request from thread to thread (doc/synthesis.md).
 *
 *   nl_synthesis *rules = nl_synthesis_new(&sections);
 *   while (nl_reader_next(reader, &record) == NL_OK)
 *       nl_synthesis_put(rules, record);
 *   nl_synthesis_finish(rules);
 *   while ((record = nl_synthesis_next(rules)) != NULL)
 *       use(record);
 *   nl_synthesis_free(rules);
 *
 * Records may come in any order. A record waits until nl_synthesis_finish, or until nl_synthesis_advance declares that
 * all earlier records have arrived. If 8,388,608 records wait, the module processes the earliest half. Only one thread
 * at a time may use an nl_synthesis.
 */
#ifndef NETLOGGER_SYNTHESIS_SYNTHESIS_H
#define NETLOGGER_SYNTHESIS_SYNTHESIS_H

#include "synthesis/sections.h"

typedef struct nl_synthesis nl_synthesis;

/*
 * Creates the rules from a file that nl_sections_read has read. Ignores sections for other modules, such as [report].
 * Returns NULL and sets the error, with FILE:LINE, if a rule is invalid. The caller may free `sections` afterwards.
 */
nl_synthesis *nl_synthesis_new(const nl_sections *sections);

/* Frees the rules. Freeing NULL has no effect. */
void nl_synthesis_free(nl_synthesis *s);

/* Adds a record. Copies the parts that the rules need. */
void nl_synthesis_put(nl_synthesis *s, const nl_record *record);

/*
 * Declares that all records before a time (nanoseconds since 1970) have arrived. Records with earlier times that arrive
 * after this call count as late. The module processes late records out of order. Derives the sums and rates of the
 * intervals that end at or before this time.
 */
void nl_synthesis_advance(nl_synthesis *s, int64_t before_ns);

/* Declares that all records have arrived. */
void nl_synthesis_finish(nl_synthesis *s);

/*
 * Returns the next derived record, which is valid until the next call. Returns NULL if there is no record at present.
 */
const nl_record *nl_synthesis_next(nl_synthesis *s);

typedef struct nl_synthesis_stats {
    uint64_t taken;   /* number of records that a rule uses */
    uint64_t made;    /* number of derived records */
    uint64_t late;    /* number of records that arrived after a later record was processed */
    uint64_t waiting; /* number of records that are not processed yet */
    uint64_t dropped; /* number of spans, states, requests and sums that the module dropped, because there were too
                         many, events were lost, or a span was longer than its maximum */
} nl_synthesis_stats;

void nl_synthesis_get_stats(const nl_synthesis *s, nl_synthesis_stats *stats);

/*
 * Returns the name of the function at a kernel address. The callee owns the name. The name's data is NULL if no
 * function has this address.
 */
typedef nl_string nl_symbol_finder(void *user, uint64_t address);

/*
 * Returns whether a rule uses function names. If nl_synthesis_set_symbols has not been called, the rule uses addresses
 * instead.
 */
bool nl_synthesis_wants_symbols(const nl_synthesis *s);
void nl_synthesis_set_symbols(nl_synthesis *s, nl_symbol_finder *find, void *user);

#endif
