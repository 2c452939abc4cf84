"""A backend of the shop, see shop.c: GET /order?ITEM returns a price after 5 ms, or after 60 ms if the price is not cached.

The server caches every price except the price of the item "rare". The price of the item "engraved" takes 0.6 s. SIGUSR1 switches
the cache off. $SHOP_LISTEN has the same meaning as in shop.c.
"""
import hashlib
import http.server
import os
import random
import signal
import sys
import time

import netlogger


def look_up(item):
    if item == "engraved":
        time.sleep(random.uniform(0.55, 0.6))
    elif not cache or item not in cache:
        time.sleep(random.uniform(0.045, 0.06))
        if cache is not None and item != "rare":
            cache.add(item)
    time.sleep(random.uniform(0.002, 0.005))
    hashlib.pbkdf2_hmac("sha256", item.encode(), b"", 3000)  # uses the processor
    return b"9.99"


class Prices(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        headers = self.headers.get_all("traceparent") or []
        caller = netlogger.Context(headers[0] if len(headers) == 1 else "")
        with caller, log.span("Prices", PATH=self.path) as span:
            item = self.path.partition("?")[2]
            log.event("Lookup", ITEM=item)  # has the ID of the span
            body = look_up(item)
            span.add(BYTES=len(body))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


def switch_cache_off(*_):
    global cache
    cache = None


cache = {"pen", "ink", "paper"}
log = netlogger.open("prices")
address, _, port = os.environ.get("SHOP_LISTEN", "0").rpartition(":")
server = Server((address or "127.0.0.1", int(port)), Prices)
print(server.server_port, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.signal(signal.SIGUSR1, switch_cache_off)
server.serve_forever()
