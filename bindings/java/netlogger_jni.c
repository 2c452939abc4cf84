/*
 * The native part of the Java binding, which defines the functions that Native.java declares. This shared library
 * contains NetLogger's library, so that the jar needs no other files of this project.
 *
 * Texts are passed as UTF-8 bytes, because JNI strings cannot represent every text. If memory runs out, or opening a
 * log or reading fails, these functions throw an exception. For other failures, the functions return a value, and the
 * Java code throws the exception.
 */
#include <netlogger.h>

#include <NetLogger.h>

#include <jni.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Event.java writes these structs. */
_Static_assert(sizeof(nl_field) == 40, "FIELD_SIZE");
_Static_assert(offsetof(nl_field, type) == 16, "TYPE_AT");
_Static_assert(offsetof(nl_field, string.data) == 24 && offsetof(nl_field, int_value) == 24, "VALUE_AT");
_Static_assert(offsetof(nl_field, string.size) == 32, "SIZE_AT");
_Static_assert(NL_TYPE_STRING == 0 && NL_TYPE_INT == 1 && NL_TYPE_DOUBLE == 3 && NL_TYPE_BOOL == 4, "types");

typedef struct java_reader {
    nl_reader *reader;
    nl_filter *filter; /* NULL selects all records */
    nl_buffer packed;
} java_reader;

/* Native.java declares the functions. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define JAVA(result, name) JNIEXPORT result JNICALL Java_netlogger_Native_##name

/* ---- logs that may be closed while other threads use them ---- */

/*
 * Java's handle of a log. A handle is never freed, because unfinished events and threads may refer to it after the log
 * is closed.
 */
typedef struct java_log {
    nl_log *log; /* atomic; NULL if the log is not open */
} java_log;

/* A thread that uses logs. */
typedef struct user {
    java_log *busy_with; /* atomic; NULL if the thread is not using a log */
    struct user *next;
} user;

static user *users; /* protected by users_lock */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t user_key;
static __thread user *own_user __attribute__((tls_model("initial-exec")));
static bool every_use_has_a_fence; /* set if the kernel does not support membarrier(2) */

static void forget_user(void *gone)
{
    pthread_mutex_lock(&users_lock);
    user **place = &users;
    while (*place != gone)
        place = &(*place)->next;
    *place = (*place)->next;
    pthread_mutex_unlock(&users_lock);
    free(gone);
    own_user = NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_key_create(&user_key, forget_user);
    every_use_has_a_fence = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

static void throw_out_of_memory(JNIEnv *env)
{
    jclass error = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
    if (error != NULL)
        (*env)->ThrowNew(env, error, "netlogger: out of native memory");
}

/* Registers the calling thread as a user of logs. Returns NULL with a pending exception if memory runs out. */
static user *make_user(JNIEnv *env)
{
    user *made = calloc(1, sizeof *made);
    if (made == NULL) {
        throw_out_of_memory(env);
        return NULL;
    }
    pthread_mutex_lock(&users_lock);
    made->next = users;
    users = made;
    pthread_mutex_unlock(&users_lock);
    pthread_setspecific(user_key, made);
    return own_user = made;
}

/*
 * Returns the log, and keeps it open until leave. Returns NULL if the log is not open or an exception is pending;
 * calling leave is then unnecessary.
 */
static nl_log *enter(JNIEnv *env, jlong handle)
{
    java_log *of = (java_log *)(intptr_t)handle;
    user *me = own_user != NULL ? own_user : make_user(env);
    if (of == NULL || me == NULL)
        return NULL;
    __atomic_store_n(&me->busy_with, of, __ATOMIC_RELAXED);
    if (every_use_has_a_fence)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nl_log *log = __atomic_load_n(&of->log, __ATOMIC_ACQUIRE);
    if (log == NULL)
        __atomic_store_n(&me->busy_with, NULL, __ATOMIC_RELEASE);
    return log;
}

static void leave(void)
{
    __atomic_store_n(&own_user->busy_with, NULL, __ATOMIC_RELEASE);
}

/* Waits until no thread uses the log that was removed from its handle. Later calls of enter find no log. */
static void wait_for_users(const java_log *of)
{
    struct timespec pause = {.tv_nsec = 1000};
    if (!every_use_has_a_fence)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    pthread_mutex_lock(&users_lock);
    for (user *u = users; u != NULL; u = u->next)
        while (__atomic_load_n(&u->busy_with, __ATOMIC_ACQUIRE) == of) {
            nanosleep(&pause, NULL);
            pause.tv_nsec = pause.tv_nsec < 1000000 ? 2 * pause.tv_nsec : pause.tv_nsec;
        }
    pthread_mutex_unlock(&users_lock);
}

/*
 * Returns a copy of the bytes with a NUL, which the caller frees. Sets *size, unless size is NULL, to the number of
 * bytes without the NUL. Returns NULL if `bytes` is null, an exception is pending, or memory runs out; in the last
 * case, an exception is then pending.
 */
static char *copy_bytes(JNIEnv *env, jbyteArray bytes, size_t *size)
{
    if (bytes == NULL || (*env)->ExceptionCheck(env))
        return NULL;
    jsize length = (*env)->GetArrayLength(env, bytes);
    char *copy = malloc((size_t)length + 1);
    if (copy == NULL) {
        throw_out_of_memory(env);
        return NULL;
    }
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

JAVA(jlong, newLog)(JNIEnv *env, jclass class)
{
    (void)class;
    java_log *made = calloc(1, sizeof *made);
    if (made == NULL)
        throw_out_of_memory(env);
    return (jlong)(intptr_t)made;
}

JAVA(jboolean, open)(JNIEnv *env, jclass class, jlong handle, jbyteArray prog, jbyteArray url)
{
    (void)class;
    java_log *of = (java_log *)(intptr_t)handle;
    char *prog_text = copy_bytes(env, prog, NULL), *url_text = copy_bytes(env, url, NULL);
    bool failed = (*env)->ExceptionCheck(env);
    nl_log *log = failed ? NULL : nl_open(prog_text, url_text);
    free(prog_text);
    free(url_text);
    if (failed)
        return false;
    if (log == NULL && *nl_error_message() != '\0')
        throw_failure(env);
    __atomic_store_n(&of->log, log, __ATOMIC_RELEASE);
    return log != NULL;
}

JAVA(jboolean, flush)(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    nl_log *log = enter(env, handle);
    if (log == NULL)
        return true;
    nl_status status = nl_flush(log);
    leave();
    return status != NL_FAILED;
}

JAVA(jboolean, close)(JNIEnv *env, jclass class, jlong handle)
{
    (void)env, (void)class;
    java_log *of = (java_log *)(intptr_t)handle;
    nl_log *log = __atomic_exchange_n(&of->log, NULL, __ATOMIC_SEQ_CST);
    if (log == NULL)
        return true;
    wait_for_users(of);
    return nl_close(log) != NL_FAILED;
}

JAVA(void, setLevel)(JNIEnv *env, jclass class, jlong handle, jint level)
{
    (void)class;
    nl_log *log = enter(env, handle);
    if (log == NULL)
        return;
    nl_set_level(log, (nl_level)level);
    leave();
}

JAVA(jboolean, control)(JNIEnv *env, jclass class, jlong handle, jbyteArray commands)
{
    (void)class;
    size_t size = 0;
    nl_log *log = enter(env, handle);
    if (log == NULL)
        return true;
    char *text = copy_bytes(env, commands, &size);
    nl_status status = text != NULL ? nl_control(log, text, size) : NL_OK;
    leave();
    free(text);
    return status != NL_FAILED;
}

JAVA(jboolean, isOn)(JNIEnv *env, jclass class, jlong handle, jint level)
{
    (void)class;
    nl_log *log = enter(env, handle);
    if (log == NULL)
        return false;
    bool is_on = nl_is_on(log, (nl_level)level);
    leave();
    return is_on;
}

JAVA(jint, writeText)(JNIEnv *env, jclass class, jlong handle, jbyteArray event, jbyteArray fields)
{
    (void)class;
    nl_log *log = enter(env, handle);
    if (log == NULL)
        return 0;
    char *event_text = copy_bytes(env, event, NULL), *fields_text = copy_bytes(env, fields, NULL);
    int result = (*env)->ExceptionCheck(env) ? 0 : NetLoggerWriteText(log, event_text, fields_text);
    leave();
    free(event_text);
    free(fields_text);
    return result;
}

/* Sets out[0..count) to copies of the names, which the caller frees. Stops if an exception is pending. */
static void copy_names(JNIEnv *env, jobjectArray names, nl_string *out, jsize count)
{
    for (jsize i = 0; i < count; i++) {
        if ((*env)->ExceptionCheck(env))
            return;
        jbyteArray name = (jbyteArray)(*env)->GetObjectArrayElement(env, names, i);
        out[i].data = copy_bytes(env, name, &out[i].size);
        (*env)->DeleteLocalRef(env, name);
    }
}

JAVA(jlong, newKind)(JNIEnv *env, jclass class, jint level, jbyteArray event, jobjectArray names)
{
    (void)class;
    enum { MAX = 16 };
    nl_string list[MAX] = {{0}};
    jsize count = (*env)->GetArrayLength(env, names);
    count = count < MAX ? count : MAX;
    copy_names(env, names, list, count);
    nl_string name = {0};
    name.data = copy_bytes(env, event, &name.size);
    nl_event_kind *kind =
        (*env)->ExceptionCheck(env) ? NULL : nl_event_kind_new((nl_level)level, name, list, (size_t)count);
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

JAVA(jint, writeEvent)(JNIEnv *env, jclass class, jlong handle, jlong kind, jlong address)
{
    (void)class;
    nl_event_kind *of = (nl_event_kind *)(intptr_t)kind;
    nl_log *log = enter(env, handle);
    if (log == NULL)
        return 0;
    nl_status status = nl_event_write(log, of, (const nl_field *)(intptr_t)address);
    leave();
    return status == NL_OFF ? 0 : status == NL_FAILED ? -1 : 1;
}

/* ---- spans ---- */

/* Sets the names of the fields at address. Returns the memory of the names, which the caller frees; NULL with a pending
 * exception if memory runs out. */
static char *take_names(JNIEnv *env, jobjectArray names, nl_field *fields)
{
    const jsize count = (*env)->GetArrayLength(env, names);
    size_t size = 1;
    for (jsize i = 0; i < count; i++) {
        jobject name = (*env)->GetObjectArrayElement(env, names, i);
        size += (size_t)(*env)->GetArrayLength(env, name);
        (*env)->DeleteLocalRef(env, name);
    }
    char *texts = malloc(size), *at = texts;
    if (texts == NULL) {
        throw_out_of_memory(env);
        return NULL;
    }
    for (jsize i = 0; i < count; i++) {
        jobject name = (*env)->GetObjectArrayElement(env, names, i);
        jsize length = (*env)->GetArrayLength(env, name);
        (*env)->GetByteArrayRegion(env, name, 0, length, (jbyte *)at);
        fields[i].name = (nl_string){at, (size_t)length};
        at += length;
        (*env)->DeleteLocalRef(env, name);
    }
    return texts;
}

/* Begins a span, or ends it if `parent` is NULL. `name` ends with a NUL. */
static void write_span(JNIEnv *env, nl_log *log, nl_span *span, int level, jbyteArray name, const nl_context *parent,
                       jobjectArray names, jlong address)
{
    nl_field *fields = (nl_field *)(intptr_t)address;
    const size_t count = (size_t)(*env)->GetArrayLength(env, names);
    char *texts = take_names(env, names, fields);
    jbyte *text = texts != NULL ? (*env)->GetByteArrayElements(env, name, NULL) : NULL;
    if (text != NULL && parent != NULL) {
        nl_span_begin_fields(span, log, (nl_level)level, (const char *)text, parent, fields, count);
    } else if (text != NULL) {
        span->begun = text;
        span->log = log;
        nl_span_end_fields(span, fields, count);
    }
    if (text != NULL)
        (*env)->ReleaseByteArrayElements(env, name, text, JNI_ABORT);
    free(texts);
}

/*
 * Begins a span and returns its state, an nl_span, which begins with the span's context. If the span is off, returns
 * only the context.
 */
JAVA(jbyteArray, beginSpan)
(JNIEnv *env, jclass class, jlong handle, jint level, jbyteArray name, jbyteArray parent, jobjectArray names,
 jlong address)
{
    (void)class;
    nl_span span = {.status = 0};
    (*env)->GetByteArrayRegion(env, parent, 0, sizeof span.context, (jbyte *)&span.context);
    const nl_context from = span.context;
    nl_log *log = enter(env, handle);
    if (log != NULL) {
        write_span(env, log, &span, level, name, &from, names, address);
        leave();
    }
    const jsize size = span.log != NULL ? sizeof span : sizeof span.context;
    jbyteArray state = (*env)->ExceptionCheck(env) ? NULL : (*env)->NewByteArray(env, size);
    if (state != NULL)
        (*env)->SetByteArrayRegion(env, state, 0, size, (const jbyte *)&span);
    return state;
}

JAVA(void, endSpan)
(JNIEnv *env, jclass class, jlong handle, jbyteArray state, jbyteArray name, jint status, jobjectArray names,
 jlong address)
{
    (void)class;
    nl_span span;
    nl_log *log = (*env)->GetArrayLength(env, state) == sizeof span ? enter(env, handle) : NULL;
    if (log == NULL)
        return;
    (*env)->GetByteArrayRegion(env, state, 0, sizeof span, (jbyte *)&span);
    span.status = status;
    write_span(env, log, &span, 0, name, NULL, names, address);
    leave();
}

static jbyteArray give_context(JNIEnv *env, const nl_context *context)
{
    jbyteArray bytes = (*env)->NewByteArray(env, sizeof *context);
    if (bytes != NULL)
        (*env)->SetByteArrayRegion(env, bytes, 0, sizeof *context, (const jbyte *)context);
    return bytes;
}

JAVA(jbyteArray, attachContext)(JNIEnv *env, jclass class, jbyteArray bytes)
{
    (void)class;
    nl_context next;
    (*env)->GetByteArrayRegion(env, bytes, 0, sizeof next, (jbyte *)&next);
    const nl_context previous = nl_context_attach(&next);
    return give_context(env, &previous);
}

JAVA(jbyteArray, currentContext)(JNIEnv *env, jclass class)
{
    (void)class;
    const nl_context current = nl_context_current();
    return give_context(env, &current);
}

/*
 * Returns the context of a traceparent or, if text is null, of the environment variable TRACEPARENT. The context is
 * empty if the text is invalid.
 */
JAVA(jbyteArray, parseTraceparent)(JNIEnv *env, jclass class, jbyteArray text)
{
    (void)class;
    nl_context context;
    jbyte *bytes = text != NULL ? (*env)->GetByteArrayElements(env, text, NULL) : NULL;
    if (text != NULL && bytes == NULL)
        return NULL;
    nl_traceparent_parse((const char *)bytes, bytes != NULL ? (size_t)(*env)->GetArrayLength(env, text) : 0, &context);
    if (bytes != NULL)
        (*env)->ReleaseByteArrayElements(env, text, bytes, JNI_ABORT);
    return give_context(env, &context);
}

JAVA(jbyteArray, formatTraceparent)(JNIEnv *env, jclass class, jbyteArray bytes)
{
    (void)class;
    nl_context context;
    char text[NL_TRACEPARENT_SIZE];
    (*env)->GetByteArrayRegion(env, bytes, 0, sizeof context, (jbyte *)&context);
    const jsize size = (jsize)nl_traceparent_format(&context, text);
    jbyteArray result = (*env)->NewByteArray(env, size);
    if (result != NULL)
        (*env)->SetByteArrayRegion(env, result, 0, size, (const jbyte *)text);
    return result;
}

JAVA(jbyteArray, joinTracestate)(JNIEnv *env, jclass class, jobjectArray headers)
{
    (void)class;
    char state[NL_TRACESTATE_SIZE] = "";
    bool good = true;
    for (jsize i = 0; i < (*env)->GetArrayLength(env, headers) && good; i++) {
        jobject header = (*env)->GetObjectArrayElement(env, headers, i);
        jbyte *text = (*env)->GetByteArrayElements(env, header, NULL);
        if (text == NULL)
            return NULL;
        good = nl_tracestate_append(state, (const char *)text, (size_t)(*env)->GetArrayLength(env, header)) == NL_OK;
        (*env)->ReleaseByteArrayElements(env, header, text, JNI_ABORT);
        (*env)->DeleteLocalRef(env, header);
    }
    const jsize size = (jsize)strlen(state);
    jbyteArray result = (*env)->NewByteArray(env, size);
    if (result != NULL)
        (*env)->SetByteArrayRegion(env, result, 0, size, (const jbyte *)state);
    return result;
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
    java_reader *made = (*env)->ExceptionCheck(env) ? NULL : calloc(1, sizeof *made);
    if (made == NULL) {
        if (!(*env)->ExceptionCheck(env))
            throw_out_of_memory(env);
        free(source_text);
        free(where_text);
        return 0;
    }
    nl_reader_options options = {.follow = follow, .nonblocking = true};
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
    return status == NL_AGAIN ? new_bytes(env, "", 0) : NULL;
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
