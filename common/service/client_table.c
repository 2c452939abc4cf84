#include "config.h"

#include "service/client_table.h"

#include <netlogger.h>

#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    HASH_SIZE = 4096, /* number of lists of addresses; a power of 2 */
    KEY_SIZE = 16,
    /*
     * A client that sent something useful within this time is busy: only an address with fewer clients may displace it.
     */
    BUSY_NS = 1000000000,
    TRIES_MAX = 64, /* maximum number of clients to skip because they have unread bytes */
};

typedef TAILQ_HEAD(client_list, client_entry) client_list;

typedef struct client_address {
    LIST_ENTRY(client_address) of_hash;
    /* The list of the addresses with the same number of clients. The address that has been silent longest is first. */
    TAILQ_ENTRY(client_address) of_count;
    unsigned char key[KEY_SIZE];
    bool local; /* the entry for all clients of Unix sockets */
    size_t count;
    client_list unproven, proven;
} client_address;

typedef TAILQ_HEAD(address_list, client_address) address_list;

typedef LIST_HEAD(hash_list, client_address) hash_list;

struct client_table {
    size_t total_max, address_max, count;
    hash_list hash[HASH_SIZE];
    address_list *by_count; /* indexed by the number of clients of the addresses */
    size_t by_count_size, highest;
    uint64_t seed;
};

client_table *client_table_new(void)
{
    client_table *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->total_max = SIZE_MAX;
    t->seed = (uint64_t)nl_time_now_ns() * UINT64_C(0x9E3779B97F4A7C15);
    return t;
}

void client_table_free(client_table *t)
{
    if (t != NULL)
        free(t->by_count);
    free(t);
}

void client_table_set_limits(client_table *t, size_t total_max, size_t address_max)
{
    t->total_max = total_max;
    t->address_max = address_max;
}

size_t client_table_count(const client_table *t)
{
    return t->count;
}

/* ---- lists ---- */

static client_list *list_of_entry(const client_entry *e)
{
    return e->proven ? &e->address->proven : &e->address->unproven;
}

static void address_append(client_table *t, client_address *a)
{
    TAILQ_INSERT_TAIL(&t->by_count[a->count], a, of_count);
    t->highest = a->count > t->highest ? a->count : t->highest;
}

static void address_unlink(client_table *t, client_address *a)
{
    TAILQ_REMOVE(&t->by_count[a->count], a, of_count);
    while (t->highest > 0 && TAILQ_EMPTY(&t->by_count[t->highest]))
        t->highest--;
}

/* ---- addresses ---- */

/* Writes the key of an address. Returns whether the address belongs to a Unix socket. */
static bool address_key(const struct sockaddr *peer, unsigned char key[KEY_SIZE])
{
    memset(key, 0, KEY_SIZE);
    if (peer->sa_family == AF_INET) {
        key[10] = key[11] = 0xff;
        memcpy(key + 12, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
        return false;
    }
    if (peer->sa_family != AF_INET6)
        return true;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    bool one = IN6_IS_ADDR_V4MAPPED(six) || IN6_IS_ADDR_LOOPBACK(six);
    memcpy(key, six->s6_addr, one ? KEY_SIZE : KEY_SIZE / 2);
    return false;
}

static size_t hash_place(const client_table *t, const unsigned char key[KEY_SIZE])
{
    uint64_t halves[2];
    memcpy(halves, key, sizeof halves);
    uint64_t hash = (halves[0] ^ t->seed) * UINT64_C(0xFF51AFD7ED558CCD);
    hash = (hash ^ (hash >> 32) ^ halves[1]) * UINT64_C(0xC4CEB9FE1A85EC53);
    return (hash >> 40) & (HASH_SIZE - 1);
}

static client_address *address_find(client_table *t, const struct sockaddr *peer)
{
    unsigned char key[KEY_SIZE];
    bool local = address_key(peer, key);
    client_address *a = LIST_FIRST(&t->hash[hash_place(t, key)]);
    while (a != NULL && (a->local != local || memcmp(a->key, key, KEY_SIZE) != 0))
        a = LIST_NEXT(a, of_hash);
    return a;
}

static client_address *address_new(client_table *t, const struct sockaddr *peer)
{
    client_address *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->local = address_key(peer, a->key);
    TAILQ_INIT(&a->unproven);
    TAILQ_INIT(&a->proven);
    LIST_INSERT_HEAD(&t->hash[hash_place(t, a->key)], a, of_hash);
    return a;
}

static bool reserve_counts(client_table *t, size_t count)
{
    if (count < t->by_count_size)
        return true;
    size_t size = t->by_count_size * 2 > count ? t->by_count_size * 2 : count + 64;
    address_list *larger = realloc(t->by_count, size * sizeof *larger);
    if (larger == NULL)
        return false;
    for (size_t i = 0; i < t->by_count_size;
         i++) /* the first entry of each list points back to the list head, which has moved */
        if (TAILQ_EMPTY(&larger[i]))
            TAILQ_INIT(&larger[i]);
        else
            TAILQ_FIRST(&larger[i])->of_count.tqe_prev = &TAILQ_FIRST(&larger[i]);
    for (size_t i = t->by_count_size; i < size; i++)
        TAILQ_INIT(&larger[i]);
    t->by_count = larger;
    t->by_count_size = size;
    return true;
}

/* ---- clients ---- */

bool client_table_add(client_table *t, client_entry *e, const struct sockaddr *peer, int64_t now_ns)
{
    client_address *a = address_find(t, peer);
    if (!reserve_counts(t, a != NULL ? a->count + 1 : 1) || (a == NULL && (a = address_new(t, peer)) == NULL))
        return false;
    if (a->count > 0)
        address_unlink(t, a);
    a->count++;
    address_append(t, a);
    e->address = a;
    e->proven = e->spared = false;
    e->heard_ns = now_ns;
    TAILQ_INSERT_TAIL(list_of_entry(e), e, of_address);
    t->count++;
    return true;
}

void client_table_heard(client_table *t, client_entry *e, int64_t now_ns)
{
    if (e->address == NULL)
        return;
    TAILQ_REMOVE(list_of_entry(e), e, of_address);
    e->proven = true;
    e->spared = false;
    e->heard_ns = now_ns;
    TAILQ_INSERT_TAIL(list_of_entry(e), e, of_address);
    address_unlink(t, e->address);
    address_append(t, e->address);
}

void client_table_remove(client_table *t, client_entry *e)
{
    client_address *a = e->address;
    if (a == NULL)
        return;
    TAILQ_REMOVE(list_of_entry(e), e, of_address);
    e->address = NULL;
    address_unlink(t, a);
    if (--a->count > 0) {
        address_append(t, a);
    } else {
        LIST_REMOVE(a, of_hash);
        free(a);
    }
    t->count--;
}

void client_table_replace(client_entry *old, client_entry *e)
{
    if (old->address == NULL)
        return;
    TAILQ_REMOVE(list_of_entry(old), old, of_address);
    e->address = old->address;
    e->proven = old->proven;
    e->spared = old->spared;
    e->heard_ns = old->heard_ns;
    TAILQ_INSERT_TAIL(list_of_entry(e), e, of_address);
    old->address = NULL;
}

/* ---- admission ---- */

static client_entry *stalest_of(const client_address *a)
{
    return !TAILQ_EMPTY(&a->unproven) ? TAILQ_FIRST(&a->unproven) : TAILQ_FIRST(&a->proven);
}

static bool has_unread(const client_entry *e)
{
    int unread = 0;
    return e->fd >= 0 && ioctl(e->fd, FIONREAD, &unread) == 0 && unread > 0;
}

/*
 * Returns the client to close among the clients of an address, or NULL if all of them are busy and busy_too is false.
 * Spares a client with unread bytes, but only once until the client sends something useful again. Without this limit,
 * bytes that the daemon does not read would protect the client forever.
 */
static client_entry *find_silent(const client_address *a, bool busy_too, int64_t now_ns)
{
    client_entry *stalest = stalest_of(a);
    for (int i = 0; i < TRIES_MAX; i++) {
        client_entry *e = stalest_of(a);
        if (!busy_too && now_ns - e->heard_ns < BUSY_NS)
            return NULL;
        if (e->spared || !has_unread(e))
            return e;
        e->spared = true;
        TAILQ_REMOVE(list_of_entry(e), e, of_address);
        e->heard_ns = now_ns;
        TAILQ_INSERT_TAIL(list_of_entry(e), e, of_address);
    }
    return busy_too ? stalest : NULL;
}

client_verdict client_table_admit(client_table *t, const struct sockaddr *peer, bool full, int64_t now_ns,
                                  client_entry **displaced)
{
    client_address *own = address_find(t, peer);
    size_t count = own != NULL ? own->count : 0;
    *displaced = NULL;
    if (own != NULL && !own->local && t->address_max > 0 && count >= t->address_max) {
        *displaced = find_silent(own, false, now_ns);
        return *displaced != NULL ? CLIENT_DISPLACES : CLIENT_TOO_MANY_OF_ONE;
    }
    if (!full && t->count < t->total_max)
        return CLIENT_ADMITTED;
    if (t->count == 0)
        return CLIENT_TOO_MANY;
    client_address *a = own != NULL && count == t->highest ? own : TAILQ_FIRST(&t->by_count[t->highest]);
    *displaced = find_silent(a, a->count > count + 1, now_ns);
    return *displaced != NULL ? CLIENT_DISPLACES : CLIENT_TOO_MANY;
}

client_entry *client_table_find_silent(client_table *t, int64_t now_ns)
{
    return t->count > 0 ? find_silent(TAILQ_FIRST(&t->by_count[t->highest]), false, now_ns) : NULL;
}

const char *client_verdict_message(client_verdict verdict)
{
    return verdict == CLIENT_TOO_MANY_OF_ONE ? "too many connections from this address" : "too many connections";
}

int client_table_reserve_files(size_t wanted, unsigned own)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return INT_MAX;
    rlim_t needed = (rlim_t)wanted + 2 * (rlim_t)own;
    if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    rlim_t kept = limit.rlim_cur / 4 < own ? limit.rlim_cur / 4 : own;
    return (int)(limit.rlim_cur - kept);
}
