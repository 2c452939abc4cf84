"""A guest with another kernel: qemu emulates a machine with Debian's kernel (package linux-image-amd64) and an initramfs that
this file makes.

    guest = Guest(self)                      # skips the test, with a reason, if a component is missing
    guest.add(program)                       # adds /bin/NAME and its libraries to the guest
    files = guest.run([["/bin/nlkernel", ...], ...], ["/k.nlb"])

Programs in the guest have /proc, /sys, tracefs at /sys/kernel/tracing, and lo. The guest sends files to the test through virtio-serial.
"""
import lzma
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import unittest

import support

INIT = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* So many datagrams of UDP over lo, and bytes through a pipe: what is recorded. */
static int work(int count)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0), ends[2];
    char byte = 'x';
    if (bind(in, (void *)&to, sizeof to) != 0 || getsockname(in, (void *)&to, &size) != 0 || pipe(ends) != 0)
        return 1;
    for (int i = 0; i < count; i++)
        if (sendto(out, &byte, 1, 0, (void *)&to, sizeof to) != 1 || recv(in, &byte, 1, 0) != 1 ||
            write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
            return 1;
    return 0;
}

/* Reads the clock, between two calls of gettid each, and sets it on after the first half of the times. */
static int set_clock(const char *path)
{
    FILE *out = fopen(path, "w");
    struct timespec now, wait = {.tv_nsec = 150000000};
    for (int i = 0; i < 20; i++) {
        if (i == 10) {
            nanosleep(&wait, NULL);
            clock_gettime(CLOCK_REALTIME, &now);
            now.tv_sec += 4000;
            clock_settime(CLOCK_REALTIME, &now);
            nanosleep(&wait, NULL);
        }
        syscall(SYS_gettid);
        clock_gettime(CLOCK_REALTIME, &now);
        syscall(SYS_gettid);
        fprintf(out, "%ld%09ld\n", (long)now.tv_sec, now.tv_nsec);
    }
    return fclose(out);
}

/* How all that share the kernel's tracing find it. */
static int show_state(const char *path)
{
    static const char *const files[] = {
        "current_tracer", "trace_clock", "buffer_size_kb", "buffer_percent", "tracing_on", "set_event", "set_ftrace_filter",
        "set_ftrace_notrace", "set_ftrace_pid", "set_ftrace_notrace_pid", "options/function-fork", "options/disable_on_free"};
    FILE *out = fopen(path, "w");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[128], line[256] = "";
        snprintf(name, sizeof name, "/sys/kernel/tracing/%s", files[i]);
        FILE *in = fopen(name, "r");
        if (in != NULL && fgets(line, sizeof line, in) != NULL)
            line[strcspn(line, "\n")] = '\0';
        if (in != NULL)
            fclose(in);
        fprintf(out, "%s: %s\n", files[i], line);
    }
    return fclose(out);
}

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    return write(fd, text, strlen(text)) < 0;
}

/* Starts a command, and kills it once the file has been written. */
static int kill_later(const char *path, char **argv)
{
    struct stat status = {0};
    pid_t child = fork();
    if (child == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    for (int tries = 0; tries < 600 && status.st_size == 0; tries++, usleep(50000))
        stat(path, &status);
    kill(child, SIGKILL);
    return waitpid(child, NULL, 0) != child;
}

static void load_modules(void)
{
    char line[512];
    FILE *list = fopen("/modules/list", "r");
    while (list != NULL && fgets(line, sizeof line, list) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        int fd = open(line, O_RDONLY);
        if (syscall(SYS_finit_module, fd, "", 0) != 0)
            perror(line);
        close(fd);
    }
}

static void raise_lo(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &request);
}

/* Each line of the file is a word; an empty one ends the command. */
static void run_commands(void)
{
    static char words[64][512], *argv[65];
    char line[512];
    int count = 0;
    FILE *list = fopen("/commands", "r");
    while (list != NULL && fgets(line, sizeof line, list) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (*line != '\0') {
            argv[count] = strcpy(words[count], line);
            argv[++count] = NULL;
            continue;
        }
        pid_t child = fork();
        if (child == 0) {
            execv(argv[0], argv);
            perror(argv[0]);
            _exit(127);
        }
        int status = 0;
        waitpid(child, &status, 0); /* daemons that the command has started may also end */
        printf("GUEST %s: %d\n", argv[0], WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        fflush(stdout);
        count = 0;
    }
}

/* Each file as "PATH SIZE" and a newline, then its bytes; -1 where there is none. */
static void send_files(void)
{
    static char bytes[1 << 16];
    char line[512];
    int port = -1;
    for (int tries = 0; port < 0 && tries < 500; tries++, usleep(10000))
        port = open("/dev/vport0p1", O_WRONLY);
    FILE *list = fopen("/files", "r");
    while (list != NULL && fgets(line, sizeof line, list) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        int fd = open(line, O_RDONLY);
        struct stat status;
        long size = fd >= 0 && fstat(fd, &status) == 0 ? (long)status.st_size : -1;
        dprintf(port, "%s %ld\n", line, size);
        for (ssize_t got; fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0;)
            for (ssize_t put = 0, n; put < got && (n = write(port, bytes + put, got - put)) > 0;)
                put += n;
        close(fd);
    }
    close(port);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "work") == 0)
        return work(atoi(argv[2]));
    if (argc > 2 && strcmp(argv[1], "clock") == 0)
        return set_clock(argv[2]);
    if (argc > 2 && strcmp(argv[1], "state") == 0)
        return show_state(argv[2]);
    if (argc > 3 && strcmp(argv[1], "put") == 0)
        return put(argv[2], argv[3]);
    if (argc > 3 && strcmp(argv[1], "kill") == 0)
        return kill_later(argv[2], argv + 3);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mount("trace", "/sys/kernel/tracing", "tracefs", 0, NULL);
    load_modules();
    raise_lo();
    run_commands();
    send_files();
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
"""
MODULES = ("virtio_pci", "virtio_console")


def kernel():
    """Returns (image, folder of modules) of the newest kernel on this machine that can be booted, or None."""
    found = []
    for folder in pathlib.Path("/lib/modules").glob("*"):
        image = pathlib.Path("/boot") / f"vmlinuz-{folder.name}"
        if image.exists() and os.access(image, os.R_OK) and (folder / "modules.dep").exists():
            found.append(([int(n) for n in re.findall(r"\d+", folder.name)], image, folder))
    return max(found)[1:] if found else None


def cpio(entries):
    """Returns an initramfs (newc format) of (path, mode, bytes) entries."""
    out = bytearray()

    def put(path, mode, data):
        name = path.encode() + b"\0"
        out.extend(b"070701" + b"".join(b"%08x" % n for n in (
            put.number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)))
        out.extend(name)
        out.extend(bytes(-len(out) % 4))
        out.extend(data)
        out.extend(bytes(-len(out) % 4))
        put.number += 1

    put.number = 1
    for entry in entries:
        put(*entry)
    put("TRAILER!!!", 0, b"")
    return bytes(out)


def unpacked(image):
    """Returns the kernel in a file vmlinuz if xz has compressed it, else None. An emulated processor would take longer to decompress
    the kernel than to boot."""
    data = image.read_bytes()
    begin = (data[0x1f1] + 1) * 512 + int.from_bytes(data[0x248:0x24c], "little")  # the fields setup_sects and payload_offset
    if not data.startswith(b"\xfd7zXZ", begin):
        return None
    return lzma.LZMADecompressor().decompress(data[begin:])


class Guest:
    """name: distinguishes several guests of one test; modules: additional modules of the kernel."""

    def __init__(self, case, name="guest", modules=()):
        self.case = case
        self.folder = case.scratch / name
        self.folder.mkdir()
        self.wanted = MODULES + tuple(modules)
        if platform.machine() != "x86_64":
            raise unittest.SkipTest("the guest is an x86_64")
        self.qemu = shutil.which("qemu-system-x86_64")
        if self.qemu is None:
            raise unittest.SkipTest("qemu-system-x86_64 is not installed (package qemu-system-x86)")
        found = kernel()
        if found is None:
            raise unittest.SkipTest("no kernel to boot in /boot with its modules (package linux-image-amd64)")
        self.image, self.modules = found
        self.files = {}
        self.said = ""
        self._add_init()
        self._add_modules()

    def _add_init(self):
        source, program = self.folder / "init.c", self.folder / "init"
        source.write_text(INIT)
        result = self.case.run_program(*shlex.split(support.CC), "-std=gnu11", "-O1", "-static", "-o", program, source)
        if result.returncode != 0:
            raise unittest.SkipTest(f"no static program can be linked here: {result.stderr}")
        self.files["init"] = program.read_bytes()

    def _add_modules(self):
        needs = dict(line.split(":", 1) for line in (self.modules / "modules.dep").read_text().splitlines())
        by_name = {pathlib.Path(path).name.split(".")[0]: path for path in needs}
        order = []

        def want(path):
            for other in reversed(needs[path].split()):
                want(other)
            if path not in order:
                order.append(path)

        for name in self.wanted:
            if name in by_name:  # otherwise, the driver is built into the kernel
                want(by_name[name])
        for path in order:
            if not path.endswith(".ko"):
                raise unittest.SkipTest(f"{path}: compressed modules can't be loaded by the guest")
            self.files[f"modules/{pathlib.Path(path).name}"] = (self.modules / path).read_bytes()
        self.files["modules/list"] = "".join(f"/modules/{pathlib.Path(path).name}\n" for path in order).encode()

    def add(self, program, name=None):
        """Adds a program and its libraries, without debugging information."""
        program = pathlib.Path(program)
        copy = self.folder / "stripped"
        shutil.copy(program, copy)
        subprocess.run(["strip", str(copy)], capture_output=True, check=False)
        self.files[f"bin/{name or program.name}"] = copy.read_bytes()
        needed = self.case.run_program("ldd", program)
        for path in re.findall(r"(/\S+) \(0x", needed.stdout):
            self.files[path.lstrip("/")] = pathlib.Path(path).read_bytes()

    def _archive(self):
        folders = {"proc", "sys", "dev", "tmp"}
        for path in self.files:
            folders.update(str(p) for p in pathlib.PurePath(path).parents if str(p) != ".")
        entries = [(folder, 0o040755, b"") for folder in sorted(folders)]
        return cpio(entries + [(path, 0o100755, data) for path, data in self.files.items()])

    def run(self, commands, files, cpus=1, seconds=300, prefix=(), options=()):
        """Boots and runs the commands in order. Returns {path: bytes} of the existing files. prefix: a command that runs
        qemu; options: further options of qemu."""
        self.files["commands"] = "".join("".join(f"{word}\n" for word in command) + "\n" for command in commands).encode()
        self.files["files"] = "".join(f"{path}\n" for path in files).encode()
        initrd, port = self.folder / "initrd", self.folder / "port"
        initrd.write_bytes(self._archive())
        image, plain = self.image, unpacked(self.image)
        if plain is not None:
            image = self.folder / "vmlinux"
            image.write_bytes(plain)
        result = self.case.run_program(
            *prefix, self.qemu, "-machine", "pc,accel=tcg", "-cpu", "max", "-m", "768", "-smp", cpus, "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", image, "-initrd", initrd, "-append",
            "console=ttyS0 quiet panic=-1 mitigations=off nokaslr audit=0", "-device", "virtio-serial-pci", "-chardev",
            f"file,id=port,path={port}", "-device", "virtserialport,chardev=port,name=files", *options, timeout=seconds, errors="replace")
        self.said = result.stdout + result.stderr
        return self._read(port.read_bytes() if port.exists() else b"")

    def _read(self, data):
        found = {}
        while data:
            head, _, data = data.partition(b"\n")
            path, size = head.decode().rsplit(" ", 1)
            size = int(size)
            if size >= 0:
                found[path], data = data[:size], data[size:]
        return found
