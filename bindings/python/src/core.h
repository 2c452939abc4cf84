/*
 * netlogger._core: what Python needs of the library, on the limited API of 3.9.
 *
 *   values.c   Python's values as the library's, and back
 *   kinds.c    the kinds of events, found by the objects that a call brings
 *   log.c      Log
 *   reader.c   Reader
 *   module.c   the module, Error, what takes no object
 */
#ifndef NETLOGGER_PYTHON_CORE_H
#define NETLOGGER_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <netlogger.h>

#include <string.h>

/* Py_NewRef, which the limited API has from 3.10 on. */
static inline PyObject *nlpy_new_ref(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* Does a statement without the interpreter's lock, which others have meanwhile. */
#define WITHOUT_LOCK(statement)                                                                                        \
    do {                                                                                                               \
        PyThreadState *state_ = PyEval_SaveThread();                                                                   \
        statement;                                                                                                     \
        PyEval_RestoreThread(state_);                                                                                  \
    } while (0)

/* ---- module.c ---- */

extern PyObject *nlpy_error; /* netlogger.Error */

/* Raises Error with the library's words, or instead of none; returns NULL. */
PyObject *nlpy_raise(const char *instead);

/* ---- values.c ---- */

/*
 * A Python value as a field's. Its bytes live as long as value and, when that is set, *keep, a new reference. 0, or -1
 * with an exception.
 */
int nlpy_take(PyObject *value, nl_field *field, PyObject **keep);

/* The bytes of a str in UTF-8, escaped ones as they were; they live as long as *keep, a new reference. */
int nlpy_take_text(PyObject *text, nl_string *bytes, PyObject **keep);

/* A new reference to what a field holds; with numbers also text that is a number from end to end is one. */
PyObject *nlpy_give(const nl_field *field, bool numbers);

/* A str of bytes in UTF-8, others escaped; None when there is no string at all. */
PyObject *nlpy_give_text(nl_string text);

/* ---- kinds.c ---- */

/*
 * The kind of a level, an event's name and its fields' names, all str. *own is set when the caller has to free it. NULL
 * with an exception. To be used before any Python code runs.
 */
nl_event_kind *nlpy_kind_find(nl_level level, PyObject *event, PyObject *const *names, Py_ssize_t count, bool *own);

/* ---- log.c and reader.c ---- */

extern unsigned
    nlpy_waiting; /* threads that write an event, without the interpreter's lock, as they may have to wait */

int nlpy_log_add(PyObject *module);
int nlpy_reader_add(PyObject *module);

#endif
