#include "config.h"

#include "log/grace.h"

#include "base/error.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { PAUSE_FIRST_NS = 1000, PAUSE_LAST_NS = 1000 * 1000 };

typedef struct stripe {
    uint32_t inside[2]; /* number of threads that have entered, for each of the two phases */
    char rest_of_the_cache_line[56];
} stripe;

static stripe stripes[NL_GRACE_STRIPES] __attribute__((aligned(64)));
static uint32_t phase;
static uint32_t threads_seen;
static pthread_mutex_t waiting = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned own_stripe;           /* index of the thread's stripe, plus 1; 0: not assigned yet */
static __thread unsigned own_phase_plus_1 = 0; /* 0: not entered */

unsigned nl_grace_stripe(void)
{
    if (own_stripe == 0)
        own_stripe = __atomic_fetch_add(&threads_seen, 1, __ATOMIC_RELAXED) % NL_GRACE_STRIPES + 1;
    return own_stripe - 1;
}

bool nl_grace_is_inside(void)
{
    return own_phase_plus_1 != 0;
}

bool nl_grace_enter(void)
{
    if (own_phase_plus_1 != 0)
        return false;
    unsigned now = __atomic_load_n(&phase, __ATOMIC_RELAXED);
    own_phase_plus_1 = now + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_fetch_add(&stripes[nl_grace_stripe()].inside[now], 1, __ATOMIC_SEQ_CST);
    return true;
}

void nl_grace_leave(void)
{
    __atomic_fetch_sub(&stripes[nl_grace_stripe()].inside[own_phase_plus_1 - 1], 1, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own_phase_plus_1 = 0;
}

static void wait_for_phase(unsigned old)
{
    struct timespec pause = {0, PAUSE_FIRST_NS};
    for (unsigned i = 0; i < NL_GRACE_STRIPES; i++)
        while (__atomic_load_n(&stripes[i].inside[old], __ATOMIC_SEQ_CST) != 0) {
            nanosleep(&pause, NULL);
            pause.tv_nsec = pause.tv_nsec < PAUSE_LAST_NS ? 2 * pause.tv_nsec : PAUSE_LAST_NS;
        }
}

/*
 * Changes the phase, and waits for the threads in the old phase. Does not wait for threads that enter the new phase,
 * because that wait might never end. Repeats this for the other phase, because a thread may read the phase, sleep, and
 * then enter the old phase after that phase was empty. A thread that enters so late finds only objects that a later
 * grace period frees.
 */
void nl_grace_wait(void)
{
    NL_REQUIRE(own_phase_plus_1 == 0, "called inside a protected section", );
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* the waiting thread holds locks */
    pthread_mutex_lock(&waiting);
    for (int i = 0; i < 2; i++) {
        unsigned old = phase;
        __atomic_store_n(&phase, 1 - old, __ATOMIC_SEQ_CST);
        wait_for_phase(old);
    }
    pthread_mutex_unlock(&waiting);
    pthread_setcancelstate(cancel_state, NULL);
}

void nl_grace_after_fork(void)
{
    memset(stripes, 0, sizeof stripes);
    if (own_phase_plus_1 != 0)
        stripes[nl_grace_stripe()].inside[own_phase_plus_1 - 1] = 1;
    pthread_mutex_init(&waiting, NULL);
}
