#!/usr/bin/env python3
"""The ten events of README.md in Python."""
import math
import sys

import netlogger

with netlogger.open("ten", sys.argv[1]) as log:
    log.event("Ten.Integers", ZERO=0, NEGATIVE=-49332, LEAST=-(2**63), MOST=2**63 - 1)
    log.event("Ten.Reals", TENTH=0.1, LARGE=-1.5e300, NAN=math.nan, INFINITE=math.inf, NEGATIVE=-math.inf)
    log.debug("Ten.Truth", YES=True, NO=False)
    log.warning("Ten.Quotes", TEXT="say \"hello\", \\ and 'goodbye' A=1")
    log.error("Ten.Lines", TEXT="one\ntwo\tthree\r\n")
    log.important("Ten.Utf8", TEXT="Grüße, 世界 🌍")
    log.system("Ten.Empty", TEXT="")
    log.event("Ten.Huge", TEXT="0123456789" * 10000, AFTER=1)
    log.alert("Ten.Nothing")
    log.event("Ten.Many", {f"F{number:02}": number for number in range(1, 17)})
