bin_PROGRAMS += nltools/nlwrite nltools/nlrecover
nltools_nlrecover_SOURCES = %D%/nlrecover.c
nltools_nlrecover_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la
nltools_nlwrite_SOURCES = %D%/nlwrite.c
nltools_nlwrite_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la

if BUILD_NLSTAT
bin_PROGRAMS += nltools/nlstat nltools/nldiag nltools/nlschema
endif
nltools_nlstat_SOURCES = %D%/nlstat.c \
	%D%/stat/series.c %D%/stat/series.h %D%/stat/gather.c %D%/stat/gather.h \
	%D%/stat/measure.c %D%/stat/measure.h %D%/stat/throughput.c %D%/stat/throughput.h \
	%D%/stat/subject.c %D%/stat/subject.h %D%/stat/text_key.h %D%/stat/subject_options.c %D%/stat/subject_options.h %D%/stat/report.c %D%/stat/report_json.c %D%/stat/report.h %D%/stat/plot.c %D%/stat/plot_text.c %D%/stat/plot.h
nltools_nlstat_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nltools_nlstat_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(CAIRO_CFLAGS)
nltools_nlstat_LDADD = libnetlogger/libchart.la libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS) $(CAIRO_LIBS) -lm

nltools_nldiag_SOURCES = %D%/nldiag.c \
	%D%/diag/observed.c %D%/diag/observed.h %D%/diag/observed_inside.h %D%/diag/resource.c %D%/diag/clocks.c %D%/diag/measured_clocks.c %D%/diag/legs.c \
	%D%/diag/findings.c %D%/diag/findings.h %D%/diag/numbers.c %D%/diag/numbers.h %D%/diag/clock_findings.c %D%/diag/pressure.c \
	%D%/diag/peers.c %D%/diag/kinds.c %D%/diag/hosts.c %D%/diag/network.c \
	%D%/diag/queues.c %D%/diag/capacity.c %D%/diag/capacity.h %D%/diag/timers.c %D%/diag/unended.c %D%/diag/pauses.c %D%/diag/changes.c \
	%D%/diag/courses.c %D%/diag/courses.h %D%/diag/before_after.c \
	%D%/diag/report.c %D%/diag/report.h %D%/diag/report_html.c %D%/diag/report_changes.c \
	%D%/stat/subject.c %D%/stat/subject.h %D%/stat/text_key.h %D%/stat/subject_options.c %D%/stat/subject_options.h %D%/stat/gather.c %D%/stat/gather.h
nltools_nldiag_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nltools_nldiag_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nldiag_LDADD = libnetlogger/libcorrection.la libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS) -lm

nltools_nlschema_SOURCES = %D%/nlschema.c \
	%D%/schema/schema.c %D%/schema/schema.h %D%/schema/names.c %D%/schema/header.c %D%/schema/doc.c %D%/schema/json.c \
	%D%/schema/check.c %D%/schema/check.h %D%/schema/bench.c %D%/schema/bench.h
nltools_nlschema_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nlschema_LDADD = libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS) -lm

# The formats of nlconv, in a library of their own for the tests.
noinst_LTLIBRARIES += nltools/libconvert.la
nltools_libconvert_la_SOURCES = \
	%D%/convert/convert.h %D%/convert/losses.c %D%/convert/output.c %D%/convert/output.h %D%/convert/formats.c %D%/convert/sink.c %D%/convert/netlogger.c \
	%D%/convert/builder.c %D%/convert/builder.h %D%/convert/keys.c %D%/convert/keys.h \
	%D%/convert/json_scan.c %D%/convert/json_scan.h %D%/convert/json_text.c %D%/convert/json_text.h \
	%D%/convert/json_fields.c %D%/convert/json_fields.h %D%/convert/json.c \
	%D%/convert/csv.h %D%/convert/csv_read.c %D%/convert/csv_write.c %D%/convert/text_set.c %D%/convert/text_set.h \
	%D%/convert/otlp_read.c %D%/convert/otlp_write.c %D%/convert/otlp.h %D%/convert/chrome_read.c \
	%D%/convert/lines.h %D%/convert/journal.c %D%/convert/strace.c \
	%D%/convert/strace_line.c %D%/convert/strace_line.h %D%/convert/strace_time.c %D%/convert/strace_time.h \
	%D%/convert/strace_threads.c %D%/convert/strace_threads.h %D%/convert/perf.c \
	%D%/convert/kernel_text.c %D%/convert/kernel_text.h %D%/convert/ftrace.c
nltools_libconvert_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/nltools
nltools_libconvert_la_CFLAGS = $(AM_CFLAGS) $(XML_CFLAGS) $(GLIB_CFLAGS) $(BABELTRACE_CFLAGS)
nltools_libconvert_la_LIBADD = $(XML_LIBS)
if BUILD_NLSTAT
nltools_libconvert_la_SOURCES += %D%/convert/picture.c %D%/convert/picture.h %D%/convert/chrome_write.c \
	%D%/convert/perfetto.c %D%/convert/spans.c
nltools_libconvert_la_LIBADD += libnetlogger/libanalysis.la $(GLIB_LIBS)
endif
if BUILD_XML
nltools_libconvert_la_SOURCES += %D%/convert/xml_read.c %D%/convert/xml_own.c %D%/convert/xml_write.c %D%/convert/xml.h
endif
if BUILD_CTF
nltools_libconvert_la_SOURCES += %D%/convert/ctf.c
nltools_libconvert_la_LIBADD += $(BABELTRACE_LIBS)
endif

bin_PROGRAMS += nltools/nlconv
nltools_nlconv_SOURCES = %D%/nlconv.c %D%/convert/pipeline.c %D%/convert/pipeline.h \
	%D%/convert/pipeline_inside.h %D%/convert/cut.c %D%/convert/folder.c
nltools_nlconv_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/nltools
nltools_nlconv_CFLAGS = $(AM_CFLAGS) -pthread
nltools_nlconv_LDADD = nltools/libconvert.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la

if BUILD_NLARCHIVE
bin_PROGRAMS += nltools/nlarchive
endif
nltools_nlarchive_SOURCES = %D%/nlarchive.c \
	%D%/archive/store.c %D%/archive/store.h %D%/archive/row.c %D%/archive/row.h %D%/archive/cut.c %D%/archive/cut.h \
	%D%/archive/load.c %D%/archive/load.h %D%/archive/loader.c %D%/archive/loader.h %D%/archive/live.c \
	%D%/archive/seen.c %D%/archive/seen.h %D%/archive/objects.c %D%/archive/objects.h \
	%D%/archive/pushdown.c %D%/archive/pushdown.h %D%/archive/query.c %D%/archive/query.h
if BUILD_SQLITE
nltools_nlarchive_SOURCES += %D%/archive/sqlite.c
endif
if BUILD_POSTGRES
nltools_nlarchive_SOURCES += %D%/archive/postgres.c
endif
nltools_nlarchive_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/nltools
nltools_nlarchive_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS) $(POSTGRES_CFLAGS) $(GLIB_CFLAGS)
nltools_nlarchive_LDADD = nltools/libconvert.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(SQLITE_LIBS) $(POSTGRES_LIBS)
if BUILD_NLSTAT
nltools_nlarchive_LDADD += libnetlogger/libanalysis.la $(GLIB_LIBS)
endif
