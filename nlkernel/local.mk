if BUILD_NLKERNEL
bin_PROGRAMS += nlkernel/nlkernel
endif
nlkernel_nlkernel_SOURCES = \
	%D%/main.c %D%/command.h %D%/list.c %D%/record.c %D%/live.c %D%/report.c %D%/log_input.c %D%/log_input.h \
	%D%/tracing.c %D%/tracing.h %D%/instance.c %D%/instance.h %D%/shared.c %D%/shared.h %D%/rights.c %D%/rights.h \
	%D%/events.c %D%/events.h %D%/kallsyms.c %D%/kallsyms.h %D%/functions.c %D%/functions.h %D%/choice.c %D%/choice.h %D%/pushdown.c %D%/pushdown.h \
	%D%/options.c %D%/options.h %D%/session.c %D%/session.h %D%/child.c %D%/child.h \
	%D%/lane.c %D%/lane.h %D%/page.h %D%/convert.c %D%/convert.h %D%/sink.c %D%/sink.h \
	%D%/tasks.c %D%/tasks.h %D%/realtime.c %D%/realtime.h \
	%D%/rules_file.c %D%/rules_file.h %D%/summary.c %D%/summary_print.c %D%/summary_draw.c %D%/summary.h \
	%D%/rules_run.c %D%/rules_run.h %D%/reporting.c %D%/reporting.h %D%/rules_command.c \
	%D%/workload.c %D%/bench.c %D%/kernel_sum.c %D%/kernel_sum.h %D%/bpf/sum.h \
	%D%/control.c %D%/control.h %D%/counters.c %D%/counters.h %D%/control_command.c %D%/calls.c %D%/calls.h %D%/trace_dat.c %D%/trace_dat.h \
	%D%/symbol_map.c %D%/symbol_map.h %D%/symbols.c %D%/call_view.c %D%/call_view.h \
	%D%/call_draw.c %D%/call_draw.h %D%/graph.c %D%/calls_command.c \
	%D%/trace_command.c %D%/join.c %D%/bpf/trace.h %D%/trace_probe.c %D%/trace_probe.h \
	%D%/elf_functions.c %D%/elf_functions.h

# The protocols of traced programs. Unit tests and fuzz targets use them, too.
EXTRA_LIBRARIES += %D%/libprotocols.a
%C%_libprotocols_a_SOURCES = \
	%D%/trace/exchanges.c %D%/trace/exchanges.h %D%/trace/causes.c %D%/trace/causes.h %D%/trace/frames.c %D%/trace/frames.h \
	%D%/trace/hpack.c %D%/trace/hpack.h %D%/trace/key_table.c %D%/trace/key_table.h %D%/trace/span.c %D%/trace/span.h %D%/trace/protocol.h %D%/trace/protocols.c %D%/trace/protocol_http.c %D%/trace/protocol_redis.c %D%/trace/protocol_memcached.c \
	%D%/trace/protocol_postgresql.c %D%/trace/protocol_mysql.c %D%/trace/protocol_dns.c %D%/trace/sql.c %D%/trace/sql.h \
	%D%/trace/description.c %D%/trace/description.h
%C%_libprotocols_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
%C%_libprotocols_a_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(NGHTTP2_CFLAGS)
nlkernel_nlkernel_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% -Inlkernel
nlkernel_nlkernel_CFLAGS = $(AM_CFLAGS) $(TRACEFS_CFLAGS) $(ZSTD_CFLAGS) $(GVC_CFLAGS) $(DW_CFLAGS) $(BPF_CFLAGS) $(GLIB_CFLAGS) $(CAIRO_CFLAGS) -pthread
nlkernel_nlkernel_LDADD = %D%/libprotocols.a $(common_libs) $(TRACEFS_LIBS) $(DW_LIBS) $(BPF_LIBS) $(NGHTTP2_LIBS)

# The programs that run in the kernel, as libbpf skeletons: loaders that contain the programs.
EXTRA_DIST += %D%/bpf/sum.bpf.c %D%/bpf/trace.bpf.c
if BUILD_NLKERNEL
nodist_nlkernel_nlkernel_SOURCES = nlkernel/bpf/sum.skel.h nlkernel/bpf/trace.skel.h
BUILT_SOURCES += nlkernel/bpf/sum.skel.h nlkernel/bpf/trace.skel.h
CLEANFILES += nlkernel/bpf/sum.skel.h nlkernel/bpf/sum.bpf.o nlkernel/bpf/trace.skel.h nlkernel/bpf/trace.bpf.o
endif
$(nlkernel_nlkernel_OBJECTS): nlkernel/bpf/sum.skel.h nlkernel/bpf/trace.skel.h
nlkernel/bpf/sum.skel.h: nlkernel/bpf/sum.bpf.c nlkernel/bpf/sum.h
nlkernel/bpf/trace.skel.h: nlkernel/bpf/trace.bpf.c nlkernel/bpf/trace.h
nlkernel/bpf/sum.skel.h nlkernel/bpf/trace.skel.h:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && name=$$(basename $@ .skel.h) && \
	$(BPF_CLANG) -O2 -g -target bpf -Wall -Werror $$($(CC) -print-multiarch 2>/dev/null | sed -n 's|^..*|-I/usr/include/&|p') \
	  $(BPF_CFLAGS) -I$(srcdir)/nlkernel/bpf -c $(srcdir)/nlkernel/bpf/$$name.bpf.c -o nlkernel/bpf/$$name.bpf.o && \
	$(BPFTOOL) gen skeleton nlkernel/bpf/$$name.bpf.o name $${name}_bpf > $@.new && mv $@.new $@

# nlkernel looks for its rules beside the program, both in the build directory and in the installed directory.
NLKERNEL_RULES = \
	%D%/rules/scheduler.rules %D%/rules/stopwatch.rules %D%/rules/interrupt.rules %D%/rules/locking.rules \
	%D%/rules/disk.rules %D%/rules/faults.rules %D%/rules/tcp.rules %D%/rules/syscalls.rules \
	%D%/rules/application.rules %D%/rules/request.rules %D%/rules/cpus.rules %D%/rules/bench.rules \
	%D%/rules/beanstalkd.rules
rulesdir = $(datadir)/netlogger/rules
if BUILD_NLKERNEL
dist_rules_DATA = $(NLKERNEL_RULES)
all-local: copy-nlkernel-rules
endif
.PHONY: copy-nlkernel-rules
copy-nlkernel-rules:
	@test $(srcdir) = . || { $(MKDIR_P) nlkernel/rules && for rules in $(NLKERNEL_RULES); do cp -u $(srcdir)/$$rules nlkernel/rules/; done; }
clean-local: clean-nlkernel-rules
clean-nlkernel-rules:
	test $(srcdir) = . || rm -rf nlkernel/rules

# Instructions for adding to this directory.
EXTRA_DIST += %D%/README.md
