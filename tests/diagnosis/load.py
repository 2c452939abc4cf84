#!/usr/bin/env python3
"""Sends requests to the shop of examples/http: load.py SERVER --seconds S --rate R --items pen:3,ink:1.

Requests begin at random times and do not wait for earlier requests, but at most --clients run at the same time. Each
request logs a span Get and sends the span's context to the server.
"""
import argparse
import http.client
import random
import threading
import time

import netlogger


def get(item, places):
    with places, log.span("Get", ITEM=item) as span:
        connection = http.client.HTTPConnection(options.server, timeout=30)
        try:
            connection.request("GET", f"/order?{item}", headers={"traceparent": span.context.traceparent})
            if connection.getresponse().status != 200:
                span.status = -1
        except OSError:
            span.status = -1
        finally:
            connection.close()


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("server")
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--rate", type=float, default=40, help="requests/s")
parser.add_argument("--clients", type=int, default=60)
parser.add_argument("--items", default="pen:1", help="ITEM:WEIGHT,...")
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
log = netlogger.open("client")
pairs = [pair.split(":") for pair in options.items.split(",")]
chance, places, threads = random.Random(options.seed), threading.Semaphore(options.clients), []
begin = due = time.monotonic()
while due < begin + options.seconds:
    due += chance.expovariate(options.rate)
    time.sleep(max(0, due - time.monotonic()))
    item = chance.choices([name for name, _ in pairs], [float(weight) for _, weight in pairs])[0]
    threads.append(threading.Thread(target=get, args=(item, places)))
    threads[-1].start()
for thread in threads:
    thread.join()
