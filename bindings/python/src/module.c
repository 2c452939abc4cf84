#include "core.h"

PyObject *nlpy_error;

PyObject *nlpy_raise(const char *instead)
{
    const char *message = nl_error_message();
    PyObject *text =
        nlpy_give_text((nl_string){*message != '\0' ? message : instead, strlen(*message != '\0' ? message : instead)});
    if (text != NULL) {
        PyErr_SetObject(nlpy_error, text);
        Py_DECREF(text);
    }
    return NULL;
}

static PyObject *memory_read(PyObject *module, PyObject *args)
{
    const char *name;
    nl_buffer out = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    PyObject *bytes = NULL;
    if (nl_memory_read(name, &out))
        bytes = PyBytes_FromStringAndSize(out.data != NULL ? out.data : "", (Py_ssize_t)out.size);
    else
        PyErr_SetString(PyExc_KeyError, name);
    nl_buffer_free(&out);
    return bytes;
}

static PyObject *memory_free(PyObject *module, PyObject *args)
{
    const char *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    nl_memory_free(name);
    Py_RETURN_NONE;
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(nl_version());
}

static PyObject *parse_level(PyObject *module, PyObject *args)
{
    const char *name;
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(args, "s#", &name, &size))
        return NULL;
    return PyLong_FromLong((long)nl_level_parse(name, (size_t)size));
}

/* ---- contexts, as the bytes of an nl_context ---- */

static PyObject *give_context(const nl_context *context)
{
    return PyBytes_FromStringAndSize((const char *)context, sizeof *context);
}

static PyObject *context_attach(PyObject *module, PyObject *args)
{
    const char *bytes;
    Py_ssize_t size;
    nl_context next;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#", &bytes, &size))
        return NULL;
    memset(&next, 0, sizeof next);
    if (size == sizeof next)
        memcpy(&next, bytes, sizeof next);
    nl_context previous = nl_context_attach(&next);
    return give_context(&previous);
}

static PyObject *context_current(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    nl_context current = nl_context_current();
    return give_context(&current);
}

/*
 * Returns the context of a header or, for None, of the environment variable TRACEPARENT. The context is empty if the
 * text is invalid.
 */
static PyObject *traceparent_parse(PyObject *module, PyObject *args)
{
    const char *text;
    Py_ssize_t size;
    nl_context context;
    (void)module;
    if (!PyArg_ParseTuple(args, "z#", &text, &size))
        return NULL;
    nl_traceparent_parse(text, (size_t)size, &context);
    return give_context(&context);
}

static PyObject *traceparent_format(PyObject *module, PyObject *args)
{
    const char *bytes;
    Py_ssize_t size;
    nl_context context;
    char text[NL_TRACEPARENT_SIZE] = "";
    (void)module;
    if (!PyArg_ParseTuple(args, "y#", &bytes, &size))
        return NULL;
    if (size == sizeof context) {
        memcpy(&context, bytes, sizeof context);
        nl_traceparent_format(&context, text);
    }
    return PyUnicode_FromString(text);
}

static PyObject *tracestate_join(PyObject *module, PyObject *args)
{
    char state[NL_TRACESTATE_SIZE] = "";
    (void)module;
    bool good = true;
    for (Py_ssize_t i = 0; good && i < PyTuple_Size(args); i++) {
        PyObject *header = PyTuple_GetItem(args, i), *kept;
        nl_string text;
        if (!PyUnicode_Check(header)) {
            PyErr_SetString(PyExc_TypeError, "a header must be a str");
            return NULL;
        }
        if (nlpy_take_text(header, &text, &kept) < 0)
            return NULL;
        good = nl_tracestate_append(state, text.data, text.size) == NL_OK;
        Py_DECREF(kept);
    }
    return PyUnicode_FromString(state);
}

static PyMethodDef functions[] = {
    {"_attach", context_attach, METH_VARARGS, NULL},
    {"_current", context_current, METH_NOARGS, NULL},
    {"_traceparent_parse", traceparent_parse, METH_VARARGS, NULL},
    {"_traceparent_format", traceparent_format, METH_VARARGS, NULL},
    {"tracestate_join", tracestate_join, METH_VARARGS,
     "tracestate_join(*headers)\n--\n\nJoins the values of tracestate headers into one value for the next request. "
     "Returns \"\" if a header is invalid."},
    {"memory_read", memory_read, METH_VARARGS,
     "memory_read(name, /)\n--\n\nReturns the bytes that logs have written to memory:NAME. Raises KeyError if no log "
     "has written to it."},
    {"memory_free", memory_free, METH_VARARGS, "memory_free(name, /)\n--\n\nFrees the bytes of memory:NAME."},
    {"version", version, METH_NOARGS, "version()\n--\n\nReturns the library's version."},
    {"parse_level", parse_level, METH_VARARGS,
     "parse_level(name, /)\n--\n\nReturns the number of the level with this name; 0 if the name is invalid."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "netlogger._core", .m_doc = "The native part of netlogger.",
    .m_size = -1,          .m_methods = functions,
};

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    nlpy_error = PyErr_NewExceptionWithDoc(
        "netlogger.Error", "Raised when an operation fails; the text is the library's error message.", NULL, NULL);
    Py_XINCREF(nlpy_error);
    if (nlpy_error != NULL && PyModule_AddObject(module, "Error", nlpy_error) == 0 && nlpy_log_add(module) == 0 &&
        nlpy_reader_add(module) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
