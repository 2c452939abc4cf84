# Each test has a line in unit_tests, and the variables _SOURCES, _CPPFLAGS and _LDADD. The long tests begin first, so that no long
# test runs alone at the end.
unit_tests = %D%/recover.unit %D%/requests.unit %D%/synthesis.unit %D%/marker.unit %D%/block.unit
EXTRA_DIST += %D%/text_support.h %D%/decoding.h %D%/log_folders.h %D%/thread_sanitizer.h %D%/under_valgrind.h %D%/valgrind.supp

unit_tests += %D%/time.unit
tests_unit_time_unit_SOURCES = %D%/time.c
tests_unit_time_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_time_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/error.unit
tests_unit_error_unit_SOURCES = %D%/error.c
tests_unit_error_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_error_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/option.unit
tests_unit_option_unit_SOURCES = %D%/option.c
tests_unit_option_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_option_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/record.unit
tests_unit_record_unit_SOURCES = %D%/record.c
tests_unit_record_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_record_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/lines.unit
tests_unit_lines_unit_SOURCES = %D%/lines.c
tests_unit_lines_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_lines_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/ulm.unit
tests_unit_ulm_unit_SOURCES = %D%/ulm.c
tests_unit_ulm_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_ulm_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/logfmt.unit
tests_unit_logfmt_unit_SOURCES = %D%/logfmt.c
tests_unit_logfmt_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_logfmt_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/bp.unit
tests_unit_bp_unit_SOURCES = %D%/bp.c
tests_unit_bp_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_bp_unit_LDADD = $(unit_ldadd)

tests_unit_block_unit_SOURCES = %D%/block.c
tests_unit_block_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_block_unit_LDADD = $(unit_ldadd)

tests_unit_synthesis_unit_SOURCES = %D%/synthesis.c
tests_unit_synthesis_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_synthesis_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/filter.unit
tests_unit_filter_unit_SOURCES = %D%/filter.c
tests_unit_filter_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_filter_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/decoder.unit
tests_unit_decoder_unit_SOURCES = %D%/decoder.c
tests_unit_decoder_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_decoder_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/decoder_blocks.unit
tests_unit_decoder_blocks_unit_SOURCES = %D%/decoder_blocks.c
tests_unit_decoder_blocks_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_decoder_blocks_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/reader.unit
tests_unit_reader_unit_SOURCES = %D%/reader.c
tests_unit_reader_unit_CPPFLAGS = $(unit_cppflags) $(ZSTD_CFLAGS)
tests_unit_reader_unit_LDADD = $(unit_ldadd) $(ZSTD_LIBS)

unit_tests += %D%/url.unit
tests_unit_url_unit_SOURCES = %D%/url.c
tests_unit_url_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_url_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/log.unit
tests_unit_log_unit_SOURCES = %D%/log.c
tests_unit_log_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_log_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/event.unit
tests_unit_event_unit_SOURCES = %D%/event.c
tests_unit_event_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_event_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/clock.unit
tests_unit_clock_unit_SOURCES = %D%/clock.c
tests_unit_clock_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_clock_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/clock_counter.unit
tests_unit_clock_counter_unit_SOURCES = %D%/clock_counter.c
tests_unit_clock_counter_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_clock_counter_unit_LDADD = $(unit_ldadd)

tests_unit_recover_unit_SOURCES = %D%/recover.c
tests_unit_recover_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_recover_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/replacement.unit
tests_unit_replacement_unit_SOURCES = %D%/replacement.c
tests_unit_replacement_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_replacement_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/wrong_calls.unit
tests_unit_wrong_calls_unit_SOURCES = %D%/wrong_calls.c
tests_unit_wrong_calls_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_wrong_calls_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/protobuf.unit
tests_unit_protobuf_unit_SOURCES = %D%/protobuf.c
tests_unit_protobuf_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_protobuf_unit_CFLAGS = $(AM_CFLAGS) -funsigned-char
tests_unit_protobuf_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/spool.unit
tests_unit_spool_unit_SOURCES = %D%/spool.c
tests_unit_spool_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_spool_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/bounds.unit
tests_unit_bounds_unit_SOURCES = %D%/bounds.c
tests_unit_bounds_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_bounds_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/surroundings.unit
tests_unit_surroundings_unit_SOURCES = %D%/surroundings.c
tests_unit_surroundings_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_surroundings_unit_LDADD = $(unit_ldadd)

tests_unit_marker_unit_SOURCES = %D%/marker.c
tests_unit_marker_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_marker_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/control.unit
tests_unit_control_unit_SOURCES = %D%/control.c
tests_unit_control_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_control_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/terminal.unit
tests_unit_terminal_unit_SOURCES = %D%/terminal.c
tests_unit_terminal_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_terminal_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/sequences.unit
tests_unit_sequences_unit_SOURCES = %D%/sequences.c
tests_unit_sequences_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_sequences_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/journal.unit
tests_unit_journal_unit_SOURCES = %D%/journal.c netlogd/output/journal.c netlogd/output/file.c
tests_unit_journal_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_journal_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/seal.unit
tests_unit_seal_unit_SOURCES = %D%/seal.c netlogd/output/seal.c netlogd/output/seal_chain.c netlogd/output/seal_key.c \
	netlogd/output/verify_seal.c netlogd/output/file.c
tests_unit_seal_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_seal_unit_LDADD = $(unit_ldadd)

if BUILD_NETLOGD
unit_tests += %D%/turns.unit
endif
tests_unit_turns_unit_SOURCES = %D%/turns.c netlogd/turns.c
tests_unit_turns_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_turns_unit_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
tests_unit_turns_unit_LDADD = $(unit_ldadd) $(EVENT_LIBS)

if BUILD_NETLOGD
unit_tests += %D%/flush.unit
endif
tests_unit_flush_unit_SOURCES = %D%/flush.c netlogd/flush.c
tests_unit_flush_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_flush_unit_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
tests_unit_flush_unit_LDADD = $(unit_ldadd) $(EVENT_LIBS)

if BUILD_NETLOGD
unit_tests += %D%/clocks.unit
endif
tests_unit_clocks_unit_SOURCES = %D%/clocks.c netlogd/clocks.c netlogd/peer_address.c
tests_unit_clocks_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_clocks_unit_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
tests_unit_clocks_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/connections.unit
tests_unit_connections_unit_SOURCES = %D%/connections.c netlogd/connections.c
tests_unit_connections_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_connections_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/gaps.unit
tests_unit_gaps_unit_SOURCES = %D%/gaps.c netlogd/gaps.c
tests_unit_gaps_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_gaps_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/client_table.unit
tests_unit_client_table_unit_SOURCES = %D%/client_table.c
tests_unit_client_table_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_client_table_unit_LDADD = $(unit_ldadd)

if BUILD_DAEMONS
unit_tests += %D%/confine.unit
endif
tests_unit_confine_unit_SOURCES = %D%/confine.c
tests_unit_confine_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_confine_unit_LDADD = $(unit_ldadd) $(SECCOMP_LIBS)

unit_tests += %D%/nats.unit
tests_unit_nats_unit_SOURCES = %D%/nats.c netlogd/nats/place.c netlogd/nats/cut.c
tests_unit_nats_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/netlogd
tests_unit_nats_unit_LDADD = $(unit_ldadd)

if BUILD_NLKERNEL
unit_tests += %D%/nlkernel.unit
endif
tests_unit_nlkernel_unit_SOURCES = %D%/nlkernel.c nlkernel/convert.c nlkernel/elf_functions.c nlkernel/kallsyms.c nlkernel/rights.c nlkernel/tracing.c
tests_unit_nlkernel_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nlkernel
tests_unit_nlkernel_unit_CFLAGS = $(AM_CFLAGS) $(TRACEFS_CFLAGS)
tests_unit_nlkernel_unit_LDADD = $(unit_ldadd) $(TRACEFS_LIBS)
unit_tests += %D%/trace_protocols.unit
tests_unit_trace_protocols_unit_SOURCES = %D%/trace_protocols.c
tests_unit_trace_protocols_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nlkernel
tests_unit_trace_protocols_unit_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_unit_trace_protocols_unit_LDADD = nlkernel/libprotocols.a $(unit_ldadd)
unit_tests += %D%/trace_frames.unit
tests_unit_trace_frames_unit_SOURCES = %D%/trace_frames.c
tests_unit_trace_frames_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nlkernel
tests_unit_trace_frames_unit_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(NGHTTP2_CFLAGS)
tests_unit_trace_frames_unit_LDADD = nlkernel/libprotocols.a $(unit_ldadd) $(NGHTTP2_LIBS)
unit_tests += %D%/trace_exchanges.unit
tests_unit_trace_exchanges_unit_SOURCES = %D%/trace_exchanges.c
tests_unit_trace_exchanges_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nlkernel
tests_unit_trace_exchanges_unit_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(NGHTTP2_CFLAGS)
tests_unit_trace_exchanges_unit_LDADD = nlkernel/libprotocols.a $(unit_ldadd) $(NGHTTP2_LIBS)
unit_tests += %D%/convert.unit
tests_unit_convert_unit_SOURCES = %D%/convert.c
tests_unit_convert_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_convert_unit_LDADD = $(unit_ldadd)
if BUILD_NLAGENT
unit_tests += %D%/nlagent.unit
endif
unit_tests += %D%/stamp.unit
tests_unit_stamp_unit_SOURCES = %D%/stamp.c nlagent/sensors/stamp.c nlagent/sensors/path_tally.c nlagent/agent/reflector_limits.c
tests_unit_stamp_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nlagent
tests_unit_stamp_unit_LDADD = $(unit_ldadd)
tests_unit_nlagent_unit_SOURCES = %D%/nlagent.c nlagent/sensors/spec.c nlagent/agent/condition.c nlagent/agent/summary.c
tests_unit_nlagent_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nlagent
tests_unit_nlagent_unit_CFLAGS = $(AM_CFLAGS) $(AGENT_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_nlagent_unit_LDADD = $(unit_ldadd) $(AGENT_LIBS)
if BUILD_NLV
unit_tests += %D%/nlv.unit %D%/scene.unit %D%/request_list.unit
endif
tests_unit_nlv_unit_SOURCES = %D%/nlv.c %D%/lifelines.c %D%/lifelines.h
tests_unit_nlv_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nlv
tests_unit_nlv_unit_CFLAGS = $(AM_CFLAGS) $(GTK_CFLAGS) $(GLIB_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_nlv_unit_LDADD = nlv/libscene.a $(unit_ldadd) $(GTK_LIBS)
tests_unit_request_list_unit_SOURCES = %D%/request_list.c
tests_unit_request_list_unit_CPPFLAGS = $(tests_unit_nlv_unit_CPPFLAGS)
tests_unit_request_list_unit_CFLAGS = $(tests_unit_nlv_unit_CFLAGS)
tests_unit_request_list_unit_LDADD = $(tests_unit_nlv_unit_LDADD) -lm
tests_unit_scene_unit_SOURCES = %D%/scene.c
tests_unit_scene_unit_CPPFLAGS = $(tests_unit_nlv_unit_CPPFLAGS)
tests_unit_scene_unit_CFLAGS = $(tests_unit_nlv_unit_CFLAGS)
tests_unit_scene_unit_LDADD = $(tests_unit_nlv_unit_LDADD) -lm

unit_tests += %D%/event_kind.unit
tests_unit_event_kind_unit_SOURCES = %D%/event_kind.c
tests_unit_event_kind_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_event_kind_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/span.unit
tests_unit_span_unit_SOURCES = %D%/span.c
tests_unit_span_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_span_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/trace_context.unit
tests_unit_trace_context_unit_SOURCES = %D%/trace_context.c
tests_unit_trace_context_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_trace_context_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/path.unit
tests_unit_path_unit_SOURCES = %D%/path.c examples/dpss/path.c
tests_unit_path_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/examples/dpss
tests_unit_path_unit_LDADD = $(unit_ldadd)

if BUILD_UNIT_TESTS
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif

unit_tests += %D%/timekeeping.unit
tests_unit_timekeeping_unit_SOURCES = %D%/timekeeping.c
tests_unit_timekeeping_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_timekeeping_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/block_limits.unit
tests_unit_block_limits_unit_SOURCES = %D%/block_limits.c
tests_unit_block_limits_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_block_limits_unit_LDADD = $(unit_ldadd)

tests_unit_requests_unit_SOURCES = %D%/requests.c
tests_unit_requests_unit_CPPFLAGS = $(unit_cppflags)
tests_unit_requests_unit_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_unit_requests_unit_LDADD = $(unit_ldadd)

unit_tests += %D%/keyed_sort.unit
tests_unit_keyed_sort_unit_SOURCES = %D%/keyed_sort.c nltools/diag/keyed_sort.c
tests_unit_keyed_sort_unit_CPPFLAGS = $(unit_cppflags) -I$(srcdir)/nltools
tests_unit_keyed_sort_unit_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_unit_keyed_sort_unit_LDADD = $(unit_ldadd) $(GLIB_LIBS)
