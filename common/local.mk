# Code that several programs share. The linker takes only the members that a program uses.
noinst_LIBRARIES += %D%/libcommon.a
%C%_libcommon_a_SOURCES = \
	%D%/program/absent_fields.c \
	%D%/program/absent_fields.h \
	%D%/program/message_output.c \
	%D%/program/message_output.h \
	%D%/program/program.c \
	%D%/program/program.h \
	%D%/program/reading.c \
	%D%/program/reading.h \
	%D%/program/encoding.c \
	%D%/program/encoding.h \
	%D%/program/record_xml.c \
	%D%/program/record_xml.h \
	%D%/program/foreign.h \
	%D%/program/gzip.c \
	%D%/program/gzip.h \
	%D%/program/units.c \
	%D%/program/units.h \
	%D%/program/options.c \
	%D%/program/options_help.c \
	%D%/program/options_help.h \
	%D%/program/options.h \
	%D%/program/log.c \
	%D%/program/own_log.c \
	%D%/program/own_log.h \
	%D%/program/source.c \
	%D%/program/temporary_file.c \
	%D%/program/temporary_file.h \
	%D%/program/where.c \
	%D%/program/archive.c \
	%D%/service/allowance.h \
	%D%/service/listener.c \
	%D%/service/listener.h \
	%D%/service/network.c \
	%D%/service/network.h \
	%D%/service/inherited.c \
	%D%/service/inherited.h \
	%D%/service/config_file.c \
	%D%/service/daemon.c \
	%D%/service/daemon.h \
	%D%/service/config_file.h \
	%D%/service/ending.c \
	%D%/service/ending.h \
	%D%/service/client_table.c \
	%D%/service/client_table.h \
	%D%/service/tracefs_mount.c \
	%D%/service/tracefs_mount.h \
	%D%/service/http_host.c \
	%D%/service/http_url.c \
	%D%/service/http_url.h \
	%D%/service/http_host.h \
	%D%/synthesis/synthesis.h \
	%D%/synthesis/sections.c \
	%D%/synthesis/sections.h \
	%D%/synthesis/synthesis_internal.h \
	%D%/synthesis/syscalls.h \
	%D%/synthesis/values.c \
	%D%/synthesis/rules.c \
	%D%/synthesis/queue.c \
	%D%/synthesis/make.c \
	%D%/synthesis/span.c \
	%D%/synthesis/sum.c \
	%D%/synthesis/states.c \
	%D%/synthesis/follow.c \
	%D%/clocks/correction.c \
	%D%/clocks/correction.h \
	%D%/clocks/fit.c \
	%D%/clocks/fit.h \
	%D%/clocks/messages.c \
	%D%/clocks/messages.h \
	%D%/clocks/name_table.c \
	%D%/clocks/name_table.h \
	%D%/convert/convert.h \
	%D%/convert/output.c \
	%D%/convert/output.h \
	%D%/convert/importers.c \
	%D%/convert/exporters.c \
	%D%/convert/cutter.c \
	%D%/convert/cutter.h \
	%D%/convert/translate.c \
	%D%/convert/sink.c \
	%D%/convert/netlogger.c \
	%D%/convert/builder.c \
	%D%/convert/builder.h \
	%D%/convert/keys.c \
	%D%/convert/keys.h \
	%D%/convert/json_scan.c \
	%D%/convert/json_scan.h \
	%D%/convert/json_text.c \
	%D%/convert/json_text.h \
	%D%/convert/json_fields.c \
	%D%/convert/json_fields.h \
	%D%/convert/json.c \
	%D%/convert/csv.h \
	%D%/convert/csv_read.c \
	%D%/convert/csv_write.c \
	%D%/convert/text_set.c \
	%D%/convert/text_set.h \
	%D%/convert/otlp_attributes.c \
	%D%/convert/otlp_encode.c \
	%D%/convert/otlp_encode.h \
	%D%/convert/otlp_message.c \
	%D%/convert/otlp_message.h \
	%D%/convert/otlp_put.h \
	%D%/convert/otlp_read.c \
	%D%/convert/otlp_records.c \
	%D%/convert/otlp_records.h \
	%D%/convert/protobuf.h \
	%D%/convert/otlp_write.c \
	%D%/convert/otlp.h \
	%D%/convert/chrome_read.c \
	%D%/convert/lines.h \
	%D%/convert/journal.c \
	%D%/convert/multiline.c \
	%D%/convert/syslog.c \
	%D%/convert/syslog.h \
	%D%/convert/strace.c \
	%D%/convert/strace_line.c \
	%D%/convert/strace_line.h \
	%D%/convert/strace_time.c \
	%D%/convert/strace_time.h \
	%D%/convert/strace_threads.c \
	%D%/convert/strace_threads.h \
	%D%/convert/perf.c \
	%D%/convert/kernel_text.c \
	%D%/convert/kernel_text.h \
	%D%/convert/ftrace.c \
	%D%/convert/audit.c \
	%D%/convert/pairs.c \
	%D%/program/json_document.c \
	%D%/program/json_document.h \
	%D%/program/glib_error.c \
	%D%/program/glib_error.h \
	%D%/requests/trace.c \
	%D%/requests/trace.h \
	%D%/requests/field_units.c \
	%D%/requests/field_units.h \
	%D%/requests/drawing.c \
	%D%/requests/drawing.h \
	%D%/requests/whole_spans.c \
	%D%/requests/whole_spans.h \
	%D%/requests/clock_bounds.c \
	%D%/requests/clock_bounds.h \
	%D%/requests/clock_alignment.c \
	%D%/requests/clock_alignment.h \
	%D%/requests/assembler.c \
	%D%/requests/assembler.h \
	%D%/requests/contrast.c \
	%D%/requests/contrast.h \
	%D%/requests/request_filter.c \
	%D%/requests/request_filter.h \
	%D%/requests/request_learning.c \
	%D%/requests/request_learning.h \
	%D%/requests/request_reader.c \
	%D%/requests/request_reader.h \
	%D%/requests/event_names.c \
	%D%/requests/event_names.h \
	%D%/requests/path_rivals.c \
	%D%/requests/path_rivals.h \
	%D%/requests/precedence.c \
	%D%/requests/precedence.h \
	%D%/requests/awaited_spans.c \
	%D%/requests/awaited_spans.h \
	%D%/requests/clock_gaps.c \
	%D%/requests/clock_gaps.h \
	%D%/requests/clock_doubts.c \
	%D%/requests/clock_doubts.h \
	%D%/requests/clock_shifts.c \
	%D%/requests/clock_shifts.h \
	%D%/requests/program_families.c \
	%D%/requests/program_families.h \
	%D%/requests/program_names.c \
	%D%/requests/program_names.h \
	%D%/requests/restarts.c \
	%D%/requests/restarts.h \
	%D%/requests/request_graph.c \
	%D%/requests/request_graph.h \
	%D%/requests/infer.c \
	%D%/requests/infer.h \
	%D%/requests/record_sample.c \
	%D%/requests/record_sample.h \
	%D%/requests/key_map.c \
	%D%/requests/key_map.h \
	%D%/requests/critical_path.c \
	%D%/requests/critical_path.h \
	%D%/requests/hash64.h \
	%D%/requests/printable.c \
	%D%/requests/printable.h \
	%D%/connections/connection_causes.c \
	%D%/connections/connection_causes.h \
	%D%/connections/connection_entry.h \
	%D%/connections/connection_results.c \
	%D%/connections/connection_paths.c \
	%D%/connections/connection_paths.h \
	%D%/connections/connection_progress.c \
	%D%/connections/classic_transfers.c \
	%D%/connections/classic_transfers.h \
	%D%/connections/connection_advice.c \
	%D%/connections/connection_sharing.c \
	%D%/connections/connection_bottlenecks.c \
	%D%/charts/cairo_library.h \
	%D%/charts/chart.c \
	%D%/charts/chart.h \
	%D%/convert/request_stream.c \
	%D%/convert/request_stream.h \
	%D%/convert/lanes.c \
	%D%/convert/lanes.h \
	%D%/convert/chrome_write.c \
	%D%/convert/perfetto.c \
	%D%/convert/spans.c \
	%D%/convert/span_ids.c \
	%D%/convert/span_ids.h \
	%D%/convert/xml_read.c \
	%D%/convert/xml_write.c \
	%D%/convert/ctf.c
# Programs load libbabeltrace2 and libxml2 when they first need them. Programs that send or answer requests of agents are linked with libxml2.
common_libs = %D%/libcommon.a $(producer_libs) $(JSON_LIBS) $(XML_LIBS) $(GLIB_LIBS) $(ZLIB_LIBS) -lm
if BUILD_DAEMONS
# Confinement of netlogd and nlagentd.
%C%_libcommon_a_SOURCES += \
	%D%/service/confine.c \
	%D%/service/confine.h \
	%D%/service/confine_calls.c \
	%D%/service/confine_calls.h
endif
if BUILD_AGENTS
# Requests to agents, for nlagent and nlv.
%C%_libcommon_a_SOURCES += \
	%D%/agents/soap.c \
	%D%/agents/soap.h \
	%D%/agents/client.c \
	%D%/agents/client.h \
	%D%/agents/gather.c \
	%D%/agents/gather.h \
	%D%/agents/find.c \
	%D%/agents/find.h \
	%D%/agents/directory.c \
	%D%/agents/directory.h \
	%D%/agents/ldap_directory.c \
	%D%/agents/ldap_directory.h
common_libs += $(LDAP_LIBS)
endif
CLEANFILES += %D%/requests/sensor_units.c

# The units of the sensors' fields, from their documentation. A field that several events have is documented once.
%D%/requests/sensor_units.c: doc/sensors.md
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { echo '#include "requests/field_units.h"'; echo 'const sensor_unit sensor_units[] = {'; \
	  awk '/^### / { event = $$2 } \
	       /^- `/ { field = $$2; gsub(/[`:]/, "", field); \
	                if (match($$0, /^- `[^`]*` \([^)]*\)/)) { unit = substr($$0, 1, RLENGTH - 1); sub(/.*\(/, "", unit); units[field] = unit } \
	                if (field in units) printf "    {\"%s\", \"%s\", \"%s\"},\n", event, field, units[field] }' $(srcdir)/doc/sensors.md; \
	  echo '    {0},'; echo '};'; } > $@.new && mv $@.new $@

%C%_libcommon_a_CPPFLAGS = $(AM_CPPFLAGS) -DNL_DRAWINGS='"$(datadir)/netlogger/drawings"' -DNL_SCHEMAS='"$(datadir)/netlogger/schemas"'
%C%_libcommon_a_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS) $(XML_CFLAGS) $(AGENT_CFLAGS) $(LDAP_CFLAGS) $(GLIB_CFLAGS) $(CAIRO_CFLAGS) $(BABELTRACE_CFLAGS)

# The names of the system calls, from the headers of the machine.
nodist_%C%_libcommon_a_SOURCES = %D%/requests/sensor_units.c common/synthesis/syscall_names.c
common/synthesis/syscall_names.c: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	echo '#include <sys/syscall.h>' | $(CC) $(CPPFLAGS) -E -dM - > $@.macros && { \
	  echo '/* Generated by make. */'; \
	  echo '#include "synthesis/syscalls.h"'; \
	  echo 'const char *const nl_syscall_names[] = {'; \
	  sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$$/    [\2] = "\1",/p' $@.macros | sort -u -t']' -k1,1; \
	  echo '};'; \
	  echo 'const unsigned nl_syscall_count = sizeof nl_syscall_names / sizeof *nl_syscall_names;'; \
	} > $@.new && rm $@.macros && mv $@.new $@
CLEANFILES += common/synthesis/syscall_names.c

EXTRA_DIST += %D%/program/README.md %D%/convert/README.md %D%/synthesis/README.md
