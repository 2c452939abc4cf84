"""Common functions of nlagentd's tests: a running agent, and queries to it."""
import http.client
import subprocess

import support

ENVELOPE = ('<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
            '<%s xmlns="urn:netlogger:agent:1">%s</%s></s:Body></s:Envelope>')


class Agent(support.Case):
    """A running agent, and queries to it."""

    def setUp(self):
        super().setUp()
        self.nlagentd = support.program("nlagent/nlagentd")
        self.nlagent = support.program("nlagent/nlagent")

    def start_agent(self, *options, name="a", wait=True, listen="http://127.0.0.1:%d", **more):
        port = support.free_port()
        log = self.scratch / f"{name}.log"
        process = self.start(self.nlagentd, "--foreground", "--listen", listen % port, "--host", name, "--log", f"file://{log}",
                             *options, stderr=subprocess.DEVNULL, **more)
        process.port, process.log, process.url = port, log, f"http://127.0.0.1:{port}"
        self.addCleanup(lambda: self.assertEqual(self.refuses_calls, "Nlagentd.CallRefused" in self.log_text(process)))
        if wait:
            support.wait_until(lambda: support.can_connect(port), what="nlagentd")
        return process

    def ask(self, agent, *arguments, **options):
        return self.run_program(self.nlagent, "--agent", agent.url, *arguments, **options)

    def post(self, agent, body, headers=(), content_type="text/xml; charset=utf-8", timeout=30):
        """Returns the status and text of the response to bytes sent to /soap."""
        connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=timeout)
        self.addCleanup(connection.close)
        connection.request("POST", "/soap", body, {"Content-Type": content_type, "SOAPAction": '""', **dict(headers)})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")

    def call(self, agent, operation, fields=(), headers=()):
        inside = "".join(f"<{name}>{value}</{name}>" for name, value in fields)
        return self.post(agent, ENVELOPE % (operation, inside, operation), headers)

    def children(self, agent):
        """Returns the command lines of the sensors by process ID. The sensors are children of nlagentd's process that starts sensors."""
        return support.children(*support.children(agent.pid))

    def log_text(self, agent):
        return agent.log.read_text() if agent.log.exists() else ""

    def subscribe(self, agent, *arguments):
        return self.start(self.nlagent, "--agent", agent.url, "subscribe", *arguments, stdout=subprocess.PIPE, text=True)
