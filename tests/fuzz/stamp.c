/*
 * Packets of path probes. The input is a series of packets, each with the size of a reply. Each packet arrives at a
 * reflector, and at the sender of some probes. If a packet begins with 0, its second byte selects a probe, and the
 * packet becomes a reply to this probe. Therefore, the fuzzer also reaches the code that counts replies.
 */
#include "fuzz.h"
#include "sensors/path_tally.h"
#include "sensors/stamp.h"

enum { PROBES = 8, SESSION = 0x5a5a };

static void check_reflector(const void *packet, size_t size)
{
    stamp_probe probe, again;
    stamp_reply reply = {.received_ns = nl_time_now_ns(), .replied_ns = nl_time_now_ns(), .ttl = 64}, read;
    unsigned char written[STAMP_SIZE];
    if (!stamp_read_probe(packet, size, &probe))
        return;
    fuzz_expect(size >= STAMP_SIZE, "a reply is not larger than the probe");
    stamp_write_reply(packet, &reply, written);
    fuzz_expect(!stamp_read_probe(written, sizeof written, &again), "a reply is no probe");
    fuzz_expect(stamp_read_reply(written, sizeof written, &read), "a reply is valid");
    fuzz_expect(read.probe.sequence == probe.sequence && read.probe.session == probe.session &&
                    read.probe.sent_ns == probe.sent_ns,
                "a reply repeats the probe");
    stamp_write_probe(&probe, written);
    fuzz_expect(stamp_read_probe(written, sizeof written, &again), "a written probe is valid");
    fuzz_expect(again.sequence == probe.sequence && again.session == probe.session, "it is the same probe");
    fuzz_expect(again.error_ns < 0 || (probe.error_ns >= 0 && again.error_ns >= probe.error_ns),
                "its error is unknown or not smaller");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static path_tally tally;
    stamp_probe sent[PROBES];
    uint64_t replies = 0;
    char *copy = fuzz_copy(data, size);
    path_tally_begin(&tally, SESSION, 1000);
    for (int i = 0; i < PROBES; i++)
        sent[i] = path_tally_send(&tally, 1, i, 0);
    for (size_t at = 0; at < size; at += STAMP_SIZE) {
        size_t left = size - at < STAMP_SIZE ? size - at : STAMP_SIZE;
        unsigned char packet[STAMP_SIZE];
        stamp_reply reply;
        check_reflector(copy + at, left);
        memcpy(packet, copy + at, left);
        if (!stamp_read_reply(packet, left, &reply))
            continue;
        if (packet[0] == 0)
            reply.probe = sent[packet[1] % PROBES];
        path_tally_reply(&tally, &reply, reply.replied_ns, reply.ttl);
        if (packet[0] == 0 && packet[2] == 1)
            path_tally_decide(&tally, 1 + PATH_LATE_NS);
    }
    path_tally_decide(&tally, 1 + PATH_LATE_NS);
    path_report r = path_tally_take(&tally);
    replies = r.replies;
    fuzz_expect(replies + r.lost == PROBES, "each probe has one fate");
    fuzz_expect(r.lost_out + r.lost_back <= r.lost, "a probe is lost once");
    fuzz_expect(r.round_trip.count == replies && r.reordered <= replies, "each reply counts once");
    free(copy);
    return 0;
}
