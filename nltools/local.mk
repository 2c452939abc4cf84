bin_PROGRAMS += nltools/nlwrite nltools/nlrecover
nltools_nlrecover_SOURCES = %D%/nlrecover.c
nltools_nlrecover_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la
nltools_nlwrite_SOURCES = %D%/nlwrite.c
nltools_nlwrite_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la

if BUILD_NLSTAT
bin_PROGRAMS += nltools/nlstat nltools/nlschema
endif
nltools_nlstat_SOURCES = %D%/nlstat.c \
	%D%/stat/distribution.c %D%/stat/distribution.h %D%/stat/series.c %D%/stat/series.h %D%/stat/gather.c %D%/stat/gather.h \
	%D%/stat/measure.c %D%/stat/measure.h %D%/stat/throughput.c %D%/stat/throughput.h \
	%D%/stat/report.c %D%/stat/report_json.c %D%/stat/report.h %D%/stat/plot.c %D%/stat/plot_text.c %D%/stat/plot.h
nltools_nlstat_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nltools_nlstat_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(CAIRO_CFLAGS)
nltools_nlstat_LDADD = libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS) $(CAIRO_LIBS) -lm

nltools_nlschema_SOURCES = %D%/nlschema.c \
	%D%/schema/schema.c %D%/schema/schema.h %D%/schema/names.c %D%/schema/header.c %D%/schema/doc.c %D%/schema/json.c \
	%D%/schema/check.c %D%/schema/check.h %D%/schema/bench.c %D%/schema/bench.h
nltools_nlschema_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nlschema_LDADD = libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS) -lm
