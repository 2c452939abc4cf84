#include "config.h"

#include "agents/stream.h"
#include "reader/decoder.h"
#include "program/glib_error.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

enum { PIECE = 64 << 10 };

struct stream {
    char *url, *sensor, *state;
    GSubprocess *process;
    GCancellable *ending;
    nl_decoder *decoder;
    stream_callbacks callbacks;
    bool held, reading;
};

/* ---- nlagent ---- */

/* Beside this program, as both are built or installed; or wherever programs are looked for. */
static char *find_nlagent(void)
{
    static const char *const places[] = {"nlagent", "../nlagent/nlagent", "../../nlagent/nlagent"};
    char *self = g_file_read_link("/proc/self/exe", NULL), *found = NULL;
    char *folder = self != NULL ? g_path_get_dirname(self) : g_strdup(".");
    for (size_t i = 0; i < G_N_ELEMENTS(places) && found == NULL; i++) {
        found = g_build_filename(folder, places[i], NULL);
        if (!g_file_test(found, G_FILE_TEST_IS_EXECUTABLE) || g_file_test(found, G_FILE_TEST_IS_DIR))
            g_clear_pointer(&found, g_free);
    }
    g_free(folder);
    g_free(self);
    return found != NULL ? found : g_find_program_in_path("nlagent");
}

/* It would not notice the end of a window that was killed while it waits for an agent that is away. */
static void end_with_parent(gpointer user)
{
    (void)user;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

GSubprocess *stream_start_nlagent(const char *const *arguments)
{
    char *program = find_nlagent();
    if (program == NULL)
        return nl_error_null(NL_ERROR_NOT_FOUND, "nlagent is not installed; it is in the package netlogger");
    GPtrArray *all = g_ptr_array_new();
    GError *error = NULL;
    g_ptr_array_add(all, program);
    for (; *arguments != NULL; arguments++)
        g_ptr_array_add(all, (gpointer)*arguments);
    g_ptr_array_add(all, NULL);
    GSubprocessLauncher *launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_child_setup(launcher, end_with_parent, NULL, NULL);
    GSubprocess *process = g_subprocess_launcher_spawnv(launcher, (const char *const *)all->pdata, &error);
    if (process == NULL)
        glib_error_take(error);
    g_object_unref(launcher);
    g_ptr_array_free(all, TRUE);
    g_free(program);
    return process;
}

char *stream_last_line(GBytes *said)
{
    gsize size = 0;
    const char *data = said != NULL ? g_bytes_get_data(said, &size) : NULL;
    char *text = g_utf8_make_valid(data != NULL ? data : "", (gssize)size);
    g_strchomp(text);
    const char *line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    if (g_str_has_prefix(line, "nlagent: "))
        line += strlen("nlagent: ");
    char *result = g_strdup(line);
    g_free(text);
    return result;
}

/* ---- what it says of itself ---- */

static bool is_event(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

static bool begins_with(nl_string text, const char *message)
{
    return text.size >= strlen(message) && memcmp(text.data, message, strlen(message)) == 0;
}

bool stream_is_own_event(const nl_record *record)
{
    return begins_with(record->event, "Nlagent.") || begins_with(record->event, "Nlagentd.");
}

static void set_state(stream *s, const char *message)
{
    if (strcmp(s->state, message) == 0)
        return;
    g_free(s->state);
    s->state = g_utf8_make_valid(message, -1);
    s->callbacks.state(s->callbacks.user, s);
}

/* Its state by what came. */
static void note(stream *s, const nl_record *record)
{
    nl_field reason;
    char scratch[NL_FIELD_TEXT_SIZE];
    bool is_lost = is_event(record, "Nlagent.Lost"), is_failed = is_event(record, "Nlagentd.SensorFailed");
    if (!is_lost && !is_failed) {
        if (!stream_is_own_event(record))
            set_state(s, "running");
        return;
    }
    const char *what = is_lost ? "lost, tried again: " : "the sensor failed: ";
    nl_string value = {0};
    if (nl_record_find(record, "REASON", &reason))
        value = nl_field_text(&reason, scratch);
    char *message = g_strdup_printf("%s%.*s", what, (int)MIN(value.size, 300), value.data != NULL ? value.data : "");
    set_state(s, message);
    g_free(message);
}

/* ---- reading ---- */

static void read_on(stream *s);

static void on_read(GObject *input, GAsyncResult *result, gpointer user)
{
    GError *error = NULL;
    GBytes *bytes = g_input_stream_read_bytes_finish(G_INPUT_STREAM(input), result, &error);
    if (bytes == NULL && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_error_free(error); /* the stream is gone */
        return;
    }
    stream *s = user;
    gsize size = 0;
    const void *data = bytes != NULL ? g_bytes_get_data(bytes, &size) : NULL;
    const nl_record *record;
    s->reading = false;
    nl_decoder_feed(s->decoder, size > 0 ? data : "", size);
    while (nl_decoder_next(s->decoder, &record) == NL_OK) {
        note(s, record);
        s->callbacks.record(s->callbacks.user, s, record);
    }
    if (bytes != NULL)
        g_bytes_unref(bytes);
    g_clear_error(&error);
    if (size > 0) {
        s->callbacks.read(s->callbacks.user);
        read_on(s);
    }
}

static void read_on(stream *s)
{
    if (s->held || s->reading)
        return;
    s->reading = true;
    g_input_stream_read_bytes_async(g_subprocess_get_stdout_pipe(s->process), PIECE, G_PRIORITY_DEFAULT, s->ending,
                                    on_read, s);
}

void stream_hold(stream *s, bool hold)
{
    s->held = hold;
    read_on(s);
}

/* nlagent goes on for ever: when it has ended, it has said why. */
static void on_ended(GObject *input, GAsyncResult *result, gpointer user)
{
    GError *error = NULL;
    GBytes *said = g_input_stream_read_bytes_finish(G_INPUT_STREAM(input), result, &error);
    if (said == NULL && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_error_free(error);
        return;
    }
    char *line = stream_last_line(said), *message = g_strdup_printf("ended: %s", line);
    set_state(user, message);
    g_free(message);
    g_free(line);
    if (said != NULL)
        g_bytes_unref(said);
    g_clear_error(&error);
}

/* ---- life ---- */

stream *stream_new(const char *url, const char *sensor, stream_callbacks callbacks)
{
    char *agent = g_strdup_printf("--agent=%s", url);
    const char *const arguments[] = {agent, "--", "collect", sensor, NULL}; /* a name from elsewhere is no option */
    GSubprocess *process = stream_start_nlagent(arguments);
    g_free(agent);
    if (process == NULL)
        return NULL;
    stream *s = g_new0(stream, 1);
    *s = (stream){.url = g_strdup(url),
                  .sensor = g_strdup(sensor),
                  .state = g_strdup("asked for"),
                  .process = process,
                  .ending = g_cancellable_new(),
                  .callbacks = callbacks};
    s->decoder = nl_decoder_new(&(nl_decoder_options){.source = s->url});
    read_on(s);
    g_input_stream_read_bytes_async(g_subprocess_get_stderr_pipe(process), PIECE, G_PRIORITY_DEFAULT, s->ending,
                                    on_ended, s);
    return s;
}

void stream_free(gpointer data)
{
    stream *s = data;
    g_cancellable_cancel(s->ending);     /* what is under way reports to nobody any more */
    g_subprocess_force_exit(s->process); /* the agent notices the end of the connection */
    g_object_unref(s->ending);
    g_object_unref(s->process);
    nl_decoder_free(s->decoder);
    g_free(s->state);
    g_free(s->sensor);
    g_free(s->url);
    g_free(s);
}

bool stream_is(const stream *s, const char *url, const char *sensor)
{
    return strcmp(s->url, url) == 0 && strcmp(s->sensor, sensor) == 0;
}

const char *stream_url(const stream *s)
{
    return s->url;
}

const char *stream_sensor(const stream *s)
{
    return s->sensor;
}

const char *stream_state(const stream *s)
{
    return s->state;
}
