include_HEADERS += %D%/include/netlogger.h %D%/include/NetLogger.h
nlincludedir = $(includedir)/netlogger
nlinclude_HEADERS = \
	%D%/include/netlogger/archive.h %D%/include/netlogger/buffer.h %D%/include/netlogger/decoder.h \
	%D%/include/netlogger/encoder.h %D%/include/netlogger/filter.h %D%/include/netlogger/format.h \
	%D%/include/netlogger/event.h %D%/include/netlogger/event_private.h \
	%D%/include/netlogger/level.h %D%/include/netlogger/lines.h %D%/include/netlogger/log.h %D%/include/netlogger/marker.h \
	%D%/include/netlogger/marker_private.h %D%/include/netlogger/reader.h \
	%D%/include/netlogger/record.h %D%/include/netlogger/source.h %D%/include/netlogger/status.h %D%/include/netlogger/synthesis.h %D%/include/netlogger/time.h \
	%D%/include/netlogger/recover.h %D%/include/netlogger/url.h %D%/include/netlogger/writer.h
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = %D%/netlogger.pc

# What the library and netlogd both are made of: a socket, plain or within TLS; and the checksum.
noinst_LTLIBRARIES += %D%/libchannel.la
%C%_libchannel_la_SOURCES = \
	%D%/transport/channel.c %D%/transport/channel.h %D%/transport/tls.c %D%/format/crc32c.c %D%/format/crc32c.h
%C%_libchannel_la_CFLAGS = $(AM_CFLAGS) $(OPENSSL_CFLAGS) -pthread
%C%_libchannel_la_LIBADD = $(OPENSSL_LIBS) -lpthread

# What the library and netlogd both are made of, too: indexes by time.
noinst_LTLIBRARIES += %D%/libtimeindex.la
%C%_libtimeindex_la_SOURCES = %D%/reader/time_index.c %D%/reader/time_index.h

# What the library and what programs convert records with both are made of: files that take their place when they are whole.
noinst_LTLIBRARIES += %D%/libreplacement.la
%C%_libreplacement_la_SOURCES = %D%/base/replacement.c %D%/base/replacement.h

# What the library and the sensors both are made of: how good this host's clock is.
noinst_LTLIBRARIES += %D%/libtimekeeping.la
%C%_libtimekeeping_la_SOURCES = %D%/timekeeping/quality.c %D%/timekeeping/quality.h

# One time base for the records of many hosts; for programs.
noinst_LTLIBRARIES += %D%/libcorrection.la
%C%_libcorrection_la_SOURCES = %D%/timekeeping/correction.c %D%/timekeeping/correction.h %D%/timekeeping/fit.c \
	%D%/timekeeping/fit.h %D%/timekeeping/messages.c %D%/timekeeping/messages.h %D%/timekeeping/name_table.c \
	%D%/timekeeping/name_table.h %D%/timekeeping/or_abort.h
%C%_libcorrection_la_LIBADD = -lm

# All of the library, hidden symbols within reach: what the shared library is made of and the unit tests link.
noinst_LTLIBRARIES += %D%/libcore.la
%C%_libcore_la_SOURCES = \
	%D%/base/error.c %D%/base/error.h %D%/base/environment_value.h %D%/base/buffer.c %D%/base/time.c %D%/base/time_internal.h %D%/base/monotonic.h %D%/base/thread.h \
	%D%/base/distribution.c %D%/base/distribution.h \
	%D%/base/level.c %D%/base/signals.c %D%/base/signals.h %D%/base/write_some.h %D%/base/descriptor.h %D%/base/text.h %D%/base/hash_bytes.h %D%/base/pages.h \
	%D%/format/record.c %D%/format/record_internal.h %D%/format/number.c %D%/format/number.h \
	%D%/format/bytes.h %D%/format/format.c %D%/format/ulm.c %D%/format/ulm.h \
	%D%/format/bp.c %D%/format/bp.h %D%/format/text.c %D%/format/lines.c %D%/format/text_write.c %D%/format/text.h \
	%D%/format/varint.h %D%/format/block.h %D%/format/zstd_magic.h %D%/format/field_name.h \
	%D%/format/encoder.c %D%/format/block_write.c %D%/format/block_write.h %D%/format/block_read.c %D%/format/block_read.h \
	%D%/filter/filter.c %D%/filter/filter_internal.h %D%/filter/parse.c %D%/filter/operand.c %D%/filter/print.c \
	%D%/filter/pattern.c %D%/filter/pattern.h %D%/filter/pattern_build.h \
	%D%/filter/glob.c %D%/filter/regex.c %D%/filter/bracket.c \
	%D%/transport/url.c %D%/transport/destination.c %D%/transport/destination.h \
	%D%/transport/destination_file.c %D%/transport/destination_socket.c %D%/transport/dial.c %D%/transport/dial.h \
	%D%/transport/spool.c %D%/transport/spool.h %D%/transport/destination_syslog.c %D%/transport/destination_memory.c \
	%D%/transport/source.c %D%/transport/source_collector.c %D%/transport/source_collector.h %D%/transport/source.h %D%/transport/watch.c %D%/transport/watch.h \
	%D%/log/log.c %D%/log/log_internal.h %D%/log/write.c %D%/log/producer.c %D%/log/writer_thread.c \
	%D%/log/control.c %D%/log/control.h %D%/log/activation.c %D%/log/own_records.c \
	%D%/log/marker.c %D%/log/marker.h %D%/log/probe.c %D%/log/probe.h %D%/log/grace.c %D%/log/grace.h \
	%D%/log/options.c %D%/log/options.h %D%/log/outbox.c %D%/log/outbox.h \
	%D%/log/drain.c %D%/log/drain.h %D%/log/drain_internal.h %D%/log/drain_block.c \
	%D%/log/ring.c %D%/log/ring.h %D%/log/site.c %D%/log/site.h %D%/log/clock.c %D%/log/clock.h %D%/log/counter.c %D%/log/clock_watch.c %D%/log/clock_watch.h \
	%D%/log/recover.c %D%/log/remains.c %D%/log/remains.h \
	%D%/log/session.c %D%/log/session.h %D%/log/shared.h %D%/log/payload.c %D%/log/payload.h \
	%D%/log/format_arguments.c %D%/log/format_arguments.h %D%/log/format_site.c %D%/log/format_site.h %D%/log/costs.c \
	%D%/log/scratch.c %D%/log/scratch.h \
	%D%/log/event_kind.c %D%/log/event_kind.h \
	%D%/synthesis/sections.c %D%/synthesis/sections.h %D%/synthesis/synthesis_internal.h %D%/synthesis/symbols.h %D%/synthesis/syscalls.h %D%/synthesis/values.c \
	%D%/synthesis/rules.c %D%/synthesis/queue.c %D%/synthesis/make.c %D%/synthesis/span.c %D%/synthesis/sum.c \
	%D%/synthesis/states.c %D%/synthesis/follow.c %D%/synthesis/environment.c \
	%D%/classic/classic.c %D%/classic/classic.h %D%/classic/classic_write.c \
	%D%/reader/decoder.c %D%/reader/decoder_internal.h %D%/reader/decoder_blocks.c \
	%D%/reader/input.c %D%/reader/input.h %D%/reader/streams.c %D%/reader/streams.h %D%/reader/reader.c %D%/reader/archive.c %D%/transport/writer.c %D%/transport/writer_internal.h
%C%_libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -DNL_BINDIR='"$(bindir)"'
%C%_libcore_la_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS) -pthread -fno-semantic-interposition
%C%_libcore_la_LIBADD = %D%/libtimeindex.la %D%/libreplacement.la %D%/libchannel.la %D%/libtimekeeping.la $(ZSTD_LIBS) -lpthread

# The names of this machine's system calls, as its headers have them.
nodist_%C%_libcore_la_SOURCES = libnetlogger/synthesis/syscall_names.c
libnetlogger/synthesis/syscall_names.c: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	echo '#include <sys/syscall.h>' | $(CC) $(CPPFLAGS) -E -dM - > $@.macros && { \
	  echo '/* Made by make. */'; \
	  echo '#include "synthesis/syscalls.h"'; \
	  echo 'const char *const nl_syscall_names[] = {'; \
	  sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$$/    [\2] = "\1",/p' $@.macros | sort -u -t']' -k1,1; \
	  echo '};'; \
	  echo 'const unsigned nl_syscall_count = sizeof nl_syscall_names / sizeof *nl_syscall_names;'; \
	} > $@.new && rm $@.macros && mv $@.new $@
CLEANFILES += libnetlogger/synthesis/syscall_names.c

lib_LTLIBRARIES += %D%/libnetlogger.la
%C%_libnetlogger_la_SOURCES =
%C%_libnetlogger_la_LIBADD = %D%/libcore.la
%C%_libnetlogger_la_LDFLAGS = -version-info 0:0:0 -no-undefined -Wl,-z,nodelete -Wl,-Bsymbolic-functions -Wl,--version-script=$(srcdir)/%D%/libnetlogger.map
EXTRA_%C%_libnetlogger_la_DEPENDENCIES = %D%/libnetlogger.map
EXTRA_DIST += %D%/libnetlogger.map %D%/abi

# What the command-line programs share; not installed.
noinst_LTLIBRARIES += %D%/libprogram.la
%C%_libprogram_la_SOURCES = %D%/program/program.c %D%/program/program.h %D%/program/reading.c %D%/program/reading.h \
	%D%/program/encoding.c %D%/program/encoding.h %D%/program/record_xml.c %D%/program/record_xml.h \
	%D%/program/units.c %D%/program/units.h %D%/program/log.c %D%/program/source.c %D%/program/where.c %D%/program/archive.c
%C%_libprogram_la_LIBADD = %D%/libnetlogger.la

# What the daemons share: the sockets on which others arrive, and who may; not installed.
noinst_LTLIBRARIES += %D%/libservice.la
%C%_libservice_la_SOURCES = \
	%D%/service/listener.c %D%/service/listener.h %D%/service/network.c %D%/service/network.h \
	%D%/service/inherited.c %D%/service/inherited.h %D%/service/config_file.c %D%/service/config_file.h

# What a log means: for programs that look at all of one. Uses GLib; not installed.
if BUILD_NLSTAT
noinst_LTLIBRARIES += %D%/libanalysis.la
endif
%C%_libanalysis_la_SOURCES = \
	%D%/analysis/trace.c %D%/analysis/trace.h %D%/analysis/drawing.c %D%/analysis/drawing.h \
	%D%/analysis/infer.c %D%/analysis/infer.h %D%/analysis/lifelines.c %D%/analysis/lifelines.h \
	%D%/base/distribution.c %D%/base/distribution.h \
	%D%/analysis/hash64.h \
	%D%/analysis/json.c %D%/analysis/json.h \
	%D%/analysis/printable.c %D%/analysis/printable.h
%C%_libanalysis_la_CPPFLAGS = $(AM_CPPFLAGS) -DNL_DRAWINGS='"$(datadir)/netlogger/drawings"'
%C%_libanalysis_la_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
%C%_libanalysis_la_LIBADD = %D%/libnetlogger.la $(GLIB_LIBS) -lm

# Charts, for programs that measure; not installed.
if BUILD_NLSTAT
noinst_LTLIBRARIES += %D%/libchart.la
endif
%C%_libchart_la_SOURCES = %D%/analysis/chart.c %D%/analysis/chart.h
%C%_libchart_la_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(CAIRO_CFLAGS)
%C%_libchart_la_LIBADD = $(GLIB_LIBS) $(CAIRO_LIBS) -lm

# Foreign formats, for programs that read or write them; not installed.
noinst_LTLIBRARIES += %D%/libconvert.la
%C%_libconvert_la_SOURCES = \
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
%C%_libconvert_la_CFLAGS = $(AM_CFLAGS) $(XML_CFLAGS) $(GLIB_CFLAGS) $(BABELTRACE_CFLAGS)
%C%_libconvert_la_LIBADD = %D%/libreplacement.la $(XML_LIBS)
if BUILD_NLSTAT
%C%_libconvert_la_SOURCES += %D%/convert/picture.c %D%/convert/picture.h %D%/convert/chrome_write.c \
	%D%/convert/perfetto.c %D%/convert/spans.c
%C%_libconvert_la_LIBADD += %D%/libanalysis.la $(GLIB_LIBS)
endif
if BUILD_XML
%C%_libconvert_la_SOURCES += %D%/convert/xml_read.c %D%/convert/xml_own.c %D%/convert/xml_write.c %D%/convert/xml.h
endif
if BUILD_CTF
%C%_libconvert_la_SOURCES += %D%/convert/ctf.c
%C%_libconvert_la_LIBADD += $(BABELTRACE_LIBS)
endif
