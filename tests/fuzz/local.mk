# Fuzz targets. "make check" runs each target only on its corpus, without a fuzzer. tests/fuzz/run fuzzes.
fuzz_replays =
fuzz_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/libnetlogger
fuzz_ldadd = tests/fuzz/libreplay.a $(common_libs)
fuzz_import_ldadd = $(fuzz_ldadd)
EXTRA_LIBRARIES += %D%/libreplay.a
%C%_libreplay_a_SOURCES = %D%/replay.c %D%/fuzz.h
EXTRA_DIST += %D%/run %D%/corpus \
	%D%/url.dict %D%/ulm.dict %D%/bp.dict %D%/logfmt.dict %D%/binary.dict %D%/format_arguments.dict \
	%D%/payload.dict %D%/drain.dict %D%/filter.dict %D%/value_index.dict %D%/request.dict %D%/otlp_session.dict %D%/otlp_grpc_session.dict \
	%D%/import_json.dict %D%/import_csv.dict %D%/import_xml.dict %D%/import_otlp.dict %D%/import_otlp_proto.dict %D%/import_chrome.dict %D%/import_journal.dict %D%/import_strace.dict %D%/import_perf.dict %D%/import_ftrace.dict %D%/import_audit.dict %D%/import_pairs.dict %D%/import_multiline.dict %D%/import_syslog.dict %D%/syslog_stream.dict %D%/soap.dict %D%/trace_dat.dict %D%/trace_context.dict %D%/trace_protocols.dict %D%/stamp.dict %D%/trace_frames.dict

fuzz_replays += %D%/url.replay
tests_fuzz_url_replay_SOURCES = %D%/url.c %D%/fuzz.h
tests_fuzz_url_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_url_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/ulm.replay
tests_fuzz_ulm_replay_SOURCES = %D%/ulm.c %D%/text_round_trip.h
tests_fuzz_ulm_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_ulm_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/work.replay
tests_fuzz_work_replay_SOURCES = %D%/work.c %D%/fuzz.h
tests_fuzz_work_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_work_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/otlp_session.replay
tests_fuzz_otlp_session_replay_SOURCES = %D%/otlp_session.c %D%/otlp_feeding.h
tests_fuzz_otlp_session_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/common -I$(srcdir)/netlogd
tests_fuzz_otlp_session_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/otlp_grpc_session.replay
tests_fuzz_otlp_grpc_session_replay_SOURCES = %D%/otlp_grpc_session.c %D%/otlp_feeding.h
tests_fuzz_otlp_grpc_session_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/common -I$(srcdir)/netlogd $(NGHTTP2_CFLAGS)
tests_fuzz_otlp_grpc_session_replay_LDADD = $(fuzz_ldadd) $(NGHTTP2_LIBS)

fuzz_replays += %D%/bp.replay
tests_fuzz_bp_replay_SOURCES = %D%/bp.c %D%/text_round_trip.h
tests_fuzz_bp_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_bp_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/logfmt.replay
tests_fuzz_logfmt_replay_SOURCES = %D%/logfmt.c %D%/text_round_trip.h
tests_fuzz_logfmt_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_logfmt_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/decoder.replay
tests_fuzz_decoder_replay_SOURCES = %D%/decoder.c %D%/decoding.h
tests_fuzz_decoder_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_decoder_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/binary.replay
tests_fuzz_binary_replay_SOURCES = %D%/binary.c %D%/decoding.h
tests_fuzz_binary_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_binary_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/format_arguments.replay
tests_fuzz_format_arguments_replay_SOURCES = %D%/format_arguments.c %D%/text_round_trip.h
tests_fuzz_format_arguments_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_format_arguments_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/payload.replay
tests_fuzz_payload_replay_SOURCES = %D%/payload.c %D%/text_round_trip.h
tests_fuzz_payload_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_payload_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/drain.replay
tests_fuzz_drain_replay_SOURCES = %D%/drain.c %D%/fuzz.h
tests_fuzz_drain_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_drain_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/filter.replay
tests_fuzz_filter_replay_SOURCES = %D%/filter.c %D%/fuzz.h
tests_fuzz_filter_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_filter_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/value_index.replay
tests_fuzz_value_index_replay_SOURCES = %D%/value_index.c %D%/fuzz.h
tests_fuzz_value_index_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_value_index_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/trace_context.replay
tests_fuzz_trace_context_replay_SOURCES = %D%/trace_context.c %D%/fuzz.h
tests_fuzz_trace_context_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_trace_context_replay_LDADD = $(fuzz_ldadd)

fuzz_replays += %D%/stamp.replay
tests_fuzz_stamp_replay_SOURCES = %D%/stamp.c %D%/fuzz.h nlagent/sensors/stamp.c nlagent/sensors/path_tally.c
tests_fuzz_stamp_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/nlagent
tests_fuzz_stamp_replay_LDADD = $(fuzz_ldadd)

# This target includes the source file of netlogd that it tests, because no library contains this file.
fuzz_replays += %D%/request.replay
tests_fuzz_request_replay_SOURCES = %D%/request.c %D%/fuzz.h
tests_fuzz_request_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/netlogd
tests_fuzz_request_replay_LDADD = $(fuzz_ldadd)

# The importers of nlconv.
fuzz_replays += %D%/import_json.replay
tests_fuzz_import_json_replay_SOURCES = %D%/import_json.c %D%/importing.h
tests_fuzz_import_json_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_json_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_csv.replay
tests_fuzz_import_csv_replay_SOURCES = %D%/import_csv.c %D%/importing.h
tests_fuzz_import_csv_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_csv_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_xml.replay
tests_fuzz_import_xml_replay_SOURCES = %D%/import_xml.c %D%/importing.h
tests_fuzz_import_xml_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_xml_replay_LDADD = $(fuzz_import_ldadd)

if BUILD_NLAGENT
fuzz_replays += %D%/soap.replay
tests_fuzz_soap_replay_SOURCES = %D%/soap.c
tests_fuzz_soap_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/nlagent
tests_fuzz_soap_replay_CFLAGS = $(AM_CFLAGS) $(AGENT_CFLAGS)
tests_fuzz_soap_replay_LDADD = $(fuzz_ldadd) $(AGENT_LIBS)
endif

fuzz_replays += %D%/import_otlp.replay
tests_fuzz_import_otlp_replay_SOURCES = %D%/import_otlp.c %D%/importing.h
tests_fuzz_import_otlp_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_otlp_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_otlp_proto.replay
tests_fuzz_import_otlp_proto_replay_SOURCES = %D%/import_otlp_proto.c %D%/importing.h
tests_fuzz_import_otlp_proto_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_otlp_proto_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_chrome.replay
tests_fuzz_import_chrome_replay_SOURCES = %D%/import_chrome.c %D%/importing.h
tests_fuzz_import_chrome_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_chrome_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_journal.replay
tests_fuzz_import_journal_replay_SOURCES = %D%/import_journal.c %D%/importing.h
tests_fuzz_import_journal_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_journal_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_strace.replay
tests_fuzz_import_strace_replay_SOURCES = %D%/import_strace.c %D%/importing.h
tests_fuzz_import_strace_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_strace_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_pairs.replay
tests_fuzz_import_pairs_replay_SOURCES = %D%/import_pairs.c %D%/importing.h
tests_fuzz_import_pairs_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_pairs_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_multiline.replay
tests_fuzz_import_multiline_replay_SOURCES = %D%/import_multiline.c %D%/importing.h
tests_fuzz_import_multiline_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_multiline_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_audit.replay
tests_fuzz_import_audit_replay_SOURCES = %D%/import_audit.c %D%/importing.h
tests_fuzz_import_audit_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_audit_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_perf.replay
tests_fuzz_import_perf_replay_SOURCES = %D%/import_perf.c %D%/importing.h
tests_fuzz_import_perf_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_perf_replay_LDADD = $(fuzz_import_ldadd)
fuzz_replays += %D%/import_ftrace.replay
tests_fuzz_import_ftrace_replay_SOURCES = %D%/import_ftrace.c %D%/importing.h
tests_fuzz_import_ftrace_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_ftrace_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/import_syslog.replay
tests_fuzz_import_syslog_replay_SOURCES = %D%/import_syslog.c %D%/importing.h
tests_fuzz_import_syslog_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_import_syslog_replay_LDADD = $(fuzz_import_ldadd)

fuzz_replays += %D%/syslog_stream.replay
tests_fuzz_syslog_stream_replay_SOURCES = %D%/syslog_stream.c %D%/fuzz.h
tests_fuzz_syslog_stream_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/netlogd
tests_fuzz_syslog_stream_replay_LDADD = $(fuzz_import_ldadd)

if BUILD_NLKERNEL
fuzz_replays += %D%/trace_dat.replay
endif
tests_fuzz_trace_dat_replay_SOURCES = %D%/trace_dat.c %D%/fuzz.h nlkernel/trace_dat.c nlkernel/calls.c nlkernel/events.c \
	nlkernel/convert.c nlkernel/kallsyms.c nlkernel/rights.c nlkernel/tracing.c
tests_fuzz_trace_dat_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/nlkernel
tests_fuzz_trace_dat_replay_CFLAGS = $(AM_CFLAGS) $(TRACEFS_CFLAGS) $(ZSTD_CFLAGS) $(GLIB_CFLAGS)
tests_fuzz_trace_dat_replay_LDADD = $(fuzz_ldadd) $(TRACEFS_LIBS) $(ZSTD_LIBS) $(GLIB_LIBS)

fuzz_replays += %D%/trace_protocols.replay
tests_fuzz_trace_protocols_replay_SOURCES = %D%/trace_protocols.c %D%/fuzz.h
tests_fuzz_trace_protocols_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/nlkernel
tests_fuzz_trace_protocols_replay_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_fuzz_trace_protocols_replay_LDADD = nlkernel/libprotocols.a $(fuzz_ldadd)

fuzz_replays += %D%/trace_frames.replay
tests_fuzz_trace_frames_replay_SOURCES = %D%/trace_frames.c %D%/fuzz.h
tests_fuzz_trace_frames_replay_CPPFLAGS = $(fuzz_cppflags) -I$(srcdir)/nlkernel
tests_fuzz_trace_frames_replay_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(NGHTTP2_CFLAGS)
tests_fuzz_trace_frames_replay_LDADD = nlkernel/libprotocols.a $(fuzz_ldadd) $(NGHTTP2_LIBS)

check_PROGRAMS += $(fuzz_replays)
TESTS += $(fuzz_replays)
