EXTRA_DIST += tests/program/nlb_decoder.py tests/program/collector.py tests/program/oracle_producer.c
EXTRA_DIST += tests/program/producer.py
program_tests += tests/program/test_install.py tests/program/test_nlwrite.py tests/program/test_nlsort.py
program_tests += tests/program/test_netlogd.py tests/program/test_dpss.py tests/program/test_sensors.py
program_tests += tests/program/test_nlkernel.py
program_tests += tests/program/test_nlv.py tests/program/test_nlschema.py tests/program/test_abi.py
program_tests += tests/program/test_binary.py tests/program/test_nlrecover.py tests/program/test_spool.py
program_tests += tests/program/test_subscribe.py tests/program/test_netlogctl.py
program_tests += tests/program/test_marker.py tests/program/test_netlogd_tls.py
program_tests += tests/program/test_netlogd_output.py tests/program/test_netlogd_udp.py tests/program/test_event_errors.py tests/program/test_nlstat.py
program_tests += tests/program/test_netlogd_oracle.py tests/program/test_netlogd_hostile.py tests/program/test_packaging.py
program_tests += tests/program/test_netlogd_routing.py
program_tests += tests/program/test_netlogd_nats.py
program_tests += tests/program/test_nlconv.py tests/program/test_classic.py
program_tests += tests/program/test_python.py tests/program/test_perl.py tests/program/test_languages.py

if HAVE_PROGRAM_TESTS
TESTS += $(program_tests)
endif
