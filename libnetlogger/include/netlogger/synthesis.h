/*
 * Synthesis: events of one kind made from events of another.
 *
 * What the kernel tells is many small things: a thread was woken, another was switched out. What an application wants
 * to know is one thing: it waited three milliseconds for a processor. Rules in a small file say how the one becomes the
 * other: join two events into a span, sum by key, count by the second, make a histogram, keep account of the states
 * that a thread is in, follow a request from thread to thread (doc/synthesis.md). What comes out are ordinary records.
 *
 *   nl_synthesis *rules = nl_synthesis_read("waits.rules", NULL);
 *   while (nl_reader_next(reader, &record) == NL_OK)
 *       nl_synthesis_put(rules, record);
 *   nl_synthesis_finish(rules);
 *   while ((record = nl_synthesis_next(rules)) != NULL)
 *       use(record);
 *   nl_synthesis_free(rules);
 *
 * Records may come out of order: they wait for each other, for good until nl_synthesis_finish or
 * nl_synthesis_advance says up to when all are there. One synthesis is for one thread at a time.
 *
 * An environment is the same, live, for a program that wants to adapt to where it runs: the rules' events are recorded
 * in this host's kernel by nlkernel, which may have rights that the program has not, or come from a collector.
 *
 *   nl_environment *environment = nl_environment_open("retransmits.rules", NULL, NULL);
 *   while (nl_environment_next(environment, 1000, &record) != NL_END)
 *       ...
 */
#ifndef NETLOGGER_SYNTHESIS_H
#define NETLOGGER_SYNTHESIS_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef struct nl_synthesis nl_synthesis;

/*
 * Reads rules, from a file or from text (name is what messages call it). parameters are "NAME=VALUE" for those of the
 * file, NULL at the end; NULL: none. NULL with the reason, FILE:LINE first, in nl_error_message().
 */
NL_API nl_synthesis *nl_synthesis_read(const char *path, const char *const *parameters);
NL_API nl_synthesis *nl_synthesis_parse(const char *text, const char *name, const char *const *parameters);

/* NULL is allowed. */
NL_API void nl_synthesis_free(nl_synthesis *synthesis);

/* Takes a record, of which what is wanted is copied. True when any rule wants it. */
NL_API bool nl_synthesis_put(nl_synthesis *synthesis, const nl_record *record);

/*
 * Says that all records before a time (nanoseconds since 1970) were put. Those that are put later all the same are
 * taken as they come, and counted. Sums and rates of intervals that end by then are made.
 */
NL_API void nl_synthesis_advance(nl_synthesis *synthesis, int64_t before_ns);

/* Says that there will be no more. */
NL_API void nl_synthesis_finish(nl_synthesis *synthesis);

/* The next record that was made, valid until the next call; NULL when there is none now. */
NL_API const nl_record *nl_synthesis_next(nl_synthesis *synthesis);

typedef struct nl_synthesis_stats {
    uint64_t taken;   /* records that some rule wanted */
    uint64_t made;    /* records */
    uint64_t late;    /* that came after what is later than they was taken already */
    uint64_t waiting; /* that wait to be taken */
    uint64_t dropped; /* spans and states that were forgotten, because events were lost, or there were too many */
} nl_synthesis_stats;

/* Fills *stats with the counts so far. */
NL_API void nl_synthesis_get_stats(const nl_synthesis *synthesis, nl_synthesis_stats *stats);

typedef struct nl_environment nl_environment;

/*
 * Opens what rules make of a source. source NULL: this host's kernel, by the program nlkernel, which runs as a child
 * until the environment is closed; or a collector, or what else nl_reader_open reads, whose records the rules are
 * applied to here. parameters as in nl_synthesis_read. NULL with the reason in nl_error_message().
 *
 * nlkernel is the installed program. NETLOGGER_NLKERNEL names another one by a path with a slash; PATH is never
 * searched. A program that has more rights than the user who started it (set-user-ID, set-group-ID, file capabilities)
 * cannot open the kernel: the library starts no program with such rights.
 */
NL_API nl_environment *nl_environment_open(const char *rules, const char *source, const char *const *parameters);

/*
 * The next record that was made, valid until the next call: NL_OK; NL_AGAIN when none came within so many milliseconds
 * (0: look only; -1: wait for ever); NL_END when there will be no more; NL_FAILED with the reason.
 */
NL_API nl_status nl_environment_next(nl_environment *environment, int timeout_ms, const nl_record **record);

/* Closes it, and ends the child. NULL is allowed. */
NL_API void nl_environment_close(nl_environment *environment);

NL_END_DECLS
#endif
