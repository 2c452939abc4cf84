"""The wide-area experiment: its path emulator between real network namespaces, and short runs of it."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import guest
import support

sys.path.insert(0, str(support.SOURCE / "examples/dpss"))
import experiment_world  # noqa: E402

CAN = os.geteuid() == 0 and os.path.exists("/dev/net/tun")

# Sends COUNT packets of SIZE bytes, either all together, or each after the previous response (or after WAIT seconds). Prints the
# number of responses, the minimum response time, and the time from the first packet to the last response.
CLIENT = """
import socket, sys, time
count, size, at_once = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "yes"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
s.connect(("10.83.0.2", 9))
s.settimeout(float(sys.argv[4]))
answered, least, first, last, order = 0, 1e9, time.monotonic(), 0, []
def take():
    global answered, last
    try:
        order.append(int(s.recv(65536)[:8]))
    except socket.timeout:
        return False
    answered, last = answered + 1, time.monotonic()
    return True
for i in range(count):
    began = time.monotonic()
    s.send(b"%08d" % i + bytes(size - 8))
    if not at_once and take():
        least = min(least, last - began)
s.settimeout(2)
while answered < count and take():  # the client sends all packets together, or late
    pass
print(answered, least, last - first, sum(a > b for a, b in zip(order, order[1:])))
"""
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
s.bind(("", 9))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(65536)
    s.sendto(data, peer)
"""


@unittest.skipUnless(CAN, "only root with /dev/net/tun may make network namespaces and TUN devices")
class Emulator(support.Case):
    """Checks only that times are not too short, because times are longer on a busy machine."""

    def setUp(self):
        super().setUp()
        self.emulator = support.program("examples/dpss/path_emulator")
        self.spaces = [f"nlt{os.getpid()}-{side}" for side in "ab"]
        for space in self.spaces:
            self.ip("netns", "add", space)
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", space], check=False)
            # Disables router discovery, so that only the test's packets count.
            self.ip("netns", "exec", space, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 || true")

    def ip(self, *arguments):
        result = self.run_program("ip", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)

    def through(self, options, count, size, at_once=False, wait=2):
        """Returns the client's output, and the emulator's counts by direction."""
        a, b = self.spaces
        emulator = self.start(self.emulator, *options, f"{a}:wan0", f"{b}:wan0", stdout=subprocess.PIPE, text=True)
        self.assertEqual(emulator.stdout.readline(), "ready\n")
        for number, space in enumerate(self.spaces):
            self.ip("-n", space, "address", "add", f"10.83.0.{number + 1}/24", "dev", "wan0")
            self.ip("-n", space, "link", "set", "wan0", "up", "txqueuelen", "5000")
        echo = self.start("ip", "netns", "exec", b, sys.executable, "-c", ECHO, stdout=subprocess.PIPE, text=True)
        self.assertEqual(echo.stdout.readline(), "ready\n")
        client = self.run_program("ip", "netns", "exec", a, sys.executable, "-c", CLIENT, count, size,
                                  "yes" if at_once else "no", wait)
        self.assertEqual(client.returncode, 0, client.stderr)
        echo.kill()
        emulator.send_signal(signal.SIGTERM)
        said = emulator.communicate(timeout=60)[0]
        self.assertEqual(emulator.returncode, 0)
        counts = [dict((key, int(value)) for key, value in re.findall(r"(\w+)=(\d+)", line)) for line in said.splitlines()]
        return [float(number) for number in client.stdout.split()], counts

    def test_delay(self):
        (answered, least, _, _), counts = self.through(["--delay", "30ms"], 20, 100, wait=5)
        self.assertEqual(answered, 20)
        self.assertGreaterEqual(least, 0.06)
        self.assertEqual([c["lost"] + c["overflowed"] + c["refused"] for c in counts], [0, 0])

    def test_loss(self):
        (answered, _, _, _), counts = self.through(["--loss", "20%", "--seed", "3"], 50, 100, wait=0.2)
        to_a, to_b = counts
        self.assertGreater(to_b["lost"], 0)
        self.assertEqual(answered, to_a["arrived"])
        self.assertLess(answered, 50)

    def test_rate_and_buffer(self):
        # 200 packets of 1028 bytes including headers are 1.6 Mbit: 0.16 s at 10 Mbit/s. All fit in the buffer.
        (answered, _, took, out_of_order), _ = self.through(["--rate", "10mbit", "--buffer", "1m"], 200, 1000, at_once=True)
        self.assertEqual((answered, out_of_order), (200, 0))
        self.assertGreaterEqual(took, 200 * 1028 * 8 / 10e6)

    def test_buffer_overflows(self):
        (answered, _, _, _), counts = self.through(["--rate", "100kbit", "--buffer", "10280"], 200, 1000, at_once=True)
        self.assertGreater(counts[1]["overflowed"], 100)
        self.assertEqual(answered, counts[0]["arrived"])

    def test_overtaking(self):
        (answered, _, _, out_of_order), counts = self.through(["--delay", "20ms", "--overtaking", "10%"], 200, 100, at_once=True)
        self.assertEqual(answered, 200)
        self.assertGreater(counts[0]["overtook"] + counts[1]["overtook"], 0)
        self.assertGreater(out_of_order, 0)

    def test_refuses_what_is_none(self):
        for arguments in (["a:b"], ["--rate", "fast", "a:b", "c:d"], ["--loss", "2", "a:b", "c:d"], ["a", "b"],
                          ["a:b=1.2.3", "c:d"], ["a:b=1.2.3.4/33", "c:d"]):
            self.assertEqual(self.run_program(self.emulator, *arguments).returncode, 2, arguments)
        result = self.run_program(self.emulator, "nlt-no-such-namespace:wan0", "nlt-none:wan0")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nlt-no-such-namespace", result.stderr)


# Like CLIENT and ECHO, for systems without Python: path_probe NAMESPACE NAMESPACE COUNT SIZE yes|no.
PROBE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int enter(const char *space)
{
    char path[256];
    int size = 8 << 20, s;
    snprintf(path, sizeof path, "/run/netns/%s", space);
    if (setns(open(path, O_RDONLY), CLONE_NEWNET) != 0)
        perror(path), exit(1);
    s = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    return s;
}

int main(int argc, char **argv)
{
    static char data[65536];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)}, from;
    socklen_t size = sizeof from;
    int count = atoi(argv[3]), bytes = atoi(argv[4]), at_once = strcmp(argv[5], "yes") == 0, answered = 0, disorder = 0, ready[2];
    double least = 1e9, first, last = 0;
    long before = -1;
    pipe(ready);
    pid_t echo = fork();
    if (echo == 0) {
        int s = enter(argv[2]);
        bind(s, (void *)&to, sizeof to);
        write(ready[1], "x", 1);
        for (ssize_t got; (got = recvfrom(s, data, sizeof data, 0, (void *)&from, &size)) > 0;)
            sendto(s, data, got, 0, (void *)&from, size);
        _exit(1);
    }
    close(ready[1]);
    if (read(ready[0], data, 1) != 1)
        return 1;
    int s = enter(argv[1]);
    struct timeval wait = {.tv_sec = at_once ? 3 : 1};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    inet_pton(AF_INET, "10.83.0.2", &to.sin_addr);
    connect(s, (void *)&to, sizeof to);
    send(s, "00000000", 8, 0); /* until the neighbour is known, the kernel keeps few packets for him */
    recv(s, data, sizeof data, 0);
    first = now();
    for (int i = 0, taken = 0; taken < (at_once ? 1 : count); taken++) {
        double began = now();
        for (int end = at_once ? count : i + 1; i < end; i++) {
            snprintf(data, sizeof data, "%08d", i);
            send(s, data, bytes, 0);
        }
        while (answered < count && recv(s, data, sizeof data, 0) > 0) {
            answered++;
            last = now();
            data[8] = 0;
            disorder += atol(data) < before;
            before = atol(data);
            least = last - began < least ? last - began : least;
            if (!at_once)
                break;
        }
    }
    kill(echo, SIGKILL);
    waitpid(echo, NULL, 0); /* or init would take it for the next command */
    printf("PROBE %d %.6f %.6f %d\n", answered, least, last - first, disorder);
    return 0;
}
"""


class Netem(support.Case):
    """The path on a kernel that has netem. The test runs in a guest, whose kernel has netem."""

    def path(self, there, number, **settings):
        """Returns commands that make a path between the test's own namespaces. Each command executes a file of commands, because the
        guest takes long to start a program."""
        spaces, batches = [f"{side}{number}" for side in "ab"], {}
        for program, *words in [*(["ip", "netns", "add", space] for space in spaces), *experiment_world.path_commands(spaces, **settings)]:
            where = 2 if words[0] == "-n" else 0
            batches.setdefault((f"/bin/{program}", *words[:where]), []).append(" ".join(words[where:]) + "\n")
        for i, lines in enumerate(batches.values()):
            there.files[f"batch{number}.{i}"] = "".join(lines).encode()
        return spaces, [[*command, "-batch", f"/batch{number}.{i}"] for i, command in enumerate(batches)]

    def test_path(self):
        there = guest.Guest(self, "netem", ("veth", "sch_netem", "sch_tbf"))
        there.add(self.compile_client(PROBE, "-Wl,--as-needed"), "path_probe")
        for name in "ip", "tc":
            if shutil.which(name) is None:
                self.skipTest(f"{name} is not installed (package iproute2)")
            there.add(shutil.which(name), name)
        there.files["run/.keep"] = b""
        commands, runs = [], [({}, (10, 100, "no")), ({"loss": 0.2}, (60, 100, "no")), ({"overtaking": 0.1}, (200, 100, "yes")),
                              ({"rate": 10e6}, (200, 1000, "yes")), ({"rate": 1e6}, (400, 1000, "yes")), ({"jitter_ms": 5}, (10, 100, "no"))]
        for number, (settings, arguments) in enumerate(runs):
            spaces, made = self.path(there, number, **{"rate": 155e6, "delay_ms": 30, **settings})
            commands += [*made, ["/bin/path_probe", *spaces, *arguments]]
        there.run(commands, [])
        failed = [line for line in there.said.splitlines() if re.match(r"GUEST \S+: [^0]", line)]
        self.assertEqual(failed, [], there.said)
        plain, lossy, overtaken, limited, full, jitter = [[float(n) for n in found.split()] for found in re.findall(r"(?m)^PROBE (.*?)\r?$", there.said)]
        print(f"# answered, least s, s in all, out of order: {plain}, loss {lossy}, overtaking {overtaken}, 10 Mbit/s {limited}, 1 Mbit/s {full}, jitter {jitter}")
        self.assertEqual((plain[0], plain[3]), (10, 0))
        self.assertGreaterEqual(plain[1], 0.06)
        self.assertTrue(20 <= lossy[0] < 60, "about 0.8 * 0.8 of them")
        self.assertEqual(overtaken[0], 200)
        self.assertGreater(overtaken[3], 0)
        self.assertEqual((limited[0], limited[3]), (200, 0))
        self.assertGreaterEqual(limited[2], 0.06 + (200 * 1042 - 131072) * 8 / 10e6 * 0.9, "behind a burst of 128 kB it is the link's rate")
        self.assertTrue(200 < full[0] < 400, "a burst, what 200 ms and a burst of buffer hold, and what left it while more was sent")
        self.assertLessEqual(full[0] * 1042 - 131072, (full[2] - 0.06) * 1e6 / 8 * 1.1, "behind a burst no more than the link's rate")
        self.assertGreaterEqual(jitter[1], 0.05)


def left(pid):
    """Returns the objects that the experiment with that process ID has left on the machine."""
    name = f"nlx{pid}"
    found = [line for line in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.splitlines() if line.startswith(name)]
    found += [line for line in subprocess.run(["losetup", "--list"], capture_output=True, text=True).stdout.splitlines() if name in line]
    for folder in (tempfile.gettempdir(), "/dev/shm"):
        found += [entry for entry in os.listdir(folder) if entry.startswith(name)]
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(folder, one) for one in names if one.startswith(name)]
    return found


@unittest.skipUnless(CAN, "only root with /dev/net/tun may make network namespaces and TUN devices")
class Experiment(support.Case):
    """The experiment runs, collects its logs, and leaves nothing. --score (tests/full) measures nldiag on it."""

    def setUp(self):
        super().setUp()
        support.program("examples/dpss/path_emulator")
        if not os.path.exists("/dev/loop-control") or not os.access("/sys/fs/cgroup", os.W_OK):
            self.skipTest("no loop devices or no control groups here")
        self.experiment = support.SOURCE / "examples/dpss/experiment"

    def arguments(self, *options):
        return [sys.executable, str(self.experiment), "--build", str(support.BUILD), "--keep", str(self.scratch / "out"), *options]

    def begin(self, *options):
        """Starts an experiment, and waits until its programs run."""
        process = self.start(*self.arguments(*options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        support.wait_until(lambda: process.poll() is not None or any("kernel" in entry or "view" in entry for folder in glob.glob(f"/dev/shm/nlx{process.pid}.*")
                                                                     for entry in os.listdir(folder)), seconds=180, what="the experiment begins")
        self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
        return process

    @support.long
    def test_healthy_and_loss(self):
        result = self.run_program(*self.arguments("--fault", "healthy", "--fault", "loss", "--seconds", "4"), timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("155.5 Mbit/s (1/4 of OC-12)", result.stdout)
        self.assertRegex(result.stdout, r"(?s)healthy: .*10\.83\.4\.2:14835 .* % of what the link carries.*loss: ")
        log = (self.scratch / "out/healthy.log").read_text()
        for host in "client", "server1", "server2", "server3", "server4":
            for event in "CpuLoad", "TcpSegments", "BlockRead" if host == "client" else "DiskReadEnd":
                self.assertRegex(log, rf"HOST={host} PROG=\S+ LVL=\S+ NL.EVNT={event} ")
        self.assertEqual(self.run_program(support.program("nlsort/nlsort"), "-c", self.scratch / "out/healthy.log").returncode, 0)
        self.assertNotRegex((self.scratch / "out/healthy.txt").read_text(), r'\(cause "(clock|window|streams|loss)"\)')
        self.assertRegex((self.scratch / "out/loss.log").read_text(), r"NL.EVNT=TcpRetransmit TCP.RETRANS=[1-9]")
        self.assertIn('(cause "loss")', (self.scratch / "out/loss.txt").read_text())
        if (support.BUILD / "nlv/nlv").exists():
            self.assertTrue((self.scratch / "out/loss.png").read_bytes().startswith(b"\x89PNG"))

    @support.long
    def test_leaves_nothing(self):
        """An interrupted experiment cleans up. If an experiment is killed, its programs end, and the next experiment cleans up,
        even while another experiment runs."""
        interrupted = self.begin("--seconds", "10")
        interrupted.send_signal(signal.SIGINT)
        self.assertEqual(interrupted.wait(60), 130)
        self.assertEqual(left(interrupted.pid), [])
        killed = self.begin("--seconds", "10")
        killed.kill()
        killed.wait(60)
        self.assertNotEqual(left(killed.pid), [])
        both = [self.start(*self.arguments("--fault", "healthy", "--seconds", "2", "--keep", str(self.scratch / name)), stderr=subprocess.PIPE, text=True,
                           stdout=subprocess.DEVNULL) for name in "ab"]
        for process in both:
            self.assertEqual(process.wait(300), 0, process.stderr.read())
            self.assertEqual(left(process.pid), [])
        self.assertEqual(left(killed.pid), [])

    def test_says_what_is_wrong(self):
        listed = self.run_program(*self.arguments("--list"))
        self.assertEqual(listed.returncode, 0)
        self.assertEqual(len(listed.stdout.splitlines()), 14)
        for options in (["--fault", "none"], ["--seconds", "0"], ["--scale", "0"], ["--scale", "x"], ["--repeat", "0"]):
            self.assertEqual(self.run_program(*self.arguments(*options)).returncode, 2, options)
        nowhere = self.run_program(*self.arguments("--build", str(self.scratch)))
        self.assertEqual(nowhere.returncode, 1)
        self.assertIn("not built", nowhere.stderr)


@unittest.skipUnless(CAN, "only root with /dev/net/tun may make network namespaces and TUN devices")
class Tuning(support.Case):
    """Tests of the experiment that tunes a connection on an emulated path according to the verdicts of nlstat."""

    def setUp(self):
        super().setUp()
        support.program("examples/dpss/path_emulator")
        if os.geteuid() != 0 or self.run_program("ip", "netns", "add", f"nlt{os.getpid()}").returncode != 0:
            self.skipTest("no network namespaces here")
        subprocess.run(["ip", "netns", "delete", f"nlt{os.getpid()}"], check=True)

    def tune(self, *options):
        process = self.start(sys.executable, str(support.SOURCE / "examples/dpss/tuning_experiment"), "--build", str(support.BUILD), "--keep",
                             str(self.scratch / "out"), *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, errors = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(left(process.pid), [])
        return out

    def check_steps(self, out, changes):
        """The verdicts name the changes, in any order, and the path is the last limit."""
        steps = re.findall(r"^(buffers of 64 KiB|tcp_rmem|tcp_wmem|pipeline|BBR) .* +([0-9.]+) Mbit/s  (.*) \d+ %$", out, re.M)
        self.assertEqual({step[0] for step in steps[1:]}, changes, out)
        self.assertIn(steps[-1][2], ("path rate", "path rate, with a queue", "policed rate"), out)
        self.assertGreater(float(steps[-1][1]), 1.5 * float(steps[0][1]), out)
        if (support.BUILD / "nlv/nlv").exists():
            self.assertTrue(next((self.scratch / "out").glob("*.png")).read_bytes().startswith(b"\x89PNG"))

    def test_block_server(self):
        self.check_steps(self.tune("--rtt", "60", "--rate", "20", "--seconds", "3"), {"tcp_rmem", "tcp_wmem", "pipeline"})

    @unittest.skipUnless(shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") and shutil.which("curl"), "nginx and curl are not installed")
    def test_unmodified_programs(self):
        self.check_steps(self.tune("--program", "curl", "--rtt", "60", "--rate", "20", "--seconds", "3"), {"tcp_rmem", "tcp_wmem"})

    def test_rejects_impossible_paths(self):
        for options in (["--rtt", "0"], ["--rate", "x"], ["--loss", "101"], ["--seconds", "1"]):
            result = self.run_program(sys.executable, str(support.SOURCE / "examples/dpss/tuning_experiment"), *options)
            self.assertEqual(result.returncode, 2, result.stderr)


if __name__ == "__main__":
    support.main()
