"""Simulated logs of random service graphs, healthy or with one known fault.

A run has a random graph of two to six services. Each service runs on one to four hosts, or all of them run on one host. A
request enters the first service. A service works in spans, and calls other services one after the other or side by side.
The log has explicit spans (TRACE.ID, SPAN.ID, PARENT.ID), or only pairs of begin and end events with a request ID.

The same seed gives the same graph and load for every fault, so that the healthy run of a seed shows what the fault costs.
"""
import heapq
import math
import random
import time

import simulate_connections

START = 1_700_000_000
# Each fault with the causes (nldiag --json) that name its mechanism.
KINDS = {
    "slow-host": {"peer"},
    "slow-link": {"peer"},
    "lock": {"lock"},
    "pool": {"pool"},
    "timeout": {"timeout"},
    "retry": {"timeout", "calls"},
    "poll": {"timer"},
    "pause-periodic": {"pause"},
    "pause-random": {"pause"},
    "calls": {"calls"},
    "value": {"field"},
    "size": {"size"},
    "cold": {"cold"},
    "changed": {"changed"},
    "daily": {"hour"},
    "imbalance": {"balance"},
    "batch": {"batch"},
    "head-of-line": {"lock", "field"},
    "resource": {"resource"},
    "failures": {"failures"},
    "clock": {"clock"},
    **{kind: {cause} for kind, cause in simulate_connections.KINDS.items()},
}
HEALTHY = "healthy"
COST_MIN = 0.12  # minimum share of the requests' time that a fault must cost
GRADED_COST_MIN = 0.04


class Resource:
    """A resource with a number of places. Processes get a place in the order of their requests."""

    def __init__(self, world, places=1):
        self.world, self.places, self.used, self.queue = world, places, 0, []

    def acquire(self, process):
        if self.used < self.places:
            self.used += 1
            self.world.at(0, process)
        else:
            self.queue.append(process)

    def release(self):
        if self.queue:
            self.world.at(0, self.queue.pop(0))
        else:
            self.used -= 1


class Join:
    """Runs processes at the same time. The waiting process continues after the last of them."""

    def __init__(self, children):
        self.children = children


class World:
    def __init__(self):
        self.now, self.heap, self.count = 0.0, [], 0

    def at(self, delay, process):
        self.count += 1
        heapq.heappush(self.heap, (self.now + delay, self.count, process))

    def run(self):
        while self.heap:
            self.now, _, process = heapq.heappop(self.heap)
            self.step(process)

    def step(self, process):
        wanted = next(process, None)
        if isinstance(wanted, Resource):
            wanted.acquire(process)
        elif isinstance(wanted, Join):
            left = [len(wanted.children)]
            for child in wanted.children:
                self.at(0, self.joined(child, left, process))
        elif wanted is not None:
            self.at(wanted, process)

    def joined(self, child, left, waiting):
        yield from child
        left[0] -= 1
        if left[0] == 0:
            self.at(0, waiting)


class Service:
    def __init__(self, number, chance):
        self.name = f"{chance.choice(['web', 'auth', 'cart', 'search', 'stock', 'media', 'mail', 'price'])}{number}"
        self.hosts, self.steps = [], []


class Run:
    def __init__(self, kind, seed, connections=False, graded=False):
        """connections: whether the log has records of TCP connections, some of which are limited but not a cause.
        graded: whether the fault may be weak, and the log short."""
        self.kind, self.world, self.lines = kind, World(), []
        shape = self.shape = random.Random(f"shape {seed}")
        self.noise = random.Random(f"noise {seed}")
        self.chance = random.Random(f"fault {seed} {kind}")
        self.spans_logged, self.durations, self.turn = 0, [], {}
        self.explicit = shape.random() < 0.6
        self.one_host = shape.random() < 0.3
        self.client_spans = self.explicit and shape.random() < 0.4
        self.spread = shape.choice([0.1, 0.25, 0.4, 0.7])  # standard deviation of the logarithm of times
        self.requests = shape.choice([400, 800, 1500, 2500])
        grade = random.Random(f"grade {seed}")
        self.intensity = math.exp(grade.uniform(math.log(0.1), 0)) if graded else 1
        if graded:
            self.requests = int(math.exp(grade.uniform(math.log(60), math.log(self.requests))))
        self.types = ["page", "report", "item", "list"][: shape.randint(1, 4)]
        self.type_factor = {t: shape.uniform(0.85, 1.2) for t in self.types}
        self.make_services()
        self.mean = self.time_of(self.services[0])
        self.closed = shape.random() < 0.4
        self.clients = shape.randint(4, 16)
        # On average, 1 to 8 requests are in progress. No request waits in a queue in a healthy run.
        self.rate = shape.uniform(1, 8) / self.mean
        self.seconds = self.requests / self.rate
        self.offset = {h: shape.uniform(-3e-5, 3e-5) for h in sorted({h for s in self.services for h in s.hosts})}
        self.truth = {"kind": kind, "causes": sorted(KINDS.get(kind, ()))}
        self.pauses, self.paused, self.waited = [], None, 0.0
        self.limited = {}  # service -> (its host with limited connections or None, the limit, mean time that a reply waits)
        self.place_fault()
        self.net = None
        if not self.one_host and (connections or kind in simulate_connections.KINDS):
            self.net = simulate_connections.Connections(seed, self.offset, self.delay)
            if "small" in self.net.decoys and not self.limited:
                chance, service = self.net.chance, self.net.chance.choice(self.services[1:])
                self.limited[service] = (None, chance.choice(list(simulate_connections.KINDS)), chance.uniform(0.01, 0.03) * self.mean / self.visits(service))

    # ---- the graph ----

    def make_services(self):
        shape = self.shape
        count = shape.randint(2, 6)
        self.services = [Service(i, shape) for i in range(count)]
        unit = 10 ** shape.uniform(-3.3, -1.3)
        for i, s in enumerate(self.services):
            s.hosts = ["vm"] if self.one_host else [f"{s.name}-{k + 1}" for k in range(shape.randint(1, 4))]
            for k in range(shape.randint(1, 3)):
                s.steps.append(["work", f"{shape.choice(['Parse', 'Query', 'Render', 'Check', 'Load', 'Store', 'Pack'])}{i}{k}",
                                unit * 10 ** shape.uniform(-0.6, 0.6), 1])
        for i in range(1, count):
            parent = self.services[shape.randrange(max(1, i - 2), i) if i > 2 else 0]
            side_by_side = [c for c in parent.steps if c[0] == "call"]
            if side_by_side and shape.random() < 0.5:
                shape.choice(side_by_side)[1].append(self.services[i])
            else:
                parent.steps.insert(shape.randint(0, len(parent.steps)), ["call", [self.services[i]], 0, shape.choice([1, 1, 1, 2])])
        self.delay = unit * 0.02 if self.one_host else max(2e-4, unit * 10 ** shape.uniform(-1.2, -0.3))

    def time_of(self, s):
        total = 0
        for what, of, mean, times in s.steps:
            total += times * (mean if what == "work" else max(self.time_of(c) for c in of) + 2 * self.delay)
        return total

    def visits(self, service):
        """Returns how often a request calls a service."""
        if service is self.services[0]:
            return 1
        return sum(self.visits(s) * times for s in self.services for what, of, _, times in s.steps if what == "call" and service in of)

    # ---- the fault ----

    def place_fault(self):
        chance, kind = self.chance, self.kind
        if kind == HEALTHY:
            return
        several = [s for s in self.services if len(s.hosts) > 1]
        remote = [s for s in self.services[1:] if not self.one_host]
        pool = several if kind in ("slow-host", "imbalance") else remote if kind in ("slow-link", "clock") else self.services
        if kind == "slow-link":
            pool = [s for s in remote if len(s.hosts) > 1]
        elif kind in simulate_connections.KINDS:
            pool = remote
        if not pool or (kind == "clock" and not self.explicit):
            raise ValueError("this graph cannot have the fault")
        self.service = chance.choice(pool)
        self.step = chance.choice([x for x in self.service.steps if x[0] == "work"])
        self.host = chance.choice(self.service.hosts)
        many = len(self.service.hosts) > 1
        # The hosts of the fault: all hosts of the service, or one host.
        self.only = self.host if kind in ("slow-host", "slow-link", "imbalance", "clock") or (
            many and chance.random() < 0.3 and kind in ("timeout", "poll", "failures", "resource", "pause-periodic", "pause-random",
                                                        *simulate_connections.KINDS)) else None
        visits = self.visits(self.service)
        share = 1 / len(self.service.hosts) if self.only else 1
        cost = self.mean * chance.uniform(0.35, 1.5) * self.intensity  # cost per request on average
        self.cost = cost / share / visits  # cost per visit
        self.truth.update(program=self.service.name, span=self.step[1], host=self.only)
        self.rate_here = self.rate * visits / len(self.service.hosts)
        at, end = chance.uniform(0.3, 0.6) * self.seconds, self.seconds
        if kind in ("pause-periodic", "pause-random"):
            self.make_pauses(chance)
            self.truth["span"] = None
        elif kind == "cold":
            self.when = (0, chance.uniform(0.1, 0.3) * end)
            self.cost *= 4
        elif kind == "daily":  # some hours of each day; the log has three to eight days
            self.rate, self.closed = self.requests / (86400 * chance.uniform(3.2, 8)), False
            self.seconds = self.requests / self.rate
            first, length = chance.randrange(24), chance.randint(2, 6)
            self.hours = {(first + i) % 24 for i in range(length)}
            self.cost *= 24 / length
        elif kind == "changed":
            self.when = (at, 1e9)
            self.cost *= 2
        elif kind == "resource":
            length = self.seconds / 20
            self.episodes = sorted(chance.sample(range(1, 20), 6))
            self.when = [(length * e, length * (e + chance.uniform(0.5, 1))) for e in self.episodes]
            self.cost *= 4
        elif kind in ("lock", "pool", "head-of-line"):
            k = self.truth["k"] = chance.randint(2, 5) if kind == "pool" else 1
            self.hold = chance.uniform(*((0.9, 1.0) if kind == "pool" else (0.75, 0.95))) * k / self.rate_here * (0.65 + 0.35 * self.intensity)
            if kind == "head-of-line":
                self.hold *= 0.6
            self.places = {h: Resource(self.world, k) for h in self.service.hosts}
        elif kind == "imbalance":
            share = min(0.9, chance.uniform(1.5, 2.4) / len(self.service.hosts))
            self.weights = [share if h == self.host else (1 - share) / (len(self.service.hosts) - 1) for h in self.service.hosts]
            rate = self.rate * visits * share
            self.hold = chance.uniform(0.75, 0.9) / rate
            self.places = {h: Resource(self.world, 1) for h in self.service.hosts}
        elif kind in ("value", "calls"):
            self.values = [f"v{i}" for i in range(chance.randint(3, 6))]
            self.slow_value, self.value_share = chance.choice(self.values), chance.uniform(0.08, 0.3)
            self.cost = cost / self.value_share / visits
        elif kind == "size":
            self.cost /= 4  # relative to the mean size, which is 4
        elif kind in ("timeout", "retry"):
            self.part = chance.uniform(0.04, 0.25)
            self.wait = cost / visits / self.part
            if self.wait < 4 * self.step[2]:
                self.wait = 4 * self.step[2]
        elif kind == "poll":
            self.quantum = 2 * self.cost
        elif kind == "batch":
            self.batch, self.waiting = max(2, int(2 * self.cost * self.rate_here)), {h: [] for h in self.service.hosts}
            self.batch = min(self.batch, 12)
        elif kind == "failures":
            self.part = chance.uniform(0.15, 0.5)
        elif kind in simulate_connections.KINDS:
            self.limited[self.service] = (self.only, kind, self.cost)
            self.truth["span"] = None
        elif kind == "clock":
            self.offset[self.host] = chance.choice([-1, 1]) * (self.mean + 10 * self.delay) * chance.uniform(1, 50)
            self.truth["span"] = self.truth["program"] = None

    def make_pauses(self, chance):
        period = self.seconds / chance.uniform(12, 40)
        length = period * chance.uniform(0.15, 0.35)
        at = chance.uniform(0, period)
        while at < 2 * self.seconds:
            self.pauses.append((at, at + length * chance.uniform(0.9, 1.1)))
            at += period if self.kind == "pause-periodic" else period * chance.uniform(0.6, 1.4)
        self.paused = self.service

    def is_here(self, service, step, host):
        return self.kind != HEALTHY and service is self.service and step is self.step and self.only in (None, host)

    def awake(self, service, host, seconds):
        """Returns how long an amount of work takes, including the program's pauses."""
        end = self.world.now + seconds
        if service is not self.paused or self.only not in (None, host):
            return seconds
        for begin, until in self.pauses:
            if until > self.world.now and begin < end:
                end += until - max(begin, self.world.now)
        return end - self.world.now

    # ---- what happens ----

    def log(self, service, host, event, request, **fields):
        if not self.logs:
            return
        at = self.world.now + self.offset[host]
        named = "".join(f" {k.replace('_', '.')}={v}" for k, v in fields.items() if v is not None)
        self.lines.append((self.world.now, at, f"HOST={host} PROG={service.name} LVL=Usage NL.EVNT={event}{named}"))

    def span(self, service, host, name, request, parent, **fields):
        """Logs the start of a span. Returns its ID, and a function that logs its end."""
        self.spans_logged += 1
        span_id = f"{self.spans_logged:x}"
        ids = {"TRACE_ID": f"t{request['number']}", "SPAN_ID": span_id} if self.explicit else {"REQ_ID": request["number"]}
        self.log(service, host, f"{name}.start", request, **ids, PARENT_ID=parent if self.explicit else None, **fields)
        return span_id, lambda **more: self.log(service, host, f"{name}.end", request, **ids, **more)

    def about(self, mean):
        return self.noise.lognormvariate(-self.spread**2 / 2, self.spread) * mean

    def travel(self, service, host, connection, back):
        """Sends a request, or a reply if `back`."""
        slow = self.cost if self.kind == "slow-link" and service is self.service and host == self.only else 0
        delay, began, limit, waits = self.noise.uniform(0.8, 1.3) * self.delay, self.world.now, None, 0
        if back and service in self.limited and self.limited[service][0] in (None, host):
            _, limit, cost = self.limited[service]
            waits = self.about(cost)
        yield delay + slow + waits
        if connection is not None:
            size = waits * connection.rate() if limit else self.net.chance.uniform(200, 2000)
            (connection.back if back else connection.forth).add(began, self.world.now, size, limit)
            if back:
                connection.free_at = self.world.now

    def connect(self, caller, service, host):
        """Returns the connection for a call, or None if the log has no records of it."""
        if not self.net or not caller or caller[1] == host:
            return None
        only, limit, _ = self.limited.get(service, (None, None, 0))
        return self.net.pick(caller[1], host, (caller[0].name, service.name), self.world.now, limit if only in (None, host) else None)

    def pick(self, service):
        if self.kind == "imbalance" and service is self.service:
            return self.noise.choices(service.hosts, self.weights)[0]
        self.turn[service] = self.turn.get(service, -1) + 1
        return service.hosts[self.turn[service] % len(service.hosts)]

    def extra(self, request, host):
        """Returns the time that the fault adds to this visit of its step."""
        kind, chance, now = self.kind, self.chance, self.world.now
        if kind == "slow-host" or (kind == "value" and request["value"] == self.slow_value):
            yield self.about(self.cost)
        elif kind == "size":
            yield self.about(self.cost) * request["size"]
        elif kind in ("cold", "changed") and self.when[0] <= now < self.when[1]:
            yield self.about(self.cost)
        elif kind == "daily" and (START + now) // 3600 % 24 in self.hours:
            yield self.about(self.cost)
        elif kind == "resource" and any(a <= now < b for a, b in self.when):
            yield self.about(self.cost)
        elif kind in ("lock", "pool", "head-of-line", "imbalance"):
            came = now
            yield self.places[host]
            self.waited += self.world.now - came
            long = 8 if kind == "head-of-line" and request["value"] == "big" else 1
            yield self.about(self.hold) * long
            self.places[host].release()
        elif kind == "timeout":
            while chance.random() < self.part:
                yield self.wait * chance.uniform(1, 1.01)
        elif kind == "poll":
            yield self.quantum - now % self.quantum
        elif kind == "batch":
            waiting = self.waiting[host]
            waiting.append(Resource(self.world, 0))
            mine = waiting[-1]
            if len(waiting) == self.batch:
                for other in waiting:
                    other.release() if other.queue else setattr(other, "used", -1)
                self.waiting[host] = []
            yield mine

    def work(self, service, host, step, request, parent):
        _, name, mean, _ = step
        times = 1
        here = self.is_here(service, step, host)
        if here and self.kind == "calls" and request["value"] == self.slow_value:
            times += min(60, max(4, int(self.cost / mean)))
        tries = 1
        while here and self.kind == "retry" and self.chance.random() < self.part and tries < 4:
            tries += 1
        for i in range(times + tries - 1):
            yield self.awake(service, host, 0)
            _, end = self.span(service, host, name, request, parent)
            if i < tries - 1:
                yield self.wait
                end(STATUS="timeout")
                continue
            yield self.awake(service, host, self.about(mean) * (self.type_factor[request["type"]]))
            if here:
                yield from self.extra(request, host)
            failed = here and self.kind == "failures" and self.chance.random() < self.part
            request["failed"] = request["failed"] or failed
            end(STATUS="error" if failed else None)

    def visit(self, service, request, parent, caller):
        host = self.pick(service)
        done = None
        if self.client_spans and caller is not None:
            parent, done = self.span(*caller, f"Call{service.name}", request, parent)
        connection = self.connect(caller, service, host)
        yield from self.travel(service, host, connection, False)
        yield self.awake(service, host, 0)
        began = self.world.now
        fields = {"REQ_TYPE": request["type"], "CUSTOMER": request["value"], "USER": request["user"],
                  "SIZE": request["size"]} if caller is None else {}
        span_id, end = self.span(service, host, f"Handle{service.name}", request, parent, **fields)
        for step in service.steps:
            if step[0] == "work":
                yield from self.work(service, host, step, request, span_id)
                continue
            for _ in range(step[3]):
                yield self.awake(service, host, 0)
                yield Join([self.visit(s, request, span_id, (service, host)) for s in step[1]])
                yield self.awake(service, host, 0)
        end(STATUS="error" if caller is None and request["failed"] else None)
        if not caller:  # the log does not contain the time before and after the request
            self.durations.append(self.world.now - began)
        yield from self.travel(service, host, connection, True)
        if done is not None:
            if caller[0] is self.paused:  # a stopped program does not log the end of a call
                yield self.awake(*caller, 0)
            done()

    def request(self, number):
        values = getattr(self, "values", ["small", "big"] if self.kind == "head-of-line" else ["v0", "v1", "v2", "v3"])
        draw = random.Random(number * 7919 + 1)
        value = draw.choice(values)
        if self.kind in ("value", "calls"):
            value = self.slow_value if draw.random() < self.value_share else draw.choice([v for v in values if v != self.slow_value])
        elif self.kind == "head-of-line":
            value = "big" if draw.random() < 0.08 else "small"
        request = {"number": number, "type": draw.choice(self.types), "value": value, "user": draw.randrange(5000),
                   "size": round(4 * draw.lognormvariate(-0.5, 1), 3), "failed": False}
        yield from self.visit(self.services[0], request, None, None)

    def client(self, numbers):
        think = max(self.clients / self.rate - self.mean, 0.1 * self.mean)
        yield self.noise.uniform(0, think)
        for number in numbers:
            yield from self.request(number)
            yield self.noise.expovariate(1 / think)

    def sense(self):
        """CpuLoad of each host. The host of a resource fault is busy during the fault's episodes."""
        step, at = self.seconds / 200, 0.0
        noise = random.Random(1)
        for host in sorted(self.offset):
            base = noise.uniform(5, 40)
            for i in range(int(1.2 * self.seconds / step)):
                at = i * step
                here = self.kind == "resource" and host in ([self.only] if self.only else self.service.hosts)
                busy = noise.uniform(90, 100) if here and any(a <= at < b for a, b in self.when) else base + noise.gauss(0, 4)
                self.lines.append((at, at, f"HOST={host} PROG=nlsensor LVL=System NL.EVNT=CpuLoad CPU.BUSY={max(0, min(100, busy)):.1f}"))

    def simulate(self, logs=True):
        self.logs = logs
        if self.closed:
            for i in range(self.clients):
                self.world.at(0, self.client(range(i, self.requests, self.clients)))
        else:
            at = 0.0
            for number in range(self.requests):
                at += self.noise.expovariate(self.rate)
                self.world.at(at, self.request(number))
        self.world.run()
        self.truth["mean"] = sum(self.durations) / max(1, len(self.durations))
        if logs and (self.shape.random() < 0.5 or self.kind == "resource"):
            self.sense()
        if logs and self.net is not None:
            self.lines += [(at, at, text) for at, text in self.net.records(self.world.now)]
        return self

    def write(self, path):
        self.simulate()
        write_lines(path, ((at, text) for _, at, text in sorted(self.lines, key=lambda line: line[0])))
        return self.truth


def write_lines(path, lines):
    begins = {}  # maps a second to its lines
    with open(path, "w", encoding="utf-8") as out:
        for at, text in lines:
            second = math.floor(at)
            us = round((at - second) * 1e6)
            if us == 1000000:
                second, us = second + 1, 0
            if second not in begins:
                begins[second] = time.strftime("DATE=%Y%m%d%H%M%S", time.gmtime(START + second))
            out.write(f"{begins[second]}.{us:06d} {text}\n")


def make_run(kind, seed, path, connections=False, graded=False, weighed=True):
    """Writes a log. Returns the truth, or None if the graph of this seed cannot have the fault.

    If `weighed` is true, compares the run with a healthy run. The truth then has the cost, which is the part of the requests' time that the fault
    costs. Returns None if the cost is less than COST_MIN (GRADED_COST_MIN if graded; failures and clocks may cost less), or if more than a tenth of the requests do not end."""
    try:
        run = Run(kind, seed, connections, graded)
    except ValueError:
        return None
    truth = run.write(path)
    if kind != HEALTHY and weighed:
        healthy = Run(HEALTHY, seed, graded=graded).simulate(logs=False)
        truth["cost"] = 1 - healthy.truth["mean"] / truth["mean"] if truth["mean"] > 0 else 0
        if hasattr(run, "places"):  # The fault is not in the service, but in the wait for the service.
            truth["cost"] = run.waited / max(sum(run.durations), 1e-9)
        if len(run.durations) < 0.9 * run.requests or (truth["cost"] < (GRADED_COST_MIN if graded else COST_MIN) and kind not in ("failures", "clock")):
            return None
    return truth


# ---- logs without structure ----

DISTRIBUTIONS = {
    "uniform": lambda c: c.uniform(1, 10),
    "exponential": lambda c: c.expovariate(0.2),
    "normal": lambda c: max(0.1, c.gauss(5, 1)),
    "log-normal": lambda c: c.lognormvariate(1, 0.6),
    "wide log-normal": lambda c: c.lognormvariate(0, 1.5),
    "log-uniform": lambda c: 10 ** c.uniform(-1, 2),
    "gamma": lambda c: c.gammavariate(2, 2),
    "Weibull": lambda c: c.weibullvariate(3, 0.7),
    "Pareto": lambda c: c.paretovariate(2.2),
    "triangular": lambda c: c.triangular(1, 10, 3),
}


def make_random(distribution, seed, path):
    """A log of requests with one to three steps of independent random times on one to four hosts."""
    chance = random.Random(f"{distribution} {seed}")
    draw, steps, hosts, count = DISTRIBUTIONS[distribution], chance.randint(1, 3), chance.randint(1, 4), chance.choice([200, 500, 1500])
    unit, load, lines, at = 10 ** chance.uniform(-4, -1), chance.uniform(0.5, 10), [], 0.0
    mean = sum(draw(chance) for _ in range(500)) / 500 * steps * unit
    for number in range(count):
        at += chance.expovariate(load / mean)
        now, host = at, f"h{chance.randrange(hosts)}"
        for step in range(steps + 1):
            lines.append((now, f"HOST={host} PROG=p LVL=Usage NL.EVNT=step{step} ID={number}"))
            now += unit * draw(chance)
    write_lines(path, sorted(lines))


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(make_run(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
