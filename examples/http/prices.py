"""A backend of the shop, see shop.c: GET /order?ITEM returns a price after 5 ms, or after 60 ms for the item "rare"."""
import http.server
import signal
import sys
import time

import netlogger


class Prices(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        headers = self.headers.get_all("traceparent") or []
        caller = netlogger.Context(headers[0] if len(headers) == 1 else "")
        with caller, log.span("Prices", PATH=self.path) as span:
            log.event("Lookup", ITEM=self.path.partition("?")[2])  # carries the ID of the span
            time.sleep(0.06 if self.path.endswith("rare") else 0.005)
            body = b"9.99"
            span.add(BYTES=len(body))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


log = netlogger.open("prices")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prices)
print(server.server_port, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server.serve_forever()
