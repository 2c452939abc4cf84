"""The faults of real programs. The seed gives each fault a random place, intensity and time.

In a healthy run, no host, link or span is slower than its peers or than at another time, and nothing queues. The rate, the
mix and the sizes of requests are random. In a third of the healthy runs, programs of nice 19 share the processors.
"""
import dataclasses
import os
import random
import signal

import real_programs  # finds the modules of examples/dpss

from experiment_faults import HOG, Plan, hog, limit_reading, little_memory, look_at_packets, small_window, start_stop  # noqa: E402

HEALTHY = "healthy"
WORKERS = ["worker1", "worker2", "worker3"]


@dataclasses.dataclass
class Case(Plan):
    """A run of a program: its load, its fault, and the true answer."""

    program: str = ""
    kind: str = HEALTHY
    causes: set = dataclasses.field(default_factory=set)
    places: list = dataclasses.field(default_factory=list)  # the right places as (host or None, program, span or None)
    arguments: dict = dataclasses.field(default_factory=dict)  # further arguments of programs, by host
    chance: random.Random = None

    def is_at(self, *places):
        self.places = list(places)

    def set(self, name, *arguments, **environment):
        self.arguments.setdefault(name, []).extend(arguments)
        self.environment.setdefault(name, {}).update({key: str(value) for key, value in environment.items()})

    def truth(self):
        return {"kind": self.kind, "program": self.program, "causes": sorted(self.causes), "places": self.places, "what": self.what}


def after(seconds, action):
    """Returns steps for case.during that perform an action once, that many seconds after the start."""

    def during(world, programs):
        yield seconds
        action(world, programs)
        yield 1e9

    return during


def in_host(world, name, *command):
    world.run("ip", "netns", "exec", world.host(name).space, *command)


# ---- loads ----


def load_shop(case):
    case.rate = case.chance.uniform(20, 40)
    case.items = {item: case.chance.uniform(0.3, 1) for item in ("pen", "ink", "paper", "list")}


def load_pipeline(case):
    case.rate = case.chance.uniform(40, 90)
    for worker in WORKERS:
        case.set(worker, "--hashes", "2")


def load_dpss(case):
    case.streams, case.pipeline, case.block = case.chance.choice([(2, 2, 128 << 10), (3, 2, 96 << 10), (2, 4, 64 << 10), (1, 4, 128 << 10), (2, 3, 96 << 10)])


def finish(case):
    if case.program == "shop":
        total = sum(case.items.values())
        case.set("client", "--rate", case.rate, "--items", ",".join(f"{item}:{weight / total:.3f}" for item, weight in case.items.items()),
                 "--seed", case.chance.randrange(1 << 30))
    elif case.program == "pipeline":
        case.set("source", "--rate", case.rate, "--seed", case.chance.randrange(1 << 30))


def healthy(case):
    if case.chance.random() < 1 / 3:
        case.what = "programs of nice 19 on all processors"
        case.beside = lambda world: [world.spawn(["nice", "-n", "19", "sh", "-c", HOG], None) for _ in range(2)]


# ---- faults of all services ----

# By host: the name of its program in the log, and the spans in which the program works.
SPANS = {"database": ("database", "Query"), "prices": ("prices", "Prices"), "stock": ("stock", "Stock"), "frontend": ("frontend", "Order"),
         "store": ("store", "Write"), **{worker: ("worker", "Parse") for worker in WORKERS}}


def servers(case):
    return ["database", "stock", "prices", "frontend"] if case.program == "shop" else ["store", *WORKERS]


def whole(name):
    return name, SPANS[name][0], None


def loss(case):
    """Drops packets to a host, or in both directions."""
    name, part, both = case.chance.choice(servers(case)[:3]), case.chance.uniform(0.04, 0.12), case.chance.random() < 0.5
    case.what = f"{100 * part:.0f} % of packets {'to and from' if both else 'to'} {name} are lost"
    case.causes = {"loss", "timeout"}
    case.is_at((name, SPANS[name][0], None), (None, "", {"database": "CacheMiss", "stock": "Call", "prices": "Call", "store": "StoreRecv"}.get(name, "ItemRecv")))

    def before(world):
        for chain in ["INPUT", "OUTPUT"] if both else ["INPUT"]:
            in_host(world, name, "iptables", "-A", chain, "-p", "tcp", "-m", "statistic", "--mode", "random", "--probability", part, "-j", "DROP")

    case.beside = before


def pause(case, periodic):
    name = case.chance.choice(servers(case))
    length, between = case.chance.uniform(0.12, 0.3), case.chance.uniform(0.5, 0.9)
    spread = 0 if periodic else 0.5
    case.what = f"{name} stops for {length:.2f} s every {length + between:.2f} s"
    case.causes = {"pause"}
    case.is_at(whole(name))
    chance = random.Random(case.chance.random())
    case.during = lambda world, programs: start_stop(world, programs[name], (length * (1 - spread), length * (1 + spread)),
                                                     (between * (1 - spread), between * (1 + spread)), chance)


def quota(case):
    """Sets cpu.max to less than the program needs in bursts."""
    name = case.chance.choice(["prices"] if case.program == "shop" else WORKERS)
    part = case.chance.uniform(0.95, 1.1) * (0.01 + (case.rate * 0.0015 if case.program == "shop" else case.rate / 3 * 0.0095))
    case.what = f"{name} has {part:.2f} processors"
    case.causes = {"cpu", "peer", "pause", "resource"}
    case.is_at(whole(name))
    for worker in WORKERS:
        case.set(worker, "--hashes", "36")

    def before(world):
        world.host(name).processors = part
        world.host(name).group.limit_cpu(part, 100000)

    case.before = before


def busy(case):
    """Starts other programs that use a host's processor."""
    name = case.chance.choice(["prices"] if case.program == "shop" else WORKERS)
    case.what = f"other programs use the processor of {name}"
    case.causes = {"cpu", "peer", "resource"}
    case.is_at(whole(name))
    for worker in WORKERS:
        case.set(worker, "--hashes", "36")

    def before(world):
        world.host(name).processors = 0.5
        world.host(name).group.limit_cpu(0.5)

    case.before, case.beside = before, hog(name, case.chance.randint(2, 3))


def working(case):
    """Returns the names of the programs that do work with a fault, and sets where the cause is."""
    names = [case.chance.choice(["database", "prices"])] if case.program == "shop" else WORKERS
    case.is_at((None, *SPANS[names[0]]))
    return names


def lock(case):
    if case.program == "shop" and case.chance.random() < 0.5:
        case.items["rare"] = 0.4 * sum(case.items.values())
        case.set("prices", FAULT_WORK_LOCK=1)
        case.rate = case.chance.uniform(0.75, 0.95) / (0.0035 + 0.4 / 1.4 * 0.0525)
        case.is_at((None, *SPANS["prices"]))
    elif case.program == "shop":
        case.set("database", FAULT_WORK_LOCK=1)
        case.rate = case.chance.uniform(0.75, 0.92) / 0.0195
        case.is_at((None, *SPANS["database"]))
    else:
        for name in working(case):
            case.set(name, "--work", case.chance.uniform(0.7, 0.85) * 3 / case.rate, FAULT_WORK_LOCK=1)
    case.what, case.causes = "one thread at a time works", {"lock"}


def beat(case):
    period = case.chance.uniform(0.05, 0.12)
    for name in working(case):
        case.set(name, FAULT_WORK_BEAT=period)
    case.what, case.causes = f"work ends at multiples of {period:.3f} s", {"timer"}


def cold(case):
    seconds, delay = case.chance.uniform(0.9, 2), case.chance.uniform(0.1, 0.3)
    for name in working(case):
        case.set(name, FAULT_WORK_COLD=f"{seconds},{delay}")
    case.what, case.causes = f"work takes {delay:.2f} s longer in the first {seconds:.1f} s", {"cold", "changed"}


def slow_call(case, some):
    """Makes each call, or some calls, of a system call or a function of libc take longer."""
    part = case.chance.uniform(0.1, 0.3) if some else 1
    delay = case.chance.uniform(0.03, 0.08) / (1.5 * part if some else 1)
    if case.program == "shop":
        name = case.chance.choice(["frontend", "stock"])
        names, call, place = [name], "CONNECT", (None, name, "Call" if name == "frontend" else "CacheMiss")
    elif case.chance.random() < 0.5:
        names, call, place = ["store"], "FSYNC", (None, "store", "Write")
    else:
        names, call, place = WORKERS, "LOOKUP", (None, "worker", "Lookup")
    for name in names:
        case.set(name, **{f"FAULT_{call}": f"{delay},{part}"})
    case.is_at(place)
    case.what, case.causes = f"{call.lower()} takes {delay:.3f} s longer, {100 * part:.0f} % of calls", {"timeout", "timer"} if some else {"timer"}


# ---- faults of the shop ----


def shop_pool(case):
    count = case.chance.randint(2, 3)
    reports = case.chance.uniform(0.06, 0.12)
    case.items["report"] = reports / (1 - reports) * sum(case.items.values())
    case.rate = case.chance.uniform(0.8, 0.95) * count / (0.0195 * (1 + 9 * reports) + 0.002)
    case.set("stock", SHOP_POOL=count)
    case.what, case.causes = f"stock has {count} connections to the database", {"pool"}
    case.is_at((None, "stock", "Stock"), (None, "stock", "CacheMiss"))


def head_of_line(case):
    part = case.chance.uniform(0.05, 0.09)
    case.items["report"] = part / (1 - part) * sum(case.items.values())
    case.rate = case.chance.uniform(0.6, 0.75) / (0.0195 * (1 + 9 * part))
    case.set("database", SHOP_WORKERS=1)
    case.what, case.causes = "one worker of the database, and some queries take ten times as long", {"lock", "pool", "field"}
    case.is_at((None, "database", "Query"))


def calls(case):
    count = case.chance.randint(5, 12)
    case.items["list"] = case.chance.uniform(0.15, 0.4) * sum(case.items.values())
    case.set("stock", SHOP_QUERIES=count)
    case.what, case.causes = f"{count} queries for the item list instead of one", {"calls"}
    case.is_at((None, "stock", "Stock"), (None, "database", "Query"))


def retry(case):
    name, part, wait = case.chance.choice(["stock", "prices"]), case.chance.uniform(0.1, 0.25), case.chance.randint(150, 350)
    case.set("frontend", SHOP_TIMEOUT_MS=wait)
    case.what, case.causes = f"{100 * part:.0f} % of connections to {name} do not begin, and the frontend repeats them after {wait} ms", {"timeout", "calls", "timer"}
    case.is_at((None, "frontend", "Call"))
    case.beside = lambda world: in_host(world, name, "iptables", "-A", "INPUT", "-p", "tcp", "--syn", "-m", "statistic", "--mode", "random",
                                        "--probability", part, "-j", "DROP")


def cache_off(case):
    at = case.chance.uniform(0.3, 0.7) * 6
    case.what, case.causes = f"the cache of prices is off after {at:.1f} s", {"changed"}
    case.is_at((None, "prices", "Prices"))
    case.during = after(at, lambda world, programs: os.kill(programs["prices"].pid, signal.SIGUSR1))


def shop_field(case):
    item, place = case.chance.choice([("rare", "prices"), ("report", "database")])
    case.items[item] = case.chance.uniform(0.12, 0.5) * sum(case.items.values()) * (1 if item == "rare" else 0.3)
    case.what, case.causes = f"{place} is slow for the item {item}", {"field"}
    case.is_at((None, *SPANS[place]))


def failures(case):
    part = case.chance.uniform(0.15, 0.35)
    case.what, case.causes = f"the database refuses {100 * part:.0f} % of connections", {"failures"}
    case.is_at((None, "stock", None), (None, "frontend", None), (None, "database", None))
    case.beside = lambda world: in_host(world, "database", "iptables", "-A", "INPUT", "-p", "tcp", "--syn", "-m", "statistic", "--mode", "random",
                                        "--probability", part, "-j", "REJECT", "--reject-with", "tcp-reset")


# ---- faults of the pipeline ----


def pipeline_pool(case):
    count = case.chance.randint(2, 3)
    for name in WORKERS:
        case.set(name, "--threads", count, "--work", case.chance.uniform(0.8, 0.92) * 3 * count / case.rate)
    case.what, case.causes = f"each worker has {count} threads", {"pool"}
    case.is_at((None, "worker", "ItemRecv"), (None, "worker", "Parse"))


def imbalance(case):
    share, count = case.chance.uniform(0.55, 0.75), case.chance.randint(1, 2)
    for name in WORKERS:
        case.set(name, "--threads", count, "--work", case.chance.uniform(0.8, 0.92) * count / (share * case.rate))
    case.set("source", "--skew", (share - 1 / 3) * 1.5)
    case.what, case.causes = f"{100 * share:.0f} % of the items go to worker1", {"balance", "lock", "pool"}
    case.is_at(("worker1", "worker", None))


def batch(case):
    size = case.chance.randint(6, 16)
    case.set("store", "--batch", size, "--wait", "30")
    case.what, case.causes = f"the store waits for {size} items", {"batch"}
    case.is_at((None, "store", "StoreRecv"), (None, "store", "Write"))


def flush_timer(case):
    wait = case.chance.uniform(0.1, 0.3)
    case.set("store", "--batch", 10000, "--wait", wait)
    case.what, case.causes = f"the store writes every {wait:.2f} s", {"batch", "timer"}
    case.is_at((None, "store", "StoreRecv"), (None, "store", "Write"))


def nagle(case):
    name = case.chance.choice(["source", "workers"])
    for host in ["source"] if name == "source" else WORKERS:
        case.set(host, "--nagle")
    case.what, case.causes = f"{name} send in two parts, which meet Nagle's algorithm and delayed acknowledgements", {"timer", "timeout"}
    case.is_at((None, "", "ItemRecv" if name == "source" else "StoreRecv"))


def pipeline_field(case):
    kind = case.chance.choice(["order", "payment", "refund", "login"])
    delay = case.chance.uniform(0.05, 0.2)
    for name in WORKERS:
        case.set(name, "--slow-kind", kind, "--slow-delay", delay, "--threads", 32)
    case.what, case.causes = f"{kind} items take {delay:.2f} s longer", {"field"}
    case.is_at((None, "worker", "Parse"))


def pipeline_link(case):
    name, size = case.chance.choice(WORKERS), case.chance.randint(15000, 40000)
    for host in ["source", *WORKERS]:
        case.set(host, "--padding", size)
    rate = size * 8 * case.rate / 3 * case.chance.uniform(1.25, 1.8)
    case.what, case.causes = f"the link of {name} carries {rate / 1e6:.1f} Mbit/s", {"peer", "link", "window", "streams"}
    case.is_at((name, "", "ItemRecv"), (name, "", "StoreRecv"), (name, "", "ItemForward"))

    def before(world):
        for space, device in (world.site.space, f"s{world.number(name)}"), (world.host(name).space, "eth0"):
            world.run("tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{rate:.0f}bit", "burst", "16kb", "latency", "400ms")

    case.before = before


# ---- faults of dpss: those of the experiment, with random place and intensity ----


def at_host(case, name, what, *causes):
    case.what, case.causes = what, set(causes)
    case.is_at((name, "", None))


def any_server(case):
    return f"server{case.chance.randint(1, 4)}"


def dpss_window(case):
    at_host(case, None, "the client's TCP windows are 32 kB", "window")
    case.before = small_window


def dpss_loss(case):
    part = case.chance.uniform(0.005, 0.02)
    at_host(case, None, f"{100 * part:.1f} % of packets are lost", "loss")
    case.path = {"loss": part}


def dpss_disk(case):
    name, part = any_server(case), case.chance.uniform(3, 6)
    at_host(case, name, f"the disk of {name} reads at 1/{part:.1f} of the rate", "disk")
    case.before = lambda world: limit_reading(world, world.host(name), world.rate / 8 / 4 / part)


def dpss_busy(case):
    name = case.chance.choice(["client", any_server(case)])
    at_host(case, name, f"other programs use the processor of {name}", "cpu")
    case.beside = hog(name, case.chance.randint(3, 4))


def dpss_streams(case):
    at_host(case, None, "one stream to each server, one request at a time", "streams")
    case.streams, case.pipeline, case.block = 1, 1, case.chance.choice([32, 64]) << 10


def dpss_lock(case):
    seconds = case.chance.uniform(0.02, 0.04)
    at_host(case, "client", f"the client stores blocks under one lock, {seconds:.3f} s each", "lock")
    case.environment = {"client": {"FAULT_STORE_LOCK": str(seconds)}}


def dpss_call(case):
    seconds = case.chance.uniform(0.08, 0.2)
    at_host(case, "client", f"the client's pwrite takes {seconds:.2f} s longer", "timer")
    case.environment = {"client": {"FAULT_STORE": str(seconds)}}


def dpss_pause(case, periodic):
    name = "client" if periodic else any_server(case)
    length = case.chance.uniform(0.25, 0.5) if periodic else case.chance.uniform(0.15, 0.3)
    between = case.chance.uniform(0.8, 1.5) if periodic else case.chance.uniform(0.1, 0.2)
    at_host(case, name, f"{name} stops for about {length:.2f} s every {length + between:.2f} s", "pause")
    spread = 0 if periodic else 0.6
    chance = random.Random(case.chance.random())
    case.during = lambda world, programs: start_stop(world, programs[name], (length * (1 - spread), length * (1 + spread)),
                                                     (between * (1 - spread), between * (1 + spread)), chance)


def dpss_memory(case):
    def before(world):
        little_memory(world)
        limit_reading(world, world.host("server3"), 3e6)

    at_host(case, "server3", "server3 has less memory than its programs need", "memory")
    case.beside = before


def dpss_packets(case):
    at_host(case, "client", "each received packet costs the client's processor much time", "softirq", "cpu")
    case.beside = look_at_packets


def dpss_clock(case):
    name, seconds = any_server(case), case.chance.choice([-1, 1]) * case.chance.uniform(0.5, 3)
    at_host(case, name, f"the clock of {name} is {abs(seconds):.1f} s {'fast' if seconds > 0 else 'slow'}", "clock")
    case.environment = {name: {"FAULT_CLOCK": str(seconds)}}


def dpss_link(case):
    number, part = case.chance.randint(1, 4), case.chance.uniform(2.5, 5)
    at_host(case, f"server{number}", f"the link of server{number} carries 1/{part:.1f} of its share", "peer", "link", "streams", "window")
    case.before = lambda world: world.run("tc", "-n", world.host(f"server{number}").space, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate",
                                          f"{world.rate / 4 / part:.0f}bit", "burst", "32kb", "latency", "400ms")


ANY = {"loss": loss, "pause-periodic": lambda case: pause(case, True), "pause-random": lambda case: pause(case, False), "cpu-quota": quota, "cpu-busy": busy,
       "lock": lock, "timer": beat, "cold": cold, "slow-call": lambda case: slow_call(case, False),
       "slow-some": lambda case: slow_call(case, True)}
FAULTS = {
    "shop": {**ANY, "pool": shop_pool, "head-of-line": head_of_line, "calls": calls, "retry": retry, "changed": cache_off, "field": shop_field,
             "failures": failures},
    "pipeline": {**ANY, "pool": pipeline_pool, "imbalance": imbalance, "batch": batch, "flush-timer": flush_timer, "nagle": nagle,
                 "field": pipeline_field, "slow-link": pipeline_link},
    "dpss": {"window": dpss_window, "loss": dpss_loss, "disk": dpss_disk, "cpu-busy": dpss_busy, "streams": dpss_streams, "lock": dpss_lock,
             "slow-call": dpss_call, "pause-periodic": lambda case: dpss_pause(case, True), "pause-random": lambda case: dpss_pause(case, False),
             "memory": dpss_memory, "softirq": dpss_packets, "clock": dpss_clock, "slow-link": dpss_link},
}
LOADS = {"shop": load_shop, "pipeline": load_pipeline, "dpss": load_dpss}


def make_case(program, kind, seed):
    chance = random.Random(f"real {program} {kind} {seed}")
    case = Case("nothing is wrong", program=program, kind=kind, chance=chance)
    LOADS[program](case)
    (healthy if kind == HEALTHY else FAULTS[program][kind])(case)
    finish(case)
    return case
