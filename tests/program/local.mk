TESTS += $(program_tests)
