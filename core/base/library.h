/*
 * Shared libraries that are loaded when they are first needed. For example, a program starts without libxml2 and the
 * libraries that libxml2 needs, unless it reads XML. This halves the program's start time.
 *
 * The user of a library lists its functions in a macro, and calls them through a structure of pointers:
 *
 *   #define XML_FUNCTIONS(FUNCTION) FUNCTION(xml, StopParser) FUNCTION(xml, ParseChunk)
 *   NL_LIBRARY_DEFINE(xml, XML_LIBRARY, XML_FUNCTIONS);
 *   ...
 *   if (nl_library_load(&xml_library))
 *       xml.StopParser(parser);
 *
 * configure finds the names of the libraries' files.
 */
#ifndef NETLOGGER_BASE_LIBRARY_H
#define NETLOGGER_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct nl_library {
    const char *file;
    const char *const *names; /* names of the functions */
    size_t count;             /* number of functions */
    void *functions;          /* a structure of `count` pointers */
    bool is_loaded;
} nl_library;

#define NL_LIBRARY_POINTER(prefix, name) __typeof__(prefix##name) *name;
#define NL_LIBRARY_NAME(prefix, name) #prefix #name,
/* Defines the pointers in one file. */
#define NL_LIBRARY_DEFINE(variable, file, FUNCTIONS)                                                                   \
    static struct {                                                                                                    \
        FUNCTIONS(NL_LIBRARY_POINTER)                                                                                  \
    } variable;                                                                                                        \
    NL_LIBRARY_DESCRIBE(variable, file, FUNCTIONS)
/* Define pointers that several files use. NL_LIBRARY_DECLARE is for the header. */
#define NL_LIBRARY_DECLARE(variable, FUNCTIONS)                                                                        \
    extern struct variable##_functions {                                                                               \
        FUNCTIONS(NL_LIBRARY_POINTER)                                                                                  \
    } variable
#define NL_LIBRARY_DEFINE_SHARED(variable, file, FUNCTIONS)                                                            \
    struct variable##_functions variable;                                                                              \
    NL_LIBRARY_DESCRIBE(variable, file, FUNCTIONS)
#define NL_LIBRARY_DESCRIBE(variable, file, FUNCTIONS)                                                                 \
    static const char *const variable##_names[] = {FUNCTIONS(NL_LIBRARY_NAME)};                                        \
    static nl_library variable##_library = {file, variable##_names, sizeof variable##_names / sizeof(char *),          \
                                            &variable, false}

/*
 * Loads the library and sets the pointers to its functions, unless this was done earlier. The library stays loaded.
 * Returns false and sets the error if the library or one of the functions is missing. Any thread may call this
 * function.
 */
bool nl_library_load(nl_library *l);

#endif
