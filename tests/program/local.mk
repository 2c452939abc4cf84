# Each file has its own line, so that two additions do not conflict.
EXTRA_DIST += \
	tests/program/accessible.py \
	tests/program/attacks.py \
	tests/program/blocks.py \
	tests/program/collector.py \
	tests/program/forbidden.c \
	tests/program/guest.py \
	tests/program/guest_clock.c \
	tests/program/nlb_decoder.py \
	tests/program/nlagents.py \
	tests/program/nlv_window.py \
	tests/program/otlp.py \
	tests/program/oracle_producer.c \
	tests/program/paths.py \
	tests/program/trace_stack.py \
	tests/program/pingpong.c \
	tests/program/producer.py \
	tests/program/scarce_memory.c \
	tests/program/slow_logs.py \
	tests/program/test_clocks_guests.py \
	tests/program/worker_pool.c \
	tests/program/workflow.py
# The long tests begin first, so that no long test is left running alone. The others follow in the order of their names.
program_tests += \
	tests/program/test_nldiag.py \
	tests/program/test_value_index.py \
	tests/program/test_options.py \
	tests/program/test_experiment.py \
	tests/program/test_formats.py \
	tests/program/test_bad_input.py \
	tests/program/test_scarce_memory.py \
	tests/program/test_documented.py \
	tests/program/test_connections.py \
	tests/program/test_connections_real.py \
	tests/program/test_netlogd_files.py \
	tests/program/test_netlogd_hostile.py \
	tests/program/test_nlv_window.py \
	tests/program/test_nlv_requests.py \
	tests/program/test_nlv_serve.py \
	tests/program/test_nlv.py \
	tests/program/test_spool.py \
	tests/program/test_keep_where.py \
	tests/program/test_nlagentd.py \
	tests/program/test_path.py \
	tests/program/test_nlsort.py \
	tests/program/test_nlsort_blocks.py \
	tests/program/test_languages.py \
	tests/program/test_netlogd_nats.py \
	tests/program/test_attack.py \
	tests/program/test_nlarchive.py \
	tests/program/test_netlogd_tls.py \
	tests/program/test_nlagentd_hostile.py \
	tests/program/test_seal.py \
	tests/program/test_nlkernel.py \
	tests/program/test_subscribe.py \
	tests/program/test_sensors.py \
	tests/program/test_sources.py \
	tests/program/test_nlv_sensors.py \
	tests/program/test_otlp.py \
	tests/program/test_otlp_output.py \
	tests/program/test_netlogd.py \
	tests/program/test_netlogd_routing.py \
	tests/program/test_install.py \
	tests/program/test_nlconv.py \
	tests/program/test_netlogd_output.py \
	tests/program/test_nlagentd_others.py \
	tests/program/test_delivery.py \
	tests/program/test_retention.py \
	tests/program/test_time_index.py \
	tests/program/test_wrong_peers.py \
	tests/program/test_nlkernel_protocols.py \
	tests/program/test_nlkernel_pools.py \
	tests/program/test_nlkernel_rules.py \
	tests/program/test_site.py \
	tests/program/test_abi.py \
	tests/program/test_adaptive.py \
	tests/program/test_api_examples.py \
	tests/program/test_binary.py \
	tests/program/test_calls.py \
	tests/program/test_certificates.py \
	tests/program/test_classic.py \
	tests/program/test_clocks.py \
	tests/program/test_confinement.py \
	tests/program/test_cxx.py \
	tests/program/test_dependencies.py \
	tests/program/test_dpss.py \
	tests/program/test_event_errors.py \
	tests/program/test_fix_clocks.py \
	tests/program/test_fortran.py \
	tests/program/test_http_example.py \
	tests/program/test_java.py \
	tests/program/test_language_pages.py \
	tests/program/test_manual.py \
	tests/program/test_marker.py \
	tests/program/test_netlogctl.py \
	tests/program/test_netlogd_journal.py \
	tests/program/test_netlogd_limits.py \
	tests/program/test_netlogd_oracle.py \
	tests/program/test_netlogd_syslog.py \
	tests/program/test_netlogd_udp.py \
	tests/program/test_nlconv_import.py \
	tests/program/test_nlkernel_functions.py \
	tests/program/test_nlkernel_http2.py \
	tests/program/test_nlkernel_trace.py \
	tests/program/test_nlrecover.py \
	tests/program/test_nlschema.py \
	tests/program/test_nlstat.py \
	tests/program/test_nlwrite.py \
	tests/program/test_packaging.py \
	tests/program/test_pages.py \
	tests/program/test_perl.py \
	tests/program/test_python.py \
	tests/program/test_real_faults.py \
	tests/program/test_set_user_id.py \
	tests/program/test_systemd.py \
	tests/program/test_terminal.py

if HAVE_PROGRAM_TESTS
TESTS += $(program_tests)
endif

# These tests compare durations and wait most of the time. Therefore, they run after all other tests, when the machine is less busy.
last_tests = tests/program/test_connections.log tests/program/test_connections_real.log tests/program/test_http_example.log \
	tests/program/test_nlkernel_trace.log
$(last_tests): $(filter-out $(last_tests),$(TEST_LOGS))
