"""An unreachable, slow or disconnected collector: no event that the user asked to keep is lost or duplicated."""
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

import support
from collector import Proxy

PROGRAM = r"""
#include <netlogger.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* client URL COUNT MICROSECONDS [FIRST]: logs numbers, pausing after every hundred. */
int main(int argc, char **argv)
{
    nl_log *log = nl_open("client", argv[1]);
    if (log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    int first = argc > 4 ? atoi(argv[4]) : 0;
    for (int i = first; i < first + atoi(argv[2]); i++) {
        NL_EVENT(log, NL_USAGE, "Step", "I", i, "TEXT", "some text");
        if (i % 100 == 0)
            usleep(atoi(argv[3]));
    }
    if (nl_close(log) != NL_OK)
        return fprintf(stderr, "%s\n", nl_error_message()), 2;
    return 0;
}
"""


# A resolver that hangs, as it does when no DNS server replies.
HANGING_RESOLVER = r"""
#include <netdb.h>
#include <unistd.h>
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **addresses)
{
    (void)host, (void)port, (void)hints, (void)addresses;
    sleep(600);
    return EAI_AGAIN;
}
"""


# Stops the sender once for some seconds while the collector accepts no more bytes, as a busy machine does.
LATE_SENDER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    int (*original)(struct pollfd *, nfds_t, int) = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
    static int stopped;
    char name[16] = "";
    int ready = original(fds, count, timeout);
    prctl(PR_GET_NAME, name);
    if (ready == 0 && (fds->events & POLLOUT) != 0 && strcmp(name, "netlogger-send") == 0 && !stopped++)
        sleep(5);
    return ready;
}
"""


# Forks while the log is opening its connection. The child prints how many sockets it has.
FORKING = r"""
#include <dirent.h>
#include <netlogger.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    nl_log *log = nl_open("forking", argv[argc - 1]);
    if (log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    if (fork() == 0) {
        int sockets = 0;
        char name[300], link[100];
        DIR *all = opendir("/proc/self/fd");
        for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
            snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
            ssize_t size = readlink(name, link, sizeof link);
            sockets += size > 6 && memcmp(link, "socket", 6) == 0;
        }
        printf("%d\n", sockets);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    nl_close(log);
    return 0;
}
"""


class Spool(support.Case):
    def setUp(self):
        super().setUp()
        self.program = self.compile_client(PROGRAM)
        self.output = self.scratch / "collected.log"
        self.spool = self.scratch / "spool"

    def collector(self, port, *options, output=None):
        netlogd = self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}",
                             "--output", output or self.output, *options, stderr=subprocess.PIPE, text=True)
        support.wait_until(lambda: "listening" in netlogd.stderr.readline(), what="netlogd listens")
        return netlogd

    def stop(self, netlogd):
        netlogd.terminate()
        netlogd.wait()

    def numbers(self, path=None):
        text = (path or self.output).read_text()
        return [int(n) for n in re.findall(r" NL.EVNT=Step I=(\d+) TEXT=\"some text\"\n", text)]

    def spooled(self):
        return list(self.spool.rglob("*.spool"))

    def spooled_size(self):
        try:
            return sum(path.stat().st_size for path in self.spooled())
        except FileNotFoundError:  # the program has removed a file meanwhile
            return 0

    def test_connections_that_are_cut(self):
        port = support.free_port()
        netlogd = self.collector(port)
        rng = random.Random(5)
        proxy = Proxy(port, [rng.randrange(1, 12000) for _ in range(12)])
        self.addCleanup(proxy.close)
        url = f"x-netlog://127.0.0.1:{proxy.port}?policy=block&block=60"
        result = self.run_program(self.program, url, "50000", "2000", timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.stop(netlogd)
        self.assertEqual(self.numbers(), list(range(50000)))
        self.assertEqual(proxy.cuts, [], "every cut was made")

    def test_away_from_the_start(self):
        """Text and blocks: events logged without a collector wait on disk, and the next run delivers them in order."""
        for options in ["", "&format=ulm"]:
            port = support.free_port()
            url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}{options}"
            result = self.run_program(self.program, url, "30000", "100", timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(self.spooled()) > 0, True)
            netlogd = self.collector(port)
            result = self.run_program(self.program, url, "1000", "0", "30000", timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.stop(netlogd)
            self.assertEqual(self.numbers(), list(range(31000)))
            self.assertEqual(self.spooled(), [])
            self.output.unlink()

    def test_away_for_a_while(self):
        port = support.free_port()
        netlogd = self.collector(port)
        url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}&timeout=20"
        client = self.start(self.program, url, "60000", "10000", stderr=subprocess.PIPE)
        support.wait_until(lambda: self.output.exists() and len(self.output.read_text()) > 100000, what="records come")
        self.stop(netlogd)
        support.wait_until(self.spooled, what="records go to disk")
        netlogd = self.collector(port)
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        self.stop(netlogd)
        self.assertEqual(self.numbers(), list(range(60000)))
        self.assertEqual(self.spooled(), [])

    def wait_for_records(self):
        support.wait_until(lambda: self.output.exists() and self.output.stat().st_size > 0, what="records come")

    def test_a_stopped_collector_that_continues(self):
        """Events go to the spool while the collector is stopped. Afterwards, it gets each of them once, in order."""
        for options in ["", "&timeout=1&clock=0.1", "&format=ulm"]:
            netlogd = self.collector(port := support.free_port())
            url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}{options}"
            client = self.start(self.program, url, "100000", "2000", stderr=subprocess.PIPE, text=True)
            self.wait_for_records()
            netlogd.send_signal(signal.SIGSTOP)
            support.wait_until(self.spooled, what="records go to disk")
            time.sleep(1.2)
            netlogd.send_signal(signal.SIGCONT)
            self.assertEqual(client.wait(60), 0, client.stderr.read())
            self.assertEqual(self.run_program(self.program, url, "1", "0", "100000").returncode, 0)
            self.stop(netlogd)
            self.assertEqual(self.numbers(), list(range(100001)))
            self.assertNotIn("NetLogger.Lost", self.output.read_text())
            self.assertEqual(self.spooled(), [])
            self.output.unlink()

    def test_a_program_that_ends_while_the_collector_is_stopped(self):
        """Closing the log ends in time and leaves the events to the next program. The second and third case send text, of which
        the kernel accepts a part of a write. In the third case, the system stops the sender for a while."""
        late = self.scratch / "late.so"
        self.run_compiler("cc", "-shared", "-fPIC", "-o", late, "-x", "c", "-", input=LATE_SENDER)
        cases = [("", {}), ("&format=ulm", {}), ("&format=ulm", {"LD_PRELOAD": str(late)})]
        for options, environment in cases:
            netlogd = self.collector(port := support.free_port())
            url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}&timeout=1&ring=64m{options}"
            client = self.start(self.program, url, "100000", "1000", stderr=subprocess.PIPE, text=True, env=os.environ | environment)
            self.wait_for_records()
            netlogd.send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            _, messages = client.communicate(timeout=60)
            self.assertLess(time.monotonic() - begin, 20)
            self.assertEqual(client.returncode, 0, messages)
            self.assertEqual(len(re.findall(f" events remain in the spool {self.spool}; this user's next program", messages)), 1, messages)
            netlogd.send_signal(signal.SIGCONT)
            self.assertEqual(self.run_program(self.program, url, "1", "0", "100000", timeout=60).returncode, 0)
            self.stop(netlogd)
            # The two programs have two connections, so only each program's records are in order.
            self.assertEqual(sorted(self.numbers()), list(range(100001)))
            self.assertEqual(self.spooled(), [])
            self.output.unlink()

    def hanging_peers(self):
        """Returns the ports of a peer that never replies and of a peer whose backlog is full."""
        silent = socket.create_server(("127.0.0.1", 0))
        busy = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.addCleanup(silent.close)
        self.addCleanup(busy.close)
        for _ in range(3):  # fills the backlog
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(busy.getsockname())
            self.addCleanup(waiting.close)
        return silent.getsockname()[1], busy.getsockname()[1]

    def test_a_fork_while_the_log_connects(self):
        """The child closes its copy of a connection that the parent is making."""
        program = self.compile_client(FORKING)
        silent, busy = self.hanging_peers()
        for url in [f"x-netlog://127.0.0.1:{silent}", f"x-netlogs://127.0.0.1:{silent}", f"x-netlog://127.0.0.1:{busy}"]:
            with self.subTest(url):
                result = self.run_program(program, f"{url}?spool={self.spool}&timeout=3")
                self.assertEqual((result.returncode, result.stdout), (0, "0\n"), result.stderr)

    def test_peers_that_hang(self):
        """A peer that never replies, a full backlog, a TLS handshake and a resolver that hang delay only the delivery."""
        silent, busy = self.hanging_peers()
        resolver = self.scratch / "resolver.so"
        self.run_compiler("cc", "-shared", "-fPIC", "-o", resolver, "-x", "c", "-", input=HANGING_RESOLVER)
        cases = [(f"x-netlog://127.0.0.1:{silent}", {}),
                 (f"x-netlogs://127.0.0.1:{silent}", {}),
                 (f"x-netlog://127.0.0.1:{busy}", {}),
                 ("x-netlog://localhost:1", {"LD_PRELOAD": str(resolver)})]
        clients = []
        for i, (url, environment) in enumerate(cases):
            spool = self.scratch / f"spool-{i}"
            client = self.start(self.program, f"{url}?spool={spool}&timeout=2", "50000", "1000", stderr=subprocess.PIPE, text=True,
                                env=os.environ | environment)
            clients.append((url, spool, client))
        begin = time.monotonic()
        for url, spool, client in clients:
            with self.subTest(url):
                _, messages = client.communicate(timeout=60)
                self.assertEqual(client.returncode, 0, messages)
                self.assertLess(time.monotonic() - begin, 20)
                self.assertIn(f"events remain in the spool {spool}", messages)
                netlogd = self.collector(port := support.free_port())
                folder, = spool.iterdir()  # the test pretends that netlogd has the address of the peer
                folder.rename(spool / f"x-netlog___127.0.0.1_{port}")
                self.assertEqual(self.run_program(self.program, f"x-netlog://127.0.0.1:{port}?spool={spool}", "1", "0", "50000",
                                                  timeout=60).returncode, 0)
                self.stop(netlogd)
                self.assertEqual(self.numbers(), list(range(50001)))
                self.output.unlink()

    def test_a_full_spool_while_the_collector_is_stopped(self):
        netlogd = self.collector(port := support.free_port())
        url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}&spool_size=1m"
        client = self.start(self.program, url, "300000", "100", stderr=subprocess.PIPE, text=True)
        self.wait_for_records()
        netlogd.send_signal(signal.SIGSTOP)
        support.wait_until(lambda: self.spooled_size() > 900000, what="the spool is full")
        time.sleep(0.5)
        netlogd.send_signal(signal.SIGCONT)
        _, messages = client.communicate(timeout=60)
        # On a busy machine, the program ends before the log is empty. nlrecover delivers the rest, and netlogd stores it once.
        self.assertEqual(self.run_program(support.program("nltools/nlrecover"), timeout=60).returncode, 0)
        self.stop(netlogd)
        numbers = self.numbers()
        told = re.search(r"(\d+) lost", messages)
        lost = re.findall(r" NL.EVNT=NetLogger.Lost COUNT=(\d+) ", self.output.read_text())
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(len(numbers) + (int(told[1]) if told else sum(map(int, lost))), 300000, messages)

    def test_a_log_that_is_closed_while_its_spool_is_full(self):
        """Closing the log waits for a slow collector, which makes space in the spool, and delivers the events in the rings."""
        netlogd = self.collector(port := support.free_port())
        proxy = Proxy(port, [], pause=0.003)
        self.addCleanup(proxy.close)
        url = f"x-netlog://127.0.0.1:{proxy.port}?spool={self.spool}&spool_size=1m&timeout=30&ring=64m"
        result = self.run_program(self.program, url, "600000", "0", timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("is full", result.stderr)
        self.stop(netlogd)
        self.assertEqual(self.numbers(), list(range(600000)))
        self.assertEqual(self.spooled(), [])

    def test_acknowledgements_that_take_long(self):
        """Records go to the spool or to the backup only if many of them wait, not after a certain number of bytes."""
        backup = self.scratch / "backup.nlb"
        for store in f"spool={self.spool}", f"backup=file:{backup}":
            netlogd = self.collector(port := support.free_port())
            proxy = Proxy(port, [], answer_pause=0.05)
            self.addCleanup(proxy.close)
            url = f"x-netlog://127.0.0.1:{proxy.port}?{store}&ring=16m"
            client = self.start(self.program, url, "200000", "1000", stderr=subprocess.PIPE, text=True)
            spooled = []
            ended = False
            while not ended:
                ended = client.poll() is not None
                spooled += self.spooled()
                time.sleep(0.01)
            self.assertEqual(client.returncode, 0, client.stderr.read())
            self.stop(netlogd)
            self.assertEqual(self.numbers(), list(range(200000)))
            self.assertEqual(spooled, [])
            self.output.unlink()
        self.assertFalse(backup.exists())

    def test_a_full_spool_that_drops_what_is_being_sent(self):
        """Records that the spool drops while they are being sent count as lost only if the collector does not get them."""
        # The kernel's buffers can hold 10 MB of text, about 130,000 records.
        for count, options in [(800000, ""), (400000, "&format=ulm")]:
            netlogd = self.collector(port := support.free_port())
            url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}&spool_size=1m&spool_full=oldest&ring=64m{options}"
            client = self.start(self.program, url, str(count), "100", stderr=subprocess.PIPE, text=True)
            self.wait_for_records()
            netlogd.send_signal(signal.SIGSTOP)
            support.wait_until(lambda: self.spooled_size() > 900000, what="the spool is full")
            time.sleep(0.5)
            netlogd.send_signal(signal.SIGCONT)
            _, messages = client.communicate(timeout=60)
            self.assertEqual(client.returncode, 0, messages)
            self.assertEqual(self.run_program(self.program, url, "1", "0", str(count), timeout=60).returncode, 0)
            self.stop(netlogd)
            self.assertEqual(self.spooled(), [])
            numbers = self.numbers()
            lost = [int(n) for n in re.findall(r" NL.EVNT=NetLogger.Lost COUNT=(\d+) ", self.output.read_text())]
            self.assertEqual(numbers, sorted(set(numbers)))
            self.assertGreater(sum(lost), 0)
            self.assertEqual(len(numbers) + sum(lost), count + 1, lost)
            self.output.unlink()

    def test_a_full_spool_keeps_the_newest_or_the_oldest(self):
        port = support.free_port()
        for policy in ["oldest", "stop"]:
            url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}&spool_size=1m&spool_full={policy}&block=0.1&format=ulm"
            ring = "&ring=16m" if policy == "oldest" else ""  # the ring holds all events, so the last event is never dropped before the spool
            result = self.run_program(self.program, url + ring, "100000", "500", timeout=60)
            size = self.spooled_size()
            self.assertLessEqual(size, 1 << 20)
            netlogd = self.collector(port, "--recover", "0")
            self.run_program(self.program, url + "&timeout=30", "1", "0", "100000", timeout=60)
            self.assertEqual(self.spooled(), [], "all that was spooled is handed over")
            recovered = self.run_program(support.program("nltools/nlrecover"), timeout=60)
            self.assertEqual(recovered.returncode, 0, recovered.stderr)
            self.stop(netlogd)
            numbers = self.numbers()
            lost = sum(int(n) for n in re.findall(r" NL.EVNT=NetLogger.Lost COUNT=(\d+) ", self.output.read_text()))
            self.assertEqual(len(numbers), len(set(numbers)))
            self.assertEqual(len(numbers) + lost, 100001, "what is not there is counted")
            self.assertIn(100000, numbers)
            if policy == "oldest":
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(99999, numbers)
                self.assertEqual(numbers, sorted(numbers))
            else:
                self.assertEqual(result.returncode, 2)
                self.assertIn("nlrecover delivers them from ", result.stderr)
                self.assertIn("is full", result.stderr)
                self.assertIn(0, numbers)
            self.output.unlink()

    def test_a_full_spool_counts_the_blocks_that_it_drops(self):
        port = support.free_port()
        url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}&spool_size=1m&spool_full=oldest&policy=block&block=60"
        result = self.run_program(self.program, url, "600000", "100", timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        netlogd = self.collector(port, "--recover", "0", "--level", "Debug")
        result = self.run_program(self.program, url + "&timeout=30", "1", "0", "600000", timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.stop(netlogd)
        numbers, text = self.numbers(), self.output.read_text()
        lost = [int(n) for n in re.findall(r" HOST=\S+ PROG=client LVL=Warning NL.EVNT=NetLogger.Lost COUNT=(\d+) "
                                           r"REASON=\"the spool was full\"\n", text)]
        self.assertEqual(len(lost), 1)
        self.assertGreater(lost[0], 1000)
        self.assertEqual(len(numbers) + lost[0], 600001)
        self.assertEqual(numbers, list(range(lost[0], 600001)))
        self.assertLess(text.index("NetLogger.Lost"), text.index("NL.EVNT=Step"), "in place of what is missing")
        # The program announces the numbers of the dropped blocks. The collector counts the records as dropped, and has no gap.
        messages = netlogd.stderr.read()
        dropped = re.findall(r"NL.EVNT=Netlogd.Lost PEER=\S+ COUNT=(\d+) DROPPED=(\d+) ", messages)
        self.assertEqual(dropped, [(str(lost[0]), str(lost[0]))], messages)
        self.assertRegex(messages, rf"NL.EVNT=Netlogd.Stop.* LOST={lost[0]} ")

    def test_a_backup_destination(self):
        port = support.free_port()
        backup = self.scratch / "backup.log"
        netlogd = self.collector(port)
        url = f"x-netlog://127.0.0.1:{port}?format=ulm&backup=file:{backup}"
        client = self.start(self.program, url, "40000", "10000", stderr=subprocess.PIPE)
        support.wait_until(lambda: self.output.exists() and len(self.output.read_text()) > 50000, what="records come")
        self.stop(netlogd)
        support.wait_until(lambda: backup.exists() and len(backup.read_text()) > 50000, what="the backup is written")
        netlogd = self.collector(port)
        status, messages = client.wait(60), client.stderr.read()
        # The collector may have ended before it had read all text; nl_close then reports that text may be lost.
        self.assertEqual(status, 2 if b"before it had read all text" in messages else 0, messages)
        self.stop(netlogd)
        first, second = self.numbers(), self.numbers(backup)
        self.assertEqual(first, sorted(first))
        self.assertEqual(second, list(range(second[0], second[-1] + 1)))
        # Text is not acknowledged: lines in the kernel's buffers at the collector's end may be missing, but no others.
        self.assertLess(40000 - len(first) - len(second), 3000)
        self.assertEqual(first[-1], 39999, "the collector is used again when it is back")

    def test_a_backup_while_the_collector_is_stopped(self):
        """Events go to the backup long before the timeout, and none is lost. Later events go to the collector again."""
        for count, options in [(support.representative(3000000, 1200000), ""), (support.representative(600000, 300000), "&format=ulm")]:
            netlogd, backup = self.collector(port := support.free_port()), self.scratch / "backup.log"
            url = f"x-netlog://127.0.0.1:{port}?backup=file:{backup}&timeout=300&ring=64m{options}"
            client = self.start(self.program, url, str(count), "200", stderr=subprocess.PIPE, text=True)
            self.wait_for_records()
            netlogd.send_signal(signal.SIGSTOP)
            support.wait_until(lambda: backup.exists() and backup.stat().st_size > 0, what="the backup is written")
            netlogd.send_signal(signal.SIGCONT)
            _, messages = client.communicate(timeout=120)
            self.assertEqual(client.returncode, 0, messages)
            self.assertIn("accepts events too slowly", messages)
            self.stop(netlogd)
            text = self.run_program(support.program("nlsort/nlsort"), "--format", "ulm", backup).stdout
            first, second = self.numbers(), [int(n) for n in re.findall(r" NL.EVNT=Step I=(\d+) ", text)]
            self.assertEqual(len(second), len(set(second)))
            self.assertEqual(set(first) | set(second), set(range(count)))
            self.assertIn(count - 1, first)
            self.output.unlink()
            backup.unlink()

    def test_a_backup_that_fails_while_the_collector_is_stopped(self):
        """The events stay in memory, and the collector gets them when it continues, also if the log is already being closed."""
        count = 600000
        for pause in "200", "20":
            with self.subTest(pause=pause):
                netlogd = self.collector(port := support.free_port())
                url = f"x-netlog://127.0.0.1:{port}?backup=file:{self.scratch}/none/backup.log&timeout=300&ring=64m&format=ulm"
                client = self.start(self.program, url, str(count), pause, stderr=subprocess.PIPE, text=True)
                self.wait_for_records()
                netlogd.send_signal(signal.SIGSTOP)
                self.assertIn("accepts events too slowly", client.stderr.readline())
                netlogd.send_signal(signal.SIGCONT)
                _, messages = client.communicate(timeout=120)
                self.assertEqual(client.returncode, 0, messages)
                self.stop(netlogd)
                self.assertEqual(sorted(set(self.numbers())), list(range(count)))
                self.output.unlink()

    def test_a_backup_collector_that_stalls(self):
        """The log continues to take events. The spool gets them, or the first collector as soon as it is back."""
        stalled, _ = self.hanging_peers()
        for count, options, number in [(400000, "", 0), (400000, "&format=ulm", 1)]:
            both = f"&spool={self.spool}", "&ring=64m"
            for stores in support.representative(both, both[number:number + 1]):
                with self.subTest(options=options, stores=stores):
                    port = support.free_port()
                    url = f"x-netlog://127.0.0.1:{port}?backup=x-netlog://127.0.0.1:{stalled}&timeout=300{options}{stores}"
                    client = self.start(self.program, url, str(count), "500", stderr=subprocess.PIPE, text=True)
                    if "spool" in stores:
                        support.wait_until(self.spooled, what="records go to disk")
                    else:
                        support.wait_until(lambda: "Connection refused" in client.stderr.readline(), what="the first attempt")
                    netlogd = self.collector(port)
                    _, messages = client.communicate(timeout=60)
                    self.assertEqual(client.returncode, 0, messages)
                    self.assertEqual(self.run_program(self.program, url, "1", "0", str(count)).returncode, 0)
                    self.stop(netlogd)
                    self.assertEqual(self.numbers(), list(range(count + 1)))
                    self.assertEqual(self.spooled(), [])
                    self.output.unlink()

    def test_a_log_that_is_closed_while_both_collectors_stall(self):
        """Closing ends in time, and the events stay for nlrecover, also those that the senders have begun to send."""
        count = 50000
        for options in "", "&format=ulm":
            with self.subTest(options=options):
                stopped = [self.collector(port := support.free_port())]
                url = f"x-netlog://127.0.0.1:{port}"
                stopped.append(self.collector(port := support.free_port(), output=self.scratch / "second.log"))
                url += f"?backup=x-netlog://127.0.0.1:{port}&timeout=1&ring=16m{options}"
                for netlogd in stopped:
                    netlogd.send_signal(signal.SIGSTOP)
                begun = time.monotonic()
                result = self.run_program(self.program, url, str(count), "0")
                self.assertLess(time.monotonic() - begun, 20)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(f"{count} events not delivered; nlrecover delivers them", result.stderr)
                for netlogd in stopped:
                    netlogd.send_signal(signal.SIGCONT)
                self.assertEqual(self.run_program(support.program("nltools/nlrecover"), timeout=60).returncode, 0)
                for netlogd in stopped:
                    self.stop(netlogd)
                # Blocks have the same numbers in both logs. The kernel's buffers may contain text for both collectors.
                second = self.scratch / "second.log"
                numbers = self.numbers() + self.numbers(second)
                self.assertEqual(sorted(set(numbers)), list(range(count)))
                for output in self.output, second:
                    self.assertEqual(len(self.numbers(output)), len(set(self.numbers(output))))
                    output.unlink()

    def test_a_collector_says_what_to_log(self):
        port = support.free_port()
        asked = self.scratch / "activation"
        netlogd = self.collector(port, "--activation", asked)
        url = f"x-netlog://127.0.0.1:{port}"
        client = self.start(self.program, url, "100000000", "2000")
        size = lambda: self.output.stat().st_size if self.output.exists() else 0
        support.wait_until(lambda: size() > 50000, what="records come")
        asked.write_text("level Error\ndestination file:/tmp/x\n")
        said = lambda: self.output.read_text()
        support.wait_until(lambda: "NetLogger.Activation " in said(), what="the level is changed")
        self.assertRegex(said(), r"Activation.Error BY=collector MSG=.*a collector may set only a collector as destination")
        support.wait_until(lambda: self.stands_still(size), what="nothing is logged any more")
        asked.unlink()
        before = size()
        support.wait_until(lambda: size() > before + 50000, what="the level is as before")
        client.kill()
        self.stop(netlogd)

    def stands_still(self, size):
        before = size()
        time.sleep(0.5)
        return size() == before

    def test_a_row_without_a_valid_state(self):
        """The records of a row whose state is invalid or missing are reported, and stay in their files."""
        url = f"x-netlog://127.0.0.1:{support.free_port()}?spool={self.spool}"
        self.assertEqual(self.run_program(self.program, url, "1000", "0").returncode, 0)
        row, = self.spool.rglob("*.row")
        segment, = self.spooled()
        for damage in [lambda: row.write_text("damaged"), row.unlink]:
            damage()
            before = segment.read_bytes()
            for environment in [{}, {"NETLOGGER_QUIET": "1"}]:
                result = self.run_program(self.program, url, "0", "0", env=os.environ | environment)
                self.assertEqual(result.returncode, 0, result.stderr)
                path = re.escape(str(row.with_suffix("")))
                reported = re.findall(rf"{path}: this part of the spool is damaged, .* you can remove the files {path}\*", result.stderr)
                self.assertEqual(len(reported), 0 if environment else 1, result.stderr)
            self.assertEqual(segment.read_bytes(), before)

    def test_two_programs_and_one_spool(self):
        port = support.free_port()
        url = f"x-netlog://127.0.0.1:{port}?spool={self.spool}"
        clients = [self.start(self.program, url, "10000", "100", str(i * 10000)) for i in range(3)]
        for client in clients:
            self.assertEqual(client.wait(60), 0)
        netlogd = self.collector(port)
        self.assertEqual(self.run_program(self.program, url, "1", "0", "30000", timeout=60).returncode, 0)
        self.stop(netlogd)
        self.assertEqual(sorted(self.numbers()), list(range(30001)))

    def test_a_spool_that_cannot_be(self):
        (self.scratch / "file").write_text("")
        url = f"x-netlog://127.0.0.1:{support.free_port()}?spool={self.scratch}/file"
        result = self.run_program(self.program, url, "1", "0")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Not a directory", result.stderr)

    def test_a_spool_of_another_user(self):
        self.spool.mkdir()
        url = f"x-netlog://127.0.0.1:{support.free_port()}?spool={self.spool}"
        self.spool.chmod(0o777)
        result = self.run_program(self.program, url, "1", "0")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"other users can write to {self.spool}, which belongs to user ID {os.geteuid()}", result.stderr)
        self.spool.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(self.spool, 65534, 65534)
            result = self.run_program(self.program, url, "1", "0")
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"{self.spool} belongs to user ID 65534, not to user ID 0", result.stderr)
            os.chown(self.spool, 0, 0)
        result = self.run_program(self.program, url, "1", "0")
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    support.main()
