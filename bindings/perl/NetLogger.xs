/* Logs and readers of the library as Perl objects, for lib/NetLogger.pm, which documents them. */
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include <netlogger.h>

#include <time.h>

/* ---- objects ---- */

/*
 * The part of an object that its copies in all interpreter threads share. When the last copy is released, the log or
 * reader is closed.
 */
typedef struct shared {
    unsigned references; /* atomic */
    nl_log *log;
    nl_reader *reader;
    nl_filter *filter;
} shared;

/* The object in one interpreter. */
typedef struct handle {
    shared *of; /* NULL: closed in this interpreter; the members below are then NULL, too */
    nl_log *log; /* also NULL if logging is off */
    nl_reader *reader;
    nl_filter *filter;
} handle;

/*
 * Releases an object. If flushes is true, flushes a log even if other copies exist. Returns the status of nl_flush or
 * nl_close, or NL_OK if neither was called.
 */
static nl_status let_go(handle *h, bool flushes)
{
    shared *of = h->of;
    nl_status status = NL_OK;
    if (of == NULL)
        return NL_OK;
    if (flushes && __atomic_load_n(&of->references, __ATOMIC_ACQUIRE) > 1)
        status = nl_flush(of->log);
    *h = (handle){0};
    if (__atomic_sub_fetch(&of->references, 1, __ATOMIC_ACQ_REL) > 0)
        return status;
    status = nl_close(of->log);
    nl_reader_close(of->reader);
    nl_filter_free(of->filter);
    free(of);
    return status;
}

static int free_handle(pTHX_ SV *object, MAGIC *magic)
{
    PERL_UNUSED_VAR(object);
    handle *h = (handle *)(void *)magic->mg_ptr;
    let_go(h, false);
    free(h);
    return 0;
}

static handle *new_handle(pTHX_ shared *of)
{
    handle *h = calloc(1, sizeof *h);
    if (h == NULL)
        croak("out of memory");
    if (of != NULL)
        *h = (handle){of, of->log, of->reader, of->filter};
    return h;
}

/* Takes ownership of a log, or of a reader and its filter. */
static handle *first_handle(pTHX_ nl_log *log, nl_reader *reader, nl_filter *filter)
{
    shared *of = calloc(1, sizeof *of);
    if (of == NULL)
        croak("out of memory");
    *of = (shared){1, log, reader, filter};
    return new_handle(aTHX_ of);
}

#ifdef USE_ITHREADS
static int copy_handle(pTHX_ MAGIC *magic, CLONE_PARAMS *parameters)
{
    PERL_UNUSED_VAR(parameters);
    shared *of = ((handle *)(void *)magic->mg_ptr)->of;
    if (of != NULL)
        __atomic_add_fetch(&of->references, 1, __ATOMIC_RELAXED);
    magic->mg_ptr = (char *)(void *)new_handle(aTHX_ of);
    return 0;
}
#define COPY copy_handle
#else
#define COPY NULL
#endif

static const MGVTBL handle_table = {NULL, NULL, NULL, NULL, free_handle, NULL, COPY, NULL};

static void attach_handle(pTHX_ SV *hash, handle *h)
{
    MAGIC *magic = sv_magicext(hash, NULL, PERL_MAGIC_ext, &handle_table, (const char *)(void *)h, 0);
    magic->mg_flags |= MGf_DUP;
}

static SV *object_of(pTHX_ handle *h, const char *class_name)
{
    HV *hash = newHV();
    attach_handle(aTHX_ (SV *)hash, h);
    return sv_bless(newRV_noinc((SV *)hash), gv_stashpv(class_name, GV_ADD));
}

/* Returns NULL if the object is not open as a log or reader. */
static handle *find_handle(SV *object)
{
    if (SvROK(object) && SvTYPE(SvRV(object)) == SVt_PVHV)
        for (MAGIC *magic = SvMAGIC(SvRV(object)); magic != NULL; magic = magic->mg_moremagic)
            if (magic->mg_type == PERL_MAGIC_ext && magic->mg_virtual == &handle_table)
                return (handle *)(void *)magic->mg_ptr;
    return NULL;
}

static handle *handle_of(pTHX_ SV *object)
{
    handle *h = find_handle(object);
    if (h == NULL)
        croak("not a log or reader of NetLogger");
    return h;
}

static handle *open_log_of(pTHX_ SV *object)
{
    handle *h = handle_of(aTHX_ object);
    if (h->of == NULL)
        croak("the log is closed");
    return h;
}

/* Throws an exception (die) with the library's message and the caller's line. */
static void die_with_message(pTHX_ const char *instead)
{
    const char *message = nl_error_message();
    croak("%s", *message != '\0' ? message : instead);
}

/* ---- values ---- */

static bool is_true_or_false(pTHX_ SV *value)
{
#ifdef SvIsBOOL
    if (SvIsBOOL(value))
        return true;
#endif
    return value == &PL_sv_yes || value == &PL_sv_no ||
           (SvROK(value) && SvOBJECT(SvRV(value)) &&
            (sv_derived_from(value, "JSON::PP::Boolean") || sv_derived_from(value, "Types::Serialiser::Boolean")));
}

/* Returns the bytes of a string: characters as UTF-8, bytes unchanged. */
static nl_string text_of(pTHX_ SV *value)
{
    STRLEN size;
    const char *data = SvPV_nomg(value, size);
    return (nl_string){data, size};
}

static void take(pTHX_ SV *value, nl_field *field)
{
    SvGETMAGIC(value);
    field->type = NL_TYPE_STRING;
    if (!SvOK(value)) {
        field->string = (nl_string){"", 0};
    } else if (is_true_or_false(aTHX_ value)) {
        field->type = NL_TYPE_BOOL;
        field->bool_value = SvTRUE_nomg(value);
    } else if (SvPOK(value) || SvROK(value)) {
        field->string = text_of(aTHX_ value);
    } else if (SvIOK(value)) {
        field->type = SvIsUV(value) ? NL_TYPE_UINT : NL_TYPE_INT;
        field->uint_value = SvIsUV(value) ? SvUVX(value) : (UV)SvIVX(value);
    } else if (SvNOK(value)) {
        field->type = NL_TYPE_DOUBLE;
        field->double_value = SvNVX(value);
    } else {
        field->string = text_of(aTHX_ value);
    }
}

/* Converts UTF-8 to characters; other text stays bytes. */
static SV *give_text(pTHX_ nl_string text)
{
    if (text.data == NULL)
        return newSV(0);
    SV *given = newSVpvn(text.data, text.size);
    if (is_utf8_string((const U8 *)text.data, text.size))
        SvUTF8_on(given);
    return given;
}

static SV *give(pTHX_ const nl_field *field)
{
    switch (field->type) {
    case NL_TYPE_INT:
        return newSViv(field->int_value);
    case NL_TYPE_UINT:
        return newSVuv(field->uint_value);
    case NL_TYPE_DOUBLE:
        return newSVnv(field->double_value);
    case NL_TYPE_BOOL:
        return newSVsv(field->bool_value ? &PL_sv_yes : &PL_sv_no);
    default:
        return give_text(aTHX_ field->string);
    }
}

/* ---- a cache of kinds of events by the bytes of their names ---- */

enum { ENTRIES = 1024, NAMES_SIZE = 512 };

/* One per thread, so that it needs no lock. */
static __thread struct entry {
    nl_event_kind *kind; /* NULL: free */
    nl_level level;
    unsigned count;
    size_t size;            /* number of bytes in names */
    char names[NAMES_SIZE]; /* the names of the event and the fields, each after its size */
} *entries;

/* Concatenates all names. Returns false if they do not fit. */
static bool put_names(char *out, size_t *size, nl_string event, const nl_string *names, size_t count)
{
    *size = 0;
    for (size_t i = 0; i <= count; i++) {
        nl_string name = i == 0 ? event : names[i - 1];
        uint16_t name_size = (uint16_t)name.size;
        if (name.size > NAMES_SIZE || *size + sizeof name_size + name.size > NAMES_SIZE)
            return false;
        memcpy(out + *size, &name_size, sizeof name_size);
        memcpy(out + *size + sizeof name_size, name.data, name.size);
        *size += sizeof name_size + name.size;
    }
    return true;
}

static uint64_t hash_bytes(const char *data, size_t size)
{
    uint64_t hash = size, word = 0;
    for (size_t at = 0; at < size; at += sizeof word) {
        size_t rest = size - at;
        word = 0;
        memcpy(&word, data + at, rest < sizeof word ? rest : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Returns the kind of an event. Sets *own if the caller must free the kind. */
static nl_event_kind *find_kind(nl_level level, nl_string event, const nl_string *names, size_t count, bool *own)
{
    char all[NAMES_SIZE];
    size_t size;
    if (entries == NULL)
        entries = calloc(ENTRIES, sizeof *entries);
    *own = entries == NULL || !put_names(all, &size, event, names, count);
    if (*own)
        return nl_event_kind_new(level, event, names, count);
    struct entry *at = &entries[(hash_bytes(all, size) + (uint64_t)level) % ENTRIES];
    if (at->kind != NULL && at->level == level && at->count == count && at->size == size &&
        memcmp(at->names, all, size) == 0)
        return at->kind;
    nl_event_kind_free(at->kind);
    at->kind = nl_event_kind_new(level, event, names, count);
    at->level = level;
    at->count = (unsigned)count;
    at->size = size;
    memcpy(at->names, all, size);
    return at->kind;
}

/* ---- one event ---- */

static nl_string name_of(pTHX_ SV *name)
{
    STRLEN size;
    const char *data = SvPV(name, size);
    return (nl_string){data, size};
}

/*
 * Writes an event with the names and values of items[0..size). The last name may lack its value, which is then empty.
 * Returns true if the event was logged, false if it is off or lost.
 */
static bool write_event(pTHX_ handle *h, nl_level level, SV *event, SV **items, size_t size)
{
    const size_t count = (size + 1) / 2;
    nl_string some_names[NL_FIELDS_MAX], *names = some_names;
    nl_field some_values[NL_FIELDS_MAX], *values = some_values;
    if (count > NL_FIELDS_MAX) { /* Perl frees this memory at the end of the statement, even after die */
        names = (nl_string *)(void *)SvPVX(sv_2mortal(newSV(count * sizeof *names)));
        values = (nl_field *)(void *)SvPVX(sv_2mortal(newSV(count * sizeof *values)));
    }
    for (size_t i = 0; i < count; i++)
        take(aTHX_ 2 * i + 1 < size ? items[2 * i + 1] : &PL_sv_undef, &values[i]);
    for (size_t i = 0; i < count; i++)
        names[i] = name_of(aTHX_ items[2 * i]);
    bool own;
    nl_event_kind *kind = find_kind(level, name_of(aTHX_ event), names, count, &own);
    nl_status status = nl_event_write(h->log, kind, values);
    if (own)
        nl_event_kind_free(kind);
    return status == NL_OK || status == NL_MALFORMED;
}

/* Like write_event, with a time; 0 is the current time. */
static bool write_at(pTHX_ handle *h, nl_level level, SV *event, IV time_ns, SV **items, size_t size)
{
    nl_record *record = nl_record_new();
    if (record == NULL)
        return false;
    nl_string name = name_of(aTHX_ event);
    nl_record_set_event(record, name.data, name.size);
    nl_record_set_level(record, level);
    nl_record_set_time(record, time_ns);
    for (size_t i = 0; i + 1 < size; i += 2) {
        nl_field field;
        take(aTHX_ items[i + 1], &field);
        field.name = name_of(aTHX_ items[i]);
        nl_record_add(record, &field);
    }
    nl_status status = nl_write_record(h->log, record);
    nl_record_free(record);
    return status == NL_OK;
}

/* Calls NetLogger::_write_hash for the arguments log, name, hash, and sets the first argument to its result. */
static void write_hash(pTHX_ nl_level level, SV **arguments)
{
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    EXTEND(SP, 4);
    PUSHs(arguments[0]);
    PUSHs(sv_2mortal(newSViv(level)));
    PUSHs(arguments[1]);
    PUSHs(arguments[2]);
    PUTBACK;
    call_pv("NetLogger::_write_hash", G_SCALAR);
    SPAGAIN;
    SV *result = boolSV(SvTRUE(POPs));
    PUTBACK;
    FREETMPS;
    LEAVE;
    arguments[0] = result;
}

/*
 * Begins a span with the names and values of items[0..size), or ends it if parent is NULL. The last name may lack its
 * value.
 */
static void write_span(pTHX_ handle *h, nl_span *span, nl_level level, const char *name, const nl_context *parent,
                       SV **items, size_t size)
{
    const size_t count = (size + 1) / 2;
    nl_field some[NL_FIELDS_MAX], *fields = some;
    if (count > NL_FIELDS_MAX)
        fields = (nl_field *)(void *)SvPVX(sv_2mortal(newSV(count * sizeof *fields)));
    for (size_t i = 0; i < count; i++)
        take(aTHX_ 2 * i + 1 < size ? items[2 * i + 1] : &PL_sv_undef, &fields[i]);
    for (size_t i = 0; i < count; i++)
        fields[i].name = name_of(aTHX_ items[2 * i]);
    if (parent != NULL) {
        nl_span_begin_fields(span, h->log, level, name, parent, fields, count);
    } else {
        span->begun = name;
        span->log = h->log;
        nl_span_end_fields(span, fields, count);
    }
}

/* Returns the context that has these bytes, or an empty context for other values. */
static nl_context context_of(pTHX_ SV *bytes)
{
    nl_string text = name_of(aTHX_ bytes);
    nl_context context = {.flags = 0};
    if (text.size == sizeof context)
        memcpy(&context, text.data, sizeof context);
    return context;
}

static bool write_text(pTHX_ handle *h, nl_level level, SV *event, SV *text)
{
    static const char date[] = "DATE=20000101000000 ";
    nl_string event_bytes = name_of(aTHX_ event), text_bytes = name_of(aTHX_ text);
    SV *line = sv_2mortal(newSVpvn(date, sizeof date - 1));
    sv_catpvn(line, text_bytes.data, text_bytes.size);
    nl_record *record = nl_record_new();
    if (nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, SvPVX(line), SvCUR(line)) != NL_OK) {
        nl_record_clear(record);
        nl_record_add_string(record, "MSG", text_bytes.data, text_bytes.size);
    }
    nl_record_set_time(record, 0);
    nl_record_set_level(record, level);
    nl_record_set_event(record, event_bytes.data, event_bytes.size);
    nl_status status = nl_write_record(h->log, record);
    nl_record_free(record);
    return status == NL_OK || status == NL_MALFORMED;
}

static nl_level level_of(pTHX_ SV *value)
{
    nl_level level = NL_LEVEL_NONE;
    if (looks_like_number(value)) {
        IV number = SvIV(value);
        level = number > NL_LEVEL_NONE && number <= NL_DEBUG ? (nl_level)number : NL_LEVEL_NONE;
    } else {
        nl_string text = name_of(aTHX_ value);
        level = nl_level_parse(text.data, text.size);
    }
    if (level == NL_LEVEL_NONE)
        croak("invalid level; use one of " NL_LEVEL_NAMES);
    return level;
}

/* ---- reading ---- */

/* Reads the next record that matches the filter. While it waits, Perl's signal handlers run. */
static nl_status next_meant(pTHX_ handle *h, double timeout, const nl_record **record)
{
    struct timespec pause = {.tv_nsec = 100000}, now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double until = (double)now.tv_sec + (double)now.tv_nsec / 1e9 + timeout;
    for (;;) {
        nl_status status;
        if (h->reader == NULL)
            croak("the reader is closed");
        while ((status = nl_reader_next(h->reader, record)) == NL_OK)
            if (nl_filter_matches(h->filter, *record))
                return NL_OK;
        if (status != NL_AGAIN)
            return status;
        PERL_ASYNC_CHECK();
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (timeout >= 0 && (double)now.tv_sec + (double)now.tv_nsec / 1e9 >= until)
            return NL_AGAIN;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 10000000)
            pause.tv_nsec *= 2;
    }
}

static void store(pTHX_ HV *hash, const char *key, SV *value)
{
    if (hv_store(hash, key, (I32)strlen(key), value, 0) == NULL)
        SvREFCNT_dec(value);
}

static SV *give_record(pTHX_ const nl_record *record)
{
    HV *hash = newHV(), *first = newHV();
    AV *pairs = newAV();
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        SV *value = give(aTHX_ field);
        av_push(pairs, give_text(aTHX_ field->name));
        av_push(pairs, value);
        if (!hv_exists(first, field->name.data, (I32)field->name.size) &&
            hv_store(first, field->name.data, (I32)field->name.size, SvREFCNT_inc(value), 0) == NULL)
            SvREFCNT_dec(value);
    }
    store(aTHX_ hash, "time_ns", newSViv(record->time_ns));
    store(aTHX_ hash, "level", record->level != NL_LEVEL_NONE ? newSVpv(nl_level_name(record->level), 0) : newSV(0));
    store(aTHX_ hash, "host", give_text(aTHX_ record->host));
    store(aTHX_ hash, "prog", give_text(aTHX_ record->prog));
    store(aTHX_ hash, "event", give_text(aTHX_ record->event));
    store(aTHX_ hash, "fields", newRV_noinc((SV *)first));
    store(aTHX_ hash, "pairs", newRV_noinc((SV *)pairs));
    return sv_bless(newRV_noinc((SV *)hash), gv_stashpv("NetLogger::Record", GV_ADD));
}

MODULE = NetLogger  PACKAGE = NetLogger
PROTOTYPES: DISABLE

SV *
_open(const char *class_name, const char *prog, SV *url = &PL_sv_undef)
  CODE:
    nl_error_clear();
    nl_log *log = nl_open(prog, SvOK(url) ? SvPV_nolen(url) : NULL);
    if (log == NULL && *nl_error_message() != '\0')
        die_with_message(aTHX_ "open failed");
    RETVAL = object_of(aTHX_ first_handle(aTHX_ log, NULL, NULL), class_name);
  OUTPUT:
    RETVAL

void
_open_in(SV *self, const char *prog, const char *url)
  CODE:
    nl_error_clear();
    nl_log *log = nl_open(prog, url);
    if (log == NULL && *nl_error_message() != '\0')
        die_with_message(aTHX_ "open failed");
    attach_handle(aTHX_ SvRV(self), first_handle(aTHX_ log, NULL, NULL));

bool
_write_at(SV *self, SV *level_value, SV *name, IV time_ns, ...)
  CODE:
    handle *h = find_handle(self);
    nl_level level = level_of(aTHX_ level_value);
    RETVAL = h != NULL && nl_is_on(h->log, level) && write_at(aTHX_ h, level, name, time_ns, &ST(4), (size_t)items - 4);
  OUTPUT:
    RETVAL

void
event(SV *self, SV *name, ...)
  ALIAS:
    emergency = 1
    alert = 2
    error = 3
    warning = 4
    auth = 5
    security = 6
    usage = 7
    system = 8
    important = 9
    debug = 10
  PPCODE:
    nl_level level = ix == 0 ? NL_USAGE : (nl_level)ix;
    if (items == 3 && SvROK(ST(2)) && SvTYPE(SvRV(ST(2))) == SVt_PVHV && !SvOBJECT(SvRV(ST(2)))) {
        write_hash(aTHX_ level, &ST(0));
        XSRETURN(1);
    }
    handle *h = handle_of(aTHX_ self);
    bool logged = nl_is_on(h->log, level) && write_event(aTHX_ h, level, name, &ST(2), (size_t)items - 2);
    ST(0) = boolSV(logged);
    XSRETURN(1);

void
_begin_span(SV *self, SV *level_value, const char *name, SV *parent, ...)
  PPCODE:
    handle *h = handle_of(aTHX_ self);
    nl_span span = {.context = context_of(aTHX_ parent)};
    const nl_context from = span.context;
    write_span(aTHX_ h, &span, level_of(aTHX_ level_value), name, &from, &ST(4), (size_t)items - 4);
    EXTEND(SP, 2);
    ST(0) = sv_2mortal(newSVpvn((const char *)&span.context, sizeof span.context));
    ST(1) = span.log != NULL ? sv_2mortal(newSVpvn((const char *)&span, sizeof span)) : &PL_sv_undef;
    XSRETURN(2);

void
_end_span(SV *self, SV *state, const char *name, int status, ...)
  CODE:
    handle *h = handle_of(aTHX_ self);
    nl_string bytes = name_of(aTHX_ state);
    nl_span span;
    if (bytes.size == sizeof span && h->log != NULL) {
        memcpy(&span, bytes.data, sizeof span);
        span.status = status;
        write_span(aTHX_ h, &span, NL_USAGE, name, NULL, &ST(4), (size_t)items - 4);
    }

SV *
_attach(SV *bytes)
  CODE:
    const nl_context next = context_of(aTHX_ bytes);
    const nl_context previous = nl_context_attach(&next);
    RETVAL = newSVpvn((const char *)&previous, sizeof previous);
  OUTPUT:
    RETVAL

SV *
_current()
  CODE:
    const nl_context current = nl_context_current();
    RETVAL = newSVpvn((const char *)&current, sizeof current);
  OUTPUT:
    RETVAL

SV *
_parse_traceparent(SV *header)
  CODE:
    nl_context context;
    nl_string text = SvOK(header) ? name_of(aTHX_ header) : (nl_string){NULL, 0};
    nl_traceparent_parse(text.data, text.size, &context);
    RETVAL = newSVpvn((const char *)&context, sizeof context);
  OUTPUT:
    RETVAL

SV *
_format_traceparent(SV *bytes)
  CODE:
    char text[NL_TRACEPARENT_SIZE];
    const nl_context context = context_of(aTHX_ bytes);
    RETVAL = newSVpvn(text, nl_traceparent_format(&context, text));
  OUTPUT:
    RETVAL

SV *
join_tracestate(...)
  CODE:
    char state[NL_TRACESTATE_SIZE] = "";
    bool good = true;
    for (I32 i = 0; i < items && good; i++) {
        nl_string header = name_of(aTHX_ ST(i));
        good = nl_tracestate_append(state, header.data, header.size) == NL_OK;
    }
    RETVAL = newSVpv(state, 0);
  OUTPUT:
    RETVAL

void
log(SV *self, SV *level_value, SV *name, ...)
  PPCODE:
    handle *h = handle_of(aTHX_ self);
    nl_level level = level_of(aTHX_ level_value);
    bool logged = nl_is_on(h->log, level) && write_event(aTHX_ h, level, name, &ST(3), (size_t)items - 3);
    ST(0) = boolSV(logged);
    XSRETURN(1);

bool
_write_text(SV *self, SV *level_value, SV *name, SV *text)
  CODE:
    handle *h = handle_of(aTHX_ self);
    nl_level level = level_of(aTHX_ level_value);
    RETVAL = nl_is_on(h->log, level) && write_text(aTHX_ h, level, name, text);
  OUTPUT:
    RETVAL

bool
is_on(SV *self, SV *level_value)
  CODE:
    handle *h = handle_of(aTHX_ self);
    RETVAL = h->of != NULL && nl_is_on(h->log, level_of(aTHX_ level_value));
  OUTPUT:
    RETVAL

void
set_level(SV *self, SV *level_value)
  CODE:
    if (find_handle(self) == NULL && SvROK(self) && SvTYPE(SvRV(self)) == SVt_PVHV)
        hv_stores((HV *)SvRV(self), "NetLogger.level", newSViv(level_of(aTHX_ level_value)));
    else
        nl_set_level(open_log_of(aTHX_ self)->log, level_of(aTHX_ level_value));

void
control(SV *self, SV *commands)
  CODE:
    handle *h = open_log_of(aTHX_ self);
    nl_string text = name_of(aTHX_ commands);
    if (nl_control(h->log, text.data, text.size) == NL_FAILED)
        die_with_message(aTHX_ "control failed");

void
flush(SV *self)
  CODE:
    if (nl_flush(open_log_of(aTHX_ self)->log) == NL_FAILED)
        die_with_message(aTHX_ "flush failed");

bool
close(SV *self)
  CODE:
    RETVAL = let_go(handle_of(aTHX_ self), true) != NL_FAILED;
  OUTPUT:
    RETVAL

bool
is_open(SV *self)
  CODE:
    RETVAL = handle_of(aTHX_ self)->of != NULL;
  OUTPUT:
    RETVAL

const char *
library_version(...)
  CODE:
    PERL_UNUSED_VAR(items);
    RETVAL = nl_version();
  OUTPUT:
    RETVAL

MODULE = NetLogger  PACKAGE = NetLogger::Reader

SV *
_open(const char *class_name, const char *url, SV *where, bool follow)
  CODE:
    nl_reader_options options = {.follow = follow, .nonblocking = true};
    nl_filter *filter = NULL;
    if (SvOK(where) && (filter = nl_filter_parse(SvPV_nolen(where))) == NULL)
        die_with_message(aTHX_ "invalid expression");
    nl_reader *reader = nl_reader_open(url, &options);
    if (reader == NULL) {
        nl_filter_free(filter);
        die_with_message(aTHX_ "open failed");
    }
    RETVAL = object_of(aTHX_ first_handle(aTHX_ NULL, reader, filter), class_name);
  OUTPUT:
    RETVAL

SV *
next(SV *self, SV *timeout = &PL_sv_undef)
  CODE:
    const nl_record *record;
    handle *h = handle_of(aTHX_ self);
    nl_status status = next_meant(aTHX_ h, SvOK(timeout) ? SvNV(timeout) : -1, &record);
    if (status == NL_FAILED)
        die_with_message(aTHX_ "reading failed");
    RETVAL = status == NL_OK ? give_record(aTHX_ record) : &PL_sv_undef;
  OUTPUT:
    RETVAL

void
stats(SV *self)
  PPCODE:
    handle *h = handle_of(aTHX_ self);
    if (h->reader == NULL)
        croak("the reader is closed");
    const nl_reader_stats *stats = nl_reader_get_stats(h->reader);
    EXTEND(SP, 10);
    mPUSHs(newSVpvs("records"));
    mPUSHs(newSVuv(stats->records));
    mPUSHs(newSVpvs("malformed"));
    mPUSHs(newSVuv(stats->malformed));
    mPUSHs(newSVpvs("unterminated"));
    mPUSHs(newSVuv(stats->unterminated));
    mPUSHs(newSVpvs("lost"));
    mPUSHs(newSVuv(stats->lost));
    mPUSHs(newSVpvs("repeated"));
    mPUSHs(newSVuv(stats->repeated));

void
close(SV *self)
  CODE:
    let_go(handle_of(aTHX_ self), false);
