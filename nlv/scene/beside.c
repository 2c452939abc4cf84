#include "config.h"

#include "scene/beside.h"

#include <glib.h>
#include <stdbool.h>

typedef struct task {
    void (*work)(void *user);
    void *user;
    GMutex mutex;
    GCond changed;
    bool is_taken, is_over; /* is_taken: the second thread has accepted the task; is_over: the second thread has
                               completed the task, or must not accept the task */
    int users;
} task;

static void release(task *t)
{
    g_mutex_lock(&t->mutex);
    bool is_last = --t->users == 0;
    g_mutex_unlock(&t->mutex);
    if (!is_last)
        return;
    g_mutex_clear(&t->mutex);
    g_cond_clear(&t->changed);
    g_free(t);
}

static void help(gpointer data, gpointer user)
{
    (void)user;
    task *t = data;
    g_mutex_lock(&t->mutex);
    bool is_wanted = t->is_taken = !t->is_over;
    g_mutex_unlock(&t->mutex);
    if (is_wanted) {
        t->work(t->user);
        g_mutex_lock(&t->mutex);
        t->is_over = true;
        g_cond_signal(&t->changed);
        g_mutex_unlock(&t->mutex);
    }
    release(t);
}

void beside_run(void (*work)(void *user), void *user)
{
    static GThreadPool *helpers;
    if (g_get_num_processors() < 2) {
        work(user);
        return;
    }
    if (g_once_init_enter(&helpers))
        g_once_init_leave(&helpers, g_thread_pool_new(help, NULL, 1, FALSE, NULL));
    task *t = g_new0(task, 1);
    g_mutex_init(&t->mutex);
    g_cond_init(&t->changed);
    t->work = work;
    t->user = user;
    t->users = 2;
    g_thread_pool_push(helpers, t, NULL);
    work(user);
    g_mutex_lock(&t->mutex);
    t->is_over |= !t->is_taken;
    while (!t->is_over)
        g_cond_wait(&t->changed, &t->mutex);
    g_mutex_unlock(&t->mutex);
    release(t);
}
