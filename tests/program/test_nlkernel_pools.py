"""nlkernel traces servers whose threads pass requests to each other. The servers log the numbers of the requests, which show the
true parents."""
import http.client
import os
import shutil
import subprocess
import threading
import time

import support
from test_nlkernel_trace import Tracing

# One thread receives the requests. A ThreadPoolExecutor handles them, and sends the replies ("reply"), or asyncio sends
# them ("return").
PYTHON = r"""
import asyncio, concurrent.futures, os, selectors, socket, sys, threading
import redis
redis_port, workers, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
mine = threading.local()
pool = concurrent.futures.ThreadPoolExecutor(workers)
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

def handle(number):
    if not hasattr(mine, "redis"):
        mine.redis = redis.Redis(port=redis_port, single_connection_client=True)
        mine.redis.ping()
        mine.port = mine.redis.connection._sock.getsockname()[1]
    mine.redis.get("item")
    os.write(1, b"%d %d\n" % (number, mine.port))
    mine.redis.set("item", "x")

def number_of(head):
    return int(head.split()[1][1:])

def work(connection, head):
    handle(number_of(head))
    connection.sendall(REPLY)

def serve():
    listening = socket.create_server(("127.0.0.1", 0), backlog=200)
    selector = selectors.DefaultSelector()
    selector.register(listening, selectors.EVENT_READ)
    print(listening.getsockname()[1], flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listening:
                selector.register(listening.accept()[0], selectors.EVENT_READ)
            elif head := key.fileobj.recv(65536):
                pool.submit(work, key.fileobj, head)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()

async def serve_asynchronously():
    async def client(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await asyncio.get_running_loop().run_in_executor(pool, handle, number_of(head))
                writer.write(REPLY)
        except asyncio.IncompleteReadError:
            writer.close()
    server = await asyncio.start_server(client, "127.0.0.1", 0, backlog=200)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

serve() if mode == "reply" else asyncio.run(serve_asynchronously())
"""

REQUESTS = 400
WORKERS = 8


class Pools(Tracing):
    @classmethod
    def setUpClass(cls):
        support.program("nlkernel/nlkernel")
        if os.geteuid() != 0:
            raise support.unittest.SkipTest("tracing needs root")
        if shutil.which("redis-server") is None:
            raise support.unittest.SkipTest("no redis-server here")
        if subprocess.run(["/usr/bin/python3", "-c", "import redis"], capture_output=True).returncode != 0:
            raise support.unittest.SkipTest("no python3-redis here")

    def setUp(self):
        super().setUp()
        self.redis_port = support.free_port()
        self.redis = self.start("redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                stdout=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(self.redis_port))

    def score(self, server, mode, concurrency):
        """Sends requests. Returns the share of the calls with the right parent and trace, the number of calls with a wrong parent,
        and the number of calls without a parent."""
        process = self.start(*server, str(self.redis_port), str(WORKERS), mode, stdout=subprocess.PIPE, text=True)
        port = int(process.stdout.readline())
        log = f"{mode}{concurrency}.log"
        tracer = self.trace("--pid", str(process.pid), "--pid", str(self.redis.pid), log=log)

        def client(numbers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            for number in numbers:
                connection.request("GET", f"/{number}")
                connection.getresponse().read()
            connection.close()
        threads = [threading.Thread(target=client, args=(range(i, REQUESTS, concurrency),)) for i in range(concurrency)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.1)  # the servers' last calls
        records, _ = self.finish(tracer, log)
        process.kill()
        truth = {}
        for line in process.stdout.read().splitlines():
            number, local = line.split()
            truth.setdefault(local, []).append(number)
        process.stdout.close()
        self.assertEqual(sum(len(numbers) for numbers in truth.values()), REQUESTS)
        requests = {r["SPAN.ID"]: r for r in records if r["NL.EVNT"] == "http.GET"}
        self.assertEqual(len(requests), REQUESTS)
        traces = {}
        for r in records:
            traces.setdefault(r["TRACE.ID"], []).append(r["NL.EVNT"])
        right = wrong = without = 0
        for event in "redis.GET.call", "redis.SET.call":
            calls = {}
            for r in sorted((r for r in records if r["NL.EVNT"] == event), key=lambda r: r["DATE"]):
                calls.setdefault(r["LOCAL"].rsplit(":", 1)[1], []).append(r)
            for local, numbers in truth.items():
                self.assertEqual(len(calls[local]), len(numbers))
                for call, number in zip(calls[local], numbers):
                    parent = requests.get(call.get("PARENT.ID"))
                    if parent is None:
                        without += 1
                    elif parent["PATH"] != f"/{number}" or parent["TRACE.ID"] != call["TRACE.ID"]:
                        wrong += 1
                    else:
                        right += 1
                        self.assertIn(call["EDGE"], ("reply", "wakeup"))
                        self.assertIn(event.removesuffix(".call"), traces[call["TRACE.ID"]])
        print(f"# {mode}, {concurrency} at once: of {2 * REQUESTS} calls {right} right, {wrong} wrong, {without} without a parent")
        return right / (2 * REQUESTS), wrong

    def check(self, server, mode, shares):
        for concurrency, share in shares.items():
            right, wrong = self.score(server, mode, concurrency)
            self.assertEqual(wrong, 0)
            self.assertGreaterEqual(right, share)

    def python_server(self):
        (self.scratch / "pool.py").write_text(PYTHON)
        return "/usr/bin/python3", self.scratch / "pool.py"

    def c_server(self):
        return (self.compile_client((support.SOURCE / "tests/program/worker_pool.c").read_text()),)

    def test_python_pool_replies(self):
        self.check(self.python_server(), "reply", {1: 1, 10: 0.95, 100: 0.95})

    def test_c_pool_replies(self):
        self.check(self.c_server(), "reply", {1: 1, 10: 0.95, 100: 0.95})

    def test_python_pool_returns_requests(self):
        """Threads of the pool may exchange requests, so that only some of the calls have a certain parent. If a thread still runs
        when the next request is put into the queue, no thread is woken for this request."""
        self.check(self.python_server(), "return", {1: 0, 10: 0, 100: 0})

    def test_c_pool_returns_requests(self):
        self.check(self.c_server(), "return", {1: 0.95, 10: 0, 100: 0})


if __name__ == "__main__":
    support.main()
