"""The worked example: the fetched data equals the served data, and all events of each block are in the log, in order."""
import collections
import os
import socket
import struct
import subprocess
import unittest

import support

STEPS = ["BlockRequestSend", "BlockRequestRecv", "DiskReadStart", "DiskReadEnd", "BlockSendStart", "BlockDone"]


class Dpss(support.Case):
    def setUp(self):
        super().setUp()
        self.server = support.program("examples/dpss/dpss_server")
        self.get = support.program("examples/dpss/dpss_get")
        self.data = self.scratch / "data"
        self.data.write_bytes(os.urandom(3_000_001))

    def serve(self, count=1):
        addresses = []
        for i in range(count):
            port = support.free_port()
            environment = {**os.environ, "NETLOGGER_HOST": f"dpss{i}", "NETLOGGER_DEST": f"{self.scratch}/server{i}.log"}
            process = self.start(self.server, "--listen", f"127.0.0.1:{port}", self.data, env=environment)
            support.wait_until(lambda: support.can_connect(port), what="the server listens")
            addresses.append(f"127.0.0.1:{port}")
        self.process = process
        return addresses

    def fetch(self, *arguments):
        environment = {**os.environ, "NETLOGGER_HOST": "client", "NETLOGGER_DEST": f"{self.scratch}/client.log"}
        return self.run_program(self.get, "-o", self.scratch / "copy", *arguments, env=environment)

    def test_striped_and_logged(self):
        addresses = self.serve(3)
        result = self.fetch("--connections", "2", "--pipeline", "4", *addresses)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.scratch / "copy").read_bytes(), self.data.read_bytes())
        servers = [self.scratch / f"server{i}.log" for i in range(len(addresses))]
        support.wait_until(lambda: sum(path.read_text().count("NL.EVNT=BlockSendEnd ") for path in servers if path.exists()) >= 46,
                           what="the servers, which still run, have logged what they sent")
        logs = [*servers, self.scratch / "client.log"]
        result = self.run_program(support.program("nlsort/nlsort"), *logs)
        self.assertEqual(result.returncode, 0, result.stderr)
        events = collections.defaultdict(list)
        for line in result.stdout.splitlines():
            fields = dict(f.split("=", 1) for f in line.split())
            if "BLOCK.ID" in fields:
                events[int(fields["BLOCK.ID"])].append(fields["NL.EVNT"])
        self.assertEqual(sorted(events), list(range(46)))
        for block, names in events.items():
            self.assertEqual([n for n in names if n in STEPS], STEPS, f"block {block}: {names}")
            self.assertEqual(names.count("BlockSendEnd"), 1)
            self.assertGreaterEqual(names.count("BlockRead"), 1)

    def test_nobody_else_says_where_the_data_go(self):
        """Programs do not write through a symbolic link at a guessable name."""
        other = self.scratch / "other"
        other.write_text("mine")
        for name in "copy.part", "copy.tmp", "copy.XXXXXX":
            (self.scratch / name).symlink_to(other)
        self.assertEqual(self.fetch(*self.serve()).returncode, 0)
        self.assertEqual(other.read_text(), "mine")
        self.assertEqual((self.scratch / "copy").read_bytes(), self.data.read_bytes())
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual((self.scratch / "copy").stat().st_mode & 0o777, 0o666 & ~mask)

    def test_server_that_refuses_or_goes_away(self):
        result = self.fetch(f"127.0.0.1:{support.free_port()}")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Connection refused", result.stderr)
        fake = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(fake.close)
        client = self.start(self.get, "-o", self.scratch / "copy", f"127.0.0.1:{fake.getsockname()[1]}", stderr=subprocess.PIPE)
        s, _ = fake.accept()
        s.recv(20)
        s.sendall(struct.pack(">IIQQ", 0x44505341, 0, 0, 200000))
        s.close()
        s, _ = fake.accept()
        s.recv(40, socket.MSG_WAITALL)
        s.sendall(struct.pack(">IIQQ", 0x44505341, 0, 0, 65536) + b"x" * 1000)
        s.close()
        self.assertEqual(client.wait(60), 1)
        self.assertIn(b"the server closed the connection", client.stderr.read())
        self.assertEqual([p.name for p in self.scratch.iterdir() if p.name.startswith("copy")], [], "no half file")

    def test_no_server(self):
        port = support.free_port()
        result = self.run_program(support.program("examples/dpss/dpss_get"), f"127.0.0.1:{port}")
        self.assertEqual((result.returncode, result.stderr), (1, f"dpss_get: 127.0.0.1:{port}: connect: Connection refused; "
                                                              "is dpss_server running there?\n"))

    def test_garbage_and_blocks_that_are_not_there(self):
        address = self.serve()[0]
        port = int(address.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(os.urandom(5000))
        for operation, block, size, status in [(2, 1 << 60, 65536, 2), (2, 46, 65536, 2), (2, 0, 1 << 30, 1), (7, 0, 1, 1)]:
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(struct.pack(">IIQI", 0x44505351, operation, block, size))
                self.assertEqual(struct.unpack(">IIQQ", s.recv(24))[1], status)
        self.assertEqual(self.fetch(address).returncode, 0)
        self.process.terminate()
        self.assertEqual(self.process.wait(60), 0)


if __name__ == "__main__":
    support.main()
