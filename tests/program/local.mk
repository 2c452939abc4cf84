program_tests += tests/program/test_install.py

TESTS += $(program_tests)
