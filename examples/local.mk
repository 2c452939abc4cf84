# The example programs, which are built but not installed.
noinst_PROGRAMS += examples/dpss/dpss_server examples/dpss/dpss_get
examples_dpss_dpss_server_SOURCES = %D%/dpss/dpss_server.c %D%/dpss/arguments.c %D%/dpss/arguments.h %D%/dpss/dpss_protocol.c %D%/dpss/dpss_protocol.h
examples_dpss_dpss_server_CFLAGS = $(AM_CFLAGS) -pthread
examples_dpss_dpss_server_LDADD = libnetlogger/libnetlogger.la -lpthread
examples_dpss_dpss_get_SOURCES = %D%/dpss/dpss_get.c %D%/dpss/arguments.c %D%/dpss/arguments.h %D%/dpss/dpss_protocol.c %D%/dpss/dpss_protocol.h
examples_dpss_dpss_get_CFLAGS = $(AM_CFLAGS) -pthread
examples_dpss_dpss_get_LDADD = libnetlogger/libnetlogger.la -lpthread

# The wide-area experiment with the example programs.
noinst_PROGRAMS += examples/dpss/path_emulator
if BUILD_SHARED
noinst_LTLIBRARIES += examples/dpss/fault.la
examples_dpss_fault_la_SOURCES = %D%/dpss/fault.c
examples_dpss_fault_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
examples_dpss_fault_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
examples_dpss_fault_la_LIBADD = -lm -ldl
endif
examples_dpss_path_emulator_SOURCES = %D%/dpss/path_emulator.c %D%/dpss/arguments.c %D%/dpss/arguments.h %D%/dpss/path.c %D%/dpss/path.h

EXTRA_DIST += %D%/dpss/dpss.nlv %D%/dpss/experiment.nlv %D%/dpss/dpss.schema %D%/dpss/README.md \
	%D%/dpss/experiment %D%/dpss/tuning_experiment %D%/dpss/experiment_faults.py %D%/dpss/experiment_world.py %D%/sensors/logins

# The same events in six languages: tests/program/test_languages.py compiles and runs them.
EXTRA_DIST += \
	%D%/languages/Dolly.java \
	%D%/languages/README.md \
	%D%/languages/Spans.java \
	%D%/languages/Ten.java \
	%D%/languages/dolly.c \
	%D%/languages/dolly.cpp \
	%D%/languages/dolly.f90 \
	%D%/languages/dolly.pl \
	%D%/languages/dolly.py \
	%D%/languages/spans.c \
	%D%/languages/spans.cpp \
	%D%/languages/spans.f90 \
	%D%/languages/spans.pl \
	%D%/languages/spans.py \
	%D%/languages/ten.c \
	%D%/languages/ten.cpp \
	%D%/languages/ten.f90 \
	%D%/languages/ten.pl \
	%D%/languages/ten.py

# A program that adapts its rate to events of the kernel.
noinst_PROGRAMS += examples/adaptive/adaptive_send
examples_adaptive_adaptive_send_SOURCES = %D%/adaptive/adaptive_send.c
examples_adaptive_adaptive_send_LDADD = libnetlogger/libnetlogger.la
EXTRA_DIST += %D%/adaptive/adaptive.rules %D%/adaptive/README.md

# An HTTP service whose requests branch.
noinst_PROGRAMS += examples/http/shop
examples_http_shop_SOURCES = %D%/http/shop.c %D%/http/http.c %D%/http/http.h
examples_http_shop_CFLAGS = $(AM_CFLAGS) -pthread
examples_http_shop_LDADD = libnetlogger/libnetlogger.la -lpthread
EXTRA_DIST += %D%/http/README.md %D%/http/prices.py %D%/http/run
