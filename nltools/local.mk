bin_PROGRAMS += nltools/nlwrite
nltools_nlwrite_SOURCES = %D%/nlwrite.c
nltools_nlwrite_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la
