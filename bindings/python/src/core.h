/*
 * The native part of the Python binding (module netlogger._core), which uses the limited API of Python 3.9.
 *
 *   values.c   conversion between Python's values and the library's
 *   kinds.c    a cache of kinds of events by the objects of a call
 *   log.c      Log
 *   reader.c   Reader
 *   module.c   the module, Error, functions without objects
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

/* Returns a new reference to object. Py_NewRef is missing from the limited API before Python 3.10. */
static inline PyObject *nlpy_new_ref(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* Executes a statement without the interpreter lock. */
#define WITHOUT_LOCK(statement)                                                                                        \
    do {                                                                                                               \
        PyThreadState *state_ = PyEval_SaveThread();                                                                   \
        statement;                                                                                                     \
        PyEval_RestoreThread(state_);                                                                                  \
    } while (0)

/* ---- module.c ---- */

extern PyObject *nlpy_error; /* netlogger.Error */

/* Raises Error with the library's message, or with `instead` if the library has no message. Returns NULL. */
PyObject *nlpy_raise(const char *instead);

/* ---- values.c ---- */

/*
 * Converts a Python value to a field. Sets *keep, which is NULL before the call, to a new reference if another object
 * owns the field's bytes. The bytes are valid as long as value and *keep exist. Returns 0, or -1 with an exception.
 */
int nlpy_take(PyObject *value, nl_field *field, PyObject **keep);

/*
 * Sets *bytes to the UTF-8 bytes of a str, with surrogate escapes decoded. The bytes are valid as long as *keep, a new
 * reference, exists. Returns 0, or -1 with an exception.
 */
int nlpy_take_text(PyObject *text, nl_string *bytes, PyObject **keep);

/*
 * Returns the value of a field as a new reference; NULL with an exception. If numbers is true, text that is a number
 * becomes a number.
 */
PyObject *nlpy_give(const nl_field *field, bool numbers);

/*
 * Returns a str of UTF-8 bytes, with surrogate escapes for other bytes, or None if text.data is NULL, as a new
 * reference. Returns NULL with an exception.
 */
PyObject *nlpy_give_text(nl_string text);

/* ---- kinds.c ---- */

/*
 * Returns the kind for a level and the names of an event and its fields. All names must be str. Sets *own to whether
 * the caller must free the kind. If *own is false, the kind is valid only until Python code runs. Returns NULL on
 * failure.
 */
nl_event_kind *nlpy_kind_find(nl_level level, PyObject *event, PyObject *const *names, Py_ssize_t count, bool *own);

/* ---- log.c and reader.c ---- */

extern unsigned nlpy_waiting; /* number of threads that write an event without the interpreter lock, because the event
                               * may have to wait */

int nlpy_log_add(PyObject *module);
int nlpy_reader_add(PyObject *module);

#endif
