"""The hosts of the experiment, the path between the hosts, and their disks. Each host has a network namespace and a control
group.

The name of every object begins with "nlx" and the ID of the process that made it, so that two experiments are
independent, and sweep() can find and remove the remains of a killed experiment.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PREFIX = "nlx"
LINK_MBIT, RTT_MS = 622, 60  # OC-12
SERVERS = [f"server{i}" for i in range(1, 5)]
CLIENT = "client"
PORT = 14835

LIBC = ctypes.CDLL(None)
CGROUP = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ["cpu", "cpuacct", "memory", "blkio"]


class Failure(Exception):
    """The experiment failed or cannot be set up. The message is for the user."""


def run(*command, check=True, statuses=(0,)):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if check and result.returncode not in statuses:
        raise Failure(f"{' '.join(str(c) for c in command)}: {result.stderr.strip() or result.returncode}")
    return result.stdout


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def numbers(text):
    """Converts lines "name number" to a dictionary."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def path_commands(spaces, rate, delay_ms, jitter_ms=0.0, loss=0.0, overtaking=0.0):
    """Returns the commands that make the path with netem: a pair of interfaces between two network namespaces,
    10.83.0.1 and .2.

    netem is above tbf, so that tbf keeps its buffer. Segmentation offload is off, because otherwise netem would drop
    many packets at once.
    """
    commands = [["ip", "link", "add", "wan0", "netns", spaces[0], "type", "veth", "peer", "name", "wan0", "netns", spaces[1]]]
    # Reordering needs a delay, because undelayed packets overtake the others.
    netem = ["limit", "20000", "delay", f"{delay_ms}ms", *([f"{jitter_ms}ms"] if jitter_ms else []),
             *(["loss", f"{100 * loss}%"] if loss else []), *(["reorder", f"{100 * overtaking}%"] if overtaking else [])]
    for number, space in enumerate(spaces, 1):
        commands += [["ip", "-n", space, "link", "set", "wan0", "gso_max_segs", "1"], *card_commands(space, number),
                     ["tc", "-n", space, "qdisc", "add", "dev", "wan0", "root", "handle", "1:", "netem", *netem],
                     ["tc", "-n", space, "qdisc", "add", "dev", "wan0", "parent", "1:1", "handle", "10:", "tbf", *tbf(rate)]]
    return commands


def card_commands(space, number):
    return [["ip", "-n", space, "address", "add", f"10.83.0.{number}/24", "dev", "wan0"],
            ["ip", "-n", space, "link", "set", "wan0", "mtu", "1500", "txqueuelen", "5000", "up"]]


def tbf(rate):
    """Returns the arguments of tbf, with a buffer of 200 ms, which outstanding requests can never fill."""
    return ["rate", f"{rate:.0f}bit", "burst", "128kb", "latency", "200ms"]


def end_with_parent():
    """Makes a program end with this process, even if this process is killed: PR_SET_PDEATHSIG."""
    LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)


# ---- control groups ----


def unified():
    """Returns the mount point of control groups of version 2, and whether version 1 is absent."""
    if (CGROUP / "cgroup.controllers").exists():
        return CGROUP, True
    return CGROUP / "unified", False


class Group:
    """A control group of version 2. If version 1 exists, the object consists of a group of version 2 and a group in each hierarchy of version 1."""

    def __init__(self, name):
        root, self.pure = unified()
        self.name, self.v2 = name, root / name if root.exists() else None
        self.v1 = {} if self.pure else {c: CGROUP / c / name for c in CONTROLLERS if (CGROUP / c).is_dir()}
        if self.v2 is None and not self.v1:
            raise Failure(f"no control groups are mounted in {CGROUP}")

    def folders(self):
        return [*self.v1.values(), *([self.v2] if self.v2 else [])]

    def make(self):
        if self.pure:
            with contextlib.suppress(OSError):
                (self.v2.parent / "cgroup.subtree_control").write_text("+cpu +memory +io")
        for folder in self.folders():
            folder.mkdir(parents=True, exist_ok=True)

    def set(self, controller, v1, v2):
        """Writes settings: pairs of a file and its value, for either version."""
        for name, value in v2 if self.pure else v1:
            (self.v2 if self.pure else self.v1[controller]).joinpath(name).write_text(str(value))

    def prefer(self):
        """Gives the group priority over other work of this machine, which would disturb the measurement."""
        self.set("cpu", [("cpu.shares", 8192)], [("cpu.weight", 800)])

    def limit_cpu(self, share, period_us=10000):
        quota = int(share * period_us)
        self.set("cpu", [("cpu.cfs_period_us", period_us), ("cpu.cfs_quota_us", quota)], [("cpu.max", f"{quota} {period_us}")])

    def limit_memory(self, size):
        self.set("memory", [("memory.limit_in_bytes", size)], [("memory.max", size)])

    def limit_reading(self, device, rate):
        self.set("blkio", [("blkio.throttle.read_bps_device", f"{device} {rate}")], [("io.max", f"{device} rbps={rate}")])

    def cpu_us(self):
        """Returns the processor time in microseconds: (user, system)."""
        if self.pure:
            found = numbers(read(self.v2 / "cpu.stat"))
            return found.get("user_usec", 0), found.get("system_usec", 0)
        account = self.v1["cpuacct"]
        return tuple(int(read(account / f"cpuacct.usage_{kind}") or 0) // 1000 for kind in ("user", "sys"))

    def memory(self):
        """Returns the numbers in the group's memory.stat, and the swapped memory."""
        if self.pure:
            return {"swap": int(read(self.v2 / "memory.swap.current") or 0), **numbers(read(self.v2 / "memory.stat"))}
        return numbers(read(self.v1["memory"] / "memory.stat"))

    def pids(self):
        return {int(pid) for folder in self.folders() for pid in read(folder / "cgroup.procs").split()}

    def remove(self):
        """Kills all processes of the group, and removes the group."""
        for _ in range(100):
            left = self.pids()
            for pid in left:
                for number in (signal.SIGKILL, signal.SIGCONT):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
            if not left:
                break
            time.sleep(0.02)
        for folder in self.folders():
            for _ in range(100):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)
                    continue
                break


# ---- remains ----


def is_experiment(pid):
    """Returns whether a process is one of the programs that use this module: the experiment, and tests/diagnosis/real.py."""
    command = read(f"/proc/{pid}/cmdline")
    return "experiment" in command or "diagnosis/real.py" in command


def owner(name):
    """Returns the process ID in a name of an experiment's object, or None."""
    digits = name[len(PREFIX):].split("-")[0].split(".")[0]
    return int(digits) if name.startswith(PREFIX) and digits.isdigit() else None


def sweep(gone, kept=None):
    """Removes the objects of each owner (a process ID) for which gone() is true. Keeps the directory `kept`."""

    def ours(names):
        return [name for name in names if owner(name) is not None and gone(owner(name))]

    groups = {entry.name for folder in Group(PREFIX).folders() if folder.parent.is_dir() for entry in folder.parent.iterdir()}
    for name in ours(groups):
        Group(name).remove()
    for line in read("/proc/swaps").splitlines()[1:]:
        if ours([pathlib.Path(line.split()[0]).parent.name]):
            run("swapoff", line.split()[0], check=False)
    for _ in range(100):  # a group that another process is reading cannot be removed yet
        spaces = ours(line.split()[0] for line in run("ip", "netns", "list", check=False).splitlines())
        if not spaces:
            break
        for name in spaces:
            run("ip", "netns", "delete", name, check=False)
        time.sleep(0.02)
    for line in run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE", check=False).splitlines():
        device, _, file = line.partition(" ")
        if ours([pathlib.Path(file.strip().removesuffix(" (deleted)")).parent.name]):
            run("losetup", "--detach", device, check=False)
    for folder in (tempfile.gettempdir(), "/dev/shm"):
        for name in ours(os.listdir(folder) if os.path.isdir(folder) else []):
            if name != kept:
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


# ---- hosts ----


class Host:
    """processors: the number of processors, which may be a fraction; cpus: processors of this machine on which the host runs, in
    the form of taskset(1); has_own: the host alone uses its processor, so softirqs there belong to it."""

    def __init__(self, world, name, processors=1.0, cpus=None, has_own=False):
        self.world, self.name, self.processors, self.cpus, self.has_own = world, name, processors, cpus, has_own
        self.space, self.group = f"{world.name}-{name}", Group(f"{world.name}-{name}")
        self.view, self.disk = world.shm / f"view-{name}", None

    def make(self):
        run("ip", "netns", "add", self.space)
        self.ip("link", "set", "lo", "up")
        self.set("net/ipv6/conf/all/disable_ipv6", 1, check=False)
        # Use the standard congestion control, because the default of this machine may be another.
        self.set("net/ipv4/tcp_congestion_control", "reno")
        self.set("net/ipv4/tcp_no_metrics_save", 1)
        self.group.make()
        self.group.prefer()
        if self.processors < 1:
            self.group.limit_cpu(self.processors)
        self.view.mkdir()

    def ip(self, *command):
        run("ip", "-n", self.space, *command)

    def listens(self, port):
        """Returns whether a program listens on the TCP port."""
        lines = (line.split() for line in run("ip", "netns", "exec", self.space, "cat", "/proc/net/tcp").splitlines()[1:])
        return any(line[1].endswith(f":{port:04X}") and line[3] == "0A" for line in lines)

    def set(self, name, value, check=True):
        run("ip", "netns", "exec", self.space, "sh", "-c", f"echo '{value}' >/proc/sys/{name}", check=check)

    def start(self, *command, env=None, preload=None, stdout=None):
        """Starts a program on this host, with the host's own /proc, in its control group."""
        environment = {**os.environ, "NETLOGGER_HOST": self.name, "NETLOGGER_DEST": self.world.collector,
                       "NETLOGGER_SHM": str(self.world.shm / "rings"), **(env or {})}
        bind = ('cd "$1"; shift; find . -type f | while read -r f; do mount --bind "$f" "/proc/$f"; done; '
                'exec env ${FAULT_PRELOAD:+LD_PRELOAD="$FAULT_PRELOAD"} "$@"')
        if preload:
            environment["FAULT_PRELOAD"] = str(preload)
        return self.world.spawn(self.joined("ip", "netns", "exec", self.space, "sh", "-c", bind, "view", self.view, *command), environment,
                                stdout)

    def joined(self, *command):
        """Returns the command that runs in this host's control group, on its processors."""
        join = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 1; shift; done; shift; exec "$@"'
        pinned = ["taskset", "-c", self.cpus] if self.cpus else []
        return ["sh", "-c", join, "join", *self.group.folders(), "--", *pinned, *command]


class Views:
    """The files that hosts see in /proc, from their control groups, as with lxcfs(8): each is a small file that is
    mounted over the file in /proc. Times are in microseconds instead of ticks, because a host with a fraction of a
    processor has few ticks."""

    def __init__(self, hosts):
        self.hosts, self.began, self.swapped = hosts, time.monotonic(), {h.name: [0, 0] for h in hosts}
        self.swap_before = self.traffic()
        self.files = {}
        self.update()

    @staticmethod
    def traffic():
        found = numbers(read("/proc/vmstat"))
        return [found.get("pswpin", 0), found.get("pswpout", 0)]

    def put(self, host, name, text):
        """Writes the file in place, because the mount refers to this file. Writes the text with one call, so that readers see
        no partial text."""
        key = host.name, name
        if key not in self.files:
            path = host.view / name
            path.parent.mkdir(exist_ok=True)
            self.files[key] = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(self.files[key], text.encode().ljust(3000, b"\n"), 0)

    def stat(self, host):
        user, system = host.group.cpu_us()
        all_us = int((time.monotonic() - self.began) * 1e6 * host.processors)
        lines, soft = read("/proc/stat").splitlines(), 0
        if host.has_own:
            line = next((line.split() for line in lines if line.startswith(f"cpu{host.cpus} ")), None)
            soft = int(line[7]) * 1000000 // os.sysconf("SC_CLK_TCK") if line else 0
        host.soft_began = getattr(host, "soft_began", soft)
        soft -= host.soft_began
        idle = max(all_us - user - system - soft, getattr(host, "idle", 0))
        host.idle = idle
        times = f"{user} 0 {system} {idle} 0 0 {soft} 0 0 0"
        rest = "\n".join(line for line in lines if not line.startswith("cpu"))
        self.put(host, "stat", f"cpu  {times}\ncpu0 {times}\n{rest[:2000]}\n")

    def vmstat(self, host):
        found = host.group.memory()
        now = self.traffic()
        if found.get("swap", 0) > 0 or "pswpin" in found:
            for i, name in enumerate(("pswpin", "pswpout")):
                self.swapped[host.name][i] = found.get(name, self.swapped[host.name][i] + now[i] - self.swap_before[i])
        swapped = self.swapped[host.name]
        self.put(host, "vmstat", f"pgfault {found.get('pgfault', 0)}\npgmajfault {found.get('pgmajfault', 0)}\n"
                 f"pswpin {swapped[0]}\npswpout {swapped[1]}\n")

    def update(self):
        now = self.traffic()
        disks = read("/proc/diskstats").splitlines()
        for host in self.hosts:
            self.stat(host)
            self.vmstat(host)
            device = os.path.basename(host.disk) if host.disk else None
            self.put(host, "diskstats", "".join(line + "\n" for line in disks if line.split()[2] == device))
            for resource in ("cpu", "io", "memory"):
                pressure = read(host.group.v2 / f"{resource}.pressure") if host.group.v2 else ""
                if pressure:
                    self.put(host, f"pressure/{resource}", pressure)
        self.swap_before = now


class World:
    """The hosts of the experiment: a site of four block servers, and a distant client. data is a file with the content of
    the disks; remove() does not remove its directory."""

    def __init__(self, build, scale, data, kernel=True):
        self.build, self.scale, self.disk_image, self.data = pathlib.Path(build), scale, data, data.parent.name
        self.name = f"{PREFIX}{os.getpid()}"
        self.rate = LINK_MBIT * 1e6 * scale  # bits/s
        self.programs, self.views, self.kernel = [], None, None
        self.wants_kernel = kernel
        self.work = self.shm = None
        cpus = sorted(os.sched_getaffinity(0))
        # The client has its own processor, which is the last processor. A server has a fifth of a processor.
        self.rest_cpus = ",".join(str(c) for c in cpus[:-1]) or None
        self.client_cpu = str(cpus[-1]) if len(cpus) > 1 else None

    # ---- setup ----

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def make_site(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.name}."))
        self.shm = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.name}.", dir="/dev/shm"))
        (self.shm / "rings").mkdir()
        self.collector = f"unix:{self.work}/collector"
        self.site = Host(self, "site", cpus=self.rest_cpus)

    def make(self):
        self.make_site()
        self.client = Host(self, CLIENT, cpus=self.client_cpu, has_own=self.client_cpu is not None)
        self.servers = {name: Host(self, name, processors=0.2, cpus=self.rest_cpus) for name in SERVERS}
        self.hosts = [self.client, *self.servers.values()]
        self.make_hosts(self.servers.values())

    def make_hosts(self, linked):
        """Makes all hosts; the linked hosts have links to the site."""
        for host in (self.site, *self.hosts):
            host.make()
        self.site.set("net/ipv4/ip_forward", 1)
        for number, host in enumerate(linked, 1):
            self.link(host, number)

    def link(self, host, number):
        device = f"s{number}"
        run("ip", "link", "add", device, "netns", self.site.space, "type", "veth", "peer", "name", "eth0", "netns", host.space)
        self.site.ip("address", "add", f"10.83.{number}.1/24", "dev", device)
        self.site.ip("link", "set", device, "up")
        host.ip("address", "add", f"10.83.{number}.2/24", "dev", "eth0")
        host.ip("link", "set", "eth0", "up")
        host.ip("route", "add", "default", "via", f"10.83.{number}.1")

    def host(self, name):
        return next(host for host in self.hosts if host.name == name)

    @staticmethod
    def run(*command):
        return run(*command)

    def address(self, number):
        return f"10.83.{number}.2:{PORT}"

    # ---- the path ----

    def has_netem(self):
        on = ["tc", "-n", self.site.space, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
        result = subprocess.run(on, capture_output=True)
        if result.returncode == 0:
            run("tc", "-n", self.site.space, "qdisc", "delete", "dev", "lo", "root")
        return result.returncode == 0

    def make_path(self, loss=0.0, overtaking=0.0, jitter_ms=0.0):
        """Makes the path between the site and the client: the link's rate by tbf, other properties by netem or
        path_emulator."""
        self.with_netem = self.has_netem()
        spaces = [self.site.space, self.client.space]
        if self.with_netem:
            commands = path_commands(spaces, self.rate, RTT_MS / 2, jitter_ms, loss, overtaking)
        else:
            self.start_emulator(loss, overtaking, jitter_ms)
            commands = []
            for number, space in enumerate(spaces, 1):
                commands += [*card_commands(space, number), ["tc", "-n", space, "qdisc", "add", "dev", "wan0", "root", "handle", "1:", "tbf", *tbf(self.rate)]]
        for command in commands:
            run(*command)
        self.client.ip("route", "add", "default", "via", "10.83.0.1")
        if self.client_cpu is not None:  # the client's own processor receives packets
            mask = f"{1 << int(self.client_cpu):x}"
            run("ip", "netns", "exec", self.client.space, "sh", "-c", f"echo {mask} >/sys/class/net/wan0/queues/rx-0/rps_cpus", check=False)

    def start_emulator(self, loss, overtaking, jitter_ms):
        log = self.work / "emulator"
        with open(log, "w") as out:
            self.emulator = self.spawn(  # the path must not wait for a processor
                self.site.joined("nice", "-n", "-20", self.build / "examples/dpss/path_emulator", "--delay", f"{RTT_MS / 2}ms", "--jitter",
                                 f"{jitter_ms}ms", "--loss", loss, "--overtaking", overtaking, f"{self.site.space}:wan0",
                                 f"{self.client.space}:wan0"), None, stdout=out)
        self.wait(lambda: read(log).startswith("ready"), "path_emulator", self.emulator)

    # ---- disks ----

    def make_disks(self):
        """Gives each server its own disk: a loop device over the data, read without the page cache if possible."""
        for host in self.servers.values():
            options = ["--find", "--show", "--read-only"]
            try:
                host.disk = run("losetup", "--direct-io=on", *options, self.disk_image).strip()
            except Failure:
                host.disk = run("losetup", *options, self.disk_image).strip()
            run("blockdev", "--flushbufs", host.disk)
            run("blockdev", "--setra", 256, host.disk)  # sectors; reads at most a block ahead

    # ---- programs ----

    def spawn(self, command, environment, stdout=None):
        with open(self.work / "programs.log", "ab") as log:
            process = subprocess.Popen([str(c) for c in command], env=environment, stdin=subprocess.DEVNULL, stdout=stdout or log,
                                       stderr=log, start_new_session=True, preexec_fn=end_with_parent)
        self.programs.append(process)
        return process

    def wait(self, condition, what, process, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            if process.poll() is not None or time.monotonic() > end:
                raise Failure(f"{what} did not start: {read(self.work / 'programs.log')[-2000:]}")
            time.sleep(0.01)

    def start_collector(self):
        path = self.work / "collector"
        process = self.spawn([*(["taskset", "-c", self.rest_cpus] if self.rest_cpus else []), self.build / "netlogd/netlogd", "--foreground",
                              "--listen", f"unix:{path}", "--output", self.work / "all.log"],
                             {**os.environ, "NETLOGGER_SHM": str(self.shm / "rings")})
        self.wait(path.exists, "netlogd", process)
        self.collecting = process

    def start_views(self):
        """Updates the views in a separate process, which ends with this process."""
        self.views = Views(self.hosts)
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                if self.rest_cpus:
                    os.sched_setaffinity(0, {int(c) for c in self.rest_cpus.split(",")})
                parent = os.getppid()
                while os.getppid() == parent:
                    self.views.update()
                    time.sleep(0.1)
            os._exit(0)
        self.viewer = pid

    def start_kernel(self):
        """Records the kernel's TCP events, if this kernel allows it."""
        if not self.wants_kernel:
            return
        nlkernel = self.build / "nlkernel/nlkernel"
        if not nlkernel.exists():
            return
        self.kernel = self.spawn([nlkernel, "record", "--quiet", "--format", "ulm", "--output", self.work / "kernel.log", "--event",
                                  "tcp:tcp_retransmit_skb", "--filter", f"SPORT == {PORT}"],
                                 {**os.environ, "NETLOGGER_HOST": "kernel", "NETLOGGER_SHM": str(self.shm / "rings")})

    @staticmethod
    def ask_to_end(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)

    def stop(self, process, seconds=10):
        """Asks a program to end. Kills the program if it does not end in time."""
        if process is None or process.poll() is not None:
            return
        self.ask_to_end(process)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    # ---- the end ----

    def remove(self):
        viewer = getattr(self, "viewer", None)
        if viewer is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(viewer, signal.SIGKILL)
                os.waitpid(viewer, 0)
        for process in self.programs:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        sweep(lambda pid: pid == os.getpid(), kept=self.data)
        for process in self.programs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        if self.views is not None:
            for fd in self.views.files.values():
                os.close(fd)


def sweep_leftovers():
    sweep(lambda pid: pid != os.getpid() and not is_experiment(pid))


if __name__ == "__main__":
    sys.exit("run ./experiment")
