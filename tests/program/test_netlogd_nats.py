"""netlogd with NATS JetStream and real servers: kills cause neither losses nor duplicates; errors are reported."""
import collections
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.request

import blocks
import collector
import support

PROGRAM = r"""
#include <netlogger.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/*
 * client URL PROG COUNT MICROSECONDS: logs numbers, pausing after every hundred. Who has logged all while netlogd is
 * away waits until it is back, for a minute: nl_close tries once.
 */
int main(int argc, char **argv)
{
    nl_log *log = argc > 4 ? nl_open(argv[2], argv[1]) : NULL;
    if (log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    for (int i = 0; i < atoi(argv[3]); i++) {
        NL_EVENT(log, NL_USAGE, "Step", "I", i, "TEXT", "some text");
        if (i % 100 == 0)
            usleep((useconds_t)atoi(argv[4]));
    }
    for (int i = 0; i < 600 && nl_flush(log) != NL_OK; i++)
        usleep(100000);
    if (nl_close(log) != NL_OK)
        return fprintf(stderr, "%s\n", nl_error_message()), 2;
    return 0;
}
"""

HOLD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* A request for messages waits until the file GATE exists. While a request waits, the file HELD exists. */
int natsConnection_PublishRequestString(void *c, const char *subject, const char *reply, const char *text)
{
    int (*real)(void *, const char *, const char *, const char *) = dlsym(RTLD_NEXT, "natsConnection_PublishRequestString");
    while (strstr(subject, "MSG.NEXT") != NULL && access(getenv("GATE"), F_OK) != 0) {
        close(open(getenv("HELD"), O_CREAT | O_WRONLY, 0600));
        usleep(10000);
    }
    return real(c, subject, reply, text);
}
"""

SERVER = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")


class Case(collector.Case):
    def setUp(self):
        super().setUp()
        if SERVER is None:
            self.skipTest("nats-server is not installed")

    # ---- servers ----

    def cluster(self, count, extra=""):
        """Starts servers, and sets self.ports and self.servers. They have a leader when their streams can be made."""
        self.ports = [support.free_port() for _ in range(count)]
        routes = [support.free_port() for _ in range(count)]
        self.configs = []
        for i in range(count):
            config = self.scratch / f"nats{i}.conf"
            config.write_text(
                f'server_name: n{i}\nlisten: "127.0.0.1:{self.ports[i]}"\n'
                f'jetstream {{ store_dir: "{self.scratch}/js{i}", max_file_store: 2G, max_memory_store: 64M }}\n' + extra +
                ("" if count == 1 else
                 f'cluster {{ name: c, listen: "127.0.0.1:{routes[i]}", routes: ['
                 + ", ".join(f'"nats://127.0.0.1:{r}"' for r in routes) + "] }\n"))
            self.configs.append(config)
        self.servers = [self.start_server(i) for i in range(count)]
        for port in self.ports:
            support.wait_until(lambda p=port: support.can_connect(p), what="a NATS server")

    def start_server(self, i):
        with open(self.scratch / f"nats{i}.log", "ab") as log:
            return self.start(SERVER, "-c", self.configs[i], stdout=log, stderr=log)

    def place(self, stream="S"):
        return "nats://" + ",".join(f"127.0.0.1:{p}" for p in self.ports) + f"/{stream}"

    def output_url(self, options="", place=None, name="a"):
        return f"{place or self.place()}?spool={self.scratch}/spool-{name}&{options}".rstrip("&")

    # ---- netlogds ----

    def launch(self, name, *arguments):
        """Starts a netlogd whose messages go to NAME.said."""
        with open(self.scratch / f"{name}.said", "ab") as said:
            return self.start(self.netlogd, "--foreground", *arguments, stderr=said)

    def heard(self, name):
        path = self.scratch / f"{name}.said"
        return path.read_text(errors="replace") if path.exists() else ""

    def launch_publisher(self, url, port, name="a"):
        process = self.launch(name, "--listen", f"x-netlog://127.0.0.1:{port}", "--output", url)
        support.wait_until(lambda: process.poll() is not None or support.can_connect(port), what="netlogd listens")
        self.assertIsNone(process.poll(), self.heard(name))
        return process

    def launch_reader(self, name, options="", output=None, place=None):
        return self.launch(name, "--listen", f"{place or self.place()}?{options}", "--output",
                           output or self.scratch / f"{name}.log")

    def stop(self, process):
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def events(self, *names):
        """Returns how often each event is in the logs of these readers."""
        found = collections.Counter()
        for name in names:
            path = self.scratch / f"{name}.log"
            if path.exists():
                found.update(re.findall(r"^DATE=\S+ HOST=\S+ PROG=(\S+) LVL=\S+ NL.EVNT=Step I=(\d+) ", path.read_text(),
                                        re.MULTILINE))
        return found

    def wait_for_events(self, count, *names, seconds=120):
        def enough():
            return sum(self.events(*names).values()) >= count or None
        try:
            support.wait_until(enough, seconds, what=f"{count} events")
        except AssertionError:
            self.fail("only %d of %d; %s" % (sum(self.events(*names).values()), count,
                                             {n: self.heard(n)[-600:] for n in ("a",) + names}))

    # ---- a client of NATS that sends what netlogd would not send ----

    def talk(self, port, *commands):
        """Sends lines of the NATS protocol. Returns the responses up to the acknowledgement of the last line."""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            stream = s.makefile("rwb")
            stream.readline()
            stream.write(b'CONNECT {"verbose":false,"headers":true}\r\n')
            for command in commands:
                stream.write(command)
            stream.write(b"PING\r\n")
            stream.flush()
            answer = b""
            while b"PONG\r\n" not in answer and (line := stream.readline()):
                answer += line
            return answer

    def publish(self, port, subject, data):
        return self.talk(port, f"PUB {subject} {len(data)}\r\n".encode() + data + b"\r\n")

    def api(self, port, subject, request=b""):
        """Sends a request to JetStream. Returns the response as text."""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            stream = s.makefile("rwb")
            stream.readline()
            stream.write(b'CONNECT {"verbose":false}\r\nSUB answers.here 1\r\n')
            stream.write(f"PUB $JS.API.{subject} answers.here {len(request)}\r\n".encode() + request + b"\r\n")
            stream.flush()
            while not (line := stream.readline()).startswith(b"MSG "):
                self.assertNotEqual(line, b"")
            return stream.read(int(line.split()[-1])).decode()


class Nats(Case):
    CLIENTS, EVENTS = 6, 20000
    more = 0  # events of other programs

    def load(self, port, pause=2000):
        url = f"x-netlog://127.0.0.1:{port}?policy=block&block=60"
        return [self.start(self.program, url, f"client{i}", self.EVENTS, pause, stderr=subprocess.PIPE, text=True)
                for i in range(self.CLIENTS)]

    def let_each_have_a_share(self, port, *names):
        """The shard of a program's stream is random. Therefore, other programs log one event each until every reader has some."""
        for i in range(100):
            client = self.start(self.program, f"x-netlog://127.0.0.1:{port}", f"more{i}", "1", "0")
            self.assertEqual(client.wait(60), 0)
            self.more += 1
            self.wait_for_events(self.more, *names)
            if all(self.events(name) for name in names):
                return

    def check(self, names):
        total = self.CLIENTS * self.EVENTS + self.more
        self.wait_for_events(total, *names)
        found = self.events(*names)
        twice = [e for e, n in found.items() if n > 1]
        self.assertEqual(twice[:5], [], f"{len(twice)} events are there more than once")
        self.assertEqual(len(found), total)
        for name in names:
            self.assertGreater(len(self.events(name)), 0, f"{name} had no share")

    def test_everybody_is_killed_once(self):
        self.program = self.compile_client(PROGRAM)
        self.cluster(3)
        port = support.free_port()
        url = self.output_url("replicas=3&shards=4")
        a = self.launch_publisher(url, port)
        readers = {n: self.launch_reader(n, f"replicas=3&durable=archive&share={i}/2") for i, n in ((1, "b"), (2, "c"))}
        self.let_each_have_a_share(port, "b", "c")
        clients = self.load(port)
        quarter = self.CLIENTS * self.EVENTS // 5
        self.wait_for_events(quarter // 2, "b", "c")
        self.kill(self.servers[0])
        self.wait_for_events(quarter, "b", "c")
        self.kill(a)
        a = self.launch_publisher(url, port)
        self.wait_for_events(2 * quarter, "b", "c")
        self.kill(readers["b"])
        readers["b"] = self.launch_reader("b", "replicas=3&durable=archive&share=1/2")
        self.servers[0] = self.start_server(0)
        self.wait_for_events(3 * quarter, "b", "c")
        self.kill(readers["c"])
        readers["c"] = self.launch_reader("c", "replicas=3&durable=archive&share=2/2")
        for client in clients:
            self.assertEqual(client.wait(120), 0, client.stderr.read() + self.heard("a"))
        self.check(["b", "c"])
        for process in [a, *readers.values()]:
            self.stop(process)

    def test_an_archive_and_another_each_have_all(self):
        self.program = self.compile_client(PROGRAM)
        self.EVENTS = 3000
        self.cluster(1)
        port = support.free_port()
        a = self.launch_publisher(self.output_url("messages=shard&zstd=1"), port)
        clients = self.load(port, 0)
        for client in clients:
            self.assertEqual(client.wait(60), 0)
        first = self.launch_reader("b", "durable=one")
        second = self.launch_reader("c", "durable=two")
        for name in "bc":
            self.check([name])
        for process in (a, first, second):
            self.stop(process)

    def test_text_by_program(self):
        self.cluster(1)
        port = self.port = support.free_port()
        self.launch_publisher(self.output_url(), port)
        lines = [f"DATE=20260101000000.{i:06d} HOST=web{i % 3}.example.com PROG=p*{i % 2} LVL=Usage NL.EVNT=Step I={i} T=x\n"
                 for i in range(300)]
        self.send("".join(lines).encode())
        self.launch_reader("b")
        support.wait_until(lambda: self.scratch.joinpath("b.log").exists() and
                           len(self.scratch.joinpath("b.log").read_text().splitlines()) >= 300, what="the lines")
        self.assertEqual(sorted(self.scratch.joinpath("b.log").read_text().splitlines(True)), sorted(lines))
        subjects = "".join(self.api(self.ports[0], f"STREAM.INFO.S-{i}", b'{"subjects_filter":">"}') for i in range(1, 5))
        found = set(re.findall(r'"(netlogger\.[^"]*)\.\d":\d', subjects))
        self.assertEqual(found, {f"netlogger.web{i % 3}%2Eexample%2Ecom.p%2A{i % 2}" for i in range(6)})

    def test_garbage_of_others(self):
        self.cluster(1)
        reader = self.launch_reader("b", "shards=1&subject=log")
        support.wait_until(lambda: '"name":"netlogd"' in self.api(self.ports[0], "CONSUMER.INFO.S.netlogd"),
                           what="the consumer")
        self.publish(self.ports[0], "log.h.p.1", b"NLB1" + b"\xff" * 300)
        self.publish(self.ports[0], "log.h.p.1", b"what is this?")
        self.publish(self.ports[0], "log.h.p.1", b"")
        self.publish(self.ports[0], "log.h.p.1", b"DATE=20260101000000.000001 HOST=h PROG=p LVL=Usage NL.EVNT=Step I=1 T=x")
        self.wait_for_events(1, "b")
        support.wait_until(lambda: re.search(r'"num_ack_pending":0,.*"num_pending":0', self.api(
            self.ports[0], "CONSUMER.INFO.S.netlogd")), what="all are acknowledged")
        support.wait_until(lambda: self.heard("b").count("Netlogd.Malformed") >= 2, what="they are reported")
        self.stop(reader)

    def test_nobody_waits_for_what_libnats_waits_for(self):
        """While libnats reconnects, its calls take long, such as the calls by which a reader acknowledges."""
        self.cluster(1)
        source, held, gate = self.scratch / "hold.c", self.scratch / "held", self.scratch / "gate"
        source.write_text(HOLD)
        result = self.run_program(*support.CC.split(), "-shared", "-fPIC", "-o", self.scratch / "hold.so", source, "-ldl")
        self.assertEqual(result.returncode, 0, result.stderr)
        environment = dict(os.environ, LD_PRELOAD=str(self.scratch / "hold.so"), HELD=str(held), GATE=str(gate),
                           ASAN_OPTIONS="verify_asan_link_order=0")
        port, control = support.free_port(), self.scratch / "control"
        with open(self.scratch / "b.said", "ab") as said:
            reader = self.start(self.netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--listen",
                                f"{self.place()}?shards=1", "--output", self.scratch / "b.log", "--control",
                                f"unix:{control}", stderr=said, env=environment)
        support.wait_until(held.exists, what="that it waits")
        for _ in range(3):
            result = self.run_program(support.program("netlogd/netlogctl"), "--control", control, "clients")
            self.assertEqual(result.returncode, 0, result.stderr)
        gate.touch()
        self.publish(self.ports[0], "netlogger.h.p.1", b"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Step I=1 T=x")
        self.wait_for_events(1, "b")
        self.stop(reader)

    def test_another_reads_the_same_share(self):
        self.cluster(1)
        first = self.launch_reader("b")
        support.wait_until(lambda: '"name":"netlogd"' in self.api(self.ports[0], "CONSUMER.INFO.S-4.netlogd"),
                           what="the consumer")
        self.launch_reader("c")
        support.wait_until(lambda: "another netlogd process is reading the same share" in self.heard("c"), what="the second reader of a share is refused")
        self.publish(self.ports[0], "netlogger.h.p.1", b"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Step I=1 T=x")
        self.wait_for_events(1, "b")
        self.kill(first)
        self.publish(self.ports[0], "netlogger.h.p.1", b"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Step I=2 T=x")
        self.wait_for_events(1, "c")

    def test_a_full_stream_holds_up_and_goes_on(self):
        self.program = self.compile_client(PROGRAM)
        self.cluster(1)
        port = support.free_port()
        self.launch_publisher(self.output_url("shards=1&max_bytes=200k"), port)
        clients = self.load(port, 0)
        for client in clients:
            self.assertEqual(client.wait(60), 0)
        reader = self.launch_reader("b", "shards=1")
        support.wait_until(lambda: len(self.events("b")) > 500, what="what is there")
        time.sleep(1)
        self.assertLess(len(self.events("b")), self.CLIENTS * self.EVENTS // 2)
        # The operator of the servers enlarges the stream.
        info = self.api(self.ports[0], "STREAM.INFO.S")
        config = re.search(r'"config":(\{.*?\}),"created"', info).group(1).replace('"max_bytes":204800', '"max_bytes":100000000')
        self.assertNotIn("error", self.api(self.ports[0], "STREAM.UPDATE.S", config.encode()))
        # nats-server 2.9 accepts a message that fits without the store's overhead, and removes its oldest message to make space.
        if int(re.search(r'"first_seq":(\d+)', self.api(self.ports[0], "STREAM.INFO.S")).group(1)) > 1:
            self.skipTest("the server has removed a message from a stream that discards new ones")
        self.check(["b"])
        self.stop(reader)

    def test_no_server_and_then_one(self):
        self.program = self.compile_client(PROGRAM)
        self.EVENTS = 200
        self.ports = [support.free_port()]
        port, late = support.free_port(), self.ports[0]
        self.launch_publisher(self.output_url(), port)
        reader = self.launch_reader("b")
        support.wait_until(lambda: "cannot connect; is nats-server running there? (retrying)" in self.heard("b"), what="the refused connection is reported")
        for client in self.load(port, 0):
            self.assertEqual(client.wait(60), 0)
        self.cluster(1)
        text = self.configs[0].read_text().replace(str(self.ports[0]), str(late))
        self.configs[0].write_text(text.replace("js0", "other"))
        self.servers.append(self.start_server(0))
        self.check(["b"])
        self.stop(reader)

    def test_credentials(self):
        self.cluster(1, 'authorization { user: "u", password: "p%x" }\n')
        good, bad = (f"nats://{u}@127.0.0.1:{self.ports[0]}/S" for u in ("u:p%25x", "u:wrong"))
        self.launch_reader("b", place=bad)
        support.wait_until(lambda: "Authorization" in self.heard("b"), what="the refused user is reported")
        self.assertNotIn("wrong", self.heard("b"))
        file = self.scratch / "password"
        file.write_text("p%x\n")
        self.launch_reader("c", f"user=u&password_file={file}")
        self.port = support.free_port()
        self.launch_publisher(self.output_url(place=good), self.port)
        self.send(b"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Step I=1 T=x\n")
        self.wait_for_events(1, "c")

    def test_within_tls(self):
        authority, other = collector.Authority(self, "house"), collector.Authority(self, "other")
        server, client = authority.certify("server"), authority.certify("client")
        self.cluster(1, f'tls {{ cert_file: "{server}", key_file: "{server}", ca_file: "{authority.ca}", verify: true }}\n')
        tls = f"tls=yes&ca={authority.ca}&cert={client}&key={client}"
        self.port = support.free_port()
        self.launch_publisher(self.output_url(tls), self.port)
        self.send(b"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Step I=1 T=x\n")
        self.launch_reader("b", tls)
        self.wait_for_events(1, "b")
        stranger = other.certify("client")
        for name, options in (("c", f"ca={other.ca}"), ("d", f"ca={authority.ca}"),
                              ("e", f"ca={authority.ca}&cert={stranger}&key={stranger}"), ("f", f"{tls}&name=elsewhere")):
            self.launch_reader(name, f"{options}&durable={name}")
            support.wait_until(lambda: "retrying" in self.heard(name), what=f"{name} is told")
        self.assertEqual(sum(self.events(*"cdef").values()), 0)

    def test_counts(self):
        self.cluster(1)
        control, port = self.scratch / "control", support.free_port()
        self.launch("b", "--listen", f"{self.place()}?shards=1", "--output", self.scratch / "b.log", "--control",
                    f"unix:{control}", "--metrics", f"http://127.0.0.1:{port}")
        support.wait_until(lambda: '"name":"netlogd"' in self.api(self.ports[0], "CONSUMER.INFO.S.netlogd"),
                           what="the consumer")
        for i in range(3):
            self.publish(self.ports[0], "netlogger.h.p.1", 2 * (
                b"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Step I=%d T=x\n" % i))
        self.wait_for_events(6, "b")
        status = json.loads(self.run_program(support.program("netlogd/netlogctl"), "--control", control, "--json",
                                             "status").stdout)
        self.assertEqual([status[f"NATS.{name}"] for name in ("RECORDS", "MESSAGES", "AGAIN", "AWAY")], [6, 3, 0, 0])
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20).read().decode()
        self.assertIn("netlogd_nats_messages_total 3\n", text)
        self.assertIn("netlogd_nats_away 0\n", text)
        self.kill(self.servers[0])
        support.wait_until(lambda: "netlogd_nats_away 1\n" in urllib.request.urlopen(
            f"http://127.0.0.1:{port}/metrics", timeout=20).read().decode(), what="that it is away")

    def test_streams_of_an_input(self):
        """A NATS input may begin as many streams as a client; NATS keeps the messages of further streams."""
        self.cluster(1)
        port, control = support.free_port(), self.scratch / "control"
        publisher = self.launch_publisher(self.output_url(), port)
        for part in range(2):  # from two addresses, each of which may begin some thousand streams
            data = b"".join(blocks.numbers(b"p", [n], struct.pack("<QQ", n + 1, part + 1), 0) for n in range(4500))
            with socket.create_connection(("127.0.0.1", port), source_address=(f"127.0.0.{part + 2}", 0)) as s:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
        began = time.monotonic()
        reader = self.launch("b", "--listen", f"{self.place()}?durable=b", "--output", self.scratch / "b.log", "--control",
                             f"unix:{control}")
        support.wait_until(lambda: "left in NATS: the client begins too many streams" in self.heard("b"), what="the reason")
        lines = (self.scratch / "b.log").read_bytes().count(b"\n")
        self.assertLessEqual(lines, 8192 + 50 * (time.monotonic() - began + 1))
        self.stop(reader)
        self.stop(publisher)
        lines = (self.scratch / "b.log").read_bytes().count(b"\n")
        self.assertTrue(8192 <= lines <= 8192 + 50 * (time.monotonic() - began + 1), lines)

    def test_what_is_wrong_at_the_start(self):
        port = support.free_port()
        for url, why in ((f"nats://127.0.0.1:{port}", "missing stream"), ("nats:///S", "missing host; use nats://HOST/STREAM"),
                         ("nats://h:99999/S", "is not a port"), ("nats://h,,i/S", "empty host"),
                         ("nats://h/S.T", "is not a valid name"), ("nats://u@h/S", "missing password"),
                         ("nats://h/S?share=3/2", "is not K/N"), ("nats://h/S?shards=0", "use 1 to 256"),
                         ("nats://h/S?durable=a.b", "use letters, digits"), ("nats://h/S?wahtever=1", "unknown option"),
                         ("nats://h/S?password_file=/nonexistent", "No such file"), ("nats://h/S?user=u", "a user requires a password"),
                         ("nats://h/S?subject=a..b", "two dots in a row"), ("nats://h/S?max_age=x", "is not a duration")):
            self.assertIn(why, self.fails("--listen", url, status=2), url)
        spool = f"spool={self.scratch}/spool"
        for url, why in (("nats://h/S", "missing option spool=DIRECTORY"), (f"nats://h/S?{spool}&messages=host", "is not one of program|shard"),
                         (f"nats://h/S?{spool}&durable=d", "durable"), (f"nats://h/S?{spool}&format=ulm", "requires format=nlb")):
            result = self.run_program(self.netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--output",
                                      url, timeout=10)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(why, result.stderr)

    def test_streams_that_are_not_ours(self):
        self.cluster(1)
        self.api(self.ports[0], "STREAM.CREATE.S", b'{"name":"S","subjects":["else.>"],"retention":"limits","storage":"file",'
                 b'"num_replicas":1,"max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"discard":"old"}')
        self.launch_reader("b")
        support.wait_until(lambda: "was not created by netlogd" in self.heard("b"), what="the foreign stream is reported")


if __name__ == "__main__":
    support.main()
