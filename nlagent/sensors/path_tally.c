#include "config.h"

#include "sensors/path_tally.h"

#include <string.h>

static path_pending *find_pending(path_tally *t, uint32_t sequence)
{
    return &t->pending[sequence % PATH_PENDING_MAX];
}

void path_tally_begin(path_tally *t, uint16_t session, uint32_t first_sequence)
{
    memset(t, 0, sizeof *t);
    t->session = session;
    t->first = t->next = t->decided = first_sequence > 0 ? first_sequence : 1;
    t->known_reply = UINT32_MAX; /* makes the next expected number, which is known_reply + 1, 0 */
    t->report.peer_error_ns = STAMP_ERROR_UNKNOWN;
}

/* Before a probe with a reply, adds the lost probes to the counts of each direction. */
static void count_gap(path_tally *t, uint32_t sequence, uint32_t reply_sequence)
{
    /* number of replies that the reflector sent in the gap */
    uint64_t passed = (uint32_t)(reply_sequence - t->known_reply - 1);
    bool copies = reply_sequence == sequence; /* a stateless reflector copies the numbers */
    if (t->gap > 0 && !copies && passed < PATH_PENDING_MAX) {
        uint64_t back = passed < t->gap ? passed : t->gap;
        t->report.lost_back += back;
        t->report.lost_out += t->gap - back;
    }
    t->report.knows_direction = !copies;
    t->known_reply = reply_sequence;
    t->gap = 0;
}

void path_tally_decide(path_tally *t, int64_t monotonic_ns)
{
    for (; t->decided != t->next; t->decided++) {
        path_pending *p = find_pending(t, t->decided);
        if (p->fate == PATH_REPLIED) {
            count_gap(t, p->probe.sequence, p->reply_sequence);
            continue;
        }
        if (monotonic_ns - p->sent_mono_ns < PATH_LATE_NS && t->next - t->decided < PATH_PENDING_MAX)
            return;
        p->fate = PATH_LOST;
        t->report.lost++;
        t->gap++;
    }
}

stamp_probe path_tally_send(path_tally *t, int64_t monotonic_ns, int64_t sent_ns, int64_t error_ns)
{
    path_pending *p = find_pending(t, t->next);
    *p = (path_pending){.probe = {.sequence = t->next, .session = t->session, .sent_ns = sent_ns, .error_ns = error_ns},
                        .sent_mono_ns = monotonic_ns};
    t->next++;
    path_tally_decide(t, monotonic_ns);
    return p->probe;
}

static void add_delay(path_delays *d, int64_t ns)
{
    d->min_ns = d->count == 0 || ns < d->min_ns ? ns : d->min_ns;
    d->max_ns = d->count == 0 || ns > d->max_ns ? ns : d->max_ns;
    d->sum_ns = (d->count == 0 ? 0 : d->sum_ns) + (double)ns;
    d->count++;
}

/* Returns a - b, without overflow: even the times in hostile replies are within 136 years. */
static int64_t difference_ns(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

bool path_tally_reply(path_tally *t, const stamp_reply *reply, int64_t received_ns, unsigned ttl)
{
    uint32_t sequence = reply->probe.sequence;
    path_pending *p = find_pending(t, sequence);
    bool sent = sequence - t->first < t->next - t->first && p->probe.sequence == sequence;
    bool ours = sent && reply->probe.session == t->session && reply->probe.sent_ns == p->probe.sent_ns;
    if (!ours || p->fate == PATH_LOST)
        return false;
    if (p->fate == PATH_REPLIED) {
        t->report.duplicates++;
        return true;
    }
    p->fate = PATH_REPLIED;
    p->reply_sequence = reply->sequence;
    t->report.replies++;
    if (t->has_highest && (int32_t)(sequence - t->highest) < 0)
        t->report.reordered++;
    else
        t->highest = sequence;
    t->has_highest = true;
    int64_t out_ns = difference_ns(reply->received_ns, p->probe.sent_ns);
    int64_t back_ns = difference_ns(received_ns, reply->replied_ns);
    add_delay(&t->report.out, out_ns);
    add_delay(&t->report.back, back_ns);
    add_delay(&t->report.round_trip, out_ns + back_ns);
    t->report.peer_error_ns = reply->error_ns;
    t->report.ttl_out = reply->ttl;
    t->report.ttl_back = ttl;
    return true;
}

path_report path_tally_take(path_tally *t)
{
    path_report report = t->report;
    bool knows = t->report.knows_direction;
    memset(&t->report, 0, sizeof t->report);
    t->report.peer_error_ns = STAMP_ERROR_UNKNOWN;
    t->report.knows_direction = knows;
    return report;
}
