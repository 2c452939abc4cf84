"""No program prints a log's characters that control a terminal: core/record/terminal.h lists them."""
import base64
import fcntl
import html
import http.server
import json
import os
import pathlib
import pty
import re
import socket
import subprocess
import termios
import threading
import tty

import nlb_decoder
import support

CODES = [*range(1, 0x20), 0x7f, *range(0x80, 0xa0), 0x61c, 0x200e, 0x200f, *range(0x202a, 0x202f), *range(0x2066, 0x206a)]
VALUES = [f"a{chr(code)}[2Jb".encode() for code in CODES] + [b"a" + bytes([b]) + b"[2Jb" for b in range(0x80, 0xa0)]
LISTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
KEPT = "grün \u2713 \U0001f600 שלום"


def found(data):
    """Returns the characters of the list in the output, including single bytes that are not UTF-8; newlines and tabs are the program's own."""
    text = data.decode("utf-8", "surrogateescape")
    return LISTED.findall(text) + [c for c in text if "\udc80" <= c <= "\udc9f"]


class HostileAgent(http.server.BaseHTTPRequestHandler):
    """An agent whose replies contain each character of the list that XML permits, and raw characters in records."""

    TEXT = "a" + "".join(chr(code) for code in CODES if code >= 0x20 or chr(code) in "\t\n\r") + "b"
    LINES = b"".join(b"DATE=20260101000000 HOST=h%s PROG=p LVL=Usage NL.EVNT=E V=%s\n" % (v, v) for v in VALUES if b"\n" not in v)

    def reply(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"])).decode()
        operation = re.search(r"<s:Body><(\w+)", request)[1]
        text = html.escape(self.TEXT).replace("\r", "&#13;")
        inside = {
            "List": f"<sensor><name>{text}</name><what>{text}</what><arguments>{text}</arguments><instance><sensor>{text}</sensor>"
                    f"<failure>{text}</failure></instance><field><event>{text}</event><meaning>{text}</meaning></field></sensor>",
            "Find": f"<agent><host>{text}</host><url>{text}</url><sensor><name>{text}</name><events>{text}</events></sensor></agent>",
            "Status": f"<lines>{base64.b64encode(self.LINES).decode()}</lines>",
            "Subscribe": "<subscription>x</subscription>"}.get(operation)
        name = f'{operation}Response xmlns="urn:netlogger:agent:1"'
        if inside is None:
            name, inside = "s:Fault", f"<faultcode>s:Client</faultcode><faultstring>{text}</faultstring>"
        body = (f'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><{name}>{inside}</{name.split()[0]}>'
                "</s:Body></s:Envelope>")
        self.reply(body.encode())

    def do_GET(self):
        self.reply(self.LINES)

    def log_message(self, *_):
        pass


class Terminal(support.Case):
    def setUp(self):
        super().setUp()
        rows = [((i + 1) * 1000000, b"E" + value, [(b"REQ.ID", i), (b"V", value), (b"K", KEPT.encode())])
                for i, value in enumerate(VALUES)]
        self.blocks = self.scratch / "log.nlb"
        self.blocks.write_bytes(nlb_decoder.encode(rows, b"s" * 16))
        self.text = self.scratch / "raw.log"
        self.text.write_bytes(b"".join(b"DATE=20260101000000.%06d HOST=h%s PROG=p%s LVL=Usage NL.EVNT=E%s V=%s\n" %
                                       (i, value, value, value, value) for i, value in enumerate(VALUES) if b"\n" not in value))

    def output(self, program, *arguments):
        result = subprocess.run([support.program(program), *map(str, arguments)], capture_output=True, timeout=60)
        return result.stdout, result.stderr

    def test_programs_print_none(self):
        self.assertEqual(len(VALUES), 31 + 1 + 32 + 12 + 32)
        for arguments in [("nlsort/nlsort", "--format", "ulm", self.blocks), ("nlsort/nlsort", "--format", "bp", self.blocks),
                          ("nltools/nlconv", "--format", "ulm", self.blocks), ("nltools/nlconv", "--format", "bp", self.blocks),
                          ("nltools/nlconv", "--format", "ulm", self.text), ("nltools/nlconv", "--format", "bp", self.text),
                          ("nltools/nlstat", self.blocks), ("nltools/nlstat", "--by", "V", self.text),
                          ("nltools/nldiag", self.blocks), ("nltools/nldiag", self.text)]:
            printed, said = self.output(*arguments)
            self.assertEqual((found(printed), found(said)), ([], []), arguments)
            if "--format" in arguments:
                self.assertEqual(len(printed.splitlines()), len(VALUES) - (self.text in arguments), arguments)
                if self.blocks in arguments:
                    self.assertEqual(printed.count(KEPT.encode()), len(VALUES), "other characters stay as they are")

    def test_documents_of_json_keep_them_as_escapes(self):
        values = [value for value in VALUES if value.decode("utf-8", "ignore").encode() == value]
        log = self.scratch / "requests.nlb"
        log.write_bytes(nlb_decoder.encode([((i + 1) * 1000000, name + value, [(b"REQ.ID", i // 10), (b"V", value)])
                                            for i in range(100) for name in (b"A", b"B") for value in values[:1]] +
                                           [((i + 1) * 1000000, b"E" + value, [(b"REQ.ID", i % 10)])
                                            for i, value in enumerate(values)], b"s" * 16))
        printed, said = self.output("nltools/nlstat", "--json", log)
        self.assertEqual((found(printed), said), ([], b""))
        self.assertTrue(json.loads(printed))
        self.assertIn(b"\\u009b", printed)

    def test_nlagent_prints_none_of_a_hostile_agent(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HostileAgent)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for arguments in [("list", "--details"), ("find",), ("status",), ("query", "s"), ("subscribe", "s", "--duration", "3")]:
            printed, messages = self.output("nlagent/nlagent", "--agent", f"http://127.0.0.1:{server.server_port}", *arguments)
            self.assertEqual((found(printed), found(messages)), ([], []), arguments)
            self.assertGreater(len(printed + messages), 30, arguments)
            if arguments[0] == "find":
                self.assertEqual(printed.count(b"\n"), 1, "one line for each sensor")
                self.assertEqual(printed.count(b"\t"), 3, "which the host cannot divide")

    def on_terminal(self, program, *arguments):
        """Returns the program's output to a terminal."""
        master, slave = pty.openpty()
        tty.setraw(slave)
        process = subprocess.Popen([support.program(program), *map(str, arguments)], stdout=slave, stderr=slave,
                                   start_new_session=True, preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
        os.close(slave)
        printed = bytearray()
        try:
            while data := os.read(master, 65536):
                printed += data
        except OSError:  # the other end is closed
            pass
        os.close(master)
        self.assertEqual(process.wait(60), 0, bytes(printed))
        return bytes(printed)

    def test_programs_that_wait_for_input_report_it(self):
        """A program that is started without arguments does not wait on a terminal in silence."""
        for name in "nltools/nldiag", "nltools/nlstat", "nlsort/nlsort":
            with self.subTest(name):
                master, slave = pty.openpty()
                process = self.start(support.program(name), stdin=slave, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                os.close(slave)
                program = name.split("/")[1]
                self.assertEqual(process.stderr.readline().decode(), f"{program}: reading standard input; press Ctrl-D to end it, or see {program} --help\n")
                os.write(master, b"\x04")
                self.assertIn(process.wait(60), (0, 1))
                os.close(master)
                result = self.run_program(support.program(name), stdin=subprocess.DEVNULL)
                self.assertNotIn("reading standard input", result.stderr)

    def test_nlsort_escapes_on_a_terminal_only(self):
        for output in "/dev/stdout", "/dev/fd/1", "file:/dev/tty":
            printed = self.on_terminal("nlsort/nlsort", "-o", output, self.text)
            self.assertEqual((len(printed.splitlines()), found(printed)), (len(VALUES) - 1, []), output)
        for options in [], ["--unique"], ["--merge"], ["--key", "V"], ["--window", "1"]:
            self.assertEqual(sorted(self.output("nlsort/nlsort", *options, self.text)[0].splitlines()),
                             sorted(self.text.read_bytes().splitlines()), "byte by byte")
            printed = self.on_terminal("nlsort/nlsort", *options, self.text)
            self.assertEqual((len(printed.splitlines()), found(printed)), (len(VALUES) - 1, []), options)

    def test_labels_of_charts_and_windows(self):
        """All labels pass printable(), because valid UTF-8 may contain bidirectional overrides."""
        source = pathlib.Path(os.environ["NL_SOURCE_DIR"])
        files = [f for folder in ("common/charts", "nlv/view", "nlv/scene") for f in sorted((source / folder).glob("*.c"))]
        self.assertGreater(len(files), 10)
        self.assertEqual([f.name for f in files if "g_utf8_make_valid" in f.read_text()], [])
        self.assertIn("printable(text)", (source / "common/charts/chart.c").read_text())

    def test_text_gives_back_what_was_escaped(self):
        once, blocks = self.scratch / "once.log", self.scratch / "again.nlb"
        once.write_bytes(self.output("nltools/nlconv", "--format", "ulm", self.blocks)[0])
        self.output("nltools/nlconv", "--format", "nlb", "-o", blocks, once)
        read = [dict(record.fields)[b"V"] for record in nlb_decoder.records(blocks.read_bytes())]
        self.assertEqual(read, VALUES)

    def test_netlogd_writes_none(self):
        messages, own = self.scratch / "messages", self.scratch / "own.log"
        outputs = [self.scratch / "out.log", self.scratch / "out.bp"]
        with open(messages, "wb") as file:
            netlogd = self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", "x-netlog://127.0.0.1:0",
                                 "--output", outputs[0], "--output", f"file:{outputs[1]}?format=bp", "--log", own,
                                 "--recover", "0", stderr=file)
        port = support.wait_until(lambda: re.search(r"listening on x-netlog://127\.0\.0\.1:(\d+)\n", messages.read_text()),
                                  what="netlogd listens").group(1)
        for data in self.blocks.read_bytes(), self.text.read_bytes(), b"".join(v + b"\n" for v in VALUES):
            with socket.create_connection(("127.0.0.1", int(port))) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
        self.end(netlogd)
        for output in outputs:
            data = output.read_bytes()
            self.assertEqual((len(data.splitlines()), found(data)), (2 * len(VALUES) - 1, []), output)
        self.assertEqual((found(own.read_bytes()), found(messages.read_bytes())), ([], []))
        self.assertIn(b"Netlogd.Malformed", own.read_bytes())

    def test_netlogctl_prints_none(self):
        """A collector's responses contain data from clients: names of programs and hosts, and lists of them."""
        path = self.scratch / "control"
        names = [value for value in VALUES if b"\n" not in value]
        rows = [(1000000, b"Netlogd.Client", [(b"PEER", value), (b"CLIENT", KEPT.encode())]) for value in names]
        text = b"".join(b'DATE=20260101000000.000000 HOST=h%s PROG=netlogd LVL=Usage NL.EVNT=Netlogd.Client PEER=%s CLIENT="%s"\n' %
                        (value, value, KEPT.encode()) for value in names)
        done = b"DATE=20260101000000.000000 HOST=h PROG=netlogd LVL=Usage NL.EVNT=Netlogd.Done\n"
        error = b"DATE=20260101000000.000000 HOST=h PROG=netlogd LVL=Error NL.EVNT=Netlogd.Error REASON=%s\n"
        stream = b"DATE=20260101000000.000000 HOST=h PROG=netlogd LVL=Usage NL.EVNT=Netlogd.Subscribed FORMAT=ulm\n"
        answers = [(["clients"], nlb_decoder.encode(rows, b"s" * 16) + done, 0), (["clients"], text + done, 0),
                   (["--json", "clients"], text + done, 0), (["status"], text + done, 0),
                   (["tail"], stream + text, 0), (["--json", "tail"], stream + text, 0)]
        answers += [(["clients"], error % value, 1) for value in names]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            for arguments, answer, status in answers:
                process = self.start(support.program("netlogd/netlogctl"), "--control", path, *arguments, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
                with listener.accept()[0] as connection:
                    while not connection.recv(4096).endswith(b"\n"):
                        pass
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    printed, said = process.communicate(timeout=60)
                self.assertEqual((found(printed), found(said)), ([], []), (arguments, answer[:200]))
                if status == 0:
                    self.assertGreaterEqual(printed.count(KEPT.encode()) + printed.count(b"Netlogd.Client"), 1, arguments)

    def end(self, netlogd):
        netlogd.terminate()
        self.assertEqual(netlogd.wait(20), 0)


if __name__ == "__main__":
    support.main()
