"""Runs of three programs with real processes: each host is a network namespace and a control group of its own.

Each class runs a Case (real_faults.py), and writes one sorted log.
"""
import importlib.machinery
import importlib.util
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES / "dpss"))

import experiment_world as worlds  # noqa: E402

SENSORS = ["cpu", "pressure", "disk", "swap", "vm", "tcp", "network"]
PYTHON = "/usr/bin/python3"  # for which the binding is built


def load_experiment():
    loader = importlib.machinery.SourceFileLoader("experiment", str(EXAMPLES / "dpss/experiment"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("experiment", loader))
    loader.exec_module(module)
    return module


class ServiceWorld(worlds.World):
    """Hosts in a star: each host has a link to the site, which routes packets between the hosts."""

    def __init__(self, build, names):
        super().__init__(build, 1, pathlib.Path("none/data"), kernel=False)
        self.names = names

    def make(self):
        self.make_site()
        self.hosts = [worlds.Host(self, name) for name in self.names]
        self.make_hosts(self.hosts)

    def number(self, name):
        return self.names.index(name) + 1

    def server(self, name):
        return self.address(self.number(name))


class Services:
    """Servers that start in this order, and a program that makes the load and then ends."""

    def __init__(self, build, seconds):
        self.build, self.seconds = build, seconds

    def commands(self, world, case):
        """Returns the servers' and the load's commands, by host."""
        raise NotImplementedError

    def start(self, world, case, name, command):
        environment = {"PYTHONPATH": str(self.build / "bindings/python/lib"), "PYTHONDONTWRITEBYTECODE": "1", "SHOP_LISTEN": world.server(name),
                       **case.environment.get(name, {})}
        preload = self.build / "examples/dpss/.libs/fault.so" if any(key.startswith("FAULT_") for key in environment) else None
        return world.host(name).start(*command, *case.arguments.get(name, []), env=environment, preload=preload)

    def run(self, case, log):
        with ServiceWorld(self.build, self.names) as world:
            world.start_views()
            world.start_collector()
            if case.before:
                case.before(world)
            programs = {}
            *servers, load = self.commands(world, case).items()
            for name, command in servers:
                programs[name] = self.start(world, case, name, command)
                world.wait(lambda host=world.host(name): host.listens(worlds.PORT), f"{name}", programs[name])
            for host in world.hosts:
                host.start(self.build / "nlagent/nlsensor", "--interval", "0.5", *SENSORS)
            if case.beside:
                case.beside(world)
            time.sleep(0.5)
            programs[load[0]] = self.start(world, case, *load)
            self.wait(world, case, programs, programs[load[0]])
            time.sleep(0.3)
            for process in [p for p in world.programs if p is not world.collecting]:
                world.ask_to_end(process)
            time.sleep(0.5)
            world.stop(world.collecting)
            worlds.run(self.build / "nlsort/nlsort", "-o", log, world.work / "all.log")

    def wait(self, world, case, programs, load):
        steps, due, end = case.during(world, programs) if case.during else iter(()), 0, time.monotonic() + self.seconds + 30
        while load.poll() is None:
            if time.monotonic() >= due:
                due = time.monotonic() + next(steps, 1e9)
            if time.monotonic() > end:
                raise worlds.Failure("the load does not end")
            time.sleep(0.002)
        if hasattr(steps, "close"):
            steps.close()
        if load.returncode != 0:
            raise worlds.Failure(f"the load failed: {worlds.read(world.work / 'programs.log')[-2000:]}")


class Shop(Services):
    """The HTTP service of examples/http, whose requests branch."""

    names = ["database", "stock", "prices", "frontend", "client"]

    def commands(self, world, case):
        shop = self.build / "examples/http/shop"
        return {"database": [shop, "database"], "stock": [shop, "stock", world.server("database")],
                "prices": [PYTHON, EXAMPLES / "http/prices.py"],
                "frontend": [shop, "frontend", world.server("stock"), world.server("prices")],
                "client": [PYTHON, HERE / "load.py", world.server("frontend"), "--seconds", self.seconds]}


class Pipeline(Services):
    """Workers and batches."""

    names = ["store", "worker1", "worker2", "worker3", "source"]

    def commands(self, world, case):
        def role(name, kind, *arguments):
            return [PYTHON, HERE / "pipeline.py", kind, *arguments, *(["--listen", world.server(name)] if kind != "source" else [])]

        workers = self.names[1:4]
        return {"store": role("store", "store", world.work / "stored"),
                **{name: role(name, "worker", world.server("store")) for name in workers},
                "source": role("source", "source", *(world.server(name) for name in workers), "--seconds", self.seconds)}


class Dpss:
    """The block servers of examples/dpss behind a path of 60 ms."""

    def __init__(self, build, seconds):
        self.build, self.seconds, self.experiment = build, seconds, load_experiment()

    def run(self, case, log):
        arguments = ["--build", str(self.build), "--keep", str(log.parent), "--no-kernel", "--seconds", str(int(self.seconds))]
        with self.experiment.Runs(self.experiment.parse(arguments)) as runs:
            runs.once(log.stem, case)


PROGRAMS = {"dpss": Dpss, "shop": Shop, "pipeline": Pipeline}
