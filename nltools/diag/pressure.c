/* What a host was under while the objects were on their way, from the records of its sensors (doc/sensors.md). */
#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <string.h>

/* The largest mean of a field over an event's instances whose name begins with that; NAN when there is none. */
static double most_of(const observed *o, guint host, const char *event, const char *field, const char *instance)
{
    guint count;
    resource *const *of_host = observed_resources_of(o, host, &count);
    double most = NAN;
    for (guint i = 0; i < count; i++) {
        const resource *r = of_host[i];
        if (strcmp(r->event, event) != 0 || strcmp(r->field, field) != 0 || !g_str_has_prefix(r->instance, instance))
            continue;
        double mean = resource_mean(r, observed_from_ns(o), observed_to_ns(o));
        if (!isnan(mean) && !(mean <= most))
            most = mean;
    }
    return most;
}

static double mean_of(const observed *o, guint host, const char *event, const char *field)
{
    return most_of(o, host, event, field, "");
}

/* The processor that had that share of softirqs, the most of all, by what its records are told apart; NULL: none had.
 */
static const char *softirq_processor(const observed *o, guint host, double softirq_most)
{
    guint count;
    resource *const *of_host = observed_resources_of(o, host, &count);
    for (guint i = 0; i < count; i++) {
        const resource *r = of_host[i];
        if (strcmp(r->event, "CpuOne") == 0 && strcmp(r->field, "CPU.SOFTIRQ") == 0 &&
            resource_mean(r, observed_from_ns(o), observed_to_ns(o)) >= softirq_most)
            return r->instance;
    }
    return NULL;
}

static double processor_mean(const observed *o, guint host, const char *processor, const char *field)
{
    const resource *r = processor != NULL ? observed_find(o, host, "CpuOne", field, processor) : NULL;
    return r != NULL ? resource_mean(r, observed_from_ns(o), observed_to_ns(o)) : NAN;
}

/* A sum in which what is not known counts nothing; NAN when nothing is known. */
static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* Segments sent again of all sent. RETRANS is a count since the record before, OUT a rate. */
static double retransmits(const observed *o, guint host)
{
    const resource *again = observed_find(o, host, "TcpSegments", "TCP.RETRANS", NULL);
    double out = mean_of(o, host, "TcpSegments", "TCP.OUT"), count = mean_of(o, host, "TcpSegments", "TCP.RETRANS");
    if (again == NULL || again->samples->len < 2 || !(out > 0))
        return NAN;
    const sample *first = &g_array_index(again->samples, sample, 0),
                 *last = &g_array_index(again->samples, sample, again->samples->len - 1);
    double seconds = (double)(last->time_ns - first->time_ns) / 1e9 / (again->samples->len - 1) / again->joined;
    return seconds > 0 ? count / (out * seconds) : NAN;
}

/* How long requests took, of disks that did anything to speak of. */
static double disk_ms(const observed *o, guint host)
{
    double read = most_of(o, host, "DiskDevice", "DISK.READ.MS", ""),
           write = most_of(o, host, "DiskDevice", "DISK.WRITE.MS", "");
    return isnan(read) || write > read ? write : read;
}

static double connection_mean(const observed *o, const resource *beside, const char *field)
{
    const resource *r = observed_find(o, beside->host, "TcpConnection", field, beside->instance);
    return r != NULL ? resource_mean(r, observed_from_ns(o), observed_to_ns(o)) : NAN;
}

/* Of connections over which more came than a window: what waits to be read, of that and what there is still room for.
 */
static double unread(const observed *o, guint host)
{
    guint count;
    resource *const *of_host = observed_resources_of(o, host, &count);
    double waits = 0, room = 0;
    for (guint i = 0; i < count; i++) {
        const resource *r = of_host[i];
        if (strcmp(r->event, "TcpConnection") != 0 || strcmp(r->field, "TCP.BYTES.RECEIVED") != 0 ||
            resource_rise(r, observed_from_ns(o), observed_to_ns(o)) < 65536)
            continue;
        double queue = connection_mean(o, r, "TCP.QUEUE.IN"), window = connection_mean(o, r, "TCP.WINDOW.RECEIVE");
        if (!isnan(queue) && !isnan(window)) {
            waits += queue;
            room += window;
        }
    }
    return waits + room > 0 ? waits / (waits + room) : NAN;
}

static pressure measure(const observed *o, guint host)
{
    double devices = most_of(o, host, "DiskDevice", "DISK.BUSY", ""),
           softirq_most = most_of(o, host, "CpuOne", "CPU.SOFTIRQ", "");
    const char *receiver = softirq_processor(o, host, softirq_most);
    return (pressure){
        .cpu_busy = mean_of(o, host, "CpuLoad", "CPU.BUSY"),
        .cpu_waited = most_of(o, host, "Pressure", "PSI.SOME", "cpu"),
        .softirq_most = softirq_most,
        .softirq_busy = processor_mean(o, host, receiver, "CPU.BUSY"),
        .softirq_user =
            sum(processor_mean(o, host, receiver, "CPU.USER"), processor_mean(o, host, receiver, "CPU.NICE")),
        .disk_busy = isnan(devices) ? mean_of(o, host, "DiskIo", "DISK.BUSY") : devices,
        .disk_ms = disk_ms(o, host),
        .io_waited = most_of(o, host, "Pressure", "PSI.SOME", "io"),
        .memory_waited = most_of(o, host, "Pressure", "PSI.SOME", "memory"),
        .swapped = sum(mean_of(o, host, "SwapUse", "SWAP.IN"), mean_of(o, host, "SwapUse", "SWAP.OUT")),
        .major_faults = mean_of(o, host, "VmActivity", "VM.FAULTS.MAJOR"),
        .retransmits = retransmits(o, host),
        .drops = sum(most_of(o, host, "NetworkInterface", "NET.IN.DROPS", ""),
                     most_of(o, host, "NetworkInterface", "NET.OUT.DROPS", "")),
        .unread = unread(o, host),
    };
}

pressure *pressures_new(const observed *o)
{
    guint count = observed_host_count(o);
    pressure *all = g_new(pressure, count);
    for (guint h = 0; h < count; h++)
        all[h] = measure(o, h);
    return all;
}
