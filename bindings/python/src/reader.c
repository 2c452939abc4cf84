#include "core.h"

#include <time.h>

typedef struct py_reader {
    PyObject_HEAD nl_reader *reader; /* NULL: closed */
    nl_filter *filter;
    PyObject *record_class;
    bool numbers;
    bool in_use; /* a thread uses the reader without the interpreter lock */
} py_reader;

static PyObject *name_time, *name_level, *name_host, *name_prog, *name_event, *name_repeated;

/* ---- conversion of a record to a Record ---- */

/*
 * Sets an attribute to value and releases the reference to value. Returns false with an exception on failure, for
 * example if value is NULL.
 */
static bool set(PyObject *object, PyObject *name, PyObject *value)
{
    if (value == NULL)
        return false;
    int result = PyObject_SetAttr(object, name, value);
    Py_DECREF(value);
    return result == 0;
}

/* Returns a tuple of all (name, value) pairs, because a dict cannot contain repeated names; NULL with an exception. */
static PyObject *all_pairs(const nl_record *record, bool numbers)
{
    PyObject *pairs = PyTuple_New((Py_ssize_t)record->field_count);
    for (size_t i = 0; pairs != NULL && i < record->field_count; i++) {
        PyObject *name = nlpy_give_text(record->fields[i].name), *value = nlpy_give(&record->fields[i], numbers);
        PyObject *pair = name != NULL && value != NULL ? PyTuple_Pack(2, name, value) : NULL;
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (pair == NULL || PyTuple_SetItem(pairs, (Py_ssize_t)i, pair) < 0)
            Py_CLEAR(pairs);
    }
    return pairs;
}

/*
 * Adds the fields to the dict `made`. If a name repeats, the dict has the first field, and the attribute _repeated has
 * all pairs. Returns false with an exception on failure.
 */
static bool add_fields(PyObject *made, const nl_record *record, bool numbers)
{
    bool repeated = false, good = true;
    for (size_t i = 0; good && i < record->field_count; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(record->fields[i].name.data, (Py_ssize_t)record->fields[i].name.size,
                                              "surrogateescape");
        PyObject *value = nlpy_give(&record->fields[i], numbers);
        good = name != NULL && value != NULL;
        int known = good ? PyDict_Contains(made, name) : -1;
        if (known > 0)
            repeated = true;
        else
            good = known == 0 && PyDict_SetItem(made, name, value) == 0;
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return good && set(made, name_repeated, repeated ? all_pairs(record, numbers) : nlpy_new_ref(Py_None));
}

static PyObject *make_record(const py_reader *self, const nl_record *record)
{
    PyObject *made = PyObject_CallObject(self->record_class, NULL);
    if (made == NULL)
        return NULL;
    if (set(made, name_time, PyLong_FromLongLong(record->time_ns)) &&
        set(made, name_level, PyLong_FromLong((long)record->level)) &&
        set(made, name_host, nlpy_give_text(record->host)) && set(made, name_prog, nlpy_give_text(record->prog)) &&
        set(made, name_event, nlpy_give_text(record->event)) && add_fields(made, record, self->numbers))
        return made;
    Py_DECREF(made);
    return NULL;
}

/* ---- reading ---- */

/*
 * Reads the next record that matches the filter, without the interpreter lock. Returns the same values as
 * nl_reader_next.
 */
static nl_status next_meant(py_reader *self, const nl_record **record)
{
    nl_status status;
    while ((status = nl_reader_next(self->reader, record)) == NL_OK)
        if (nl_filter_matches(self->filter, *record))
            return NL_OK;
    return status;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * Like next_meant, but waits until until_ns, or without limit if until_ns is negative, and handles Python's signals.
 * The pauses double from 0.1 ms to 12.8 ms. Returns NL_AGAIN when the time is over, and NL_FAILED if a signal handler
 * raised an exception.
 */
static nl_status wait_for_next(py_reader *self, int64_t until_ns, const nl_record **record)
{
    struct timespec pause = {.tv_nsec = 100000};
    for (;;) {
        nl_status status;
        WITHOUT_LOCK(status = next_meant(self, record));
        if (status != NL_AGAIN)
            return status;
        if (PyErr_CheckSignals() < 0)
            return NL_FAILED;
        if (until_ns >= 0 && now_ns() >= until_ns)
            return NL_AGAIN;
        WITHOUT_LOCK(nanosleep(&pause, NULL));
        if (pause.tv_nsec < 10000000)
            pause.tv_nsec *= 2;
    }
}

static bool check_usable(const py_reader *self)
{
    if (self->reader == NULL)
        PyErr_SetString(PyExc_ValueError, "the reader is closed");
    else if (self->in_use)
        PyErr_SetString(PyExc_ValueError, "the reader is in use by another thread");
    return self->reader != NULL && !self->in_use;
}

/* Returns a record, or NULL. NULL without an exception means the end of the input or of the time limit. */
static PyObject *next_record(py_reader *self, int64_t until_ns)
{
    const nl_record *record;
    if (!check_usable(self))
        return NULL;
    self->in_use = true;
    nl_status status = wait_for_next(self, until_ns, &record);
    PyObject *made = status == NL_OK ? make_record(self, record) : NULL;
    self->in_use = false;
    if (status == NL_FAILED && PyErr_Occurred() == NULL)
        nlpy_raise("reading failed");
    return made;
}

static PyObject *reader_next(PyObject *object)
{
    return next_record((py_reader *)object, -1);
}

static PyObject *reader_read(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = Py_None;
    int64_t until_ns = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O", names, &timeout))
        return NULL;
    if (timeout != Py_None) {
        double seconds = PyFloat_AsDouble(timeout);
        if (seconds == -1 && PyErr_Occurred() != NULL)
            return NULL;
        if (!(seconds >= 0)) {
            PyErr_SetString(PyExc_ValueError, "the timeout must not be negative");
            return NULL;
        }
        until_ns = seconds < 1e9 ? now_ns() + (int64_t)(seconds * 1e9) : -1;
    }
    PyObject *made = next_record((py_reader *)object, until_ns);
    if (made == NULL && PyErr_Occurred() == NULL)
        Py_RETURN_NONE;
    return made;
}

static PyObject *reader_stats(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_reader *self = (py_reader *)object;
    if (!check_usable(self))
        return NULL;
    const nl_reader_stats *stats = nl_reader_get_stats(self->reader);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "records", (unsigned long long)stats->records, "malformed",
                         (unsigned long long)stats->malformed, "unterminated", (unsigned long long)stats->unterminated,
                         "lost", (unsigned long long)stats->lost, "repeated", (unsigned long long)stats->repeated,
                         "bytes", (unsigned long long)stats->bytes);
}

/* ---- opening and closing ---- */

static void close_it(py_reader *self)
{
    nl_reader *reader = self->reader;
    self->reader = NULL;
    if (reader != NULL) {
        WITHOUT_LOCK(nl_reader_close(reader));
    }
    nl_filter_free(self->filter);
    self->filter = NULL;
    Py_CLEAR(self->record_class);
}

static PyObject *reader_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_reader *self = (py_reader *)object;
    if (self->reader != NULL && !check_usable(self))
        return NULL;
    close_it(self);
    Py_RETURN_NONE;
}

static int open_it(py_reader *self, const char *url, const char *where, bool follow, long long since_ns)
{
    nl_reader_options options = {.follow = follow, .nonblocking = true};
    if (where != NULL && (self->filter = nl_filter_parse(where)) == NULL) {
        PyErr_SetString(PyExc_ValueError, nl_error_message());
        return -1;
    }
    WITHOUT_LOCK(self->reader = nl_reader_open(url, &options));
    if (self->reader == NULL) {
        nlpy_raise("open failed");
        return -1;
    }
    nl_status status = NL_OK;
    if (since_ns != INT64_MIN) {
        WITHOUT_LOCK(status = nl_reader_seek(self->reader, since_ns));
    }
    if (status == NL_FAILED)
        nlpy_raise("seek failed");
    return status == NL_FAILED ? -1 : 0;
}

/*
 * The arguments are (record_class, url, where or None, follow, numbers, since_ns). If since_ns is INT64_MIN, the reader
 * starts at the beginning.
 */
static int reader_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    py_reader *self = (py_reader *)object;
    PyObject *record_class, *url;
    const char *where;
    int follow, numbers;
    long long since_ns;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "keyword arguments are not supported");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "OO&zppL", &record_class, PyUnicode_FSConverter, &url, &where, &follow, &numbers,
                          &since_ns))
        return -1;
    if (self->in_use || self->reader != NULL) {
        PyErr_SetString(PyExc_ValueError, "the reader is already open");
        Py_DECREF(url);
        return -1;
    }
    close_it(self);
    self->record_class = nlpy_new_ref(record_class);
    self->numbers = numbers != 0;
    int result = open_it(self, PyBytes_AsString(url), where, follow != 0, since_ns);
    Py_DECREF(url);
    if (result < 0)
        close_it(self);
    return result;
}

static void reader_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    close_it((py_reader *)object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *reader_self(PyObject *object)
{
    return nlpy_new_ref(object);
}

static PyObject *reader_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((py_reader *)object)->reader == NULL);
}

static PyMethodDef reader_methods[] = {
    {"read", (PyCFunction)(void (*)(void))reader_read, METH_VARARGS | METH_KEYWORDS,
     "read($self, timeout=None)\n--\n\n"
     "Returns the next record. Returns None at the end, or if no record arrives within timeout seconds."},
    {"stats", reader_stats, METH_NOARGS,
     "stats($self)\n--\n\nReturns counts since the reader was opened: records, malformed, unterminated, lost, "
     "repeated, bytes."},
    {"close", reader_close, METH_NOARGS, "close($self)\n--\n\nCloses the reader; further calls have no effect."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef reader_members[] = {
    {"closed", reader_closed, NULL, "Whether the reader is closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "The native part of netlogger.Reader."},
    {Py_tp_init, reader_init},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_iter, reader_self},
    {Py_tp_iternext, reader_next},
    {Py_tp_methods, reader_methods},
    {Py_tp_getset, reader_members},
    {0, NULL},
};

static PyType_Spec reader_spec = {"netlogger._core.Reader", sizeof(py_reader), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, reader_slots};

int nlpy_reader_add(PyObject *module)
{
    name_time = PyUnicode_InternFromString("time_ns");
    name_level = PyUnicode_InternFromString("_level");
    name_host = PyUnicode_InternFromString("host");
    name_prog = PyUnicode_InternFromString("prog");
    name_event = PyUnicode_InternFromString("event");
    name_repeated = PyUnicode_InternFromString("_repeated");
    if (name_time == NULL || name_level == NULL || name_host == NULL || name_prog == NULL || name_event == NULL ||
        name_repeated == NULL)
        return -1;
    PyObject *type = PyType_FromSpec(&reader_spec);
    return type != NULL ? PyModule_AddObject(module, "Reader", type) : -1;
}
