#!/usr/bin/env python3
"""The spans of README.md in Python."""
import sys

import netlogger

with netlogger.open("spans", sys.argv[1]) as log:
    with log.span("Request", ID=7):
        with log.span("Query", SQL="SELECT 1") as query:
            log.event("Row", N=1)
            query.status = 3
        copy = log.span("Copy").begin()
        copy.add(BYTES=700)
        copy.end()
        log.event("Reply")
    log.event("Idle")
