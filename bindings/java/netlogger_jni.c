/*
 * The native part of the Java binding: what Native.java declares. The library is linked into it, so that the jar in
 * which it travels needs nothing else of this project.
 *
 * Texts come as bytes in UTF-8, as JNI's own strings cannot hold all of them. Java throws what fails in here.
 */
#include <netlogger.h>

#include "classic/classic.h"

#include <jni.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Event.java writes these in place. */
_Static_assert(sizeof(nl_field) == 40, "FIELD_SIZE");
_Static_assert(offsetof(nl_field, type) == 16, "TYPE_AT");
_Static_assert(offsetof(nl_field, string.data) == 24 && offsetof(nl_field, int_value) == 24, "VALUE_AT");
_Static_assert(offsetof(nl_field, string.size) == 32, "SIZE_AT");
_Static_assert(NL_TYPE_STRING == 0 && NL_TYPE_INT == 1 && NL_TYPE_DOUBLE == 3 && NL_TYPE_BOOL == 4, "types");

typedef struct java_reader {
    nl_reader *reader;
    nl_filter *filter; /* NULL: all records */
    nl_buffer packed;
} java_reader;

/* Their prototypes are in Native.java. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define JAVA(result, name) JNIEXPORT result JNICALL Java_netlogger_Native_##name

static nl_log *log_of(jlong handle)
{
    return (nl_log *)(intptr_t)handle;
}

/* A copy, NUL-terminated, to be freed; NULL of null. *size may be NULL. */
static char *copy_bytes(JNIEnv *env, jbyteArray bytes, size_t *size)
{
    if (bytes == NULL)
        return NULL;
    jsize length = (*env)->GetArrayLength(env, bytes);
    char *copy = malloc((size_t)length + 1);
    if (copy == NULL)
        abort();
    (*env)->GetByteArrayRegion(env, bytes, 0, length, (jbyte *)copy);
    copy[length] = '\0';
    if (size != NULL)
        *size = (size_t)length;
    return copy;
}

static jbyteArray new_bytes(JNIEnv *env, const char *data, size_t size)
{
    jbyteArray bytes = (*env)->NewByteArray(env, (jsize)size);
    if (bytes != NULL)
        (*env)->SetByteArrayRegion(env, bytes, 0, (jsize)size, (const jbyte *)data);
    return bytes;
}

static void throw_failure(JNIEnv *env)
{
    jclass native = (*env)->FindClass(env, "netlogger/Native");
    jmethodID make = (*env)->GetStaticMethodID(env, native, "failure", "()Lnetlogger/NetLoggerException;");
    jobject failure = make != NULL ? (*env)->CallStaticObjectMethod(env, native, make) : NULL;
    if (failure != NULL)
        (*env)->Throw(env, (jthrowable)failure);
}

JAVA(jbyteArray, errorMessage)(JNIEnv *env, jclass class)
{
    (void)class;
    const char *message = nl_error_message();
    return new_bytes(env, message, strlen(message));
}

/* ---- writing ---- */

JAVA(jlong, open)(JNIEnv *env, jclass class, jbyteArray prog, jbyteArray url)
{
    (void)class;
    char *prog_text = copy_bytes(env, prog, NULL), *url_text = copy_bytes(env, url, NULL);
    nl_log *log = nl_open(prog_text, url_text);
    free(prog_text);
    free(url_text);
    if (log == NULL && *nl_error_message() != '\0')
        throw_failure(env);
    return (jlong)(intptr_t)log;
}

JAVA(jboolean, flush)(JNIEnv *env, jclass class, jlong log)
{
    (void)env, (void)class;
    return nl_flush(log_of(log)) != NL_FAILED;
}

JAVA(jboolean, close)(JNIEnv *env, jclass class, jlong log)
{
    (void)env, (void)class;
    return nl_close(log_of(log)) != NL_FAILED;
}

JAVA(void, setLevel)(JNIEnv *env, jclass class, jlong log, jint level)
{
    (void)env, (void)class;
    nl_set_level(log_of(log), (nl_level)level);
}

JAVA(jboolean, control)(JNIEnv *env, jclass class, jlong log, jbyteArray commands)
{
    (void)class;
    size_t size = 0;
    char *text = copy_bytes(env, commands, &size);
    nl_status status = text != NULL ? nl_control(log_of(log), text, size) : NL_OK;
    free(text);
    return status != NL_FAILED;
}

JAVA(jboolean, isOn)(JNIEnv *env, jclass class, jlong log, jint level)
{
    (void)env, (void)class;
    return nl_is_on(log_of(log), (nl_level)level);
}

JAVA(jint, writeText)(JNIEnv *env, jclass class, jlong log, jbyteArray event, jbyteArray fields)
{
    (void)class;
    NL_Handle handle = {.log = log_of(log)};
    if (handle.log == NULL)
        return 0;
    char *event_text = copy_bytes(env, event, NULL), *fields_text = copy_bytes(env, fields, NULL);
    int result = NetLoggerWriteString(&handle, event_text, NULL, fields_text);
    free(event_text);
    free(fields_text);
    return result;
}

/* The bytes of names, each to be freed. */
static void copy_names(JNIEnv *env, jobjectArray names, nl_string *out, jsize count)
{
    for (jsize i = 0; i < count; i++) {
        jbyteArray name = (jbyteArray)(*env)->GetObjectArrayElement(env, names, i);
        out[i].data = copy_bytes(env, name, &out[i].size);
        (*env)->DeleteLocalRef(env, name);
    }
}

JAVA(jlong, newKind)(JNIEnv *env, jclass class, jint level, jbyteArray event, jobjectArray names)
{
    (void)class;
    enum { MOST = 16 };
    nl_string list[MOST];
    jsize count = (*env)->GetArrayLength(env, names);
    copy_names(env, names, list, count < MOST ? count : MOST);
    nl_string name = {0};
    name.data = copy_bytes(env, event, &name.size);
    nl_event_kind *kind = nl_event_kind_new((nl_level)level, name, list, (size_t)count);
    for (jsize i = 0; i < count; i++)
        free((char *)list[i].data);
    free((char *)name.data);
    return (jlong)(intptr_t)kind;
}

JAVA(void, freeKind)(JNIEnv *env, jclass class, jlong kind)
{
    (void)env, (void)class;
    nl_event_kind_free((nl_event_kind *)(intptr_t)kind);
}

JAVA(jint, writeEvent)(JNIEnv *env, jclass class, jlong log, jlong kind, jlong address)
{
    (void)env, (void)class;
    nl_event_kind *of = (nl_event_kind *)(intptr_t)kind;
    nl_status status = nl_event_write(log_of(log), of, (const nl_field *)(intptr_t)address);
    return status == NL_OFF ? 0 : status == NL_FAILED ? -1 : 1;
}

JAVA(jlong, addressOf)(JNIEnv *env, jclass class, jobject buffer)
{
    (void)class;
    return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}

/* ---- reading ---- */

JAVA(jlong, openReader)(JNIEnv *env, jclass class, jbyteArray source, jboolean follow, jbyteArray where)
{
    (void)class;
    char *source_text = copy_bytes(env, source, NULL), *where_text = copy_bytes(env, where, NULL);
    java_reader *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    nl_reader_options options = {.follow = follow};
    made->filter = where_text != NULL ? nl_filter_parse(where_text) : NULL;
    if (made->filter != NULL || where_text == NULL)
        made->reader = nl_reader_open(source_text, &options);
    free(source_text);
    free(where_text);
    if (made->reader == NULL) {
        nl_filter_free(made->filter);
        free(made);
        made = NULL;
    }
    return (jlong)(intptr_t)made;
}

static void pack(nl_buffer *out, nl_string text)
{
    int32_t size = text.data != NULL ? (int32_t)text.size : -1;
    nl_buffer_append(out, (const char *)&size, sizeof size);
    if (text.data != NULL)
        nl_buffer_append(out, text.data, text.size);
}

static void pack_record(nl_buffer *out, const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    int32_t level = (int32_t)record->level;
    out->size = 0;
    nl_buffer_append(out, (const char *)&record->time_ns, sizeof record->time_ns);
    nl_buffer_append(out, (const char *)&level, sizeof level);
    pack(out, record->level_text);
    pack(out, record->host);
    pack(out, record->prog);
    pack(out, record->event);
    for (size_t i = 0; i < record->field_count; i++) {
        pack(out, record->fields[i].name);
        pack(out, nl_field_text(&record->fields[i], scratch));
    }
}

JAVA(jbyteArray, next)(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    java_reader *reader = (java_reader *)(intptr_t)handle;
    const nl_record *record;
    nl_status status;
    while ((status = nl_reader_next(reader->reader, &record)) == NL_OK) {
        if (reader->filter != NULL && !nl_filter_matches(reader->filter, record))
            continue;
        pack_record(&reader->packed, record);
        return new_bytes(env, reader->packed.data, reader->packed.size);
    }
    if (status == NL_FAILED)
        throw_failure(env);
    return NULL;
}

JAVA(jlong, malformed)(JNIEnv *env, jclass class, jlong handle)
{
    (void)env, (void)class;
    const java_reader *reader = (const java_reader *)(intptr_t)handle;
    return (jlong)nl_reader_get_stats(reader->reader)->malformed;
}

JAVA(void, closeReader)(JNIEnv *env, jclass class, jlong handle)
{
    (void)env, (void)class;
    java_reader *reader = (java_reader *)(intptr_t)handle;
    if (reader == NULL)
        return;
    nl_reader_close(reader->reader);
    nl_filter_free(reader->filter);
    nl_buffer_free(&reader->packed);
    free(reader);
}
