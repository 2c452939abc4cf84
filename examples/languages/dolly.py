#!/usr/bin/env python3
"""The example dolly of README.md in Python."""
import sys

import netlogger

host = sys.argv[1] if len(sys.argv) > 1 else "dolly.lbl.gov"
port = sys.argv[2] if len(sys.argv) > 2 else 14830
size = 49332

with netlogger.open("testprog", f"x-netlog://{host}:{port}") as log:
    log.write("WriteData", "SEND.SZ=" + str(size))
