# The library in Python: setup.py builds it from here, into the build folder, with the library as built. pip installs it.
python_binding = \
	%D%/setup.py %D%/pyproject.toml %D%/src/core.h %D%/src/kinds.c %D%/src/log.c %D%/src/module.c %D%/src/reader.c \
	%D%/src/values.c %D%/netlogger/__init__.py %D%/netlogger/_core.pyi %D%/netlogger/_handler.py \
	%D%/netlogger/_log.py %D%/netlogger/_record.py %D%/netlogger/py.typed
EXTRA_DIST += $(python_binding) %D%/missing.py %D%/MANIFEST.in

%D%/built: $(python_binding) libnetlogger/libnetlogger.la
	$(AM_V_GEN)$(MKDIR_P) %D%/lib && \
	NETLOGGER_CFLAGS="-I$(abs_top_srcdir)/libnetlogger/include $(CPPFLAGS)" CC='$(CC)' \
	NETLOGGER_LIBS='-L$(abs_top_builddir)/libnetlogger/.libs -lnetlogger' PYTHONDONTWRITEBYTECODE=1 \
	$(BINDING_PYTHON) $(srcdir)/%D%/setup.py -q build --force --build-base '$(abs_top_builddir)/%D%/work' \
		--build-lib '$(abs_top_builddir)/%D%/lib' > %D%/build.log 2>&1 || { cat %D%/build.log >&2; exit 1; }
	$(AM_V_at)touch $@
if BUILD_PYTHON
all-local: %D%/built
endif
CLEANFILES += %D%/built %D%/build.log
clean-local: clean-python
clean-python:
	-rm -rf %D%/lib %D%/work
.PHONY: clean-python
