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

static PyMethodDef functions[] = {
    {"memory_read", memory_read, METH_VARARGS,
     "memory_read(name, /)\n--\n\nReturns the bytes that logs have written to memory:NAME. Raises KeyError if no log "
     "has."},
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
