"""nginx, gunicorn, PostgreSQL and Redis in network namespaces, each with its own host name, and a client: unmodified
servers for nlkernel trace. The application logs which connections each request used. The tests compare the joins
with these records."""
import contextlib
import http.client
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

HOSTS = {"web": 2, "app": 3, "db": 4, "cache": 5, "client": 6}
NEEDED = ("nginx", "gunicorn", "redis-server", "ip", "unshare")

APPLICATION = r'''
import os, socket, threading, time
import psycopg2, redis
mine = threading.local()
log = open(os.environ["TRUTH"], "a", buffering=1)

def identify(end):
    """Returns the number that identifies a connection in nlkernel's records: the client's port or the socket's cookie."""
    if end.family == socket.AF_UNIX:
        return int.from_bytes(end.getsockopt(socket.SOL_SOCKET, 57, 8), "little")
    return end.getsockname()[1]

def connect():
    mine.cache = redis.Redis(%(cache)s, single_connection_client=True)
    mine.cache.ping()
    mine.cache_port = identify(mine.cache.connection._sock)
    mine.db = psycopg2.connect(host="%(db)s", user="tester", dbname="postgres", sslmode="disable", gssencmode="disable")
    mine.db.autocommit = True
    mine.db_port = identify(socket.socket(fileno=os.dup(mine.db.fileno())))
    mine.count = 0

def application(environ, start_response):
    if not hasattr(mine, "count"):
        connect()
    request = environ["PATH_INFO"].rsplit("/", 1)[1]
    mine.cache.get("item")
    with mine.db.cursor() as cursor:
        if os.path.exists(os.environ["STATEMENT"]) and int(request) %% 2 == 0:
            cursor.execute(open(os.environ["STATEMENT"]).read())
        else:
            cursor.execute("SELECT count(*) FROM items WHERE name <> 'secret value'")
        cursor.fetchall()
    mine.cache.set("item", request)
    log.write("%%s %%d %%d %%d\n" %% (request, mine.cache_port, mine.db_port, mine.count))
    mine.count += 1
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\n"]
'''

NGINX = """
worker_processes 1;
daemon off;
pid %(dir)s/nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path %(dir)s; proxy_temp_path %(dir)s; fastcgi_temp_path %(dir)s; uwsgi_temp_path %(dir)s; scgi_temp_path %(dir)s;
    upstream app { server %(app)s; %(keepalive)s }
    server { listen 8080; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; } }
}
"""


def missing():
    """Returns what this machine lacks for the servers, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in NEEDED:
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            return f"no {program} here"
    if not sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return "no PostgreSQL here"
    if subprocess.run(["/usr/bin/python3", "-c", "import psycopg2, redis"], capture_output=True).returncode != 0:
        return "no python3-psycopg2 or python3-redis here"
    if subprocess.run(["ip", "netns", "list"], capture_output=True).returncode != 0:
        return "no network namespaces here"
    return None


class Stack:
    def __init__(self, worker=("--worker-class", "gthread", "--threads", "8"), keepalive=True, unix=False):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-trace-"))
        self.directory.chmod(0o755)
        self.prefix = f"nlt{os.getpid() % 100000}"
        self.address = {host: f"10.77.0.{number}" for host, number in HOSTS.items()}
        self.truth = self.directory / "truth"
        self.statement = self.directory / "statement"  # the SQL statement of every second request, if the file exists
        self.worker, self.keepalive, self.unix = worker, keepalive, unix
        self.processes = []
        self.programs = {}  # process by name
        self.namespaces = []

    def run(self, *words):
        subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=60)

    def make_network(self):
        switch = f"{self.prefix}s"
        for name in (switch, *(f"{self.prefix}{host}" for host in HOSTS)):
            self.run("ip", "netns", "add", name)
            self.namespaces.append(name)
        self.run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        self.run("ip", "-n", switch, "link", "set", "bridge", "up")
        for host, number in HOSTS.items():
            name = f"{self.prefix}{host}"
            self.run("ip", "-n", switch, "link", "add", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
            self.run("ip", "-n", switch, "link", "set", f"to-{host}", "master", "bridge", "up")
            self.run("ip", "-n", name, "address", "add", f"{self.address[host]}/24", "dev", "eth0")
            self.run("ip", "-n", name, "link", "set", "eth0", "up")
            self.run("ip", "-n", name, "link", "set", "lo", "up")

    def start(self, host, *words, user=None, **environment):
        """Starts a program on a host."""
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] if user else []
        command = ["ip", "netns", "exec", f"{self.prefix}{host}", "unshare", "--uts", "sh", "-c",
                   f'hostname {host}; exec "$@"', "sh", *as_user, *(str(word) for word in words)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=(self.directory / f"{host}.err").open("ab"), cwd=self.directory,
                                   env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin", "LC_ALL": "C", **environment},
                                   start_new_session=True)
        self.processes.append(process)
        return process

    def connect(self, host, port, path=None):
        """Waits for a server, without sending anything. `path` is its Unix socket, if the servers use Unix sockets."""
        def try_address():
            if self.unix and path:
                return socket.socket(socket.AF_UNIX).connect_ex(str(path))
            return socket.socket().connect_ex((self.address[host], port))
        deadline = time.monotonic() + 20
        while self.on_client(try_address) != 0:
            if time.monotonic() > deadline:
                raise AssertionError(f"{host}: {(self.directory / f'{host}.err').read_text()}")
            time.sleep(0.05)

    def on_client(self, function):
        """Calls a function in a thread that is in the client's network namespace."""
        result = []

        def enter():
            with open(f"/run/netns/{self.prefix}client", "rb") as namespace:
                os_setns(namespace.fileno())
            result.append(function())
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return result[0]

    def begin(self):
        self.make_network()
        user = pwd.getpwnam("postgres")
        binaries = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        data = self.directory / "data"
        data.mkdir()
        shutil.chown(data, user.pw_uid, user.pw_gid)
        self.programs["redis-server"] = self.start("cache", "redis-server", *(
            ("--port", "0", "--unixsocket", self.directory / "redis") if self.unix else ("--bind", self.address["cache"])),
            "--save", "", "--appendonly", "no", "--protected-mode", "no")
        subprocess.run(["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", binaries / "initdb", "-D",
                        data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync", "--locale=C"],
                       check=True, capture_output=True, cwd="/", timeout=60)
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\n")
        self.database = self.programs["postgres"] = self.start("db", binaries / "postgres", "-D", data, "-h", "" if self.unix else self.address["db"], "-k", data if self.unix else "", "-c", "max_connections=200",
                                   user=user)
        database = data if self.unix else self.address["db"]
        app = f"unix:{self.directory}/app" if self.unix else f"{self.address['app']}:8000"
        (self.directory / "application.py").write_text(APPLICATION % {
            "db": database, "cache": f'unix_socket_path="{self.directory}/redis"' if self.unix else f'host="{self.address["cache"]}"'})
        (self.directory / "nginx.conf").write_text(NGINX % {
            "dir": self.directory, "app": app, "keepalive": "keepalive 16;" if self.keepalive else ""})
        self.connect("db", 5432, data / ".s.PGSQL.5432")
        self.connect("cache", 6379, self.directory / "redis")
        # Before PostgreSQL has started, it accepts connections and then rejects them.
        deadline = time.monotonic() + 20
        while self.start("db", binaries / "psql", "-h", database, "-U", "tester", "postgres", "-c",
                         "CREATE TABLE IF NOT EXISTS items AS SELECT 'item' AS name").wait(30) != 0:
            if time.monotonic() > deadline:
                raise AssertionError(f"db: {(self.directory / 'db.err').read_text()}")
            time.sleep(0.1)
        self.programs["gunicorn"] = self.start("app", "gunicorn", "--bind", app, *self.worker, "--keep-alive", "60", "--chdir",
                   self.directory, "application:application", TRUTH=str(self.truth), STATEMENT=str(self.statement))
        self.programs["nginx"] = self.start("web", "nginx", "-p", self.directory, "-c", self.directory / "nginx.conf")
        self.connect("app", 8000, self.directory / "app")
        self.connect("web", 8080)

    def translate_addresses(self):
        """Makes the client reach nginx at an address that is translated. Returns false if this machine cannot
        translate addresses."""
        self.run("ip", "-n", f"{self.prefix}client", "route", "replace", "10.99.0.0/24", "dev", "eth0")
        self.address["translated"] = "10.99.0.1"
        return subprocess.run(["ip", "netns", "exec", f"{self.prefix}client", "iptables", "-t", "nat", "-A", "OUTPUT", "-d", "10.99.0.1",
                               "-p", "tcp", "-j", "DNAT", "--to-destination", self.address["web"]], capture_output=True).returncode == 0

    @contextlib.contextmanager
    def slow_link(self, host):
        """Limits what a host sends to 40 Mbit/s."""
        tc = "tc", "-n", f"{self.prefix}{host}", "qdisc"
        self.run(*tc, "add", "dev", "eth0", "root", "tbf", "rate", "40mbit", "burst", "20kb", "latency", "500ms")
        try:
            yield
        finally:
            self.run(*tc, "delete", "dev", "eth0", "root")

    @contextlib.contextmanager
    def slow_disk(self):
        """Limits the database to 100 writes per second. Yields false if this machine cannot limit writes."""
        device = os.stat(self.directory).st_dev
        throttle = f"{os.major(device)}:{os.minor(device)} "
        old, new = pathlib.Path("/sys/fs/cgroup/blkio"), pathlib.Path("/sys/fs/cgroup")
        group = (old if old.exists() else new) / f"{self.prefix}disk"
        try:
            if not old.exists():
                (new / "cgroup.subtree_control").write_text("+io")
            group.mkdir()
        except OSError:
            yield False
            return
        try:
            for limits, value in ("blkio.throttle.write_iops_device", "100"), ("io.max", "wiops=100"):
                if (group / limits).exists():
                    (group / limits).write_text(throttle + value)
            self.move_database(group)
            yield True
        except OSError:  # for example, the files are in memory
            yield False
        finally:
            self.move_database(group.parent)
            group.rmdir()

    def move_database(self, group):
        """Moves the database's processes to a control group."""
        first = str(self.database.pid)
        children = subprocess.run(["pgrep", "-P", first], capture_output=True, text=True).stdout.split()
        for process in (first, *children):
            try:
                (group / "cgroup.procs").write_text(process)
            except ProcessLookupError:
                pass  # the process has ended

    def request(self, numbers, concurrency, host="web"):
        """Sends GET /work/NUMBER for each number, over one connection for each of the concurrent clients."""
        waiting = list(reversed(numbers))
        failures = []

        def client():
            connection = http.client.HTTPConnection(self.address[host], 8080, timeout=30)
            while True:
                try:
                    number = waiting.pop()
                except IndexError:
                    break
                connection.request("GET", f"/work/{number}?token=secret")
                reply = connection.getresponse()
                reply.read()
                if reply.status != 200:
                    failures.append((number, reply.status))
            connection.close()

        def all_clients():
            threads = [threading.Thread(target=client) for _ in range(concurrency)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.on_client(all_clients)
        if failures:
            raise AssertionError(f"{failures[:5]}, {(self.directory / 'app.err').read_text()[-2000:]}")

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)


def os_setns(descriptor):
    import ctypes
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")


SPANS = 10  # of a request: client, nginx 2, gunicorn 1, and both ends of three calls
WAITS = ".processor", ".disk", ".futex", ".lock"


def score(records, truth, spans=SPANS):
    """Returns the numbers of the right requests, whose spans are all in the request's trace and in no other trace. Also returns the
    numbers of the other requests, with their errors. `records` are dictionaries, in the order of the log."""
    def nth(event, program, port):
        """Returns the trace IDs of a server's spans by the client's port, in order."""
        found = {}
        for r in sorted((r for r in records if r["NL.EVNT"] == event and r["PROG"] == program), key=lambda r: r["DATE"]):
            found.setdefault(int(r["PEER"].rsplit(":", 1)[1]), []).append(r["TRACE.ID"])
        return found
    gets, sets = nth("redis.GET", "redis-server", 6379), nth("redis.SET", "redis-server", 6379)
    selects = {}
    for event in ("postgresql.SELECT.items", "postgresql.SELECT.pg_sleep"):
        for r in records:
            if r["NL.EVNT"] == event and r["PROG"] == "postgres":
                selects.setdefault(int(r["PEER"].rsplit(":", 1)[1]), []).append((r["DATE"], r["TRACE.ID"]))
    web, app = {}, {}
    sizes = {}
    for r in records:
        if r["NL.EVNT"].startswith(("http.GET", "redis.GET", "redis.SET", "postgresql.SELECT")):
            sizes[r["TRACE.ID"]] = sizes.get(r["TRACE.ID"], 0) + 1
        if r["NL.EVNT"] == "http.GET" and r["PROG"] in ("nginx", "gunicorn"):
            (web if r["PROG"] == "nginx" else app).setdefault(r["PATH"], []).append(r["TRACE.ID"])
    right, wrong = [], {}
    for line in truth:
        number, cache_port, db_port, count = (int(word) for word in line.split())
        path = f"/work/{number}"
        try:
            traces = {"web": web[path], "app": app[path], "get": [gets[cache_port][count]], "set": [sets[cache_port][count]],
                      "select": [sorted(selects[db_port])[count][1]]}
        except (KeyError, IndexError) as error:
            wrong[number] = f"missing {error!r}"
            continue
        ids = {i for group in traces.values() for i in group}
        if len(ids) != 1:
            wrong[number] = traces
        elif sizes[trace := ids.pop()] != spans:
            wrong[number] = f"{sizes[trace]} spans, not {spans}"
        else:
            right.append(number)
    return right, wrong
