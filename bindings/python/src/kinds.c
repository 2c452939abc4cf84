#include "core.h"

#include <string.h>

enum { ENTRIES = 1024, NAMES_MAX = NL_FIELDS_MAX };

/*
 * A cache of kinds. The keys are the name objects of a call, because the names in a program's source are the same
 * objects in every call. An entry owns references to the names, so that no other object can have the address of a name.
 * The interpreter lock protects the cache.
 */
typedef struct entry {
    nl_event_kind *kind; /* NULL if the entry is free */
    PyObject *event;
    PyObject *names[NAMES_MAX];
    unsigned char count;
    unsigned char level;
} entry;

static entry entries[ENTRIES];

static entry *entry_of(nl_level level, PyObject *event, PyObject *const *names, Py_ssize_t count)
{
    uint64_t hash = (uint64_t)(uintptr_t)event + (uint64_t)level;
    for (Py_ssize_t i = 0; i < count; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)names[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return &entries[(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) % ENTRIES];
}

static bool is_of(const entry *at, nl_level level, PyObject *event, PyObject *const *names, Py_ssize_t count)
{
    return at->kind != NULL && at->event == event && at->level == level && at->count == count &&
           memcmp(at->names, names, (size_t)count * sizeof *names) == 0;
}

/*
 * Returns a new kind with these names. Returns NULL with an exception if a name is invalid, and NULL with or without an
 * exception if memory runs out.
 */
static nl_event_kind *kinds_make(nl_level level, PyObject *event, PyObject *const *names, Py_ssize_t count)
{
    nl_event_kind *kind = NULL;
    nl_string *texts = PyMem_Malloc((size_t)(count + 1) * sizeof *texts);
    PyObject **kept = PyMem_Malloc((size_t)(count + 1) * sizeof(PyObject *));
    Py_ssize_t done = 0;
    if (texts == NULL || kept == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    for (; done <= count; done++) {
        PyObject *text = done < count ? names[done] : event;
        if (!PyUnicode_Check(text)) {
            PyErr_SetString(PyExc_TypeError,
                            done < count ? "a field name must be a str" : "an event name must be a str");
            goto out;
        }
        if (nlpy_take_text(text, &texts[done], &kept[done]) < 0)
            goto out;
    }
    kind = nl_event_kind_new(level, texts[count], texts, (size_t)count);
out:
    for (Py_ssize_t i = 0; i < done; i++)
        Py_DECREF(kept[i]);
    PyMem_Free(kept);
    PyMem_Free(texts);
    return kind;
}

static void replace(entry *at, const entry *with)
{
    entry old = *at;
    *at = *with;
    Py_INCREF(at->event);
    for (unsigned i = 0; i < at->count; i++)
        Py_INCREF(at->names[i]);
    if (old.kind == NULL)
        return;
    nl_event_kind_free(old.kind);
    Py_DECREF(old.event);
    for (unsigned i = 0; i < old.count; i++)
        Py_DECREF(old.names[i]);
}

/* Returns whether all names have the type str, whose deallocation runs no Python code. */
static bool are_plain(PyObject *event, PyObject *const *names, Py_ssize_t count)
{
    bool plain = PyUnicode_CheckExact(event);
    for (Py_ssize_t i = 0; i < count && plain; i++)
        plain = PyUnicode_CheckExact(names[i]);
    return plain;
}

nl_event_kind *nlpy_kind_find(nl_level level, PyObject *event, PyObject *const *names, Py_ssize_t count, bool *own)
{
    entry *at = entry_of(level, event, names, count);
    *own = false;
    if (is_of(at, level, event, names, count))
        return at->kind;
    nl_event_kind *kind = kinds_make(level, event, names, count);
    /* Threads that wait without the interpreter lock may use old kinds, so old kinds must not be freed. */
    *own = nlpy_waiting > 0 || count > NAMES_MAX || !are_plain(event, names, count);
    if (kind == NULL || *own)
        return kind;
    entry made = {.kind = kind, .event = event, .level = (unsigned char)level, .count = (unsigned char)count};
    memcpy(made.names, names, (size_t)count * sizeof *names);
    replace(at, &made);
    return kind;
}
