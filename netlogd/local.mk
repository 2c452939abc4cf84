if BUILD_NETLOGD
sbin_PROGRAMS += netlogd/netlogd
bin_PROGRAMS += netlogd/netlogctl
endif
netlogd_netlogd_SOURCES = \
	%D%/main.c %D%/settings.c %D%/settings.h \
	%D%/connection.c %D%/connection.h %D%/connections.c %D%/connections.h %D%/gaps.c %D%/gaps.h %D%/output/output.c %D%/output/output.h \
	%D%/output/outputs.c %D%/output/outputs.h %D%/output/delivery.c %D%/output/delivery.h \
	%D%/output/kind.h %D%/output/kinds.c %D%/output/kind_forward.c %D%/output/kind_syslog.c \
	%D%/output/file.c %D%/output/file.h %D%/output/file_index.c %D%/output/file_index.h %D%/output/file_index_check.c \
	%D%/output/time_scan.c %D%/output/time_scan.h %D%/output/journal.c %D%/output/journal.h %D%/output/options.c \
	%D%/output/options.h \
	%D%/output/repair.c %D%/output/repair.h %D%/output/verify.c %D%/output/verify.h \
	%D%/output/seal.c %D%/output/seal.h %D%/output/seal_chain.c %D%/output/seal_chain.h \
	%D%/output/seal_key.c %D%/output/seal_key.h %D%/output/verify_seal.c %D%/output/verify_seal.h \
	%D%/output/take_out.c %D%/output/take_out.h %D%/output/missing.c %D%/output/missing.h \
	%D%/server.c %D%/server.h %D%/accepting.c %D%/accepting.h %D%/nats_reader.h \
	%D%/recovery.c %D%/recovery.h %D%/activation.c %D%/activation.h \
	%D%/request.c %D%/request.h %D%/request_line.c %D%/request_line.h %D%/subscription.c %D%/subscription.h %D%/past.c %D%/past.h %D%/backlog.c %D%/backlog.h %D%/foreign.c %D%/foreign.h %D%/peer_address.c %D%/peer_address.h %D%/stream_limit.c %D%/stream_limit.h %D%/used_streams.c %D%/used_streams.h %D%/text_limit.c %D%/text_limit.h %D%/background.c %D%/background.h %D%/clocks.c %D%/clocks.h %D%/control.c %D%/control.h \
	%D%/metrics.c %D%/metrics.h %D%/http.c %D%/http.h \
	%D%/reload.c %D%/reload.h %D%/turns.c %D%/turns.h %D%/confined.c %D%/confined.h %D%/datagrams.c %D%/datagrams.h
netlogd_netlogd_SOURCES += %D%/nats/place.c %D%/nats/link.c %D%/nats/cut.c %D%/nats/publish.c %D%/nats/intake.c %D%/nats_reader.c
EXTRA_netlogd_netlogd_SOURCES = %D%/nats/place.h %D%/nats/link.h %D%/nats/cut.h %D%/nats/intake.h
netlogd_netlogd_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/netlogd
netlogd_netlogd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(NATS_CFLAGS) $(ZSTD_CFLAGS)
netlogd_netlogd_LDADD = $(common_libs) $(EVENT_LIBS) $(NATS_LIBS) $(SECCOMP_LIBS)

netlogd_netlogctl_SOURCES = %D%/netlogctl.c
netlogd_netlogctl_LDADD = $(common_libs)

# Recipes for those who add to it.
EXTRA_DIST += %D%/README.md %D%/output/README.md
