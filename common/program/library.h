/*
 * Shared libraries that a program loads when it first needs them. For example, a program starts without libxml2 and the
 * libraries that libxml2 needs, unless it reads XML. This halves the program's start time.
 *
 * The user of a library lists its functions in a macro, and calls them through a structure of pointers:
 *
 *   #define XML_FUNCTIONS(FUNCTION) FUNCTION(xml, StopParser) FUNCTION(xml, ParseChunk)
 *   LIBRARY_DEFINE(xml, XML_LIBRARY, XML_FUNCTIONS);
 *   ...
 *   if (library_load(&xml_library))
 *       xml.StopParser(parser);
 *
 * configure finds the names of the libraries' files.
 */
#ifndef NETLOGGER_PROGRAM_LIBRARY_H
#define NETLOGGER_PROGRAM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct library {
    const char *file;
    const char *const *names; /* names of the functions */
    size_t count;             /* number of functions */
    void *functions;          /* a structure of `count` pointers */
    bool is_loaded;
} library;

#define LIBRARY_POINTER(prefix, name) __typeof__(prefix##name) *name;
#define LIBRARY_NAME(prefix, name) #prefix #name,
#define LIBRARY_DEFINE(variable, file, FUNCTIONS)                                                                      \
    static struct {                                                                                                    \
        FUNCTIONS(LIBRARY_POINTER)                                                                                     \
    } variable;                                                                                                        \
    static const char *const variable##_names[] = {FUNCTIONS(LIBRARY_NAME)};                                           \
    static library variable##_library = {file, variable##_names, sizeof variable##_names / sizeof(char *), &variable,  \
                                         false}

/*
 * Loads the library and sets the pointers to its functions, unless this was done earlier. The library stays loaded.
 * Returns false and sets the error if the library or one of the functions is missing. Any thread may call this
 * function.
 */
bool library_load(library *l);

#endif
