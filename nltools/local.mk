if BUILD_NLTOOLS
bin_PROGRAMS += nltools/nlwrite nltools/nlrecover nltools/nlstat nltools/nldiag nltools/nlschema nltools/nlconv nltools/nlarchive
endif
nltools_nlrecover_SOURCES = %D%/nlrecover.c
nltools_nlrecover_LDADD = $(common_libs)
nltools_nlwrite_SOURCES = %D%/nlwrite.c
nltools_nlwrite_LDADD = $(common_libs)

# Shared by nlstat and nldiag.
EXTRA_LIBRARIES += %D%/libanalysis.a
%C%_libanalysis_a_SOURCES = %D%/compare/compare.c %D%/compare/compare.h %D%/compare/comparison.c %D%/compare/comparison.h \
	%D%/compare/comparison_report.c %D%/compare/profile.c %D%/compare/profile.h \
	%D%/diag/visits.c %D%/diag/visits.h %D%/diag/span_parts.c %D%/diag/span_parts.h %D%/diag/time_units.c %D%/diag/time_units.h %D%/diag/visit_ends.c %D%/diag/visit_ends.h %D%/diag/visit_tables.c %D%/diag/visit_tables.h %D%/diag/processes.c %D%/diag/processes.h %D%/diag/servers.c %D%/diag/servers.h %D%/diag/place_names.c %D%/diag/place_names.h %D%/diag/host_orders.c %D%/diag/host_orders.h \
	%D%/diag/keyed_sort.c %D%/diag/keyed_sort.h %D%/diag/columns.c %D%/diag/columns.h %D%/diag/series.c %D%/diag/series.h %D%/diag/texts.c \
	%D%/stat/subject.c %D%/stat/subject.h %D%/stat/repeated_sources.c %D%/stat/repeated_sources.h %D%/stat/text_key.h
%C%_libanalysis_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
%C%_libanalysis_a_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)

nltools_nlstat_SOURCES = %D%/nlstat.c \
	%D%/stat/series.c %D%/stat/series.h %D%/stat/connections.c %D%/stat/connections.h %D%/stat/connection_records.c %D%/stat/connection_records.h %D%/stat/connection_rows.c %D%/stat/connection_rows.h \
	%D%/stat/tally.c %D%/stat/tally.h %D%/stat/transfers.c %D%/stat/transfers.h %D%/stat/throughput.c %D%/stat/throughput.h \
	%D%/stat/report.c %D%/stat/report_json.c %D%/stat/report.h %D%/stat/plot.c %D%/stat/plot.h
nltools_nlstat_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nltools_nlstat_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(CAIRO_CFLAGS)
nltools_nlstat_LDADD = %D%/libanalysis.a $(common_libs)

nltools_nldiag_SOURCES = %D%/nldiag.c \
	%D%/diag/sample.c %D%/diag/sample.h %D%/diag/mechanisms.h %D%/diag/queues.c %D%/diag/part_queues.c %D%/diag/pauses.c %D%/diag/quotas.c %D%/diag/timers.c %D%/diag/idle_servers.c \
	%D%/diag/findings.c %D%/diag/findings.h %D%/diag/search.h %D%/diag/candidates.c %D%/diag/divisions.c %D%/diag/field_divisions.c %D%/diag/ordinary.c %D%/diag/amounts.c %D%/diag/steps.c %D%/diag/long_visits.c %D%/diag/long_visits.h %D%/diag/branches.c %D%/diag/branches.h %D%/diag/waits.c %D%/diag/queue_causes.c %D%/diag/queue_causes.h %D%/diag/describe.c %D%/diag/judge.c %D%/diag/power.c %D%/diag/failures.c %D%/diag/failure_groups.c %D%/diag/failure_groups.h %D%/diag/tail_groups.c %D%/diag/tail_groups.h %D%/diag/visitors.c %D%/diag/visitors.h %D%/diag/limits.c %D%/diag/limit.h %D%/diag/slow_disks.c %D%/diag/slow_disks.h %D%/diag/retransmissions.c %D%/diag/retransmissions.h %D%/diag/senders.c %D%/diag/senders.h %D%/diag/connection_joins.c %D%/diag/connection_joins.h %D%/diag/connection_limits.c %D%/diag/connection_limits.h %D%/diag/replay.c %D%/diag/host_clocks.c %D%/diag/host_clocks.h \
	%D%/diag/repeats.c %D%/diag/repeats.h %D%/diag/report.c %D%/diag/report.h %D%/diag/report_html.c %D%/diag/follow.c %D%/diag/follow.h %D%/diag/watch.c %D%/diag/watch.h
nltools_nldiag_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nltools_nldiag_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nldiag_LDADD = %D%/libanalysis.a $(common_libs)

nltools_nlschema_SOURCES = %D%/nlschema.c \
	%D%/schema/schema.c %D%/schema/schema.h %D%/schema/names.c %D%/schema/header.c %D%/schema/doc.c %D%/schema/json.c \
	%D%/schema/check.c %D%/schema/check.h %D%/schema/bench.c %D%/schema/bench.h
nltools_nlschema_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nlschema_LDADD = $(common_libs)

nltools_nlconv_SOURCES = %D%/nlconv.c %D%/pipeline/pipeline.c %D%/pipeline/pipeline.h \
	%D%/pipeline/chunks.h %D%/pipeline/input.c
nltools_nlconv_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/nltools
nltools_nlconv_CFLAGS = $(AM_CFLAGS) -pthread
nltools_nlconv_LDADD = $(common_libs)

nltools_nlarchive_SOURCES = %D%/nlarchive.c \
	%D%/archive/store.c %D%/archive/store.h %D%/archive/row.c %D%/archive/row.h %D%/archive/cut.c %D%/archive/cut.h \
	%D%/archive/load.c %D%/archive/load.h %D%/archive/loader.c %D%/archive/loader.h %D%/archive/live.c \
	%D%/archive/seen.c %D%/archive/seen.h %D%/archive/objects.c %D%/archive/objects.h \
	%D%/archive/pushdown.c %D%/archive/pushdown.h %D%/archive/query.c %D%/archive/query.h \
	%D%/archive/sqlite.c %D%/archive/postgres.c
nltools_nlarchive_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/nltools
nltools_nlarchive_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS) $(POSTGRES_CFLAGS) $(GLIB_CFLAGS)
nltools_nlarchive_LDADD = $(common_libs) $(SQLITE_LIBS)

EXTRA_DIST += %D%/diag/README.md %D%/archive/README.md
