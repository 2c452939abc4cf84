include_HEADERS += %D%/include/netlogger.h %D%/include/NetLogger.h
nlincludedir = $(includedir)/netlogger
nlinclude_HEADERS = \
	 %D%/include/netlogger/buffer.h \
	 %D%/include/netlogger/filter.h %D%/include/netlogger/format.h \
	%D%/include/netlogger/event.h %D%/include/netlogger/event_private.h \
	%D%/include/netlogger/level.h %D%/include/netlogger/log.h %D%/include/netlogger/marker.h \
	%D%/include/netlogger/marker_private.h %D%/include/netlogger/reader.h \
	%D%/include/netlogger/record.h %D%/include/netlogger/status.h %D%/include/netlogger/time.h \
	%D%/include/netlogger/recover.h %D%/include/netlogger/span.h \
	%D%/include/netlogger/span_private.h %D%/include/netlogger/url.h
nlclassicincludedir = $(includedir)/netlogger/classic
nlclassicinclude_HEADERS = %D%/include/netlogger/classic/logging.h
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = %D%/netlogger.pc

# The code for logging. The shared library consists of this code. Programs that log are linked with it, because they need hidden symbols.
noinst_LTLIBRARIES += %D%/libproducer.la
%C%_libproducer_la_SOURCES = \
	%D%/log/log.c %D%/log/log_internal.h %D%/log/write.c %D%/log/producer.c %D%/log/writer_thread.c \
	%D%/log/control.c %D%/log/control.h %D%/log/activation.c %D%/log/own_records.c \
	%D%/log/marker.c %D%/log/marker.h %D%/log/probe.c %D%/log/probe.h %D%/log/grace.c %D%/log/grace.h \
	%D%/log/outbox.c %D%/log/outbox.h %D%/log/sender.c %D%/log/sender.h %D%/log/report.c %D%/log/report.h \
	%D%/log/drain.c %D%/log/drain.h %D%/log/drain_internal.h %D%/log/drain_block.c \
	%D%/log/ring.c %D%/log/ring.h %D%/log/site.c %D%/log/site.h %D%/log/clock.c %D%/log/clock.h %D%/log/counter.c %D%/log/clock_watch.c %D%/log/clock_watch.h \
	%D%/log/recover.c %D%/log/remains.c %D%/log/remains.h \
	%D%/log/session.c %D%/log/session.h %D%/log/shared.h %D%/log/payload.c %D%/log/payload.h \
	%D%/log/format_arguments.c %D%/log/format_arguments.h %D%/log/format_site.c %D%/log/format_site.h %D%/log/costs.c \
	%D%/log/scratch.c %D%/log/scratch.h %D%/log/span.c %D%/log/trace_context.c %D%/log/hex.h \
	%D%/log/event_kind.c %D%/log/event_kind.h \
	%D%/classic/classic.c %D%/classic/classic.h %D%/classic/classic_write.c
%C%_libproducer_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
%C%_libproducer_la_CFLAGS = $(AM_CFLAGS) -pthread -fno-semantic-interposition

lib_LTLIBRARIES += %D%/libnetlogger.la
%C%_libnetlogger_la_SOURCES =
%C%_libnetlogger_la_LIBADD = %D%/libproducer.la $(core_libs)
%C%_libnetlogger_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined -Wl,-z,nodelete -Wl,-Bsymbolic-functions -Wl,--version-script=$(srcdir)/%D%/libnetlogger.map
EXTRA_%C%_libnetlogger_la_DEPENDENCIES = %D%/libnetlogger.map
EXTRA_DIST += %D%/libnetlogger.map %D%/abi

# Programs are linked without libtool, so they need the archives inside the libtool libraries. Shared libraries need the libtool libraries.
producer_libs = %D%/.libs/libproducer.a core/.libs/libcore.a $(core_external_libs)
%D%/.libs/libproducer.a: %D%/libproducer.la ;
core/.libs/libcore.a: core/libcore.la ;

# Instructions for adding to this directory.
EXTRA_DIST += %D%/README.md
