# The worked example: built with everything else, installed by nobody.
noinst_PROGRAMS += examples/dpss/dpss_server examples/dpss/dpss_get
examples_dpss_dpss_server_SOURCES = %D%/dpss/dpss_server.c %D%/dpss/dpss_protocol.c %D%/dpss/dpss_protocol.h
examples_dpss_dpss_server_CFLAGS = $(AM_CFLAGS) -pthread
examples_dpss_dpss_server_LDADD = libnetlogger/libnetlogger.la -lpthread
examples_dpss_dpss_get_SOURCES = %D%/dpss/dpss_get.c %D%/dpss/dpss_protocol.c %D%/dpss/dpss_protocol.h
examples_dpss_dpss_get_CFLAGS = $(AM_CFLAGS) -pthread
examples_dpss_dpss_get_LDADD = libnetlogger/libnetlogger.la -lpthread
EXTRA_DIST += %D%/dpss/dpss.nlv %D%/dpss/dpss.schema %D%/dpss/README.md

# The same in six languages: run by tests/program/test_languages.py.
EXTRA_DIST += %D%/languages/README.md %D%/languages/dolly.c %D%/languages/dolly.py %D%/languages/dolly.pl \
	%D%/languages/ten.c %D%/languages/ten.py %D%/languages/ten.pl
