# Unit tests (tests/unit/*.c, cmocka), whole-program tests (tests/program/*.py, unittest) and the corpora of the fuzz targets
# (tests/fuzz/). All of them print TAP.
TEST_EXTENSIONS = .py .unit .replay
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
UNIT_LOG_DRIVER = $(LOG_DRIVER)
REPLAY_LOG_DRIVER = $(LOG_DRIVER)
PY_LOG_DRIVER = $(LOG_DRIVER)
# Python's own allocator causes page faults, which take a third of the time of tests with much data. support.py removes both variables
# from the environment of the programs.
PY_LOG_COMPILER = env PYTHONMALLOC=malloc $(FEW_PAGE_FAULTS) $(PYTHON)
AM_TESTS_ENVIRONMENT = \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	NL_BUILD_DIR='$(abs_top_builddir)'; export NL_BUILD_DIR; \
	NETLOGGER_CLOCK=no; export NETLOGGER_CLOCK; \
	NL_SOURCE_DIR='$(abs_top_srcdir)'; export NL_SOURCE_DIR; \
	NL_CC='$(CC)'; export NL_CC; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;

program_tests =
EXTRA_DIST += %D%/clean-root/enter %D%/clean-root/first-steps %D%/clean-root/make %D%/clean-root/packages %D%/clean-root/use
EXTRA_DIST += %D%/full %D%/architecture %D%/hardened %D%/cppcheck.suppressions %D%/program/support.py %D%/program/leaks.supp $(program_tests)
EXTRA_DIST += %D%/documented.py %D%/coverage %D%/tidy %D%/diagnosis/README.md %D%/diagnosis/result.md %D%/diagnosis/simulate.py %D%/diagnosis/score.py %D%/diagnosis/calibrate.py %D%/diagnosis/power.py %D%/diagnosis/compare_trials.py %D%/diagnosis/follow_load.py %D%/diagnosis/follow_trials.py %D%/diagnosis/simulate_connections.py \
	%D%/connections/score.py %D%/connections/result.md %D%/diagnosis/load.py %D%/diagnosis/pipeline.py %D%/diagnosis/real.py %D%/diagnosis/real_faults.py %D%/diagnosis/real_programs.py

# The source of a unit test NAME is tests/unit/NAME.c. unit/local.mk lists the unit tests in unit_tests.
# Unit tests include config.h, because it determines the layout of the library's structs on 32-bit processors (large files).
unit_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/libnetlogger -include config.h $(CMOCKA_CFLAGS)
unit_ldadd = $(common_libs) $(OPENSSL_LIBS) $(CMOCKA_LIBS)

# ./check sets UNIT_CFLAGS.
tests/unit/%.o: private CFLAGS += $(UNIT_CFLAGS)

include tests/program/local.mk
include tests/unit/local.mk
include tests/fuzz/local.mk

# Instructions for adding to this directory.
EXTRA_DIST += %D%/README.md
