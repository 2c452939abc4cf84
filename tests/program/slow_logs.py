"""Logs of a simulated program that is slow for a known reason: a client fetches blocks from four servers.

The module is a small discrete-event simulation. Each stream requests one block at a time from its server. The threads of a server
share a
disk (first come, first served) and processors, and all servers share one path. Sensors report the load of these resources as
nlsensor does. fault names the fault; "" is a healthy run.
"""
import heapq
import random

FAULTS = ["window", "loss", "disk", "client-cpu", "server-cpu", "streams", "lock", "straggler", "timer", "memory", "softirq",
          "pause", "clock", "softirq-half", "unread"]
START = 1_700_000_000_000_000_000
CLIENT = "client"


class Resource:
    """A resource with a number of places, first come, first served. It measures how long it was busy."""

    def __init__(self, model, places=1):
        self.model, self.places, self.used, self.queue, self.busy, self.since = model, places, 0, [], 0.0, 0.0

    def account(self):
        self.busy += self.used * (self.model.now - self.since)
        self.since = self.model.now

    def take(self, process):
        self.account()
        if self.used < self.places:
            self.used += 1
            self.model.at(0, process)
        else:
            self.queue.append(process)

    def give(self):
        self.account()
        if self.queue:
            self.model.at(0, self.queue.pop(0))
        else:
            self.used -= 1


class Model:
    """Runs processes, which are generators: they yield a time to wait, or a resource to get."""

    def __init__(self):
        self.now, self.heap, self.count = 0.0, [], 0

    def at(self, delay, process):
        self.count += 1
        heapq.heappush(self.heap, (self.now + delay, self.count, process))

    def run(self, until):
        while self.heap and self.heap[0][0] <= until:
            self.now, _, process = heapq.heappop(self.heap)
            wanted = next(process, None)
            if isinstance(wanted, Resource):
                wanted.take(process)
            elif wanted is not None:
                self.at(wanted, process)


class Run:
    def __init__(self, fault="", seconds=20.0, seed=1, rtt=0.06, rate=60e6, block=256 << 10, servers=4, streams=12, clocks=None, drift=0.0,
                 measured_within=None):
        """clocks: how many seconds the hosts' clocks are ahead; drift: how fast this grows; measured_within: the error of the clock measurements in seconds."""
        self.random = random.Random(seed)
        self.fault, self.seconds, self.rtt, self.block = fault, seconds, rtt, block
        self.model = Model()
        self.lines = []
        self.servers = [f"server{i + 1}" for i in range(servers)]
        self.streams = 1 if fault == "streams" else streams
        self.path = Resource(self.model)
        self.path_time = block / rate
        self.disk = {h: Resource(self.model) for h in self.servers}
        self.cpu = {h: Resource(self.model, 4) for h in [CLIENT, *self.servers]}
        self.lock = {h: Resource(self.model) for h in self.servers}
        self.sent = dict.fromkeys(self.servers, 0)
        self.blocks = 0
        self.clock = {"server2": 2.3} if fault == "clock" else clocks or {}
        self.drift, self.measured_within = drift, measured_within

    def log(self, host, event, **fields):
        at = START + int((self.model.now + self.ahead(host)) * 1e9)
        named = " ".join(f"{k.replace('_', '.')}={v}" for k, v in fields.items())
        self.lines.append((START + int(self.model.now * 1e9), at, f"HOST={host} PROG=dpss LVL=Usage NL.EVNT={event} {named}"))

    def ahead(self, host):
        return self.clock[host] + self.drift * self.model.now if host in self.clock else 0.0

    def measure_clock(self, host):
        """Logs measurements against the client's clock, as the binary protocol does. No host has a synchronized clock."""
        while True:
            within = self.measured_within
            self.log(host, "ClockKernel", CLOCK_SYNCHRONIZED="false", CLOCK_OFFSET=0, CLOCK_ERROR=16e6)
            self.log(host, "ClockOffset", CLOCK_COLLECTOR=CLIENT, CLOCK_DELAY=f"{2e6 * within:.3f}", CLOCK_ERROR=f"{1e6 * within:.3f}",
                     CLOCK_OFFSET=f"{1e6 * (self.random.uniform(-0.9, 0.9) * within - self.ahead(host)):.3f}", CLOCK_SAMPLES=8)
            yield 1.0

    def about(self, mean):
        return self.random.lognormvariate(0, 0.25) * mean

    def paused(self):
        """The client does nothing in the first 0.4 s of every 2.5 s."""
        at = self.model.now % 2.5
        return 0.4 - at if self.fault == "pause" and at < 0.4 else 0.0

    def compute(self, host, seconds):
        if (self.fault, host) in (("client-cpu", CLIENT), ("server-cpu", "server2")):
            seconds *= self.random.uniform(8, 20)
        if self.fault == "straggler" and host == "server4":
            yield self.random.uniform(0.02, 0.15)
        if self.fault == "memory" and host == "server3":
            seconds *= self.random.choice([1, 1, 60])
        yield self.cpu[host]
        yield self.about(seconds)
        self.cpu[host].give()

    def serve(self, host, number):
        """Does the work of the server from the request to the sending of the block."""
        self.log(host, "BlockRequestRecv", BLOCK_ID=number)
        yield from self.compute(host, 0.003)
        if self.fault == "lock":
            yield self.lock[host]
            yield self.about(0.045)
            self.lock[host].give()
        self.log(host, "DiskReadStart", BLOCK_ID=number)
        yield self.disk[host]
        slow = {"disk": 12 if host == "server3" else 1, "memory": 8 if host == "server3" else 1}.get(self.fault, 1)
        yield self.about(0.004) * slow
        self.disk[host].give()
        self.log(host, "DiskReadEnd", BLOCK_ID=number)
        yield from self.compute(host, 0.001)
        self.log(host, "BlockSendStart", BLOCK_ID=number)

    def travel(self, host, number):
        """Transfers a block: the bottleneck of the path takes some time, then half a round trip passes. Windows and losses add
        round trips."""
        if self.fault == "window":
            yield self.about(self.rtt) * (self.block / 65536 - 1)
        if self.fault == "loss":
            for _ in range(8):
                if self.random.random() < 0.25:
                    yield self.rtt * self.random.choice([1, 1, 2, 4])
        yield self.path
        yield self.about(self.path_time) / 1.05
        self.path.give()
        self.log(host, "BlockSendEnd", BLOCK_ID=number)
        yield self.rtt / 2 * self.random.uniform(1, 1.1)
        if self.fault in ("softirq", "softirq-half", "unread"):
            yield self.about(0.3)
        self.sent[host] += self.block

    def stream(self, host):
        yield self.random.uniform(0, 0.1)
        while True:
            yield self.paused()
            self.blocks += 1
            number = self.blocks
            self.log(CLIENT, "BlockRequestSend", BLOCK_ID=number, BLOCK_SIZE=self.block)
            yield self.rtt / 2 * self.random.uniform(1, 1.1)
            yield from self.serve(host, number)
            yield from self.travel(host, number)
            yield self.paused()
            self.log(CLIENT, "BlockRead", BLOCK_ID=number)
            yield from self.compute(CLIENT, 0.004)
            if self.fault == "timer":
                yield 0.1 + self.random.uniform(0.0001, 0.0008)
            yield self.paused()
            self.log(CLIENT, "BlockDone", BLOCK_ID=number)

    def sense(self, host):
        """Logs every half second what nlsensor would log."""
        step, seen, before = 0.5, {}, 0
        connections = {}
        while True:
            yield step
            cpu, disk = self.cpu[host], self.disk.get(host)
            cpu.account()
            busy = 100 * (cpu.busy - seen.get("cpu", 0)) / step / cpu.places
            seen["cpu"] = cpu.busy
            hogged = (self.fault, host) in (("client-cpu", CLIENT), ("server-cpu", "server2"), ("unread", CLIENT), ("softirq-half", CLIENT))
            busy = self.random.uniform(96, 100) if hogged else min(100, busy + self.random.uniform(1, 4))
            self.log(host, "CpuLoad", CPU_BUSY=f"{busy:.1f}", CPU_SOFTIRQ="3.0")
            self.log(host, "Pressure", PSI_RESOURCE="cpu", PSI_SOME=f"{self.random.uniform(60, 90) if hogged else 2:.1f}")
            soft = 93 if self.fault == "softirq" and host == CLIENT else self.random.uniform(1, 6)
            if self.fault == "softirq-half" and host == CLIENT:  # the kernel uses the other half for the same packets
                soft = self.random.uniform(42, 53)
                self.log(host, "CpuOne", CPU_ID=0, CPU_BUSY="99.6", CPU_USER="1.1", CPU_NICE="0.3", CPU_SYS=f"{98 - soft:.1f}", CPU_SOFTIRQ=f"{soft:.1f}")
            elif hogged:  # other programs' code, while packets arrive
                self.log(host, "CpuOne", CPU_ID=0, CPU_BUSY="100", CPU_USER="52", CPU_NICE="4", CPU_SYS="2", CPU_SOFTIRQ="42")
            else:
                self.log(host, "CpuOne", CPU_ID=0, CPU_SOFTIRQ=f"{soft:.1f}")
            if host == CLIENT:
                self.log_received()
            swaps = self.fault == "memory" and host == "server3"
            self.log(host, "SwapUse", SWAP_IN=self.random.randint(8, 20) * 10**6 if swaps else 0, SWAP_OUT=0)
            self.log(host, "VmActivity", VM_FAULTS_MAJOR=900 if swaps else 0)
            self.log(host, "Pressure", PSI_RESOURCE="memory", PSI_SOME="41.0" if swaps else "0.0")
            if disk:
                disk.account()
                used = 100 * (disk.busy - seen.get("disk", 0)) / step
                seen["disk"] = disk.busy
                self.log(host, "DiskDevice", DISK_NAME="sda", DISK_BUSY=f"{min(100, used):.1f}", DISK_READ_MS="4.1")
                self.log_tcp(host, step, self.sent[host] - before, connections)
                before = self.sent[host]

    def log_received(self):
        """Logs the arrival at the client. If the client gets no processor, many received bytes wait to be read."""
        for server in self.servers:
            self.log(CLIENT, "TcpConnection", TCP_LOCAL="client:40000", TCP_PEER=f"{server}:14900", TCP_STATE="established",
                     TCP_BYTES_RECEIVED=self.sent[server], TCP_QUEUE_IN=self.random.randint(500, 900) * 1000 if self.fault == "unread" else 2000,
                     TCP_WINDOW_RECEIVE=600_000)

    def log_tcp(self, host, step, sent, state):
        segments = sent / 1448
        lost = segments * (0.012 if self.fault == "loss" else 0.00002)
        again = int(lost) + (self.random.random() < lost % 1)
        self.log(host, "TcpSegments", TCP_RETRANS=again, TCP_OUT=f"{segments / step:.1f}")
        busy = min(step, sent / 60e6 * 4 + (0.8 * step if self.fault in ("window", "loss") else 0))
        for name, value in (("sent", sent), ("again", again * 1448), ("busy", busy * 1e6)):
            state[name] = state.get(name, 0) + value
        limited = 0.9 * state["busy"] if self.fault == "window" else 0
        self.log(host, "TcpConnection", TCP_LOCAL=f"{host}:14900", TCP_PEER="client:40000", TCP_STATE="established",
                 TCP_MSS=1448, TCP_CWND=400, TCP_WINDOW=65536 if self.fault == "window" else 4 << 20,
                 TCP_RTT=int(self.rtt * 1e6 * 1.02), TCP_RTT_MIN=int(self.rtt * 1e6), TCP_BYTES_SENT=int(state["sent"]),
                 TCP_RETRANS=state["again"] // 1448, TCP_BYTES_RETRANS=state["again"], TCP_BUSY=int(state["busy"]), TCP_LIMITED_RECEIVER=int(limited),
                 TCP_LIMITED_BUFFER=0)

    def write(self, path):
        for host in self.servers:
            for _ in range(self.streams):
                self.model.at(0, self.stream(host))
        for host in [CLIENT, *self.servers]:
            self.model.at(0, self.sense(host))
        for host in self.servers if self.measured_within else []:
            self.model.at(0, self.measure_clock(host))
        self.model.run(self.seconds)
        with open(path, "w", encoding="utf-8") as out:
            for _, at, text in self.lines:
                out.write(f"DATE={ulm(at)} {text}\n")
        return self.blocks


def ulm(ns):
    import datetime

    when = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return when.strftime("%Y%m%d%H%M%S") + f".{ns % 10**9 // 1000:06d}"


if __name__ == "__main__":
    import sys

    print(Run(sys.argv[2] if len(sys.argv) > 2 else "", seed=int(sys.argv[3]) if len(sys.argv) > 3 else 1).write(sys.argv[1]))
