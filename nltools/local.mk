bin_PROGRAMS += nltools/nlwrite
nltools_nlwrite_SOURCES = %D%/nlwrite.c
nltools_nlwrite_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la

if BUILD_NLSTAT
bin_PROGRAMS += nltools/nlstat
endif
nltools_nlstat_SOURCES = %D%/nlstat.c
nltools_nlstat_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
nltools_nlstat_LDADD = libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GLIB_LIBS)
