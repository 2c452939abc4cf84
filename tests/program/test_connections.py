"""nlstat --connections on emulated paths with known limits, and on records with defects."""
import concurrent.futures
import dataclasses
import json
import os
import re
import shutil
import time

import guest
import paths
import support
from paths import Scenario

FAST = ["--rate", "100mbit", "--buffer", "2m"]
SCENARIOS = [
    # the scenario, its causes, and the minimum share that the report must give to one of these causes
    (Scenario("path", ["--rate", "20mbit", "--delay", "20ms", "--buffer", "60k"]), ["path rate", "path rate, with a queue"], 0.7),
    (Scenario("queue", ["--rate", "5mbit", "--delay", "10ms", "--buffer", "400k"]), ["path rate, with a queue"], 0.7),
    (Scenario("rbuf", FAST + ["--delay", "20ms"], receive=(32768, 1 << 20, 0)), ["receive buffer"], 0.75),
    (Scenario("reader", FAST + ["--delay", "5ms"], receive=(65536, 8192, 0.02)), ["receiving program", "receiving host"], 0.75),
    (Scenario("writer", FAST + ["--delay", "20ms"], send=(0, 2000, 0.1, 0)), ["sender idle", "sending host"], 0.85),
    (Scenario("loss", FAST + ["--delay", "20ms", "--loss", "2%"]), ["loss"], 0.7),
    (Scenario("sbuf", FAST + ["--delay", "20ms"], send=(32768, 65536, 0, 0)), ["send buffer"], 0.75),
    (Scenario("police", ["--rate", "6mbit", "--delay", "10ms", "--policed", "--buffer", "9k"], seconds=4), ["policed rate"], 0.7),
    (Scenario("reverse", ["--rate", "30mbit", "--delay", "20ms", "--back-rate", "80kbit"], seconds=4), ["reverse path"], 0.6),
    (Scenario("start", ["--rate", "1000mbit", "--delay", "100ms"], send=(0, 65536, 0, 1000000)), ["slow start"], 0.35),
]

BEGIN = "DATE=20260101120000.{:06d} HOST={} PROG=nlsensor LVL=System NL.EVNT=TcpConnection TCP.LOCAL={} TCP.PEER={} TCP.STATE=established "


def sample(at_us, host="a", local="10.0.0.1:5", peer="10.0.0.2:80", **fields):
    values = dict(TCP_MSS=1000, TCP_RTT=40000, TCP_RTT_MIN=40000, TCP_CWND=100, TCP_SSTHRESH=50, TCP_WINDOW=100000, TCP_UNACKED=100,
                  TCP_UNSENT=10000, TCP_COOKIE=1)
    values.update(fields)
    return BEGIN.format(at_us, host, local, peer) + " ".join(f"{k.replace('_', '.')}={v}" for k, v in values.items()) + "\n"


class Reports(support.Case):
    def setUp(self):
        super().setUp()
        self.nlstat = support.program("nltools/nlstat")

    def report(self, log, *options):
        result = self.run_program(self.nlstat, "--connections", "--json", *options, log)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def shares(self, connection):
        shares = {c["cause"]: c["share"] for c in connection["causes"]}
        self.assertAlmostEqual(sum(shares.values()), 1, places=6)
        return shares

    def written(self, *lines):
        log = self.scratch / "log"
        log.write_text("".join(lines))
        return log

    def need_path(self, *connections):
        if not all(connections):
            self.skipTest(paths.TOO_BUSY)


class Connections(Reports):
    def measured(self, *scenarios):
        """Runs transfers over emulated paths, some at the same time. Returns the report on each sending end; None if the machine was too busy to emulate
        its path in three attempts."""
        def transfer(scenario):
            log = self.scratch / f"{scenario.name}.log"
            for _ in range(3):
                world = paths.World(self, scenario)
                world.transfer(log)
                if world.end():
                    return next(c for c in self.report(log) if c["connection"].endswith("> 10.77.0.2:7000"))
            return None

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(transfer, scenarios))

    reports = {}  # the reports on SCENARIOS, which the first test that needs one makes

    def check_scenario(self, name):
        scenarios = [s[0] for s in SCENARIOS]
        if not self.reports:
            self.reports.update(zip((s.name for s in scenarios), self.measured(*scenarios)))
        connection = self.reports[name]
        self.need_path(connection)
        _, causes, minimum = next(s for s in SCENARIOS if s[0].name == name)
        self.assertIn(connection["first"], causes, connection)
        self.assertGreaterEqual(sum(self.shares(connection)[c] for c in causes), minimum, connection)

    @support.long
    def test_larger_buffer_gives_the_predicted_gain(self):
        for name, field in (("rbuf", "receive"), ("sbuf", "send")):
            self.check_gain(next(s[0] for s in SCENARIOS if s[0].name == name), field)

    def check_gain(self, scenario, field):
        size, *other = getattr(scenario, field)
        before, after = self.measured(scenario, dataclasses.replace(scenario, name=scenario.name + "2", **{field: (2 * size, *other)}))
        self.need_path(before, after)
        gain = after["bytes_per_second"] / before["bytes_per_second"]
        self.assertAlmostEqual(gain / before["gain_of_doubling"], 1, delta=0.25, msg=(before, after))

    def test_advice_is_the_bandwidth_delay_product(self):
        """A connection has a window of 200 KiB and a round-trip time of 80 ms. Another connection of the same hosts reached 940
        Mbit/s."""
        rate = 204800 / 0.08
        slow = dict(TCP_RTT=80000, TCP_RTT_MIN=80000, TCP_WINDOW=204800, TCP_RATE=int(rate), TCP_COOKIE=1)
        fast = dict(slow, local="10.0.0.1:6", TCP_RATE=117500000, TCP_COOKIE=2)
        log = self.written(sample(0, **slow), sample(800000, **slow, TCP_BYTES_ACKED=int(rate * 0.8), TCP_BUSY=800000, TCP_LIMITED_RECEIVER=800000),
                           sample(0, **fast), sample(100000, **fast, TCP_BYTES_ACKED=1000, TCP_BUSY=100000))
        connection = self.report(log)[0]
        self.assertAlmostEqual(connection["gain_of_path"], 117500000 / rate, delta=0.1)
        self.assertRegex(connection["advice"], r"limits this connection to 20.5 Mbit/s \(size 204.8 kB, round-trip time 80.00 ms\). The path has carried 940.0 Mbit/s, "
                         "so the bandwidth-delay product is 9400.0 kB. Set the maximum of net.ipv4.tcp_rmem \\(or SO_RCVBUF\\) on 10.0.0.2:80 to 18.8 MB; this can make the connection up to 45.9 times")

    def test_direction_of_losses(self):
        """Probes show the direction in which the path loses packets, if the difference is significant. The sensor counts losses 2 s after it has sent the
        probes. The last record is about probes that were sent later."""
        path = "DATE=2026010112000{}.500000 HOST={} PROG=nlsensor LVL=System NL.EVNT=PathDelay PATH.PEER=x PATH.ADDRESS={} PATH.REPLIES={} PATH.LOST={} " \
               "PATH.LOST.OUT={} PATH.LOST.BACK={}\n"
        lines = [sample(at, TCP_BYTES_ACKED=at // 10, TCP_BYTES_SENT=at, TCP_BUSY=at, TCP_RETRANS=at // 100000, TCP_RECOVERY="recovery", TCP_SSTHRESH=100)
                 for at in range(0, 999999, 50000)]
        peers = [line.replace("HOST=a", "HOST=b").replace("10.0.0.1:5 TCP.PEER=10.0.0.2:80", "10.0.0.2:80 TCP.PEER=10.0.0.1:5") for line in lines[:2]]
        for host, address, numbers, advice in (
                ("a", "10.0.0.2", (180, 20, 20, 0), "probes are lost on the way to 10.0.0.2:80, so check the links in this direction"),
                ("a", "10.0.0.2", (180, 20, 0, 20), "probes are lost on the way back from 10.0.0.2:80, so check the links in this direction"),
                ("b", "10.0.0.1", (180, 20, 0, 20), "probes are lost on the way to 10.0.0.2:80, so check the links in this direction"),
                ("a", "10.0.0.2", (197, 3, 2, 1), "check its links"),
                ("a", "10.0.0.2", (1000, 0, 0, 0), "the path loses at most 0.38 % of the path sensor's small packets, so check for links that lose large packets"),
                ("a", "10.0.0.3", (180, 20, 20, 0), "check its links")):
            replies, *lost = numbers
            probes = (path.format(second, host, address, *counts) for second, counts in (
                (0, (replies, 0, 0, 0)), (1, (0, 0, 0, 0)), (2, (100, *lost)), (4, (0, 0, 0, 0)), (8, (0, 90, 45, 45))))
            connection = self.report(self.written(*lines, *peers, *probes))[0]
            self.assertEqual(connection["first"], "loss", connection)
            self.assertIn(f"not full; {advice}", connection["advice"])

    def test_full_send_buffer(self):
        """If everything that was written is in flight, a full buffer limits the sender, otherwise the program."""
        for queue, cause in ((60000, "send buffer"), (20000, "sender idle")):
            fields = dict(TCP_UNSENT=0, TCP_UNACKED=20, TCP_QUEUE_OUT=queue, TCP_BUFFER_OUT=100000)
            log = self.written(sample(0, **fields), sample(1000, TCP_BYTES_ACKED=1000, TCP_BUSY=1000, **fields))
            self.assertEqual(self.shares(self.report(log)[0])[cause], 1)

    def test_program_that_has_closed_the_socket_needs_no_buffer(self):
        """The rest of the data fills the send buffer, but the program writes no more."""
        fields = dict(TCP_UNSENT=0, TCP_UNACKED=20, TCP_QUEUE_OUT=60000, TCP_BUFFER_OUT=100000)
        for state, cause in (("established", "send buffer"), ("fin-wait-1", "sender idle"), ("last-ack", "sender idle")):
            lines = [sample(0, **fields), sample(1000, TCP_BYTES_ACKED=1000, TCP_BUSY=1000, **fields)]
            self.assertEqual(self.shares(self.report(self.written(*(l.replace("established", state) for l in lines)))[0])[cause], 1)

    def test_adjusted_send_buffer_at_its_maximum(self):
        """The kernel has enlarged the send buffer. If its memory is full and all data is in flight, it has reached its maximum."""
        for memory, unsent, unacked, cause in ((60000, 0, 30, "send buffer"), (30000, 0, 30, "sender idle"), (None, 0, 30, "sender idle"),
                                               (60000, 0, 50, "send buffer"), (60000, 20000, 50, "path rate")):
            fields = dict(TCP_UNSENT=unsent, TCP_UNACKED=unacked, TCP_QUEUE_OUT=unacked * 1000 + unsent)
            if memory is not None:
                fields.update(TCP_MEMORY_OUT=memory)
            log = self.written(sample(0, **fields, TCP_BUFFER_OUT=30000),
                               *(sample(i * 1000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 1000, TCP_BUFFER_OUT=65536, **fields) for i in range(1, 20)))
            self.assertEqual(self.report(log)[0]["first"], cause, fields)

    def test_queue_that_overflows_in_slow_start_is_the_path(self):
        """The slow start fills the queue. The recovery needs several retransmissions, and its end acknowledges much data at once."""
        lines, acked = [], 0
        for i in range(60):
            recovers = 10 <= i < 20
            acked += 50000 if i == 20 else 0 if recovers else 1000
            lines.append(sample(i * 10000, TCP_BYTES_ACKED=acked, TCP_BUSY=i * 10000, TCP_RTT=80000 if 5 <= i < 11 else 41000, TCP_CWND=100 if i < 10 else 50,
                                TCP_SSTHRESH=0x7fffffff if i < 10 else 50, TCP_RETRANS=min(max(0, i - 9), 10), TCP_RECOVERY="recovery" if recovers else "open"))
        shares = self.shares(self.report(self.written(*lines))[0])
        self.assertGreater(shares["path rate"] + shares["path rate, with a queue"], 0.8, shares)
        self.assertEqual(shares["loss"], 0)

    def test_tls_handshake(self):
        """nlkernel trace has measured a TLS handshake of 30 ms, in which the sender was idle. The first record is of an earlier connection."""
        lines = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=max(0, i - 20) * 10000) for i in range(1, 100)]
        before = self.shares(self.report(self.written(*lines))[0])
        traced = [re.sub(r"NL.EVNT=.*", f"NL.EVNT=http.server LOCAL=10.0.0.1:5 PEER=10.0.0.2:80 TLS.HANDSHAKE={us}", sample(at, "a")) for at, us in ((0, 90000), (80000, 30000))]
        later = re.sub(r"NL.EVNT=.*", "NL.EVNT=http.server LOCAL=10.0.0.1:5 PEER=10.0.0.2:80 TLS.HANDSHAKE=5000", sample(999999, "a"))
        self.assertEqual(self.shares(self.report(self.written(*lines, later))[0]), before)
        connection, = self.report(self.written(*traced[:1], *lines[:8], *traced[1:], *lines[8:]))
        after = self.shares(connection)
        self.assertAlmostEqual(after["handshake"], 30 / 980, places=3)
        self.assertAlmostEqual(before["sender idle"] - after["sender idle"], 30 / 980, places=3)

    def test_varying_delays_are_no_queue(self):
        """After losses, few segments are in flight. The round-trip time varies, but the path carries five times as much."""
        for flight, acked, causes in ((4, 2000, ("loss",)), (40, 10000, ("path rate", "path rate, with a queue"))):
            lines, total = [], 0
            for i in range(100):
                begins = i < 10
                total += 10000 if begins else acked
                lines.append(sample(i * 10000, TCP_BYTES_ACKED=total, TCP_BYTES_SENT=total, TCP_BUSY=i * 10000, TCP_RTT_MIN=20000, TCP_RTT=20000 if begins else 40000,
                                    TCP_UNACKED=20 if begins else flight, TCP_CWND=20 if begins else flight, TCP_UNSENT=50000, TCP_RETRANS=0 if begins else i // 5,
                                    TCP_SSTHRESH=0x7fffffff if begins else flight * (3, 9, 5, 12)[i // 5 % 4] // 7))
            shares = self.shares(self.report(self.written(*lines))[0])
            self.assertGreater(sum(shares[c] for c in causes), 0.8, shares)

    def test_losses_do_not_limit_bbr(self):
        for algorithm, state, cause in (("reno", "recovery", "loss"), ("bbr", "recovery", "path rate"), ("bbr", "loss", "loss")):
            lines = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, TCP_RETRANS=i, TCP_ALGORITHM=algorithm, TCP_RECOVERY=state) for i in range(30)]
            self.assertEqual(self.report(self.written(*lines))[0]["first"], cause)
        for algorithm, cause in (("reno", "loss"), ("bbr", "path rate")):  # one loss in ten intervals; the slow start threshold changes once
            lines = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000 if i < 30 else 15000 + i * 500, TCP_BUSY=i * 10000, TCP_RETRANS=i // 10, TCP_ALGORITHM=algorithm,
                            TCP_SSTHRESH=0x7fffffff if i < 25 else 50) for i in range(90)]
            self.assertEqual(self.report(self.written(*lines))[0]["first"], cause)

    def paced(self, **fields):
        """Returns the shares of a BBR connection whose round-trip time is the interval of its records. A function of the record's number computes a field."""
        lines = []
        for i in range(64):
            values = {name: value(i) if callable(value) else value for name, value in fields.items()}
            lines.append(sample(i * 15000, TCP_BYTES_ACKED=i * 10000, TCP_BYTES_SENT=i * 10000, TCP_BUSY=i * 15000, **dict(
                dict(TCP_ALGORITHM="bbr", TCP_RTT=15000, TCP_RTT_MIN=15000, TCP_CWND=60, TCP_SSTHRESH=0x7fffffff, TCP_UNACKED=25, TCP_UNSENT=90000,
                     TCP_QUEUE_OUT=115000), **values)))
        return lines, self.shares(self.report(self.written(*lines))[0])

    def test_window_that_bbr_fills_only_when_it_probes(self):
        """BBR paces below the rate that the window allows, and fills the window in one of eight round trips, or never."""
        for full, cause in ((30, "receive buffer"), (27, "path rate")):
            _, shares = self.paced(TCP_WINDOW=30500, TCP_UNACKED=lambda i, full=full: full if i % 8 == 0 else 25)
            self.assertGreater(shares[cause], 0.85, shares)

    def test_buffer_that_bbr_empties_slowly(self):
        """After a write, a third of the buffer is unsent. Then BBR sends this part at its own rate, until nothing is unsent."""
        _, shares = self.paced(TCP_UNACKED=40, TCP_UNSENT=lambda i: (20000, 10000, 0)[i % 3], TCP_QUEUE_OUT=lambda i: 40000 + (20000, 10000, 0)[i % 3],
                               TCP_MEMORY_OUT=lambda i: 60000 + (30000, 15000, 0)[i % 3], TCP_BUFFER_OUT=90000)
        self.assertGreater(shares["send buffer"], 0.95, shares)

    def test_buffer_that_grows_with_the_window_of_bbr(self):
        """In the start, the kernel enlarges the buffer with the window, which the pacing of BBR does not fill."""
        growing = dict(TCP_CWND=lambda i: 50 * 1.2 ** i, TCP_SSTHRESH=0x7fffffff, TCP_UNACKED=40, TCP_UNSENT=10000, TCP_QUEUE_OUT=50000)
        for buffer, cause in (lambda i: 80000 * 1.05 ** min(i, 4), "slow start"), (lambda i: 80000, "send buffer"):
            _, shares = self.paced(**growing, TCP_BUFFER_OUT=buffer, TCP_MEMORY_OUT=lambda i, buffer=buffer: 0.8 * buffer(i))
            self.assertGreater(shares[cause], 0.9, shares)

    def test_program_that_writes_less_than_bbr_can_send(self):
        for limited, queue, cause in ((1, 30000, "sender idle"), (0, 30000, "path rate"), (1, 70000, "path rate")):
            _, shares = self.paced(TCP_UNACKED=20, TCP_UNSENT=10000, TCP_QUEUE_OUT=queue, TCP_RATE_APP_LIMITED=limited)
            self.assertGreater(shares[cause], 0.95, shares)

    def test_slow_reader_of_bbr(self):
        """The program reads late, so acknowledgements are late. Only the receiver's records show that there is no queue on the path."""
        lines, shares = self.paced(TCP_RTT=40000, TCP_WINDOW=30500, TCP_UNACKED=30)
        self.assertGreater(shares["path rate, with a queue"], 0.95, shares)
        for queue, cause in ((12000, "receiving program"), (5000, "path rate, with a queue")):
            receiver = [sample(i * 15000, "b", "10.0.0.2:80", "10.0.0.1:5", TCP_COOKIE=7, TCP_BYTES_RECEIVED=i * 10000, TCP_QUEUE_IN=queue, TCP_BUFFER_IN=100000)
                        for i in range(64)]
            shares = self.shares(self.report(self.written(*lines, *receiver))[0])
            self.assertGreater(shares[cause], 0.95, shares)

    def test_losses_of_bbr_at_a_policer(self):
        """A policer drops the segments that BBR sends to probe for bandwidth. Independent losses and rare groups do not show a policer."""
        for resent, cause in ((lambda i: 6 * (i // 8), "policed rate"), (lambda i: i // 2, "path rate"), (lambda i: 6 * (i // 40), "path rate")):
            _, shares = self.paced(TCP_RETRANS=resent)
            self.assertGreater(shares[cause], 0.8, shares)

    def test_window_that_grows_after_the_slow_start_threshold(self):
        """CUBIC can leave slow start too early. The window then grows from 20 to 83 segments, without a queue or with one."""
        for rtt, cause in ((41000, "slow start"), (55000, "path rate")):
            lines = [sample(i * 10000, TCP_ALGORITHM="cubic", TCP_BYTES_ACKED=i * 10000, TCP_BUSY=i * 10000, TCP_SSTHRESH=20, TCP_CWND=20 + i, TCP_UNACKED=20 + i, TCP_RTT=rtt,
                            TCP_RTT_MIN=40000) for i in range(64)]
            self.assertGreater(self.shares(self.report(self.written(*lines))[0])[cause], 0.95)

    def test_gridftp_log_without_connections(self):
        """Four streams of 87 kB carry 100 MB in 10 s. The windows can be the limit from a round-trip time of 34.95 ms."""
        record = ("DATE=20080511184010.000000 HOST=g PROG=globus-gridftp-server NL.EVNT=FTP_INFO START=20080511184000.000000 USER=u FILE=/f "
                  "BUFFER={} BLOCK=262144 NBYTES=100000000 STREAMS=4 DEST=[10.0.0.1] TYPE={} CODE=226\n")
        received, sent = sorted(self.report(self.written(record.format(87380, "RETR"), record.format(0, "STOR"))), key=lambda c: c["records"])
        self.assertEqual([(c["connection"], c["records"], c["first"], self.confidence(c), c["distance"], c["bytes_per_second"]) for c in (sent, received)],
                         [("g > 10.0.0.1", "sender", "unknown", "low", "unknown", 1e7), ("10.0.0.1 > g", "receiver", "unknown", "low", "unknown", 1e7)])
        self.assertEqual(sent["advice"], "4 streams carried 10.0 MB/s with buffers of 87.4 kB. The buffers are the limit if the round-trip time is at least 34.95 ms. "
                         "The log contains no round-trip times, losses or waits of the programs; run nlsensor connections at both ends")
        self.assertTrue(received["advice"].startswith("4 streams carried 10.0 MB/s. The log contains no buffer sizes, "))
        bad = self.written(record.format(1, "RETR").replace("START=2008", "START=2009"), record.format(1, "RETR").replace("START=2008", "START=x"))
        self.assertEqual(self.run_program(self.nlstat, "--connections", bad).returncode, 1)

    def spans(self, names, durations, count=50, **fields):
        """Returns records of the starts and ends of spans, one after the other, with pauses of 1 ms."""
        at, lines = 0, []
        more = "".join(f" {k.replace('_', '.')}={v}" for k, v in fields.items())
        for _ in range(count):
            for (start, end), duration in zip(names, durations):
                for event, wait in ((start, duration), (end, 1000)):
                    lines.append(f"DATE=20260101120000.{at:06d} HOST=h PROG=bbcp LVL=Usage NL.EVNT={event}{more}\n")
                    at += wait
        return lines

    def test_spans_of_reads_and_writes_without_connections(self):
        old = [("START_READ", "STOP_READ"), ("START_NET", "END_NET")]
        new = [("transfer.net.read.start", "transfer.net.read.end"), ("transfer.disk.write.start", "transfer.disk.write.end")]
        for names, durations, first, shares in (
                (old, (6000, 2000), "sending host", {"sending host": 0.6, "unknown": 0.2, "sender idle": 0.2}),
                (old, (1000, 7000), "unknown", {"sending host": 0.1, "unknown": 0.7, "sender idle": 0.2}),
                (new, (2000, 6000), "receiving host", {"receiving host": 0.6, "unknown": 0.2, "receiving program": 0.2})):
            connection, = self.report(self.written(*self.spans(names, durations, stream_id=3, SIZE=1000)))
            self.assertEqual((connection["first"], connection["program"] + connection["peer_program"], connection["bytes"]), (first, "bbcp", 50000))
            found = self.shares(connection)
            for cause, share in shares.items():
                self.assertAlmostEqual(found[cause], share, delta=0.02, msg=cause)
            self.assertEqual(self.confidence(connection), "low" if first == "unknown" else "medium")
            self.assertIn("The log does not show whether a buffer, the path or the other program limited the transfer", connection["advice"])
        text = self.run_program(self.nlstat, "--connections", self.scratch / "log")
        self.assertTrue(text.stdout.startswith("Main limit of (unknown) > h stream 3: receiving host, 60 % of its time"), text.stdout)

    def test_connections_are_preferred_to_spans(self):
        lines = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000) for i in range(20)]
        connection, = self.report(self.written(*lines, *self.spans([("START_READ", "STOP_READ"), ("START_NET", "END_NET")], (6000, 2000))))
        self.assertEqual(connection["connection"], "10.0.0.1:5 > 10.0.0.2:80")

    def shared(self, *connections):
        """Returns the report on connections of the path: (begin, end, bytes) in units of 1 ms and 1 kB, to the port of their index."""
        lines = []
        for cookie, (begin, end, size) in enumerate(connections):
            for i in range(11):
                at, done = begin + (end - begin) * i // 10, size * i * 100
                lines.append(sample(at * 1000, TCP_COOKIE=cookie, local=f"10.0.0.1:{cookie}", TCP_BYTES_ACKED=done, TCP_BUSY=(at - begin) * 1000))
        return {c["connection"][9]: c for c in self.report(self.written(*lines))}

    def test_connections_that_share_a_path(self):
        """Two connections overlap for half of their time. A third connection begins later, and a fourth carries nearly no data."""
        found = self.shared((0, 400, 400), (200, 600, 200), (600, 900, 900), (0, 900, 1))
        self.assertEqual([(found[c]["sharing"], round(found[c]["shared_bytes_per_second"] / 1e5)) for c in "0123"],
                         [(1, 12), (1, 10), (0, 30), (0, 0)])
        self.assertEqual(found["0"]["advice"], "the connection shares the path with 1 other, and carries 8000.0 kbit/s of the total 10.0 Mbit/s; "
                         "no buffer or program limits the connection")
        self.assertTrue(found["2"]["advice"].startswith("the path carries 24.0 Mbit/s; "))

    def test_connections_between_other_addresses_share_a_bottleneck(self):
        """Round-trip times that rise and fall together show one queue. They are also together if one sender's records are at other times."""
        def rtt(at_us, period_us):
            return 40000 + at_us % period_us // 10

        first = [sample(at, TCP_BYTES_ACKED=at // 10, TCP_BUSY=at, TCP_RTT=rtt(at, 290000)) for at in range(0, 1000000, 20000)]
        for host, peer, step, period, scale, found in (("a", "10.0.0.3:80", 20000, 290000, 1, 1), ("c", "10.0.0.3:80", 15000, 290000, 1, 1),
                                                       ("a", "10.0.0.3:80", 20000, 230000, 1, 0), ("a", "10.0.0.3:80", 20000, 290000, 3, 0),
                                                       ("a", "10.0.0.2:81", 20000, 290000, 1, 0)):
            second = [sample(at, host, peer=peer, local="10.0.0.9:5" if host == "c" else "10.0.0.1:5", TCP_COOKIE=2, TCP_BYTES_ACKED=at // 20, TCP_BUSY=at,
                             TCP_RTT=40000 + scale * (rtt(at, period) - 40000)) for at in range(0, 1000000, step)]
            connection = next(c for c in self.report(self.written(*first, *second)) if c["connection"] == "10.0.0.1:5 > 10.0.0.2:80")
            self.assertEqual(connection["elsewhere"], found, (host, peer, step, period, scale))
            self.assertEqual("the round-trip times of this connection and of 1 connection between other addresses rise and fall together, so they share "
                             "the bottleneck; the other connection carries 400.0 kbit/s" in connection["advice"], found == 1, connection["advice"])

    def close(self, at_us, host="a", local="10.0.0.1:5", peer="10.0.0.2:80", **fields):
        return sample(at_us, host, local, peer, **fields).replace("TcpConnection", "TcpClose")

    def test_handshakes_of_connections_between_two_measurements(self):
        """Both ends have seen only the close of a connection that took 200 ms, 80 ms of which for the handshake. The client connects, and the server accepts."""
        client = self.close(200000, "b", "10.0.0.2:80", "10.0.0.1:5", TCP_COOKIE=2, TCP_DURATION=200000, TCP_HANDSHAKE=80000, TCP_BYTES_RECEIVED=9001)
        server = self.close(200000, TCP_DURATION=70000, TCP_HANDSHAKE=1, TCP_BYTES_SENT=10000, TCP_BYTES_RETRANS=1000, TCP_BYTES_RECEIVED=1)
        alone, = self.report(self.written(client))
        self.assertEqual([alone["bytes"], alone["seconds"], alone["first"]], [9000, 0.2, "unknown"])
        self.assertAlmostEqual(self.shares(alone)["handshake"], 0.4)
        self.assertIn("only its handshake is known", alone["advice"])
        both, = self.report(self.written(server, client))
        self.assertEqual([both["bytes"], both["records"], both["first"]], [9000, "both", "handshake"])
        self.assertAlmostEqual(self.shares(both)["handshake"], 8 / 15, places=4)
        self.assertEqual(self.confidence(both), "high")
        for wrong in (dict(TCP_DURATION=10**18), dict(TCP_DURATION=-1), dict(TCP_DURATION="x", TCP_HANDSHAKE="x"), dict(TCP_DURATION=5, TCP_HANDSHAKE=10**18)):
            log = self.written(self.close(200000, TCP_BYTES_SENT=10, **wrong), sample(300000), sample(400000, TCP_BYTES_ACKED=5))
            self.assertIn(self.run_program(self.nlstat, "--connections", log).returncode, (0, 1), wrong)

    def test_handshake_is_exact_at_the_end(self):
        """The records before and after the handshake are 100 ms apart."""
        first = sample(0).replace("established", "syn-sent")
        lines = [first, *(sample(i * 100000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 100000) for i in range(1, 10))]
        self.assertAlmostEqual(self.shares(self.report(self.written(*lines))[0])["handshake"], 1 / 9)
        shares = self.shares(self.report(self.written(*lines, self.close(950000, TCP_HANDSHAKE=50000, TCP_DURATION=930000)))[0])
        self.assertAlmostEqual(shares["handshake"], 50 / 930)

    def test_time_before_the_first_record_and_after_the_last(self):
        """The record of the end tells when the connection began. Before the first record, its window was small for 60 of 80 ms. After the last
        record, the program had sent everything, or the path was still the limit."""
        for unsent, idle, path in ((0, 70, 400), (10000, 20, 450)):
            lines = [sample(100000 + i * 100000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=60000 + i * 100000, TCP_UNSENT=unsent if i == 4 else 10000)
                     for i in range(5)]
            if unsent == 0:
                lines[-1] = lines[-1].replace("TCP.UNACKED=100", "TCP.UNACKED=1")
            row, = self.report(self.written(*lines, self.close(550000, TCP_HANDSHAKE=20000, TCP_DURATION=550000, TCP_BYTES_SENT=4000)))
            shares = self.shares(row)
            self.assertAlmostEqual(row["seconds"], 0.55)
            self.assertAlmostEqual(shares["handshake"] * 550, 20)
            self.assertAlmostEqual(shares["slow start"] * 550, 60)

    def test_connection_whose_records_are_all_of_the_handshake(self):
        """The connection was established and ended between two measurements."""
        lines = [sample(i * 100000).replace("established", "syn-sent") for i in (1, 2)]
        shares = self.shares(self.report(self.written(*lines, self.close(400000, TCP_DURATION=300000, TCP_HANDSHAKE=150000, TCP_BYTES_SENT=1000)))[0])
        self.assertAlmostEqual(shares["handshake"], 0.5)
        self.assertAlmostEqual(shares["unknown"], 0.5)

    def test_old_connection_has_no_start(self):
        """The first record is 2 s after the handshake, so that the connection's start is over, and its time is unknown."""
        lines = [sample(100000 + i * 100000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=2000000 + i * 100000) for i in range(5)]
        row, = self.report(self.written(*lines, self.close(500000, TCP_HANDSHAKE=50000, TCP_DURATION=2450000)))
        self.assertAlmostEqual(row["seconds"], 0.45)

    def test_bytes_before_the_first_measurement_count(self):
        """The record of the end has the total; the rate is that since the first measurement."""
        lines = [sample(i * 100000, TCP_BYTES_ACKED=5000 + i * 1000, TCP_BUSY=i * 100000) for i in range(1, 10)]
        end = self.close(950000, TCP_DURATION=950000, TCP_BYTES_SENT=16000, TCP_BYTES_RETRANS=1000)
        for records, total, rate in ((lines, 8000, 10000), ([*lines, end], 15000, 10588)):  # 8,000 bytes in 0.8 s, 9,000 in 0.85 s
            connection, = self.report(self.written(*records))
            self.assertEqual((connection["bytes"], round(connection["bytes_per_second"])), (total, rate))

    def test_kernel_clocks_divide_the_time(self):
        log = self.written(sample(0), sample(500000, TCP_BYTES_ACKED=50000, TCP_BUSY=400000, TCP_LIMITED_RECEIVER=200000,
                                             TCP_LIMITED_BUFFER=100000))
        shares = self.shares(self.report(log)[0])
        for cause, share in (("sender idle", 0.2), ("receive buffer", 0.4), ("send buffer", 0.2), ("path rate", 0.2)):
            self.assertAlmostEqual(shares[cause], share, places=6, msg=cause)

    def test_receiver_decides_whether_program_or_buffer_limits(self):
        def log(queue):  # the receiver's clock is 20 minutes ahead
            sender = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, TCP_LIMITED_RECEIVER=i * 10000) for i in range(20)]
            receiver = [sample(i * 10000, "b", "10.0.0.2:80", "10.0.0.1:5", TCP_BYTES_RECEIVED=i * 1000, TCP_QUEUE_IN=queue, TCP_BUFFER_IN=100000,
                               TCP_COOKIE=2).replace("20260101120000", "20260101122000") for i in range(20)]
            return self.written(*sender, *receiver)

        for queue, cause in ((50000, "receiving program"), (0, "receive buffer")):
            connection, = self.report(log(queue))
            self.assertEqual([connection["first"], connection["peer_receive_buffer"]], [cause, 100000])
            self.assertEqual(self.confidence(connection), "high")

    def confidence(self, connection):
        """Returns the confidence in the first cause."""
        return next(c["confidence"] for c in connection["causes"] if c["cause"] == connection["first"])

    def test_confidence_is_high_only_if_the_kernel_measured_the_cause(self):
        full = dict(TCP_UNSENT=0, TCP_UNACKED=20, TCP_QUEUE_OUT=60000, TCP_BUFFER_OUT=100000)
        for cause, confidence, fields, clock in (
                ("send buffer", "high", {}, "TCP_LIMITED_BUFFER"), ("send buffer", "medium", full, None),
                ("sender idle", "medium", dict(full, TCP_QUEUE_OUT=0), None), ("receive buffer", "medium", {}, "TCP_LIMITED_RECEIVER"),
                ("path rate", "medium", {}, None)):
            lines = [sample(i * 1000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 1000, **fields, **({clock: i * 1000} if clock else {})) for i in range(20)]
            connection, = self.report(self.written(*lines))
            self.assertEqual([connection["first"], self.confidence(connection)], [cause, confidence])

    def ends(self, sent=20000, queue=0, **receiver):
        """Returns the records of both ends of a connection that sends 20 kB, limited by its window; the clocks differ by 20 minutes."""
        a = [sample(i * 10000, TCP_BYTES_ACKED=i * sent // 20, TCP_BUSY=i * 10000, TCP_LIMITED_RECEIVER=i * 10000, TCP_PROGRAM="send") for i in range(21)]
        fields = dict(TCP_QUEUE_IN=queue, TCP_BUFFER_IN=100000, TCP_COOKIE=2, TCP_PROGRAM="receive", TCP_RTT_RECEIVE=40000)
        fields.update(receiver)
        b = [sample(i * 10000, "b", "10.0.0.2:80", "10.0.0.1:5", TCP_BYTES_RECEIVED=i * sent // 20, TCP_BYTES_ACKED=i, **fields)
             .replace("20260101120000", "20260101122000") for i in range(21)]
        return a, b

    def test_a_connection_is_one_row_with_the_evidence_of_both_ends(self):
        a, b = self.ends(queue=50000)
        expected = {"connection": "10.0.0.1:5 > 10.0.0.2:80", "first": "receiving program", "bytes": 20000, "returned_bytes": 20, "records": "both", "host": "a",
                    "peer_host": "b", "program": "send", "peer_program": "receive"}
        for log in (self.written(*a, *b), self.written(*b, *a)):
            connection, = self.report(log)
            self.assertEqual({name: connection[name] for name in expected}, expected)
        self.assertIn("intervals of both ends)\n", self.run_program(self.nlstat, "--connections", log).stdout)

    def test_records_of_one_end_give_less_confidence(self):
        a, b = self.ends(queue=50000)
        connection, = self.report(self.written(*a))
        self.assertEqual([connection["records"], connection["first"], self.confidence(connection)], ["sender", "receive buffer", "medium"])
        for sent, queue, cause in ((20000, 50000, "receiving program"), (500000, 0, "receive buffer"), (20000, 0, "unknown")):
            connection, = self.report(self.written(*self.ends(sent, queue)[1]))
            self.assertEqual([connection["connection"], connection["records"], connection["first"], self.confidence(connection), connection["bytes"]],
                             ["10.0.0.1:5 > 10.0.0.2:80", "receiver", cause, "low", sent])
        self.assertEqual(connection["advice"], "the receiver did not limit the connection, and the log lacks the records of the sender; "
                         "run nlsensor connections at 10.0.0.1:5")

    def test_reused_ports_are_joined_by_their_totals(self):
        logs = [self.ends(sent, queue, TCP_COOKIE=10 + sent) for sent, queue in ((20000, 50000), (60000, 0), (40000, 50000))]
        lines = [line for a, _ in logs for line in a] + [line for _, b in reversed(logs) for line in b]
        lines = [re.sub("TCP.COOKIE=1\\b", f"TCP.COOKIE={i // 21}", line) if i < 63 else line for i, line in enumerate(lines)]
        self.assertEqual([(c["bytes"], c["first"]) for c in self.report(self.written(*lines))],
                         [(60000, "receive buffer"), (40000, "receiving program"), (20000, "receiving program")])

    def test_programs_that_wait_for_their_host(self):
        """The sending or the receiving program waits for a processor or a disk, or for neither."""
        for wait_us, state, causes in ((9000, "R", ("sending host", "receiving host")), (0, "D", ("sending host", "receiving host")),
                                       (4000, "S", ("sender idle", "receiving program"))):
            owner = [dict(TCP_OWNER_WAIT=i * wait_us, TCP_OWNER_STATE=state) for i in range(21)]
            idle = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=0, **owner[i]) for i in range(21)]
            self.assertEqual(self.report(self.written(*idle))[0]["first"], causes[0])
            a, _ = self.ends()
            b = [sample(i * 10000, "b", "10.0.0.2:80", "10.0.0.1:5", TCP_BYTES_RECEIVED=i * 1000, TCP_QUEUE_IN=50000, TCP_BUFFER_IN=100000, TCP_COOKIE=2, **owner[i])
                 for i in range(21)]
            connection, = self.report(self.written(*a, *b))
            self.assertEqual([connection["first"], self.confidence(connection)], [causes[1], "high"])

    @support.long
    def test_sender_without_processor(self):
        """The sender gets little time of a processor that another process uses, so that its small writes do not fill the path."""
        self.start("taskset", "-c", "0", "sh", "-c", "while :; do :; done")
        scenario = Scenario("starved", FAST + ["--delay", "5ms"], send=(0, 40, 0, 0))
        world = paths.World(self, scenario)
        run_in = world.run_in
        world.run_in = lambda namespace, *command: (["taskset", "-c", "0", "nice", "-n", "12"] if paths.SENDER in command else []) + run_in(namespace, *command)
        world.transfer(self.scratch / "log")
        connection = next(c for c in self.report(self.scratch / "log") if c["connection"].endswith("> 10.77.0.2:7000"))
        self.assertEqual(connection["first"], "sending host", connection)

    def test_window_that_grows_is_part_of_the_start(self):
        """The receiver enlarges its window. The time before this counts as start-up, unless the window grows late."""
        for grows_us, cause in ((60000, "slow start"), (1900000, "receive buffer")):
            lines = [sample(at, TCP_BYTES_ACKED=at, TCP_BUSY=at, TCP_LIMITED_RECEIVER=min(at, grows_us), TCP_SSTHRESH=0x7fffffff, TCP_UNACKED=0, TCP_UNSENT=0,
                            TCP_WINDOW=60000 if at < grows_us else 120000).replace(f"120000.{at:06d}", f"12000{at // 1000000}.{at % 1000000:06d}")
                     for at in range(0, 2000000, 20000)]
            shares = self.shares(self.report(self.written(*lines))[0])
            self.assertAlmostEqual(shares[cause], grows_us / 1980000, delta=0.01)

    def test_sort(self):
        lines = []
        for cookie, (rtt, end_us, acked, again) in enumerate(((9000, 100, 5000, 0), (8000, 300, 9000, 3), (7000, 900, 7000, 9))):
            fields = dict(local=f"10.0.0.1:{cookie}", TCP_COOKIE=cookie, TCP_RTT=rtt, TCP_RTT_MIN=rtt)
            lines += [sample(0, **fields), sample(end_us, **fields, TCP_BYTES_ACKED=acked, TCP_BUSY=end_us, TCP_RETRANS=again)]
        log = self.written(*lines)
        for sort, order in (("bytes", "120"), ("rate", "210"), ("time", "210"), ("rtt", "012"), ("retransmits", "210")):
            self.assertEqual("".join(c["connection"].split(" ")[0][-1] for c in self.report(log, "--sort", sort)), order, sort)
        self.assertIn("Main limit of 10.0.0.1:2 > 10.0.0.2:80, which has the lowest rate of 3 connections: ",
                      self.run_program(self.nlstat, "--connections", "--sort", "rate", log).stdout)

    def test_rate_over_time(self):
        """Two connections begin 0.1 s apart. Each sends 30 kB in 0.3 s. The window limits the second connection."""
        lines = []
        for cookie, begin in enumerate((0, 100000)):
            for at in range(0, 300001, 50000):
                lines.append(sample(begin + at, TCP_COOKIE=cookie, local=f"10.0.0.1:{cookie}", TCP_BYTES_ACKED=at // 10, TCP_BUSY=at, TCP_LIMITED_RECEIVER=at * cookie))
        row, = self.report(self.written(*lines), "--interval", "100ms", "--by", "hosts")
        self.assertEqual([round(s["bytes"]) for s in row["rate"]], [10000, 20000, 20000, 10000])
        self.assertEqual([{k: round(v / 1e6) for k, v in s["cause_ns"].items()} for s in row["rate"]],
                         [{"path rate": 100}] + 2 * [{"path rate": 100, "receive buffer": 100}] + [{"receive buffer": 100}])
        text = self.run_program(self.nlstat, "--connections", "--interval", "100ms", self.written(*lines)).stdout
        self.assertRegex(text, r"Rate of 10.0.0.1:0 > 10.0.0.2:80 over time:\n  2026-01-01T12:00:00.000000Z +800.0 kbit/s  path rate 100 %\n")

    def test_losses_at_the_same_window_are_a_limit_of_the_path(self):
        """The cause depends on whether the windows at the losses are similar, and on whether the round-trip time rises before a
        loss. Frequent losses keep all windows at their minimum."""
        for thresholds, rtt, cause in (([20, 21, 19, 20, 21, 20], 40000, "policed rate"), ([20, 21, 19, 20, 21, 20], 60000, "path rate"),
                                       ([40, 12, 25, 7, 30, 9], 40000, "loss"), ([2, 2, 2, 3, 2, 2], 40000, "loss")):
            lines = []
            for i in range(60):
                lost = i // 10
                lines.append(sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, TCP_RETRANS=lost, TCP_SSTHRESH=thresholds[lost], TCP_CWND=30,
                                    TCP_RTT=rtt if i % 10 in (8, 9) else 40000, TCP_RECOVERY="recovery" if lost and i % 10 == 0 else "open"))
            shares = self.shares(self.report(self.written(*lines))[0])
            self.assertGreater(shares[cause], 0.75, (cause, shares))

    def test_similar_windows_at_irregular_losses_are_no_policer(self):
        """A loss occurs in these records. Random losses follow one another after different numbers of bytes."""
        for at, cause in (((6, 16, 26, 36, 46, 56), "policed rate"), ((6, 8, 30, 32, 34, 56), "loss")):
            lines = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, TCP_RETRANS=sum(a <= i for a in at), TCP_SSTHRESH=20, TCP_CWND=30) for i in range(60)]
            self.assertGreater(self.shares(self.report(self.written(*lines))[0])[cause], 0.75)

    def test_queue_on_the_way_back(self):
        """Each direction in turn delays its packets by 400 ms and the other direction by 40 ms, while the receiver's clock is 20 minutes ahead."""
        for forth, back, cause in ((10, 1, "path rate, with a queue"), (1, 10, "reverse path")):
            sender, receiver = [], []
            for i in range(200):
                at, delay = i * 10000, min(i * 1000, 40000) if i > 40 else 0
                received, acked = max(0, at - 10000 - forth * delay), max(0, at - 20000 - (forth + back) * delay)
                sender.append(sample(at % 1000000, TCP_BYTES_SENT=at, TCP_BYTES_ACKED=acked, TCP_BUSY=at, TCP_UNSENT=9999, TCP_RTT_MIN=20000, TCP_RTT=20000 + 11 * delay)
                              .replace("120000.", f"12000{at // 1000000}."))
                receiver.append(sample(at % 1000000, "b", "10.0.0.2:80", "10.0.0.1:5", TCP_BYTES_RECEIVED=received, TCP_COOKIE=2)
                                .replace("120000.", f"12200{at // 1000000}."))
            connection, = self.report(self.written(*sender, *receiver))
            self.assertEqual(connection["first"], cause)

    def test_timestamps_show_the_direction_of_a_queue(self):
        """The totals of the ends show nothing. The delays by timestamps rise by 40 ms in one direction; they may wrap. They count only if they agree with the
        round-trip time."""
        wrap = 2**32 * 1000
        for forth, back, rtt, cause in ((40000, 0, 60000, "path rate, with a queue"), (0, 40000, 60000, "reverse path"), (0, 40000, 200000, "path rate, with a queue"),
                                        (0, 4000, 60000, "path rate, with a queue")):
            sender, receiver = [], []
            for i in range(60):
                high = i > 2
                fields = dict(TCP_BYTES_ACKED=i * 10000, TCP_BUSY=i * 10000, TCP_RTT=rtt, TCP_RTT_MIN=20000)
                sender.append(sample(i * 10000, TCP_DELAY_IN=(wrap - 1000 + back * high) % wrap, **fields))
                receiver.append(sample(i * 10000, "b", "10.0.0.2:80", "10.0.0.1:5", TCP_COOKIE=7, TCP_BYTES_RECEIVED=i * 10000, TCP_DELAY_IN=5000 + forth * high))
            connection, = self.report(self.written(*sender, *receiver))
            self.assertEqual(connection["first"], cause, (forth, back, rtt))

    def test_buffer_behind_a_queue_is_not_the_limit(self):
        lines = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, TCP_LIMITED_BUFFER=i * 10000, TCP_RTT=200000) for i in range(20)]
        self.assertEqual(self.report(self.written(*lines))[0]["first"], "path rate, with a queue")

    def test_ticks_of_the_kernels_clocks_are_not_idle_time(self):
        for every, share in ((1, 0), (2, 0.5)):  # in the second log, the program writes only in every second interval
            lines = [sample(i * 50100, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i // every * 50100 // 4000 * 4000).replace("120000.", f"12000{i * 50100 // 1000000}.")
                     if i * 50100 < 1000000 else sample(i * 50100 % 1000000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i // every * 50100 // 4000 * 4000).replace("120000.", f"12000{i * 50100 // 1000000}.")
                     for i in range(101)]
            self.assertAlmostEqual(self.shares(self.report(self.written(*lines))[0])["sender idle"], share, delta=0.01)

    def test_full_window_below_the_congestion_window_is_the_limit(self):
        """The kernel's clocks name no limit, because the sender paces its segments."""
        buffer = dict(TCP_UNACKED=50, TCP_QUEUE_OUT=60000, TCP_BUFFER_OUT=100000)
        for fields, cause in ((dict(TCP_UNACKED=30, TCP_WINDOW=30500), "receive buffer"), (dict(TCP_UNACKED=99, TCP_WINDOW=99500), "path rate"),
                              (buffer, "send buffer"), (dict(buffer, TCP_RTT=90000), "path rate, with a queue")):
            lines = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, **fields) for i in range(20)]
            self.assertEqual(self.report(self.written(*lines))[0]["first"], cause)

    def test_derived_records(self):
        """The receive window limits a connection for 0.2 s, then the path limits it for 0.1 s. --derived writes records of the rate and of both limits."""
        lines = [sample(at, TCP_BYTES_ACKED=at // 10, TCP_BUSY=at, TCP_LIMITED_RECEIVER=min(at, 200000)) for at in range(0, 300001, 50000)]
        derived = self.scratch / "limits.log"
        self.report(self.written(*lines), "--derived", derived)
        ends = "TCP.LOCAL=10.0.0.1:5 TCP.PEER=10.0.0.2:80"
        self.assertEqual(derived.read_text(), "".join(
            f"DATE=20260101120000.{at}00000 HOST=a PROG=nlstat LVL=Usage NL.EVNT={event} {ends} {field}\n" for at, event, field in
            ((1, "TcpRate", "TCP.RATE=100000"), (2, "TcpRate", "TCP.RATE=100000"), (2, "TcpLimit.ReceiveBuffer", "DUR=0.2"), (3, "TcpRate", "TCP.RATE=100000"),
             (3, "TcpLimit.PathRate", "DUR=0.1"))))
        drawing = (support.SOURCE / "nlv/drawings/connections.nlv").read_text()
        for event in ("TcpRate", "TcpLimit.ReceiveBuffer", "TcpLimit.PathRate"):
            self.assertIn(f"event={event}\n", drawing)
        result = self.run_program(self.nlstat, "--connections", "--derived", "/nonexistent/x", self.scratch / "log")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "^nlstat: /nonexistent/x: ")

    def test_retransmissions_over_time(self):
        """The connection sends 3 segments again in the second of three intervals. nlv draws them."""
        lines = [sample(at, TCP_BYTES_ACKED=at // 10, TCP_BUSY=at, TCP_RETRANS=3 * (at > 100000)) for at in range(0, 300001, 100000)]
        derived = self.scratch / "limits.log"
        self.report(self.written(*lines), "--derived", derived)
        found = [line for line in derived.read_text().splitlines() if "NL.EVNT=TcpRetransmit " in line]
        self.assertEqual(found, ["DATE=20260101120000.200000 HOST=a PROG=nlstat LVL=Usage NL.EVNT=TcpRetransmit TCP.LOCAL=10.0.0.1:5 "
                                 "TCP.PEER=10.0.0.2:80 TCP.RETRANS=3"])
        self.assertIn("event=TcpRetransmit\n", (support.SOURCE / "nlv/drawings/time-sequence.nlv").read_text())

    def test_every_cause_is_drawn(self):
        causes = [c["cause"] for c in self.report(self.written(sample(0), sample(1000, TCP_BYTES_ACKED=1)))[0]["causes"]]
        self.assertEqual(re.findall(r"\[point (.*)\]", (support.SOURCE / "nlv/drawings/connections.nlv").read_text()), causes)

    def test_loopback_addresses_of_other_hosts_are_not_the_peer(self):
        lines = [sample(i * 10000, local="127.0.0.1:5", peer="127.0.0.1:80", TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, TCP_LIMITED_RECEIVER=i * 10000)
                 for i in range(20)]
        other = [sample(i * 10000, "b", "127.0.0.1:80", "127.0.0.1:5", TCP_BYTES_RECEIVED=i * 1000, TCP_QUEUE_IN=50000, TCP_BUFFER_IN=100000) for i in range(20)]
        own, foreign = self.report(self.written(*lines, *other))
        self.assertEqual([own["first"], own["records"], foreign["records"]], ["receive buffer", "sender", "receiver"])

    def test_hostile_records(self):
        """With missing fields, and with numbers and times out of range, the program does not crash, and the shares still add up
        to 1."""
        begin, end = sample(0), sample(5000, TCP_BYTES_ACKED=5000, TCP_BUSY=5000, TCP_LIMITED_RECEIVER=5000)
        bare = BEGIN.format(0, "a", "10.0.0.1:5", "10.0.0.2:80")
        huge = " ".join(f"TCP.{f}=1e308" for f in ("BYTES.ACKED", "BYTES.SENT", "RTT", "RTT.MIN", "WINDOW", "BUSY", "LIMITED.RECEIVER", "LIMITED.BUFFER", "RATE"))
        for lines in ([line.replace("HOST=a ", "") for line in (begin, end)],
                      [bare + "\n", bare.replace("000000 ", "005000 ") + "TCP.BYTES.ACKED=5 TCP.BUSY=5000\n"],
                      [bare + "\n", bare.replace("000000 ", "005000 ") + "TCP.BYTES.SENT=5 TCP.MSS=1 TCP.BUSY=5000 TCP.LIMITED.RECEIVER=5000\n"],
                      [bare + "\n", bare.replace("000000 ", "005000 ") + huge + " TCP.CWND=-5\n"],
                      [begin.replace("20260101", "16780101"), end.replace("20260101", "22610101")]):
            log = self.written(*lines)
            connection, = self.report(log)
            self.shares(connection)
            self.assertIsNotNone(connection["gain_of_path"])
            result = self.run_program(self.nlstat, "--connections", log)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotRegex(result.stdout, r"\binf\b|\bnan\b|-\d+ %")
        result = self.run_program(self.nlstat, "--connections", self.written(*(re.sub("TCP.LOCAL=[^ ]* ", "", line) for line in (begin, end))))
        self.assertEqual([result.returncode, result.stdout], [1, ""])

    def test_first_line_is_the_answer(self):
        lines = []
        for cookie in range(150):
            fields = dict(TCP_COOKIE=cookie, TCP_MSS=1000)
            lines += [sample(0, **fields), sample(1000, **fields, TCP_BYTES_ACKED=1000 + cookie, TCP_BUSY=1000)]
        result = self.run_program(self.nlstat, "--connections", self.written(*lines))
        self.assertEqual(result.stdout.splitlines()[0], "Main limit of 10.0.0.1:5 > 10.0.0.2:80, which sent the most bytes of 150 connections: path rate, "
                         "100 % of its time (confidence: low)")
        self.assertIn("(50 further rows; --json prints all)\n", result.stdout)
        self.assertRegex(result.stdout, "WAN +1149 B +9192.0 kbit/s +40.00 ms  path rate 100 %\n")
        self.assertEqual(len(self.report(self.written(*lines))), 150)
        result = self.run_program(self.nlstat, "--connections", "--by", "port", self.written(*lines))
        self.assertEqual(result.stdout.splitlines()[0], "Main limit of port 5 (WAN): path rate, 100 % of its time (confidence: medium)")

    def test_reused_ports_and_decreasing_counters(self):
        reused = self.written(sample(0), sample(1000, TCP_BYTES_ACKED=9000, TCP_BUSY=1000),
                              sample(2000, TCP_COOKIE=2), sample(3000, TCP_COOKIE=2, TCP_BYTES_ACKED=5, TCP_BUSY=10))
        self.assertEqual([c["bytes"] for c in self.report(reused)], [9000, 5])
        decreasing = self.written(sample(0, TCP_BUSY=10), sample(1000, TCP_BYTES_ACKED=10, TCP_BUSY=1000), sample(2000, TCP_BYTES_ACKED=5, TCP_BUSY=9))
        connection, = self.report(decreasing)
        self.assertAlmostEqual(self.shares(connection)["unknown"], 0.5)

    def test_groups_never_mix_distances(self):
        lines = []
        for cookie, (rtt, peer) in enumerate(((100, "10.0.0.2:80"), (80000, "10.0.0.2:81"), (80000, "10.0.0.2:80"))):
            fields = dict(peer=peer, TCP_COOKIE=cookie, TCP_RTT=rtt, TCP_RTT_MIN=rtt, TCP_PROGRAM="get")
            lines += [sample(0, **fields), sample(1000, **fields, TCP_BYTES_ACKED=1000, TCP_BUSY=1000)]
        log = self.written(*lines)
        for by, rows in (("program", [("WAN", "get", 2), ("LAN", "get", 1)]), ("hosts", [("WAN", "10.0.0.1 > 10.0.0.2", 2), ("LAN", "10.0.0.1 > 10.0.0.2", 1)]),
                         ("port", [("WAN", "5", 2), ("LAN", "5", 1)])):
            self.assertEqual([(r["distance"], r[by], r["connections"]) for r in self.report(log, "--by", by)], rows)

    def test_no_verdict_without_data(self):
        for lines, problem in (([], "no records"), (["malformed\n"], "malformed"), (["DATE=20260101120000 HOST=a PROG=b LVL=Usage NL.EVNT=x\n"], "no TcpConnection records"),
                               ([sample(0)], "no connection carried data between two of its records")):
            result = self.run_program(self.nlstat, "--connections", self.written(*lines))
            self.assertEqual([result.returncode, result.stdout], [1, ""])
            self.assertIn(problem, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)
        for wrong in (["--by", "HOST"], ["--slowest", "3"], ["--plot", "-"], ["--id", "A"], ["--sort", "HOST"]):
            self.assertEqual(self.run_program(self.nlstat, "--connections", *wrong, self.written(sample(0))).returncode, 2)
        for option in (["--sort", "rate"], ["--derived", "x"]):
            self.assertEqual(self.run_program(self.nlstat, *option, self.written(sample(0))).returncode, 2)

    def translated(self, **peer):
        """The sender has an address that a router translates, so the receiver sees another address. Both sides have the same
        sequence numbers."""
        sequence = dict(TCP_SEQUENCE_OUT=2**32 - 1, TCP_SEQUENCE_IN=1000)
        other = dict(dict(TCP_SEQUENCE_OUT=1000, TCP_SEQUENCE_IN=0), **peer)
        sender = [sample(i * 10000, TCP_BYTES_ACKED=i * 1000, TCP_BUSY=i * 10000, TCP_LIMITED_RECEIVER=i * 10000, **sequence) for i in range(20)]
        receiver = [sample(i * 10000, "b", "10.0.0.2:80", "192.0.2.1:4321", TCP_COOKIE=7, TCP_BYTES_RECEIVED=i * 1000, TCP_QUEUE_IN=60000,
                           TCP_BUFFER_IN=100000, **other) for i in range(20)]
        return self.report(self.written(*sender, *receiver))

    def test_ends_are_joined_through_address_translation(self):
        connection, *others = self.translated()
        self.assertEqual((others, connection["records"], connection["peer_host"]), ([], "both", "b"))
        self.assertEqual(connection["first"], "receiving program")  # only the receiver's records show this
        self.assertEqual(connection["connection"], "10.0.0.1:5 > 10.0.0.2:80")

    def test_other_sequence_numbers_are_another_connection(self):
        for peer in dict(TCP_SEQUENCE_IN=2), dict(TCP_SEQUENCE_OUT=1001), dict(TCP_SEQUENCE_IN="x"):
            self.assertEqual(len(self.translated(**peer)), 2)


for scenario_name in (s[0].name for s in SCENARIOS):
    setattr(Connections, f"test_{scenario_name}", lambda self, name=scenario_name: self.check_scenario(name))


@support.long
class Netem(support.Case):
    """In a guest with Debian's kernel, netem gives the loopback interface a rate or losses. The guest's clock counts instructions, so that a
    busy host does not change the delays."""

    SCRIPT = """
        ip link set lo mtu 1500 gso_max_segs 1 up
        tc qdisc add dev lo root netem delay 10ms
        for path in 'rate 10mbit limit 60' 'loss 3%'; do
            tc qdisc change dev lo root netem delay 10ms $path
            iperf3 --server --one-off --daemon
            nlsensor --interval 0.05 'connections?port=5201' > /${path%% *}.log &
            sleep 2
            iperf3 --client 127.0.0.1 --time 6 --congestion reno > /dev/null
            kill $!
            wait
        done"""

    def test_path_and_loss(self):
        machine = guest.Guest(self, "netem", ("sch_netem",))
        for name in "sh", "ip", "tc", "sleep", "iperf3":
            if not shutil.which(name):
                self.skipTest(f"{name} is not installed")
            machine.add(os.path.realpath(shutil.which(name)), name)
        machine.add(support.program("nlagent/sensor"), "nlsensor")
        machine.files["script"] = self.SCRIPT.encode()
        logs = machine.run([["/bin/sh", "/script"]], ["/rate.log", "/loss.log"], options=("-icount", "shift=1,sleep=off"))
        for name, causes in ("/rate.log", ("path rate", "path rate, with a queue")), ("/loss.log", ("loss",)):
            self.assertIn(name, logs, machine.said)
            (self.scratch / "log").write_bytes(logs[name])
            self.assertIn(b"TCP.ITERATED=1 ", logs[name])
            self.assertIn(b"TCP.DELAY.IN=", logs[name])
            result = self.run_program(support.program("nltools/nlstat"), "--connections", "--json", self.scratch / "log")
            self.assertEqual(result.returncode, 0, result.stderr + machine.said)
            connection = max(json.loads(result.stdout), key=lambda c: c["bytes"])
            self.assertIn(connection["first"], causes, connection)
            self.assertGreater(sum(c["share"] for c in connection["causes"] if c["cause"] in causes), 0.9, connection)


class Requests(support.Case):
    """nldiag on requests over connections: the connection's limit is the cause, or evidence for the cause."""

    def diagnosed(self, log):
        result = self.run_program(support.program("nltools/nldiag"), "--json", "--id", "ID", log)
        self.assertEqual(result.returncode, 3, result.stderr + result.stdout)
        return json.loads(result.stdout)["causes"]

    def requested(self, scenario, count, size=100000):
        """Requests blocks over an emulated path. Returns the causes that nldiag finds."""
        log, merged = self.scratch / f"{scenario.name}.log", self.scratch / f"{scenario.name}.sorted"
        world = paths.World(self, scenario)
        world.requests(log, count, size)
        if not world.end():
            self.skipTest(paths.TOO_BUSY)
        self.assertEqual(self.run_program(support.program("nlsort/nlsort"), "-o", merged, log).returncode, 0)
        return self.diagnosed(merged)

    def test_receive_window_and_loss(self):
        scenarios = [Scenario("rwindow", FAST + ["--delay", "5ms"], receive=(32768, 1 << 20, 0)),
                     Scenario("rloss", FAST + ["--delay", "5ms", "--loss", "2%"])]
        with concurrent.futures.ThreadPoolExecutor(len(scenarios)) as pool:
            window, loss = pool.map(lambda s: self.requested(s, 80)[0], scenarios)
        self.assertEqual((window["cause"], window["host"]), ("window", "a"), window)
        self.assertRegex(window["title"], r"the receive window limits the connections from a \(")
        self.assertTrue(any(re.match(r"main limit of the connection 10.77.0.1:7000 > 10.77.0.2:\d+: receive buffer, \d+ % of this time \(confidence: ", e)
                            for e in window["evidence"]), window)
        self.assertRegex(window["advice"], r"^the receive window limits this connection to [0-9.]+ Mbit/s \(size [0-9.]+ kB, round-trip time 1\d\.\d+ ms\)\. .*"
                         r"net.ipv4.tcp_rmem.* times as fast")
        self.assertEqual((loss["cause"], loss["host"]), ("loss", "a"), loss)
        self.assertRegex(loss["title"], r"lost segments limit the connections from a \(")
        self.assertRegex(loss["advice"], r"segments were sent again \([0-9.]+ %\), and the round-trip time is near its minimum")

    def events(self, *, slow_us, begin_us=0, count=100, period_us=100000):
        """Yields requests of host b, each of which waits slow_us for a block from host a."""
        for i in range(count):
            at = begin_us + i * period_us
            for who, event, after in ("b PROG=get", "Ask", 0), ("a PROG=put", "Asked", 500), ("a PROG=put", "Sent", 1000), ("b PROG=get", "Got", slow_us):
                yield at + after, f"HOST={who} LVL=Usage NL.EVNT={event} ID={i}"

    def written(self, records):
        log = self.scratch / "log"
        with open(log, "w", encoding="utf-8") as out:
            for at, text in sorted(records):
                out.write(f"DATE=202601011200{at // 1000000:02d}.{at % 1000000:06d} {text}\n")
        return log

    def connections(self, *, busy_us, limited_us, port=5, host="a", count=200, period_us=50000, peer="10.0.0.2:80", **fields):
        """Yields the records of a connection that has data to send for busy_us in each period, and is limited for limited_us."""
        for i in range(count):
            line = sample(0, host, f"10.0.0.1:{port}", peer, TCP_COOKIE=port, TCP_BYTES_ACKED=i * 50000, TCP_BYTES_SENT=i * 50000, TCP_BUSY=i * busy_us,
                          TCP_LIMITED_RECEIVER=i * limited_us, TCP_BYTES_RECEIVED=0, **fields)
            yield i * period_us, line.split(" ", 1)[1].strip()

    def address_of_b(self, host="b"):
        """Yields a record of another connection of host b, which shows the address of the host."""
        yield 1, sample(0, host, "10.0.0.2:22", "10.0.0.9:9").split(" ", 1)[1].strip()

    def test_one_limited_connection_among_others(self):
        """The host's other connections are not limited, and send more. The requests wait for the limited connection."""
        others = [r for port in range(6, 30) for r in self.connections(busy_us=49000, limited_us=0, port=port, peer=f"10.0.1.{port}:80")]
        cause = self.diagnosed(self.written([*self.events(slow_us=90000), *self.connections(busy_us=45000, limited_us=44000), *others,
                                             *self.address_of_b()]))[0]
        self.assertEqual((cause["cause"], cause["host"]), ("window", "a"), cause)
        self.assertIn("10.0.0.1:5 > 10.0.0.2:80", cause["evidence"][-1])

    def test_requests_that_name_their_connection(self):
        """Of two connections between the same hosts, a window limits one. The requests name one of them by the addresses that their host sees."""
        for fields, named in (("TCP.LOCAL=10.0.0.2:80 TCP.PEER=10.0.0.1:5", True), ("LOCAL=10.0.0.2:80 PEER=10.0.0.1:5", True),
                              ("TCP.LOCAL=10.0.0.2:80 TCP.PEER=10.0.0.1:6", False)):
            events = [(at, f"{text} {fields}" if "EVNT=Got" in text else text) for at, text in self.events(slow_us=90000)]
            log = self.written([*events, *self.connections(busy_us=45000, limited_us=44000), *self.connections(busy_us=49000, limited_us=0, port=6),
                                *self.address_of_b()])
            result = self.run_program(support.program("nltools/nldiag"), "--json", "--id", "ID", log)
            self.assertEqual("main limit of the connection 10.0.0.1:5 > 10.0.0.2:80: " in result.stdout, named, (fields, result.stdout))

    def test_part_of_the_data_of_a_connection(self):
        """In each second, a window limits the first half of a connection's data. A request waits for the first half or for the rest."""
        records, limited = [], 0
        for i in range(40 * 20):
            line = sample(0, "a", "10.0.0.1:5", "10.0.0.2:80", TCP_COOKIE=5, TCP_BYTES_ACKED=i * 5000, TCP_BYTES_SENT=i * 5000, TCP_BUSY=limited,
                          TCP_LIMITED_RECEIVER=limited, TCP_BYTES_RECEIVED=0)
            records.append((i * 50000, line.split(" ", 1)[1].strip()))
            limited += 50000 if i % 20 < 10 else 0
        for offset, size, named in ((0, 40000, True), (55000, 30000, False), (None, 0, True)):
            events = []
            for at, text in self.events(slow_us=900000, count=39, period_us=1000000):
                part = f" TCP.OFFSET={at // 1000000 * 100000 + offset} TCP.SIZE={size}" if size else ""
                events.append((at, f"{text} TCP.LOCAL=10.0.0.2:80 TCP.PEER=10.0.0.1:5{part}" if "EVNT=Got" in text else text))
            log = self.written([*events, *records, *self.address_of_b()])
            result = self.run_program(support.program("nltools/nldiag"), "--json", "--id", "ID", log)
            self.assertEqual("main limit of the connection 10.0.0.1:5 > 10.0.0.2:80" in result.stdout, named, (offset, result.stdout))

    def test_a_message_in_the_other_direction_does_not_wait(self):
        """All events name the connection. Its window limits the data from a to b, but the slow messages are from b to a."""
        events = []
        for at, text in self.events(slow_us=90000):
            late = 89000 if "EVNT=Asked" in text or "EVNT=Sent" in text else 0
            ends = "LOCAL=10.0.0.2:80 PEER=10.0.0.1:5" if "HOST=b" in text else "LOCAL=10.0.0.1:5 PEER=10.0.0.2:80"
            events.append((at + late, f"{text} {ends}"))
        log = self.written([*events, *self.connections(busy_us=45000, limited_us=44000), *self.address_of_b()])
        result = self.run_program(support.program("nltools/nldiag"), "--json", "--id", "ID", log)
        self.assertNotIn("main limit of the connection 10.0.0.1:5 > 10.0.0.2:80", result.stdout)

    def test_connections_to_other_hosts_are_no_cause(self):
        """The receivers of the limited connections wait for no request."""
        log = self.written([*self.events(slow_us=90000), *self.connections(busy_us=45000, limited_us=44000), *self.address_of_b("c")])
        result = self.run_program(support.program("nltools/nldiag"), "--json", "--id", "ID", log)
        self.assertNotIn("the receive window limits", result.stdout)

    def test_transfers_of_one_program(self):
        """The log has no events of the other end: the connections of the program count."""
        spans = [(i * 100000 + after, f"HOST=a PROG=globus-gridftp-server LVL=Usage NL.EVNT=Transfer.{event} ID={i}")
                 for i in range(100) for event, after in (("start", 0), ("end", 90000))]
        for program, named in ("globus-gridftp-", True), ("rsync", False):
            log = self.written([*spans, *self.connections(busy_us=45000, limited_us=44000, TCP_PROGRAM=program)])
            result = self.run_program(support.program("nltools/nldiag"), "--json", "--id", "ID", log)
            self.assertEqual("the receive window limits this connection" in result.stdout, named, result.stdout)

    def test_many_connections_and_a_long_log(self):
        """The slices of time become longer, and the cause remains."""
        limited = [r for port in range(5, 405) for r in self.connections(busy_us=250000, limited_us=245000, port=port, count=120, period_us=500000)]
        cause = self.diagnosed(self.written([*self.events(slow_us=90000, count=550), *limited]))[0]
        self.assertEqual((cause["cause"], cause["host"]), ("window", "a"), cause)


if __name__ == "__main__":
    support.main()
