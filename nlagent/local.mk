# nlsensor, and the program that nlagentd starts. They write records to different destinations.
nlagent_sensor_sources = %D%/nlsensor.c %D%/output.h

# The sensors. nlagentd is also linked with them, because it needs their descriptions.
EXTRA_LIBRARIES += %D%/libsensors.a
%C%_libsensors_a_SOURCES = \
	%D%/sensors/spec.c %D%/sensors/spec.h %D%/sensors/sensor.h %D%/sensors/kinds.c %D%/sensors/proc.c %D%/sensors/http.c %D%/sensors/http.h \
	%D%/sensors/clock.c %D%/sensors/collectd.c %D%/sensors/connections.c %D%/sensors/counters.c %D%/sensors/cpu.c \
	%D%/sensors/disk.c %D%/sensors/filesystem.c %D%/sensors/interrupts.c %D%/sensors/load.c %D%/sensors/network.c \
	%D%/sensors/socket_ends.c %D%/sensors/socket_ends.h %D%/sensors/tcp_close.h %D%/sensors/tcp_kernel.h %D%/sensors/socket_states.c %D%/sensors/socket_states.h %D%/sensors/tcp_state.h %D%/sensors/socket_owners.c %D%/sensors/socket_owners.h %D%/sensors/ping.c %D%/sensors/path.c %D%/sensors/path_probes.c %D%/sensors/path_probes.h %D%/sensors/path_route.c %D%/sensors/path_route.h %D%/sensors/path_tally.c %D%/sensors/path_tally.h %D%/sensors/path_transfer.c %D%/sensors/path_transfer.h %D%/sensors/stamp.c %D%/sensors/stamp.h %D%/sensors/pressure.c %D%/sensors/processes.c %D%/sensors/prometheus.c %D%/sensors/server.c
%C%_libsensors_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% $(tcp_close_cppflags)

bin_PROGRAMS += nlagent/nlsensor
nlagent_nlsensor_SOURCES = $(nlagent_sensor_sources) %D%/output_log.c
nlagent_nlsensor_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% $(tcp_close_cppflags)
nlagent_nlsensor_LDADD = %D%/libsensors.a $(common_libs)

# The program that nlagentd starts. It needs no shared library except libc, so that it uses little memory.
pkglibexec_PROGRAMS = nlagent/sensor
nlagent_sensor_SOURCES = $(nlagent_sensor_sources) %D%/output_text.c
nlagent_sensor_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% $(tcp_close_cppflags)
nlagent_sensor_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed -Wl,--gc-sections
nlagent_sensor_LDADD = %D%/libsensors.a $(common_libs)

# The agent and its client.
nlagent_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/%D% $(tcp_close_cppflags) -DBINDIR='"$(bindir)"' -DPKGLIBEXECDIR='"$(pkglibexecdir)"' \
	-DPKGDATADIR='"$(pkgdatadir)"' -DSOURCE_DOC='"$(abs_top_srcdir)/doc"'
if BUILD_NLAGENT
bin_PROGRAMS += nlagent/nlagentd nlagent/nlagent
dist_pkgdata_DATA = doc/nlagent.wsdl doc/netlogger.xsd doc/nlagent.schema
endif
nlagent_nlagentd_SOURCES = \
	%D%/agent/main.c %D%/agent/agent.h %D%/agent/active.c %D%/agent/subscription.c %D%/agent/condition.c \
	%D%/agent/condition.h %D%/agent/summary.c %D%/agent/summary.h %D%/agent/process.c %D%/agent/process.h %D%/agent/shared_record.c %D%/agent/shared_record.h %D%/agent/starter.c %D%/agent/starter.h \
	%D%/agent/definition.c %D%/agent/definition.h %D%/agent/http_server.c %D%/agent/http_server.h \
	%D%/agent/service.c %D%/agent/service.h %D%/agent/access.c %D%/agent/access.h %D%/agent/http_clients.c %D%/agent/http_clients.h %D%/agent/registrar.c \
	%D%/agent/reflector.c %D%/agent/reflector.h %D%/agent/reflector_limits.c %D%/agent/reflector_limits.h \
	%D%/agent/registrar.h %D%/agent/settings.c %D%/agent/settings.h %D%/agent/collections.c %D%/agent/collections.h
nlagent_nlagentd_CPPFLAGS = $(nlagent_cppflags)
nlagent_nlagentd_CFLAGS = $(AM_CFLAGS) $(AGENT_CFLAGS) $(LDAP_CFLAGS) -pthread
nlagent_nlagentd_LDADD = %D%/libsensors.a $(common_libs) $(OPENSSL_LIBS) $(AGENT_LIBS) $(LDAP_LIBS) $(SECCOMP_LIBS)

nlagent_nlagent_SOURCES = %D%/nlagent.c
nlagent_nlagent_CPPFLAGS = $(nlagent_cppflags)
nlagent_nlagent_CFLAGS = $(AM_CFLAGS) $(AGENT_CFLAGS) $(LDAP_CFLAGS) -pthread
nlagent_nlagent_LDADD = $(common_libs) $(AGENT_LIBS) $(LDAP_LIBS)

# The programs of the connections sensor that run in the kernel, as skeletons that need no library. They are built if
# nlkernel is built, because they need the same tools.
EXTRA_DIST += %D%/sensors/tcp_close.bpf.c %D%/sensors/tcp_state.bpf.c %D%/sensors/tcp_used.bpf.c
if BUILD_NLKERNEL
tcp_close_cppflags = -DHAVE_TCP_CLOSE -Inlagent $(BPF_CFLAGS)
sensor_skeletons = nlagent/sensors/tcp_close.skel.h nlagent/sensors/tcp_state.skel.h nlagent/sensors/tcp_used.skel.h
BUILT_SOURCES += $(sensor_skeletons)
CLEANFILES += $(sensor_skeletons) $(sensor_skeletons:.skel.h=.bpf.o)
$(nlagent_libsensors_a_OBJECTS): $(sensor_skeletons)
nlagent/sensors/tcp_used.skel.h: nlagent/sensors/tcp_state.bpf.c
endif
nlagent/sensors/%.skel.h: nlagent/sensors/%.bpf.c nlagent/sensors/tcp_close.h nlagent/sensors/tcp_kernel.h nlagent/sensors/tcp_state.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(BPF_CLANG) -O2 -g -target bpf -Wall -Werror $$($(CC) -print-multiarch 2>/dev/null | sed -n 's|^..*|-I/usr/include/&|p') \
	  $(BPF_CFLAGS) -I$(srcdir)/nlagent/sensors -c $< -o $(@:.skel.h=.bpf.o) && \
	{ echo '#pragma GCC system_header' && \
	  $(BPFTOOL) gen skeleton -L $(@:.skel.h=.bpf.o) name $(@F:.skel.h=)_bpf; } > $@.new && mv $@.new $@

# Instructions for adding to this directory.
EXTRA_DIST += %D%/sensors/README.md %D%/agent/README.md
