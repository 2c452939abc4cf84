#!/usr/bin/env python3
"""A pipeline: a source sends items to workers, and the workers send them to a store, which writes them in batches.

    pipeline.py source WORKER...      sends items to the workers in turn
    pipeline.py worker STORE          parses items in --threads threads, and looks up a name for each item
    pipeline.py store FILE            writes a batch after --batch items or after --wait seconds

Servers are named ADDRESS:PORT. Each event has the field ITEM.ID, and goes to $NETLOGGER_DEST.
"""
import argparse
import hashlib
import itertools
import json
import os
import queue
import random
import signal
import socket
import socketserver
import struct
import sys
import threading
import time

import netlogger

KINDS = ["order", "payment", "refund", "login"]


class Peer:
    """A connection on which any thread sends items."""

    def __init__(self, address, nagle):
        host, _, port = address.rpartition(":")
        self.socket, self.lock, self.nagle = socket.create_connection((host, int(port))), threading.Lock(), nagle
        if not nagle:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self.discard_replies, daemon=True).start()

    def discard_replies(self):
        while self.socket.recv(4096):
            pass

    def send(self, item, padding):
        text = json.dumps(item).encode().ljust(padding)
        with self.lock:
            if self.nagle:
                self.socket.sendall(struct.pack(">I", len(text)))
                self.socket.sendall(text)
            else:
                self.socket.sendall(struct.pack(">I", len(text)) + text)


def received(connection):
    """Yields the items that a connection receives."""
    stream = connection.makefile("rb")
    while head := stream.read(4):
        yield json.loads(stream.read(struct.unpack(">I", head)[0]))


def serve(listen, each):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            for item in received(self.request):
                each(item)
                self.request.sendall(b".")  # the reply

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    host, _, port = listen.rpartition(":")
    Server((host, int(port)), Handler).serve_forever()


def log_item(event, item, **fields):
    log.event(event, {"ITEM.ID": item["id"], **fields})


def run_source(options):
    workers = [Peer(address, options.nagle) for address in options.arguments]
    chance, end = random.Random(options.seed), time.monotonic() + options.seconds
    due = time.monotonic()
    for number in itertools.count():
        due += chance.expovariate(options.rate)
        time.sleep(max(0, due - time.monotonic()))
        if time.monotonic() > end:
            break
        item = {"id": number, "kind": chance.choice(KINDS)}
        first = chance.random() < options.skew
        worker = 0 if first else number % len(workers)
        log_item("ItemSend", item, KIND=item["kind"], WORKER=worker + 1)
        workers[worker].send(item, options.padding)
    time.sleep(1)


def run_worker(options):
    store, items = Peer(options.arguments[0], options.nagle), queue.Queue()

    def put(item):
        log_item("ItemRecv", item)
        items.put(item)

    def work():
        while True:
            item = items.get()
            log_item("Parse.start", item)
            time.sleep(random.uniform(0.5, 1.5) * options.work + options.slow_delay * (item["kind"] == options.slow_kind))
            for _ in range(options.hashes):
                hashlib.pbkdf2_hmac("sha256", b"", b"", 1000)
            log_item("Parse.end", item)
            log_item("Lookup.start", item)
            socket.getaddrinfo("localhost", 80)
            log_item("Lookup.end", item)
            log_item("ItemForward", item)
            store.send(item, options.padding)

    for _ in range(options.threads):
        threading.Thread(target=work, daemon=True).start()
    serve(options.listen, put)


def run_store(options):
    items, file = queue.Queue(), os.open(options.arguments[0], os.O_WRONLY | os.O_CREAT, 0o600)

    def put(item):
        log_item("StoreRecv", item)
        items.put(item)

    def write():
        while True:
            batch = [items.get()]
            end = time.monotonic() + options.wait
            while len(batch) < options.batch:
                try:
                    batch.append(items.get(timeout=max(0, end - time.monotonic())))
                except queue.Empty:
                    break
            for item in batch:
                log_item("Write.start", item, **{"BATCH.SZ": len(batch)})
            os.write(file, json.dumps(batch).encode())
            os.fsync(file)
            for item in batch:
                log_item("Write.end", item)

    threading.Thread(target=write, daemon=True).start()
    serve(options.listen, put)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("role", choices=["source", "worker", "store"])
parser.add_argument("arguments", nargs="+")
parser.add_argument("--listen", help="ADDRESS:PORT")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--rate", type=float, default=60, help="items/s")
parser.add_argument("--skew", type=float, default=0, help="this part of the items goes to the first worker")
parser.add_argument("--padding", type=int, default=1000, help="bytes of an item")
parser.add_argument("--nagle", action="store_true", help="send in two parts, with Nagle's algorithm")
parser.add_argument("--threads", type=int, default=8)
parser.add_argument("--work", type=float, default=0.008, help="seconds of sleep for an item")
parser.add_argument("--hashes", type=int, default=2, help="processor time of an item")
parser.add_argument("--slow-kind")
parser.add_argument("--slow-delay", type=float, default=0)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--wait", type=float, default=0.002)

if __name__ == "__main__":
    given = parser.parse_args()
    log = netlogger.open(given.role)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    {"source": run_source, "worker": run_worker, "store": run_store}[given.role](given)
