bin_PROGRAMS += nltools/nlwrite nltools/nlrecover
nltools_nlrecover_SOURCES = %D%/nlrecover.c
nltools_nlrecover_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la
nltools_nlwrite_SOURCES = %D%/nlwrite.c
nltools_nlwrite_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la

if BUILD_NLSTAT
bin_PROGRAMS += nltools/nlstat nltools/nlschema
endif
nltools_nlstat_SOURCES = %D%/nlstat.c
nltools_nlstat_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nlstat_LDADD = libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS)

nltools_nlschema_SOURCES = %D%/nlschema.c \
	%D%/schema/schema.c %D%/schema/schema.h %D%/schema/names.c %D%/schema/header.c %D%/schema/doc.c %D%/schema/json.c \
	%D%/schema/check.c %D%/schema/check.h %D%/schema/bench.c %D%/schema/bench.h
nltools_nlschema_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nlschema_LDADD = libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS) -lm
