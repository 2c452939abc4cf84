"""TcpConnection records of simulated runs: connections between the services, and connections that are not a cause.

Each message between two hosts uses a free connection of its pair of hosts, or opens one. A small message needs half a round trip. A
connection that is limited carries a large reply, at a rate that its limit determines. The sensor at each end logs the counters that
the kernel would have at the time (tcp_info), if the connection has changed. In some runs, only one end has a sensor.
"""
import bisect
import random

MSS = 1448
SSTHRESH_INFINITE = 0x7FFFFFFF
SAMPLES = 200
# Each fault with the cause (nldiag --json) that names it.
KINDS = {"window": "window", "send-buffer": "window", "loss": "loss", "policed": "policed", "reverse": "reverse"}
# Connections that are limited, but are not the reason why requests take long.
DECOYS = ("unrelated", "backup", "idle", "replication", "small")


class Transfer:
    """Bytes in one direction of a connection. `limit` is one of KINDS, or None."""

    def __init__(self, begin, end, size, limit):
        self.begin, self.end, self.size, self.limit = begin, end, size, limit


def part_done(at, begin, end):
    return 1.0 if at >= end else 0.0 if at <= begin else (at - begin) / (end - begin)


class Direction:
    """The data in one direction. The transfers follow each other."""

    def __init__(self, connection, chance):
        self.connection, self.chance, self.transfers, self.ends = connection, chance, [], []
        self.losses, self.thresholds = [], []
        self.bytes_before, self.busy_before, self.limited_before = [0.0], [0.0], [{}]

    def add(self, begin, end, size, limit):
        delay = self.connection.delay
        if self.ends and begin < self.ends[-1] + delay:  # the last data was not acknowledged yet
            begin = min(self.ends[-1] + delay, end - delay / 2)
        t = Transfer(begin, end, size, limit)
        self.transfers.append(t)
        self.ends.append(end)
        busy = end + delay - begin
        self.bytes_before.append(self.bytes_before[-1] + size)
        self.busy_before.append(self.busy_before[-1] + busy)
        limited = dict(self.limited_before[-1])
        limited[limit] = limited.get(limit, 0) + busy
        self.limited_before.append(limited)
        if limit in ("loss", "policed"):
            at, mean = begin, 8 * 2 * delay
            while (at := at + (self.chance.expovariate(1 / mean) if limit == "loss" else mean * self.chance.uniform(0.9, 1.1))) < end:
                self.losses.append(at)
                self.thresholds.append(max(2, 20 * (self.chance.lognormvariate(0, 0.6) if limit == "loss" else self.chance.uniform(0.93, 1.07))))

    def values(self, at):
        """Returns what tcp_info of the sender shows at a time."""
        c, delay = self.connection, self.connection.delay
        i = bisect.bisect_right(self.ends, at - delay)  # the first transfer that is not acknowledged completely
        sent = acked = received = self.bytes_before[i]
        busy, limited, current = self.busy_before[i], dict(self.limited_before[i]), None
        for t in self.transfers[i : i + 2]:
            if t.begin > at:
                break
            late = 0.5 * c.queue if t.limit == "reverse" else 0
            sent += t.size * part_done(at, t.begin, max(t.begin, t.end - delay))
            received += t.size * part_done(at, min(t.begin + delay, t.end), t.end)
            acked += t.size * part_done(at, min(t.begin + 2 * delay + late, t.end + delay), t.end + delay)
            busy += at - t.begin
            limited[t.limit] = limited.get(t.limit, 0) + at - t.begin
            current = t if t.limit is not None and at < t.end else current
        lost = bisect.bisect_right(self.losses, at)
        return {"sent": sent, "received": received, "acked": acked, "busy": busy, "limited": limited, "current": current, "lost": lost,
                "recovers": lost > 0 and at - self.losses[lost - 1] < 2 * delay,
                "threshold": self.thresholds[lost - 1] if lost else SSTHRESH_INFINITE}


class Connection:
    def __init__(self, number, client, server, delay, chance, programs=("", ""), limit=None):
        self.number, self.client, self.server, self.delay, self.limit = number, client, server, delay, limit
        self.programs, self.chance, self.queue = programs, chance, max(0.004, 3 * delay)
        self.port, self.free_at = 32768 + number, 0.0
        self.forth, self.back = Direction(self, chance), Direction(self, chance)
        self.window = 65536 if limit in ("window", "send-buffer") else 4 << 20
        self.before = None  # what the sensor logged last

    def rate(self):
        """Returns the rate of a limited transfer in bytes/s."""
        return 65536 / (2 * self.delay) if self.limit in ("window", "send-buffer") else 15 * MSS / (2 * self.delay)

    def sample(self, at, addresses, server_logs):
        """Returns the text of a record of one end, and its counts of bytes, by which `records` sees whether the connection was idle."""
        out, back = (self.back, self.forth) if server_logs else (self.forth, self.back)
        o, i = out.values(at), back.values(at)
        ends = f"{addresses[self.client]}:{self.port}", f"{addresses[self.server]}:8000"
        local, peer = reversed(ends) if server_logs else ends
        host, program = (self.server, self.programs[1]) if server_logs else (self.client, self.programs[0])
        t, chance = o["current"], self.chance
        limit = t.limit if t else None
        rtt_min = 2e6 * self.delay
        queue = 1e6 * self.queue * chance.uniform(0.4, 1.2) if limit == "reverse" else 0  # delays the acknowledgements
        rtt = rtt_min * chance.uniform(1.01, 1.12) + queue
        flight = max(0, o["sent"] - o["acked"])
        cwnd = max(10, 3 * self.window // MSS) if self.limit in ("window", "send-buffer", "reverse", None) else max(4, int(15 * chance.uniform(0.7, 1.3)))
        flight = self.window if limit == "window" else 0.9 * self.window if limit == "send-buffer" else min(flight, (cwnd - 1) * MSS)
        unsent = t.size * (1 - part_done(at, t.begin, t.end)) if t and limit != "send-buffer" else 0
        rate = self.rate() if t else flight / max(2 * self.delay, 1e-6)
        receiver, buffer = (0.96 * o["limited"].get(k, 0) for k in ("window", "send-buffer"))
        again = o["lost"] * MSS
        small = self.limit == "window" and not server_logs  # the receiver of the large replies
        recovery = f" TCP.RECOVERY={'recovery' if o['recovers'] else 'open'}"
        return (f"HOST={host} PROG=nlsensor LVL=System NL.EVNT=TcpConnection TCP.LOCAL={local} TCP.PEER={peer} TCP.STATE=established{recovery}"
                f"{f' TCP.PROGRAM={program}' if program else ''} TCP.COOKIE={self.number} TCP.MSS={MSS} TCP.CWND={cwnd} TCP.SSTHRESH={o['threshold']:.0f}"
                f" TCP.UNACKED={flight / MSS:.0f} TCP.UNSENT={unsent:.0f} TCP.WINDOW={self.window if self.limit == 'window' and server_logs else 4 << 20}"
                f" TCP.DELAY.IN={1e9 + rtt_min / 2 + queue:.0f} TCP.RTT={rtt:.0f} TCP.RTT.MIN={rtt_min:.0f} TCP.RTT.RECEIVE={rtt_min:.0f} TCP.BUSY={1e6 * o['busy']:.0f}"
                f" TCP.LIMITED.RECEIVER={1e6 * receiver:.0f} TCP.LIMITED.BUFFER={1e6 * buffer:.0f} TCP.BYTES.SENT={o['sent'] + again:.0f}"
                f" TCP.BYTES.ACKED={o['acked']:.0f} TCP.BYTES.RECEIVED={i['received']:.0f} TCP.RETRANS={o['lost']} TCP.BYTES.RETRANS={again}"
                f" TCP.RATE={rate:.0f} TCP.RATE.APP.LIMITED={int(not t)} TCP.BUFFER.IN={2 * self.window if small else 6 << 20}"
                f" TCP.QUEUE.IN=0 TCP.BUFFER.OUT={2 * self.window if self.limit == 'send-buffer' else 4 << 20}"
                f" TCP.QUEUE.OUT={flight:.0f}"), (o["sent"], o["acked"], i["received"])


class Connections:
    """All connections of a run."""

    def __init__(self, seed, hosts, delay):
        self.chance = random.Random(f"connections {seed}")
        self.delay, self.hosts, self.all, self.of_pairs = delay, list(hosts), [], {}
        self.ends = self.chance.choice(("both", "both", "both", "client", "server"))
        self.has_programs = self.chance.random() < 0.5
        self.silent = set()  # hosts without a sensor
        self.decoys = [d for d in DECOYS if self.chance.random() < 0.35]

    def open(self, client, server, programs=("", ""), limit=None):
        c = Connection(len(self.all), client, server, self.delay, random.Random(self.chance.random()),
                       programs if self.has_programs else ("", ""), limit)
        self.all.append(c)
        return c

    def pick(self, client, server, programs, now, limit):
        """Returns a free connection of a pair of hosts. Opens one if none is free."""
        of = self.of_pairs.setdefault((client, server), [])
        for c in of:
            if c.free_at <= now:
                c.free_at = float("inf")
                return c
        of.append(self.open(client, server, programs, limit))
        of[-1].free_at = float("inf")
        return of[-1]

    def add_decoys(self, seconds):
        """Adds connections that are limited, but carry no data of requests."""
        pairs, chance = list(self.of_pairs), self.chance
        for decoy in self.decoys:
            limit = chance.choice(list(KINDS))
            if decoy == "unrelated":
                self.fill(self.open("media9", "archive9", ("rsync", "rsyncd"), limit), seconds)
            elif decoy == "backup" and self.hosts:
                self.silent.add("backup9")
                host = chance.choice(self.hosts)
                self.fill(self.open("backup9", host, ("rsync", "rsync"), limit), seconds)
            elif decoy == "idle" and pairs:
                c = self.open(*chance.choice(pairs), limit=limit)
                c.back.add(-9, -5, 4 * c.rate(), limit)
            elif decoy == "replication" and pairs:
                self.fill(self.open(*chance.choice(pairs), ("replica", "replica"), limit), seconds)

    def fill(self, c, seconds):
        """Fills a connection with transfers, all of the time or a part of it."""
        at, pause = 0.0, self.chance.choice((0, 0.5, 3))
        while at < seconds:
            length = seconds * self.chance.uniform(0.02, 0.1)
            c.back.add(at, at + length, length * c.rate(), c.limit)
            at += length * (1 + pause * self.chance.uniform(0.5, 1.5))

    def records(self, seconds):
        """Yields (time, text) of the sensors' records."""
        self.add_decoys(seconds)
        hosts = sorted({h for c in self.all for h in (c.client, c.server)})
        addresses = {h: f"10.0.0.{i + 1}" for i, h in enumerate(hosts)}
        step, begin = max(0.02, seconds / SAMPLES), self.chance.random()
        for n in range(int(1.05 * seconds / step) + 2):
            for c in self.all:
                for server_logs in (False, True):
                    host = c.server if server_logs else c.client
                    if host in self.silent or (self.ends == ("client" if server_logs else "server") and c.limit != "other"):
                        continue
                    at = (n + begin + 0.3 * hosts.index(host) / len(hosts) - 1) * step
                    text, state = c.sample(at, addresses, server_logs)
                    before = c.before or {}
                    if before.get(server_logs, (None, 0))[0] == state and n % 50:
                        continue
                    c.before = {**before, server_logs: (state, at)}
                    yield max(0.0, at), text
