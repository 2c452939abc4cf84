#include "config.h"

#include "trace_probe.h"

#include "base/error.h"
#include "elf_functions.h"
#include "rights.h"
#include "bpf/trace.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct probe {
    const probe_choice *choice;
    probe_take *take;
    void *user;
    struct trace_bpf *program;
    struct ring_buffer *ring;
    size_t count;         /* number of events of the current probe_read */
    GHashTable *searched; /* maps a process ID to the inode of the program, and the number of searches in the process */
    GHashTable *libraries; /* char *: device and inode of each TLS library with probes */
    GPtrArray *links;      /* struct bpf_link: the probes in TLS libraries */
    bool refused_tls;      /* a TLS library may have no probe, because the kernel has rejected the probe or the file was
                              deleted */
};

/* ---- processes ---- */

typedef struct listed_process {
    int pid, parent;
    bool chosen;
} listed_process;

static bool has_program(const probe_choice *c, const char *name)
{
    for (guint i = 0; i < c->programs->len; i++)
        if (strncmp(g_ptr_array_index(c->programs, i), name, 15) == 0)
            return true;
    return false;
}

static bool has_pid(const probe_choice *c, int pid)
{
    for (size_t i = 0; i < c->pid_count; i++)
        if (c->pids[i] == pid)
            return true;
    return false;
}

/* Reads a process from /proc/PID/stat, which contains "PID (NAME) STATE PARENT ...". The name may contain any
 * character. Sets `chosen` if the ID or the name matches. Returns false if the process has ended. */
static bool read_process(const probe_choice *c, const char *directory, listed_process *process)
{
    char path[300], line[512] = "";
    snprintf(path, sizeof path, "/proc/%s/stat", directory);
    FILE *file = fopen(path, "re");
    bool got = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL)
        fclose(file);
    char *name = strchr(line, '('), *end = strrchr(line, ')');
    if (!got || name == NULL || end == NULL)
        return false;
    *end = '\0';
    process->pid = atoi(line);
    process->parent = strlen(end + 1) > 3 ? atoi(end + 4) : 0;
    process->chosen = has_pid(c, process->pid) || has_program(c, name + 1);
    return true;
}

static GArray *list_processes(const probe_choice *c)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(listed_process));
    GDir *directory = g_dir_open("/proc", 0, NULL);
    const char *name;
    listed_process process;
    while (directory != NULL && (name = g_dir_read_name(directory)) != NULL)
        if (g_ascii_isdigit(*name) && read_process(c, name, &process))
            g_array_append_val(list, process);
    if (directory != NULL)
        g_dir_close(directory);
    return list;
}

static void choose_pid(GArray *list, int pid)
{
    for (guint i = 0; i < list->len; i++)
        if (g_array_index(list, listed_process, i).pid == pid)
            g_array_index(list, listed_process, i).chosen = true;
}

/* Chooses the processes of a control group and of its subgroups. */
static void choose_cgroup(GArray *list, const char *path)
{
    char *members = g_build_filename(path, "cgroup.procs", NULL), line[64];
    FILE *file = fopen(members, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        choose_pid(list, atoi(line));
    if (file != NULL)
        fclose(file);
    g_free(members);
    GDir *directory = g_dir_open(path, 0, NULL);
    const char *name;
    while (directory != NULL && (name = g_dir_read_name(directory)) != NULL) {
        char *inner = g_build_filename(path, name, NULL);
        if (g_file_test(inner, G_FILE_TEST_IS_DIR) && !g_file_test(inner, G_FILE_TEST_IS_SYMLINK))
            choose_cgroup(list, inner);
        g_free(inner);
    }
    if (directory != NULL)
        g_dir_close(directory);
}

static int by_pid(const void *a, const void *b)
{
    const listed_process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Chooses the children of chosen processes. Returns whether the function has chosen a child. The caller then repeats
 * the call, because the child may have children. */
static bool choose_children(GArray *list)
{
    bool found = false;
    for (guint i = 0; i < list->len; i++) {
        listed_process *p = &g_array_index(list, listed_process, i);
        const listed_process key = {.pid = p->parent},
                             *parent = bsearch(&key, list->data, list->len, sizeof key, by_pid);
        if (!p->chosen && parent != NULL && parent->chosen)
            p->chosen = found = true;
    }
    return found;
}

/* ---- TLS libraries ---- */

/* Programs load libraries while they start, so the module searches a process several times. The maximum number of
 * libraries bounds the memory, because each container can have different files. */
enum { SEARCHES_MAX = 3, LIBRARIES_MAX = 1000 };

static void free_link(gpointer link)
{
    bpf_link__destroy(link);
}

/* Attaches a probe to the function at an offset in a file. Returns false if this fails. */
static bool add_probe(probe *p, const struct bpf_program *program, const char *path, uint64_t offset, bool returns)
{
    const struct bpf_uprobe_opts options = {.sz = sizeof options, .retprobe = returns};
    struct bpf_link *link = bpf_program__attach_uprobe_opts(program, -1, path, offset, &options);
    if (link != NULL)
        g_ptr_array_add(p->links, link);
    else
        p->refused_tls = true;
    return link != NULL;
}

/* Adds the probes of a library. Returns whether the library has probes. libbpf would parse the file with libelf. */
static bool probe_library(probe *p, const char *path, bool is_gnutls)
{
    enum { FUNCTIONS_MAX = 4 };
    static const char *const openssl[FUNCTIONS_MAX] = {"SSL_write", "SSL_read", "SSL_write_ex", "SSL_read_ex"},
                             *const gnutls[] = {"gnutls_record_send", "gnutls_record_recv"};
    const size_t count = is_gnutls ? G_N_ELEMENTS(gnutls) : FUNCTIONS_MAX;
    bool has_probes = false;
    uint64_t offsets[FUNCTIONS_MAX];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || !elf_find_functions(fd, is_gnutls ? gnutls : openssl, count, offsets))
        p->refused_tls = true;
    else
        for (size_t i = 0; i < count; i++) {
            if (offsets[i] == 0) /* an old library lacks the functions whose names end in _ex */
                continue;
            has_probes |=
                add_probe(p, i < 2 ? p->program->progs.on_tls : p->program->progs.on_tls_ex, path, offsets[i], false);
            has_probes |= add_probe(p, i % 2 == 0 ? p->program->progs.on_tls_sent : p->program->progs.on_tls_received,
                                    path, offsets[i], true);
        }
    if (fd >= 0)
        close(fd);
    return has_probes;
}

/* Adds the probes of a library that a process maps. `name` is the library's path in the process's file system. A user
 * may have replaced the file, for example with a named pipe, whose opening would never return. */
static void find_library(probe *p, int pid, const char *name, bool is_gnutls)
{
    char *path = g_strdup_printf("/proc/%d/root%s", pid, name), *key = NULL, own[40];
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (fd < 0) { /* the file was deleted, or the process has ended */
        p->refused_tls |= g_str_has_suffix(name, " (deleted)") || (errno != ENOENT && errno != ESRCH);
    } else if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        p->refused_tls = true;
    } else {
        key = g_strdup_printf("%ju %ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
        snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
        const bool known = g_hash_table_contains(p->libraries, key);
        if (!known && g_hash_table_size(p->libraries) >= LIBRARIES_MAX)
            p->refused_tls = true;
        else if (!known && probe_library(p, own, is_gnutls))
            g_hash_table_add(p->libraries, g_steal_pointer(&key));
    }
    if (fd >= 0)
        close(fd);
    g_free(key);
    g_free(path);
}

/* Returns whether to search a process for libraries, and counts the searches since the process executed its program. */
static bool may_search(probe *p, int pid)
{
    char path[64];
    struct stat program = {0};
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    if (stat(path, &program) != 0)
        program.st_ino = 0;
    gpointer process = GINT_TO_POINTER(pid);
    const uintptr_t first = (uintptr_t)program.st_ino * (SEARCHES_MAX + 1);
    uintptr_t next = (uintptr_t)g_hash_table_lookup(p->searched, process);
    if (next - first > SEARCHES_MAX) /* count again for a new process or program */
        next = first;
    if (next - first == SEARCHES_MAX)
        return false;
    g_hash_table_insert(p->searched, process, (gpointer)(next + 1));
    return true;
}

/* Finds the TLS libraries of a process in /proc/PID/maps, whose lines are "ADDRESSES RIGHTS OFFSET DEVICE INODE PATH".
 * A process in a container may have a different file at the same path. */
static void find_libraries(probe *p, int pid)
{
    char maps[64], line[4096], name[3072];
    if (!may_search(p, pid))
        return;
    snprintf(maps, sizeof maps, "/proc/%d/maps", pid);
    FILE *file = fopen(maps, "re");
    p->refused_tls = p->refused_tls || (file == NULL && errno == EACCES);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%*s %*s %*s %*s %*s %3071[^\n]", name) != 1)
            continue;
        const char *base = strrchr(name, '/');
        bool is_gnutls = base != NULL && g_str_has_prefix(base, "/libgnutls.so");
        if (is_gnutls || (base != NULL && g_str_has_prefix(base, "/libssl.so")))
            find_library(p, pid, name, is_gnutls);
    }
    if (file != NULL)
        fclose(file);
}

static gboolean has_ended(gpointer pid, gpointer value, gpointer user)
{
    const GArray *list = user;
    const listed_process key = {.pid = GPOINTER_TO_INT(pid)};
    (void)value;
    return bsearch(&key, list->data, list->len, sizeof key, by_pid) == NULL;
}

size_t probe_choose(probe *p)
{
    GArray *list = list_processes(p->choice);
    size_t count = 0;
    const struct {
        __u32 announced;
    } first = {0};
    for (guint i = 0; i < p->choice->cgroups->len; i++)
        choose_cgroup(list, g_ptr_array_index(p->choice->cgroups, i));
    g_array_sort(list, by_pid);
    while (choose_children(list))
        continue;
    for (guint i = 0; i < list->len; i++) {
        const listed_process *process = &g_array_index(list, listed_process, i);
        __u32 pid = (__u32)process->pid;
        if (p->choice->ports->len > 0)
            find_libraries(p, process->pid);
        if (!process->chosen || pid == (__u32)getpid())
            continue;
        p->program->bss->may_be_traced[pid % TRACE_FILTER_SIZE] = 1;
        bpf_map_update_elem(bpf_map__fd(p->program->maps.processes), &pid, &first, BPF_NOEXIST);
        find_libraries(p, process->pid);
        count++;
    }
    g_hash_table_foreach_remove(p->searched, has_ended, list);
    g_array_free(list, TRUE);
    return count;
}

/* ---- the kernel's program ---- */

/* Chooses the BPF programs that this kernel supports (bpf/trace.bpf.c). */
static void choose_programs(struct trace_bpf *program)
{
    struct btf *types = btf__load_vmlinux_btf();
    bool has_cast = types != NULL && btf__find_by_name_kind(types, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0,
         has_calls = types != NULL && btf__find_by_name_kind(types, "btf_trace_sock_recv_length", BTF_KIND_TYPEDEF) > 0;
    int id = types != NULL ? btf__find_by_name_kind(types, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : 0;
    const struct btf_type *type = id > 0 ? btf__type_by_id(types, btf__type_by_id(types, id)->type) : NULL;
    type = type != NULL ? btf__type_by_id(types, type->type) : NULL; /* the type of the function */
    bpf_program__set_autoload(program->progs.on_switch, type != NULL && btf_vlen(type) > 4);
    btf__free(types);
    bool sees_sockets = has_cast && has_calls;
    bpf_program__set_autoload(program->progs.on_send, sees_sockets);
    bpf_program__set_autoload(program->progs.on_receive, sees_sockets);
    bpf_program__set_autoload(program->progs.on_wait, sees_sockets);
    bpf_program__set_autoload(program->progs.on_enter, !sees_sockets);
    bpf_program__set_autoload(program->progs.on_exit, !sees_sockets && has_cast);
    bpf_program__set_autoload(program->progs.on_exit_without_cast, !sees_sockets && !has_cast);
}

static bool configure(probe *p)
{
    const __u8 one = 1;
#ifndef __x86_64__ /* the BPF programs read the registers of this architecture */
    return nl_error_false(NL_ERROR_UNSUPPORTED, "nlkernel trace supports only x86-64 processors");
#endif
    p->program = trace_bpf__open();
    if (p->program == NULL)
        return rights_fail_bpf(errno);
    choose_programs(p->program);
    p->program->rodata->own_pid = (__u32)getpid();
    p->program->rodata->by_ports = p->choice->ports->len > 0;
    if (trace_bpf__load(p->program) != 0)
        return rights_fail_bpf(errno);
    for (guint i = 0; i < p->choice->ports->len; i++)
        bpf_map_update_elem(bpf_map__fd(p->program->maps.ports), &g_array_index(p->choice->ports, __u16, i), &one,
                            BPF_ANY);
    for (guint i = 0; i < p->choice->programs->len; i++) {
        char name[16] = "";
        snprintf(name, sizeof name, "%.15s", (const char *)g_ptr_array_index(p->choice->programs, i));
        bpf_map_update_elem(bpf_map__fd(p->program->maps.programs), name, &one, BPF_ANY);
    }
    return true;
}

static int take_event(void *user, void *data, size_t size)
{
    probe *p = user;
    const struct trace_event *event = data;
    p->count++;
    if (size >= offsetof(struct trace_event, data) && size - offsetof(struct trace_event, data) >= event->captured)
        p->take(p->user, event);
    return 0;
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level, (void)format, (void)arguments;
    return 0;
}

probe *probe_start(const probe_choice *choice, probe_take *take, void *user)
{
    probe *p = g_new0(probe, 1);
    *p = (probe){.choice = choice,
                 .take = take,
                 .user = user,
                 .searched = g_hash_table_new(NULL, NULL),
                 .libraries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                 .links = g_ptr_array_new_with_free_func(free_link)};
    libbpf_set_print(print_nothing);
    bool ok = configure(p);
    if (ok) {
        probe_choose(p);
        p->ring = ring_buffer__new(bpf_map__fd(p->program->maps.ring), take_event, p, NULL);
        ok = (p->ring != NULL && trace_bpf__attach(p->program) == 0) || rights_fail_bpf(errno);
        p->program->bss->counts_waits = ok;
    }
    if (ok)
        return p;
    probe_free(p);
    return NULL;
}

size_t probe_read(probe *p)
{
    p->count = 0;
    ring_buffer__consume(p->ring);
    return p->count;
}

/* Attaches or detaches a program. Returns false if attaching failed. */
static bool attach(struct bpf_link **link, const struct bpf_program *program, bool wanted)
{
    if (!wanted) {
        bpf_link__destroy(*link);
        *link = NULL;
    } else if (*link == NULL) {
        *link = bpf_program__attach(program);
    }
    return !wanted || *link != NULL;
}

void probe_count_waits(probe *p, bool wanted)
{
    struct trace_bpf *program = p->program;
    if (!bpf_program__autoload(program->progs.on_wait) || program->bss->counts_waits == wanted)
        return;
    program->bss->counts_waits = false; /* false before the programs are detached, and until both are attached */
    bool waits = attach(&program->links.on_wait, program->progs.on_wait, wanted),
         wakes = attach(&program->links.on_waking, program->progs.on_waking, wanted);
    program->bss->counts_waits = wanted && waits && wakes;
}

bool probe_has_late_senders(const probe *p)
{
    return p->program->bss->has_late_senders;
}

void probe_stop(probe *p)
{
    g_ptr_array_set_size(p->links, 0);
    trace_bpf__detach(p->program);
}

uint64_t probe_missed(const probe *p)
{
    return p->program->bss->missed;
}

bool probe_refused_tls(const probe *p)
{
    return p->refused_tls;
}

uint64_t probe_unix_calls(const probe *p)
{
    return p->program->bss->unix_calls;
}

void probe_free(probe *p)
{
    if (p == NULL)
        return;
    ring_buffer__free(p->ring);
    g_ptr_array_free(p->links, TRUE);
    g_hash_table_destroy(p->libraries);
    g_hash_table_destroy(p->searched);
    if (p->program != NULL)
        trace_bpf__destroy(p->program);
    g_free(p);
}
