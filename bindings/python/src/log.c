#include "core.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

enum { INLINE_FIELDS = NL_FIELDS_MAX };

typedef struct py_log {
    PyObject_HEAD nl_log *log;
    bool is_open;
    unsigned users;      /* number of threads that use log without the interpreter lock */
    unsigned generation; /* generation of the process to which these threads belong */
} py_log;

unsigned nlpy_waiting;
static unsigned generation; /* number of forks since the first process; a child has only one thread */

static void in_child(void)
{
    generation++;
    nlpy_waiting = 0;
}

/* ---- use without the interpreter lock ---- */

static bool check_open(py_log *self)
{
    if (!self->is_open)
        PyErr_SetString(PyExc_ValueError, "the log is closed");
    return self->is_open;
}

static void enter(py_log *self)
{
    if (self->generation != generation) {
        self->generation = generation;
        self->users = 0;
    }
    self->users++;
}

static void leave(py_log *self)
{
    if (self->generation == generation)
        self->users--;
}

static void wait_for_users(py_log *self)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    while (self->generation == generation && self->users > 0) {
        WITHOUT_LOCK(nanosleep(&moment, NULL));
    }
}

/* ---- one event ---- */

/*
 * The fields of a call. add_fields sets their names and objects; take_values converts the objects to values. The struct
 * owns all references.
 */
typedef struct call {
    Py_ssize_t count;
    PyObject **names;
    PyObject **objects;
    PyObject **kept; /* objects that own the bytes of values, or NULL */
    nl_field *values;
    size_t size; /* size of the event in a ring, in bytes */
    void *more;  /* memory for more than INLINE_FIELDS */
    PyObject *some_objects[3 * INLINE_FIELDS];
    nl_field some_values[INLINE_FIELDS];
} call;

static int log_reserve(call *c, Py_ssize_t count)
{
    PyObject **objects = c->some_objects;
    c->count = 0;
    c->more = NULL;
    c->values = c->some_values;
    if (count > INLINE_FIELDS) {
        size_t each = sizeof(nl_field) + 3 * sizeof(PyObject *);
        if ((c->more = PyMem_Malloc((size_t)count * each)) == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        c->values = c->more;
        objects = (PyObject **)(void *)(c->values + count);
    }
    Py_ssize_t apart = count > INLINE_FIELDS ? count : INLINE_FIELDS;
    c->names = objects;
    c->objects = objects + apart;
    c->kept = objects + 2 * apart;
    return 0;
}

static void add_fields(call *c, PyObject *fields)
{
    PyObject *name, *object;
    for (Py_ssize_t at = 0; PyDict_Next(fields, &at, &name, &object); c->count++) {
        Py_INCREF(name);
        Py_INCREF(object);
        c->names[c->count] = name;
        c->objects[c->count] = object;
        c->kept[c->count] = NULL;
    }
}

/*
 * Replaces a value whose conversion raised an exception, because a value must not make logging raise an exception. Does
 * not catch KeyboardInterrupt and SystemExit, which are not failures of the value. Returns 0, or -1 with an exception.
 */
static int take_unprintable(PyObject *object, nl_field *value, PyObject **kept)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    PyObject *text = name != NULL ? PyUnicode_FromFormat("<unprintable %S>", name) : NULL;
    value->type = NL_TYPE_STRING;
    int result = text != NULL ? nlpy_take_text(text, &value->string, kept) : -1;
    Py_XDECREF(name);
    Py_XDECREF(text);
    return result;
}

static int take_values(call *c)
{
    c->size = sizeof(nl_event_header);
    for (Py_ssize_t i = 0; i < c->count; i++) {
        if (nlpy_take(c->objects[i], &c->values[i], &c->kept[i]) < 0 &&
            take_unprintable(c->objects[i], &c->values[i], &c->kept[i]) < 0)
            return -1;
        c->size += c->values[i].type == NL_TYPE_STRING ? 4 + c->values[i].string.size : 8;
    }
    return 0;
}

static void log_forget(call *c)
{
    for (Py_ssize_t i = 0; i < c->count; i++) {
        Py_DECREF(c->names[i]);
        Py_DECREF(c->objects[i]);
        Py_XDECREF(c->kept[i]);
    }
    PyMem_Free(c->more);
}

/*
 * Writes an event. Releases the interpreter lock only if the event may have to wait, because releasing the lock costs
 * more than the event. Returns the same values as nl_event_write.
 */
static nl_status write_event(py_log *self, nl_event_kind *kind, const call *c)
{
    enum { NAMES = 4096 }; /* space for the names of an event that is written as a whole record */
    if (nl_event_has_space(self->log, c->size + NAMES))
        return nl_event_write(self->log, kind, c->values);
    nl_status status;
    enter(self);
    nlpy_waiting++;
    unsigned before = generation;
    WITHOUT_LOCK(status = nl_event_write(self->log, kind, c->values));
    if (before == generation)
        nlpy_waiting--;
    leave(self);
    return status;
}

/*
 * Ends a call that failed. Returns False if memory ran out, because logging must not raise exceptions that the caller
 * cannot prevent. Returns NULL with the exception for other failures, such as an argument of the wrong type.
 */
static PyObject *end_failed_call(void)
{
    if (PyErr_Occurred() != NULL && !PyErr_ExceptionMatches(PyExc_MemoryError))
        return NULL;
    PyErr_Clear();
    Py_RETURN_FALSE;
}

/*
 * Writes an event with the fields of a call. Returns True if the event was logged, False if the event is switched off
 * or was lost, or NULL with an exception. The log counts lost events, except those for which the binding has no memory.
 */
static PyObject *write_call(py_log *self, nl_level level, PyObject *event, call *c)
{
    bool own;
    if (take_values(c) < 0)
        return end_failed_call();
    if (!self->is_open) /* the conversion of a value has closed the log */
        Py_RETURN_FALSE;
    nl_event_kind *kind = nlpy_kind_find(level, event, c->names, c->count, &own);
    if (kind == NULL)
        return end_failed_call();
    nl_status status = write_event(self, kind, c);
    if (own)
        nl_event_kind_free(kind);
    return PyBool_FromLong(status == NL_OK || status == NL_MALFORMED);
}

/* Logs an event with the fields of two dicts, which may be NULL. Returns the same values as write_call. */
static PyObject *emit(py_log *self, nl_level level, PyObject *event, PyObject *first, PyObject *second)
{
    call c;
    if (!PyUnicode_Check(event)) {
        PyErr_SetString(PyExc_TypeError, "an event name must be a str");
        return NULL;
    }
    if (!nl_is_on(self->log, level)) /* also false for a closed log */
        Py_RETURN_FALSE;
    Py_ssize_t count = (first != NULL ? PyDict_Size(first) : 0) + (second != NULL ? PyDict_Size(second) : 0);
    if (log_reserve(&c, count) < 0)
        return end_failed_call();
    if (first != NULL)
        add_fields(&c, first);
    if (second != NULL)
        add_fields(&c, second);
    PyObject *result = write_call(self, level, event, &c);
    log_forget(&c);
    return result;
}

/* Returns a new dict with the items of a mapping; NULL with an exception. */
static PyObject *as_dict(PyObject *mapping)
{
    if (!PyObject_HasAttrString(mapping, "keys")) {
        PyErr_SetString(PyExc_TypeError, "fields must be a mapping");
        return NULL;
    }
    PyObject *dict = PyDict_New();
    if (dict != NULL && PyDict_Update(dict, mapping) < 0)
        Py_CLEAR(dict);
    return dict;
}

/*
 * Logs an event whose name, and mapping of fields if present, are in args from index `at` on; `fields` has the keyword
 * arguments. Returns the same values as write_call.
 */
static PyObject *emit_call(PyObject *self, nl_level level, PyObject *args, Py_ssize_t at, PyObject *fields)
{
    Py_ssize_t given = PyTuple_Size(args) - at;
    if (given < 1 || given > 2) {
        PyErr_SetString(PyExc_TypeError, "expected an event name and at most one mapping as positional arguments");
        return NULL;
    }
    PyObject *event = PyTuple_GetItem(args, at);
    PyObject *mapping = given == 2 ? PyTuple_GetItem(args, at + 1) : Py_None;
    if (mapping == Py_None)
        return emit((py_log *)self, level, event, NULL, fields);
    PyObject *dict = PyDict_CheckExact(mapping) ? mapping : as_dict(mapping);
    if (dict == NULL)
        return NULL;
    PyObject *result = emit((py_log *)self, level, event, dict, fields);
    if (dict != mapping)
        Py_DECREF(dict);
    return result;
}

#define LEVEL_METHOD(name, level)                                                                                      \
    static PyObject *log_##name(PyObject *self, PyObject *args, PyObject *fields)                                      \
    {                                                                                                                  \
        return emit_call(self, level, args, 0, fields);                                                                \
    }
LEVEL_METHOD(emergency, NL_EMERGENCY)
LEVEL_METHOD(alert, NL_ALERT)
LEVEL_METHOD(error, NL_ERROR)
LEVEL_METHOD(warning, NL_WARNING)
LEVEL_METHOD(auth, NL_AUTH)
LEVEL_METHOD(security, NL_SECURITY)
LEVEL_METHOD(usage, NL_USAGE)
LEVEL_METHOD(system, NL_SYSTEM)
LEVEL_METHOD(important, NL_IMPORTANT)
LEVEL_METHOD(debug, NL_DEBUG)

static int take_level(PyObject *object, nl_level *level)
{
    long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred() != NULL)
        return -1;
    if (number <= NL_LEVEL_NONE || number > NL_DEBUG) {
        PyErr_SetString(PyExc_ValueError, "invalid level; use a member of netlogger.Level, such as Level.ERROR");
        return -1;
    }
    *level = (nl_level)number;
    return 0;
}

static PyObject *log_log(PyObject *self, PyObject *args, PyObject *fields)
{
    nl_level level;
    if (PyTuple_Size(args) < 1) {
        PyErr_SetString(PyExc_TypeError, "log(level, event, ...)");
        return NULL;
    }
    return take_level(PyTuple_GetItem(args, 0), &level) == 0 ? emit_call(self, level, args, 1, fields) : NULL;
}

/* ---- fields as text, and whole records ---- */

static PyObject *write_record(py_log *self, const nl_record *record)
{
    nl_status status;
    enter(self);
    WITHOUT_LOCK(status = nl_write_record(self->log, record));
    leave(self);
    return PyBool_FromLong(status == NL_OK || status == NL_MALFORMED);
}

/*
 * Adds the fields of a text. If the text is not a sequence of fields, it becomes the field MSG. `line` is memory for
 * the conversion.
 */
static void log_add_text(nl_record *record, nl_string text, nl_buffer *line)
{
    static const char date[] = "DATE=20000101000000 ";
    nl_buffer_append(line, date, sizeof date - 1);
    nl_buffer_append(line, text.data, text.size);
    if (nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, line->data, line->size) == NL_OK)
        return;
    nl_record_clear(record);
    nl_record_add_string(record, "MSG", text.data, text.size);
}

static PyObject *log_write_text(PyObject *object, PyObject *args)
{
    py_log *self = (py_log *)object;
    PyObject *event, *text, *kept_event = NULL, *kept_text = NULL, *result = NULL;
    int number;
    nl_level level;
    nl_string event_bytes, text_bytes;
    nl_buffer line = {0};
    if (!PyArg_ParseTuple(args, "iUU", &number, &event, &text))
        return NULL;
    if (number <= NL_LEVEL_NONE || number > NL_DEBUG) {
        PyErr_SetString(PyExc_ValueError, "invalid level; use a member of netlogger.Level, such as Level.ERROR");
        return NULL;
    }
    level = (nl_level)number;
    if (!nl_is_on(self->log, level))
        Py_RETURN_FALSE;
    nl_record *record = nl_record_new();
    if (nlpy_take_text(event, &event_bytes, &kept_event) == 0 && nlpy_take_text(text, &text_bytes, &kept_text) == 0) {
        log_add_text(record, text_bytes, &line);
        nl_record_set_time(record, 0);
        nl_record_set_level(record, level);
        nl_record_set_event(record, event_bytes.data, event_bytes.size);
        result = write_record(self, record);
    }
    nl_record_free(record);
    nl_buffer_free(&line);
    Py_XDECREF(kept_event);
    Py_XDECREF(kept_text);
    return result;
}

static int log_add_field(nl_record *record, PyObject *name, PyObject *object)
{
    nl_string name_text;
    nl_field field;
    PyObject *kept_name = NULL, *kept = NULL;
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "a field name must be a str");
        return -1;
    }
    int result = nlpy_take_text(name, &name_text, &kept_name) == 0 && nlpy_take(object, &field, &kept) == 0 ? 0 : -1;
    if (result == 0) {
        field.name = name_text;
        nl_record_add(record, &field);
    }
    Py_XDECREF(kept_name);
    Py_XDECREF(kept);
    return result;
}

static int set_text(nl_record *record, void (*set)(nl_record *, const char *, size_t), PyObject *text)
{
    nl_string bytes;
    PyObject *kept = NULL;
    if (text == Py_None)
        return 0;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a record's host, prog and event must be str or None");
        return -1;
    }
    if (nlpy_take_text(text, &bytes, &kept) < 0)
        return -1;
    set(record, bytes.data, bytes.size);
    Py_DECREF(kept);
    return 0;
}

/*
 * The arguments are (time_ns, level, host, prog, event, pairs). Returns True if the record was logged, otherwise False.
 */
static PyObject *log_write_record(PyObject *object, PyObject *args)
{
    py_log *self = (py_log *)object;
    long long time_ns;
    int level;
    PyObject *host, *prog, *event, *pairs, *result = NULL;
    if (!PyArg_ParseTuple(args, "LiOOOO!", &time_ns, &level, &host, &prog, &event, &PyTuple_Type, &pairs))
        return NULL;
    if (!self->is_open)
        Py_RETURN_FALSE;
    if (level < NL_LEVEL_NONE || level > NL_DEBUG) {
        PyErr_SetString(PyExc_ValueError, "invalid level; use a member of netlogger.Level, such as Level.ERROR");
        return NULL;
    }
    nl_record *record = nl_record_new();
    nl_record_set_time(record, time_ns);
    nl_record_set_level(record, (nl_level)level);
    int good = set_text(record, nl_record_set_host, host) == 0 && set_text(record, nl_record_set_prog, prog) == 0 &&
               set_text(record, nl_record_set_event, event) == 0;
    for (Py_ssize_t i = 0; good && i < PyTuple_Size(pairs); i++) {
        PyObject *name, *value, *pair = PyTuple_GetItem(pairs, i);
        good = PyArg_ParseTuple(pair, "OO", &name, &value) && log_add_field(record, name, value) == 0;
    }
    if (good)
        result = write_record(self, record);
    nl_record_free(record);
    return result;
}

/* ---- spans ---- */

/*
 * Converts the names and the values of a call. `names` owns the texts of the names. Returns 0, or -1 with an exception.
 */
static int take_fields(call *c, PyObject **names)
{
    if (take_values(c) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < c->count; i++) {
        if (!PyUnicode_Check(c->names[i])) {
            PyErr_SetString(PyExc_TypeError, "a field name must be a str");
            return -1;
        }
        if (nlpy_take_text(c->names[i], &c->values[i].name, &names[i]) < 0)
            return -1;
    }
    return 0;
}

/*
 * Begins or, if parent is NULL, ends a span, without the interpreter lock. Returns the same values as
 * nl_span_begin_fields.
 */
static nl_status log_span(py_log *self, nl_span *span, nl_level level, const char *name, const nl_context *parent,
                          const call *c)
{
    nl_status status;
    enter(self);
    WITHOUT_LOCK(status = parent != NULL
                              ? nl_span_begin_fields(span, self->log, level, name, parent, c->values, (size_t)c->count)
                              : nl_span_end_fields(span, c->values, (size_t)c->count));
    leave(self);
    return status;
}

/* Like log_span, with the fields of a dict. Returns 0, or -1 with an exception. */
static int span_call(py_log *self, nl_span *span, nl_level level, PyObject *name, const nl_context *parent,
                     PyObject *fields)
{
    call c = {.count = 0};
    nl_string text;
    PyObject *kept = NULL;
    int result = -1;
    if (nlpy_take_text(name, &text, &kept) < 0)
        return -1;
    if (log_reserve(&c, PyDict_Size(fields)) < 0) {
        Py_DECREF(kept);
        return -1;
    }
    add_fields(&c, fields);
    PyObject **names = PyMem_Calloc((size_t)c.count + 1, sizeof *names);
    if (names == NULL) {
        PyErr_NoMemory();
    } else if ((result = take_fields(&c, names)) == 0 && self->is_open) {
        span->begun = parent == NULL ? text.data : NULL;
        span->log = parent == NULL ? self->log : NULL;
        log_span(self, span, level, text.data, parent, &c);
    }
    for (Py_ssize_t i = 0; names != NULL && i < c.count; i++)
        Py_XDECREF(names[i]);
    PyMem_Free(names);
    log_forget(&c);
    Py_DECREF(kept);
    return result;
}

/*
 * The arguments are (level, name, fields, parent). Returns the context for children, and the state of the span or None
 * if the span is off.
 */
static PyObject *log_begin_span(PyObject *object, PyObject *args)
{
    PyObject *level_object, *name, *fields;
    const char *parent;
    Py_ssize_t size;
    nl_level level;
    nl_span span = {.status = 0};
    if (!PyArg_ParseTuple(args, "OUO!y#", &level_object, &name, &PyDict_Type, &fields, &parent, &size) ||
        take_level(level_object, &level) < 0)
        return NULL;
    if (size == sizeof span.context)
        memcpy(&span.context, parent, sizeof span.context);
    nl_context from = span.context;
    if (nl_is_on(((py_log *)object)->log, level) && span_call((py_log *)object, &span, level, name, &from, fields) < 0)
        return NULL;
    if (span.log == NULL)
        return Py_BuildValue("y#O", (const char *)&span.context, (Py_ssize_t)sizeof span.context, Py_None);
    return Py_BuildValue("y#y#", (const char *)&span.context, (Py_ssize_t)sizeof span.context, (const char *)&span,
                         (Py_ssize_t)sizeof span);
}

/*
 * Ends a span. The arguments are (state, name, status, fields), with the state that log_begin_span returned. Returns
 * None, or NULL with an exception.
 */
static PyObject *log_end_span(PyObject *object, PyObject *args)
{
    PyObject *name, *fields;
    const char *state;
    Py_ssize_t size;
    nl_span span;
    int status;
    if (!PyArg_ParseTuple(args, "y#UiO!", &state, &size, &name, &status, &PyDict_Type, &fields))
        return NULL;
    if (size != sizeof span)
        Py_RETURN_NONE;
    memcpy(&span, state, sizeof span);
    span.status = status;
    if (span_call((py_log *)object, &span, NL_USAGE, name, NULL, fields) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- control, flush and close ---- */

static PyObject *log_is_on(PyObject *object, PyObject *args)
{
    int level;
    if (!PyArg_ParseTuple(args, "i", &level))
        return NULL;
    return PyBool_FromLong(((py_log *)object)->is_open && nl_is_on(((py_log *)object)->log, (nl_level)level));
}

static PyObject *log_set_level(PyObject *object, PyObject *level_object)
{
    nl_level level;
    if (!check_open((py_log *)object) || take_level(level_object, &level) < 0)
        return NULL;
    nl_set_level(((py_log *)object)->log, level);
    Py_RETURN_NONE;
}

static PyObject *log_control(PyObject *object, PyObject *text)
{
    py_log *self = (py_log *)object;
    nl_string commands;
    PyObject *kept;
    if (!check_open(self))
        return NULL;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "commands must be a str");
        return NULL;
    }
    if (nlpy_take_text(text, &commands, &kept) < 0)
        return NULL;
    nl_status status;
    enter(self);
    WITHOUT_LOCK(status = nl_control(self->log, commands.data, commands.size));
    leave(self);
    Py_DECREF(kept);
    if (status == NL_FAILED)
        return nlpy_raise("control failed");
    Py_RETURN_NONE;
}

static PyObject *log_flush(PyObject *object, PyObject *unused)
{
    (void)unused;
    py_log *self = (py_log *)object;
    if (!check_open(self))
        return NULL;
    nl_status status;
    enter(self);
    WITHOUT_LOCK(status = nl_flush(self->log));
    leave(self);
    if (status == NL_FAILED)
        return nlpy_raise("flush failed");
    Py_RETURN_NONE;
}

static nl_status close_it(py_log *self)
{
    nl_status status = NL_OK;
    if (!self->is_open)
        return NL_OK;
    self->is_open = false;
    wait_for_users(self);
    nl_log *log = self->log;
    self->log = NULL;
    WITHOUT_LOCK(status = nl_close(log));
    return status;
}

static PyObject *log_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(close_it((py_log *)object) != NL_FAILED);
}

static PyObject *log_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!((py_log *)object)->is_open);
}

static int log_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"prog", "url", NULL};
    py_log *self = (py_log *)object;
    const char *prog, *url = NULL;
    PyObject *url_object = Py_None, *url_bytes = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|O", names, &prog, &url_object))
        return -1;
    if (url_object != Py_None) {
        if (!PyUnicode_FSConverter(url_object, &url_bytes))
            return -1;
        url = PyBytes_AsString(url_bytes);
    }
    close_it(self); /* because __init__ may be called again */
    nl_log *log;
    nl_error_clear();
    WITHOUT_LOCK(log = nl_open(prog, url));
    Py_XDECREF(url_bytes);
    if (log == NULL && *nl_error_message() != '\0') {
        nlpy_raise("open failed");
        return -1;
    }
    self->log = log; /* NULL if logging is off */
    self->is_open = true;
    return 0;
}

static void log_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject *kind, *value, *where;
    PyErr_Fetch(&kind, &value, &where);
    close_it((py_log *)object);
    PyErr_Restore(kind, value, where);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

#define KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))
#define FIELDS_DOC(level) "($self, event, fields=None, /, **more)\n--\n\nLogs an event at level " level "; see event()."

static PyMethodDef log_methods[] = {
    {"event", KEYWORDS(log_usage), METH_VARARGS | METH_KEYWORDS,
     "event($self, event, fields=None, /, **more)\n--\n\nLogs an event at level Usage. The fields come from a mapping, "
     "from keyword arguments, or from both.\n\nReturns True if the event was logged, and False if it is switched off "
     "or was lost. The log reports lost events."},
    {"emergency", KEYWORDS(log_emergency), METH_VARARGS | METH_KEYWORDS, "emergency" FIELDS_DOC("Emergency")},
    {"alert", KEYWORDS(log_alert), METH_VARARGS | METH_KEYWORDS, "alert" FIELDS_DOC("Alert")},
    {"error", KEYWORDS(log_error), METH_VARARGS | METH_KEYWORDS, "error" FIELDS_DOC("Error")},
    {"warning", KEYWORDS(log_warning), METH_VARARGS | METH_KEYWORDS, "warning" FIELDS_DOC("Warning")},
    {"auth", KEYWORDS(log_auth), METH_VARARGS | METH_KEYWORDS, "auth" FIELDS_DOC("Auth")},
    {"security", KEYWORDS(log_security), METH_VARARGS | METH_KEYWORDS, "security" FIELDS_DOC("Security")},
    {"usage", KEYWORDS(log_usage), METH_VARARGS | METH_KEYWORDS, "usage" FIELDS_DOC("Usage")},
    {"system", KEYWORDS(log_system), METH_VARARGS | METH_KEYWORDS, "system" FIELDS_DOC("System")},
    {"important", KEYWORDS(log_important), METH_VARARGS | METH_KEYWORDS, "important" FIELDS_DOC("Important")},
    {"debug", KEYWORDS(log_debug), METH_VARARGS | METH_KEYWORDS, "debug" FIELDS_DOC("Debug")},
    {"log", KEYWORDS(log_log), METH_VARARGS | METH_KEYWORDS,
     "log($self, level, event, fields=None, /, **more)\n--\n\nLogs an event at the given level; see event()."},
    {"_write_text", log_write_text, METH_VARARGS, NULL},
    {"_write_record", log_write_record, METH_VARARGS, NULL},
    {"_begin_span", log_begin_span, METH_VARARGS, NULL},
    {"_end_span", log_end_span, METH_VARARGS, NULL},
    {"is_on", log_is_on, METH_VARARGS,
     "is_on($self, level, /)\n--\n\nReturns True if the log writes events of this level."},
    {"set_level", log_set_level, METH_O,
     "set_level($self, level, /)\n--\n\nSets the threshold: the log drops less urgent events."},
    {"control", log_control, METH_O,
     "control($self, commands, /)\n--\n\nExecutes commands, one per line:\n\n    level LEVEL\n    event PATTERN "
     "off|on\n    destination URL\n\nnl_control describes these and other commands. Executes the valid lines, then "
     "raises Error if other lines are invalid."},
    {"flush", log_flush, METH_NOARGS,
     "flush($self)\n--\n\nSends all events, and waits until they are sent. Raises Error if an event cannot be sent "
     "now; the log keeps this event."},
    {"close", log_close, METH_NOARGS,
     "close($self)\n--\n\nSends the logged events and closes the log. Returns False if some events are not delivered; "
     "the library then\nprints how many events remain, and where they are."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef log_members[] = {
    {"closed", log_closed, NULL, "Whether the log is closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot log_slots[] = {
    {Py_tp_doc, "The native part of netlogger.Log."},
    {Py_tp_init, log_init},
    {Py_tp_dealloc, log_dealloc},
    {Py_tp_methods, log_methods},
    {Py_tp_getset, log_members},
    {0, NULL},
};

static PyType_Spec log_spec = {"netlogger._core.Log", sizeof(py_log), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                               log_slots};

int nlpy_log_add(PyObject *module)
{
    pthread_atfork(NULL, NULL, in_child);
    PyObject *type = PyType_FromSpec(&log_spec);
    return type != NULL ? PyModule_AddObject(module, "Log", type) : -1;
}
