# The bindings to other languages, one directory each. The C++ binding is a header.
include_HEADERS += %D%/cxx/netlogger.hpp

# The run-time path of installed modules; empty if the linker searches the directory by default.
installed_rpath = $(filter-out /lib /usr/lib /usr/lib/%,$(libdir))
comma = ,

# Fortran: a module file, whose format depends on the compiler, and a static library with its code.
EXTRA_DIST += %D%/fortran/netlogger.f90 %D%/fortran/structs.c
if BUILD_FORTRAN
fortranlibdir = $(libdir)
nodist_fortranlib_DATA = %D%/fortran/libnetlogger-fortran.a
fortranmoduledir = $(includedir)/netlogger/fortran
nodist_fortranmodule_DATA = %D%/fortran/netlogger.mod
endif
CLEANFILES += %D%/fortran/*.o %D%/fortran/netlogger.mod %D%/fortran/libnetlogger-fortran.a

%D%/fortran/netlogger.o: %D%/fortran/netlogger.f90
	$(AM_V_GEN)$(MKDIR_P) %D%/fortran && \
	$(FORTRAN) -std=f2008 -O2 -g -fPIC $(FORTRAN_WARNINGS) -J %D%/fortran -c $(srcdir)/%D%/fortran/netlogger.f90 -o $@
# The compilation above also writes the module file, possibly without changing its time stamp.
%D%/fortran/netlogger.mod: %D%/fortran/netlogger.o
	$(AM_V_at)test -f $@ || { rm -f %D%/fortran/netlogger.o; $(MAKE) %D%/fortran/netlogger.o; }
%D%/fortran/structs.o: %D%/fortran/structs.c
	$(AM_V_GEN)$(MKDIR_P) %D%/fortran && \
	$(CC) $(AM_CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -c $(srcdir)/%D%/fortran/structs.c -o $@
%D%/fortran/libnetlogger-fortran.a: %D%/fortran/netlogger.o %D%/fortran/structs.o
	$(AM_V_GEN)rm -f $@ && $(AR) cr $@ %D%/fortran/netlogger.o %D%/fortran/structs.o

# The C interface of NetLogger 3 and 4: headers, and a static library of position-independent code.
nlclassicinclude_HEADERS += %D%/classic/nl.h %D%/classic/nl_log.h %D%/classic/nlsumm.h %D%/classic/nltransfer.h
classic_sources = %D%/classic/nl.c %D%/classic/nl_log.c %D%/classic/nltransfer.c
EXTRA_DIST += $(classic_sources) %D%/classic/nl_private.h
classiclibdir = $(libdir)
nodist_classiclib_DATA = %D%/classic/libnetlogger-classic.a
CLEANFILES += %D%/classic/*.o %D%/classic/libnetlogger-classic.a

%D%/classic/libnetlogger-classic.a: $(classic_sources) $(nlclassicinclude_HEADERS) %D%/classic/nl_private.h
	$(AM_V_GEN)$(MKDIR_P) %D%/classic && rm -f $@ && for source in $(classic_sources); do \
		$(CC) $(AM_CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -c $(srcdir)/$$source -o %D%/classic/$$(basename $$source .c).o || exit 1; done && \
	$(AR) cr $@ %D%/classic/nl.o %D%/classic/nl_log.o %D%/classic/nltransfer.o

# Java: a jar that contains the native part, which is linked statically with the library.
java_sources = \
	%D%/java/src/netlogger/package-info.java %D%/java/src/netlogger/Context.java %D%/java/src/netlogger/Event.java %D%/java/src/netlogger/Level.java \
	%D%/java/src/netlogger/LogRecord.java %D%/java/src/netlogger/Native.java %D%/java/src/netlogger/NetLogHandler.java \
	%D%/java/src/netlogger/NetLogger.java %D%/java/src/netlogger/NetLoggerException.java \
	%D%/java/src/netlogger/Reader.java %D%/java/src/netlogger/TextLogger.java \
	%D%/java/src/gov/lbl/netlogger/LogMessage.java
EXTRA_DIST += $(java_sources) %D%/java/netlogger_jni.c
if BUILD_JAVA
noinst_LTLIBRARIES += %D%/java/libnetlogger_jni.la
%C%_java_libnetlogger_jni_la_SOURCES = %D%/java/netlogger_jni.c
%C%_java_libnetlogger_jni_la_CPPFLAGS = $(AM_CPPFLAGS) $(JNI_CPPFLAGS)
%C%_java_libnetlogger_jni_la_LIBADD = libnetlogger/libproducer.la $(core_libs)
# -rpath makes libtool build a loadable module, although the module itself is not installed.
%C%_java_libnetlogger_jni_la_LDFLAGS = -module -avoid-version -shared -no-undefined -rpath $(libdir) \
	-Wl,-z,nodelete -export-symbols-regex '^Java_netlogger_'
javajardir = $(datadir)/java
nodist_javajar_DATA = %D%/java/netlogger.jar
endif
CLEANFILES += %D%/java/netlogger.jar
clean-local: clean-java
clean-java:
	rm -rf %D%/java/classes
.PHONY: clean-java

%D%/java/netlogger.jar: $(java_sources) %D%/java/libnetlogger_jni.la
	$(AM_V_GEN)rm -rf %D%/java/classes && $(MKDIR_P) %D%/java/classes/netlogger/native && \
	(cd $(srcdir) && $(JAVAC) --release 11 -Xlint:all -Werror -d $(abs_builddir)/%D%/java/classes $(java_sources)) && \
	cp %D%/java/.libs/libnetlogger_jni.so %D%/java/classes/netlogger/native/ && \
	$(JAR) --create --file $@ -C %D%/java/classes .

# Instructions for adding to this directory.
EXTRA_DIST += %D%/README.md
