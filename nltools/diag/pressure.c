/* Measures the load of hosts while objects were under way, from the records of sensors (doc/sensors.md). */
#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <string.h>

enum { LINK_SAMPLES = 5 };

/* Returns the host's next resource with that event and field from index *at on, or NULL. */
static const resource *next_of(const observed *o, guint host, const char *event, const char *field, guint *at)
{
    guint count;
    resource *const *of_host = observed_resources_of(o, host, &count);
    while (*at < count) {
        const resource *r = of_host[(*at)++];
        if (strcmp(r->event, event) == 0 && strcmp(r->field, field) == 0)
            return r;
    }
    return NULL;
}

/* Returns the largest mean of a field over the instances whose names begin with instance; NAN: none. */
static double most_of(const observed *o, guint host, const char *event, const char *field, const char *instance)
{
    const resource *r;
    double most = NAN;
    for (guint at = 0; (r = next_of(o, host, event, field, &at)) != NULL;) {
        if (!g_str_has_prefix(r->instance, instance))
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

/* Returns the instance of the processor with the most softirqs, or NULL. */
static const char *softirq_processor(const observed *o, guint host, double softirq_most)
{
    const resource *r;
    for (guint at = 0; (r = next_of(o, host, "CpuOne", "CPU.SOFTIRQ", &at)) != NULL;)
        if (resource_mean(r, observed_from_ns(o), observed_to_ns(o)) >= softirq_most)
            return r->instance;
    return NULL;
}

static double processor_mean(const observed *o, guint host, const char *processor, const char *field)
{
    const resource *r = processor != NULL ? observed_find(o, host, "CpuOne", field, processor) : NULL;
    return r != NULL ? resource_mean(r, observed_from_ns(o), observed_to_ns(o)) : NAN;
}

/* Adds numbers of which one may be NAN (unknown). */
static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* Returns the share of segments that were retransmitted. RETRANS is a count since the last record, OUT a rate. */
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

/* Returns the time of a request of the slowest disk in use. */
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

/* Returns unread bytes by the size of the receive windows, for connections that received more than a window. */
static double unread(const observed *o, guint host)
{
    const resource *r;
    double waits = 0, capacity = 0;
    for (guint at = 0; (r = next_of(o, host, "TcpConnection", "TCP.BYTES.RECEIVED", &at)) != NULL;) {
        if (resource_rise(r, observed_from_ns(o), observed_to_ns(o)) < 65536)
            continue;
        double queue = connection_mean(o, r, "TCP.QUEUE.IN"), window = connection_mean(o, r, "TCP.WINDOW.RECEIVE");
        if (!isnan(queue) && !isnan(window)) {
            waits += queue;
            capacity += window;
        }
    }
    return waits + capacity > 0 ? waits / (waits + capacity) : NAN;
}

/* Returns the share of time in which connections had data to send. */
static double sending(const observed *o, guint host)
{
    const resource *r;
    guint connections = 0;
    double busy_us = 0, wall_us = (double)(observed_to_ns(o) - observed_from_ns(o)) / 1e3;
    for (guint at = 0; (r = next_of(o, host, "TcpConnection", "TCP.BUSY", &at)) != NULL;) {
        busy_us += resource_rise(r, observed_from_ns(o), observed_to_ns(o));
        connections++;
    }
    return connections > 0 && wall_us > 0 ? busy_us / wall_us / connections : NAN;
}

/* Usual speeds of interfaces, in Mbit/s. */
static const double speeds[] = {100, 1000, 2500, 5000, 10000, 25000, 40000, 50000, 100000, 200000, 400000};

/*
 * Returns the mean rate of an interface by the smallest usual speed that it does not exceed, if the rate is near that
 * speed nearly all the time; otherwise 0. A varying rate is the demand, a constant one the limit.
 */
static double link_share(const observed *o, const resource *r)
{
    int64_t from = observed_from_ns(o), to = observed_to_ns(o);
    for (size_t i = 0; i < G_N_ELEMENTS(speeds); i++) {
        double bytes = speeds[i] * 1e6 / 8;
        if (resource_share_above(r, 1.02 * bytes, from, to) <= 0.05)
            return resource_share_above(r, LINK_FULL * bytes, from, to) >= 0.8 ? resource_mean(r, from, to) / bytes : 0;
    }
    return 0;
}

/* Returns the share of the interface that is nearest to its limit in a direction. */
static double link_used(const observed *o, guint host, const char *field)
{
    const resource *r;
    double most = NAN;
    for (guint at = 0; (r = next_of(o, host, "NetworkInterface", field, &at)) != NULL;) {
        double used = r->samples->len >= LINK_SAMPLES ? link_share(o, r) : NAN;
        if (!isnan(used) && !(used <= most))
            most = used;
    }
    return most;
}

/* Ignores filesystems whose space does not shrink, such as read-only ones. */
static double space_used(const observed *o, guint host)
{
    const resource *r;
    double most = NAN;
    int64_t from_ns = observed_from_ns(o), to_ns = observed_to_ns(o);
    for (guint at = 0; (r = next_of(o, host, "FilesystemSpace", "FS.AVAILABLE", &at)) != NULL;) {
        const resource *total = observed_find(o, host, "FilesystemSpace", "FS.TOTAL", r->instance);
        if (total == NULL || resource_rise(r, from_ns, to_ns) >= 0)
            continue;
        double used = 1 - resource_mean(r, from_ns, to_ns) / resource_mean(total, from_ns, to_ns);
        if (!isnan(used) && !(used <= most))
            most = used;
    }
    return most;
}

static pressure pressure_measure(const observed *o, guint host)
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
        .link = fmax(link_used(o, host, "NET.IN"), link_used(o, host, "NET.OUT")),
        .space_used = space_used(o, host),
        .sending = sending(o, host),
        .unread = unread(o, host),
    };
}

pressure *pressures_new(const observed *o)
{
    guint count = observed_host_count(o);
    pressure *all = g_new(pressure, count);
    for (guint h = 0; h < count; h++)
        all[h] = pressure_measure(o, h);
    return all;
}
