# One line a test in unit_tests, and its _SOURCES, _CPPFLAGS, _LDADD.
unit_tests =

if BUILD_UNIT_TESTS
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
