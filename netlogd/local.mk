if BUILD_NETLOGD
bin_PROGRAMS += netlogd/netlogd netlogd/netlogctl
endif
netlogd_netlogd_SOURCES = \
	%D%/accepting.c %D%/accepting.h %D%/activation.c %D%/activation.h %D%/background.c %D%/background.h %D%/certificate_watch.c %D%/certificate_watch.h %D%/backlog.c \
	%D%/backlog.h %D%/client_limits.c %D%/client_limits.h %D%/clocks.c %D%/clocks.h %D%/confined.c %D%/confined.h \
	%D%/connection.c %D%/connection.h %D%/connections.c %D%/connections.h %D%/control.c %D%/control.h %D%/counts.c \
	%D%/counts.h %D%/datagrams.c %D%/datagrams.h %D%/flush.c %D%/flush.h %D%/foreign.c %D%/foreign.h %D%/gaps.c \
	%D%/gaps.h %D%/http.c %D%/http.h %D%/main.c %D%/metrics.c %D%/metrics.h %D%/nats_reader.c %D%/nats_reader.h \
	%D%/past.c %D%/past.h %D%/peer_address.c %D%/peer_address.h %D%/peer_host.c %D%/peer_host.h %D%/records.c %D%/records.h %D%/recovery.c %D%/recovery.h \
	%D%/reload.c %D%/reload.h %D%/request.c %D%/request.h %D%/request_line.c %D%/request_line.h %D%/server.c %D%/server.h \
	%D%/settings.c %D%/settings.h %D%/syslog_input.c %D%/syslog_input.h %D%/subscription.c %D%/subscription.h %D%/turns.c %D%/turns.h %D%/used_streams.c \
	%D%/used_streams.h \
	%D%/input/file_content.c %D%/input/file_content.h %D%/file_inputs.c %D%/file_inputs.h %D%/journal_input.c %D%/journal_input.h %D%/numbered_input.c %D%/numbered_input.h \
	%D%/input/file_records.c %D%/input/file_records.h %D%/input/position_log.c %D%/input/position_log.h \
	%D%/nats/cut.c %D%/nats/cut.h %D%/nats/intake.c %D%/nats/intake.h %D%/nats/link.c %D%/nats/link.h %D%/nats/place.c \
	%D%/nats/place.h %D%/nats/publish.c \
	%D%/otlp_client.c %D%/otlp_client.h %D%/otlp_export.c %D%/otlp_export.h %D%/otlp_grpc.c %D%/otlp_http1.c %D%/otlp_session.h %D%/otlp_spans.c %D%/otlp_spans.h \
	%D%/output/delivery.c %D%/output/delivery.h %D%/output/file.c %D%/output/file.h %D%/output/file_index.c \
	%D%/output/file_index.h %D%/output/file_index_check.c %D%/output/journal.c %D%/output/journal.h %D%/output/kind.h \
	%D%/output/keeper.c %D%/output/keeper.h %D%/output/kept_window.c %D%/output/kept_window.h %D%/output/selection.c %D%/output/selection.h \
	%D%/output/kind_forward.c %D%/output/kind_otlp.c %D%/output/kind_syslog.c %D%/output/missing.c %D%/output/missing.h %D%/output/options.c \
	%D%/output/options.h %D%/output/output.c %D%/output/output.h %D%/output/outputs.c %D%/output/outputs.h \
	%D%/output/repair.c %D%/output/repair.h %D%/output/retention.c %D%/output/retention.h %D%/output/seal.c %D%/output/seal.h %D%/output/seal_chain.c \
	%D%/output/seal_chain.h %D%/output/seal_key.c %D%/output/seal_key.h %D%/output/take_out.c %D%/output/take_out.h \
	%D%/output/otlp_link.c %D%/output/otlp_link.h %D%/output/otlp_link_grpc.c %D%/output/otlp_link_http1.c %D%/output/otlp_link_internal.h \
	%D%/output/otlp_open_spans.c %D%/output/otlp_open_spans.h \
	%D%/output/time_scan.c %D%/output/time_scan.h %D%/output/value_file.c %D%/output/value_file.h %D%/output/value_thread.c %D%/output/value_thread.h %D%/output/verify.c %D%/output/verify.h %D%/output/verify_seal.c \
	%D%/output/verify_seal.h
netlogd_netlogd_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/netlogd
netlogd_netlogd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(GLIB_CFLAGS) $(NATS_CFLAGS) $(NGHTTP2_CFLAGS) $(SYSTEMD_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS)
netlogd_netlogd_LDADD = $(common_libs) $(OPENSSL_LIBS) $(EVENT_LIBS) $(NATS_LIBS) $(NGHTTP2_LIBS) $(SECCOMP_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS)

netlogd_netlogctl_SOURCES = %D%/netlogctl.c %D%/certificates.c %D%/certificates.h
netlogd_netlogctl_LDADD = $(common_libs) $(OPENSSL_LIBS)

# Instructions for adding to this directory.
EXTRA_DIST += %D%/README.md %D%/output/README.md
