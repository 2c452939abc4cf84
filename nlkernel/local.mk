# Records are put into blocks where they are read, by the library's own block writer, which no public header offers:
# hence libcore.la and the sources of libprogram.la, and of the importers that it shares with nlconv, not the shared
# library.
if BUILD_NLKERNEL
bin_PROGRAMS += nlkernel/nlkernel
endif
nlkernel_nlkernel_SOURCES = \
	%D%/main.c %D%/command.h %D%/list.c %D%/record.c %D%/live.c %D%/report.c %D%/json.c %D%/json.h \
	%D%/tracing.c %D%/tracing.h %D%/instance.c %D%/instance.h %D%/rights.c %D%/rights.h \
	%D%/events.c %D%/events.h %D%/kallsyms.c %D%/kallsyms.h %D%/functions.c %D%/functions.h %D%/choice.c %D%/choice.h %D%/pushdown.c %D%/pushdown.h \
	%D%/options.c %D%/options.h %D%/session.c %D%/session.h %D%/child.c %D%/child.h \
	%D%/lane.c %D%/lane.h %D%/page.h %D%/convert.c %D%/convert.h %D%/sink.c %D%/sink.h \
	%D%/tasks.c %D%/tasks.h %D%/realtime.c %D%/realtime.h %D%/scheduler.c %D%/scheduler.h \
	%D%/calls.c %D%/calls.h %D%/calls_read.c %D%/calls_read.h %D%/trace_dat.c %D%/trace_dat.h \
	%D%/symbol_map.c %D%/symbol_map.h %D%/dwarf.c %D%/symbols.c %D%/call_view.c %D%/call_view.h \
	%D%/call_draw.c %D%/call_draw.h %D%/graph.c %D%/report_functions.c \
	nltools/convert/builder.c nltools/convert/keys.c nltools/convert/sink.c nltools/convert/kernel_text.c \
	nltools/convert/ftrace.c nltools/convert/perf.c \
	libnetlogger/program/program.c libnetlogger/program/reading.c libnetlogger/program/log.c \
	libnetlogger/program/source.c libnetlogger/program/archive.c
nlkernel_nlkernel_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% -I$(srcdir)/nltools
nlkernel_nlkernel_CFLAGS = $(AM_CFLAGS) $(TRACEFS_CFLAGS) $(ZSTD_CFLAGS) $(GVC_CFLAGS) $(DW_CFLAGS) -pthread
nlkernel_nlkernel_LDADD = libnetlogger/libcore.la $(TRACEFS_LIBS) $(ZSTD_LIBS) $(GVC_LIBS) $(DW_LIBS) -lm -lpthread
