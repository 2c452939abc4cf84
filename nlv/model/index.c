#include "config.h"

#include "model/index.h"

#include "base/hash_bytes.h"
#include "model/edges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    INDEX_VERSION = 7,
    PIECE = 1 << 20,   /* number of bytes that the module writes and hashes at a time */
    ALIGN = 64,        /* alignment of sections */
    WITNESS = 4 << 10, /* number of bytes at each end of the log that the module hashes */
    SAMPLES = 8,       /* number of pieces to compare when nlv opens a log that may have changed */
    SECTIONS_MAX = 1 << 20,
};

static const char magic[8] = {'N', 'L', 'V', 'I', 'N', 'D', 'E', 'X'};

typedef struct section {
    uint64_t offset, size, hash;
} section;

typedef struct header {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t inode, log_size, log_at;
    int64_t mtime_ns, ctime_ns;
    uint64_t first_hash, last_hash; /* hashes of the log's first bytes, and of the bytes before log_at */
    uint64_t seed;
    uint32_t fraction, format, inferred, unused;
    uint32_t layers, count, colored, list_count;
    uint32_t object_counts[SPEC_LAYERS];
    uint64_t section_count, sections_offset, sections_hash;
    /* number of sections and of bytes, at the start of the file, that nlv verifies when it opens the index */
    uint64_t at_once_count, at_once_size;
    uint64_t hash; /* hash of all previous members */
} header;

typedef enum list_kind { LIST_SEGMENT, LIST_START, LIST_LOADLINE, LIST_POINT, LIST_VIOLATION } list_kind;

typedef struct list_entry {
    uint32_t kind, owner, place; /* place: the index in the lifeline's array, or the host */
    uint32_t has_values;
    uint64_t count;
} list_entry;

/*
 * The first sections. For each list, sections with the top nodes and the first record of each block follow. A picture
 * of the whole log needs only these sections. The other nodes of each list, the columns, the objects and the entries of
 * each list come after these sections.
 */
enum {
    SECTION_DRAWING,
    SECTION_EVENTS,
    SECTION_HOSTS,
    SECTION_PROGS,
    SECTION_COLORS,
    SECTION_VISITS,
    SECTION_POINT_HOSTS,
    SECTION_MARKS,
    SECTION_PRINTS,
    SECTION_BLOCKS,
    SECTION_LISTS,
    SECTIONS_FIXED
};

/* ---- paths ---- */

static char *beside(const char *path)
{
    return g_strdup_printf("%s.nlv-index", path);
}

static char *in_cache(const char *path)
{
    char *real = realpath(path, NULL);
    const char *name = real != NULL ? real : path;
    uint64_t hash = hash_bytes(0, name, strlen(name));
    char *place = g_strdup_printf("%s/netlogger/%016llx.nlv-index", g_get_user_cache_dir(), (unsigned long long)hash);
    free(real);
    return place;
}

void index_remove(const char *path)
{
    char *places[2] = {beside(path), in_cache(path)};
    for (int i = 0; i < 2; i++) {
        unlink(places[i]);
        g_free(places[i]);
    }
}

static uint64_t witness(const log_file *file, uint64_t offset, size_t size)
{
    char bytes[WITNESS];
    ssize_t got = pread(file->fd, bytes, size, (off_t)offset);
    return got < 0 ? 0 : hash_bytes((uint64_t)got, bytes, (size_t)got);
}

/* Sets the members of *h that identify the log and detect changes. `at` is the number of bytes that the index covers.
 * Returns false if the log cannot be read. */
static bool identify(const log_file *file, uint64_t at, header *h)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return false;
    h->inode = (uint64_t)status.st_ino;
    h->log_size = (uint64_t)status.st_size;
    h->log_at = at;
    h->mtime_ns = (int64_t)status.st_mtim.tv_sec * NL_NS_PER_SECOND + status.st_mtim.tv_nsec;
    h->ctime_ns = (int64_t)status.st_ctim.tv_sec * NL_NS_PER_SECOND + status.st_ctim.tv_nsec;
    size_t size = (size_t)MIN(at, WITNESS);
    h->first_hash = witness(file, 0, size);
    h->last_hash = witness(file, at - size, size);
    h->fraction = file->fraction;
    h->format = file->format;
    return true;
}

/* Returns whether the index may belong to the log. Sets *is_sure to whether the log is certainly unchanged. */
static bool is_of_log(const header *h, const log_file *file, bool *is_sure)
{
    header now = {.version = INDEX_VERSION};
    if (!identify(file, h->log_at, &now) || now.fraction != h->fraction || now.format != h->format ||
        now.log_size < h->log_at || now.first_hash != h->first_hash || now.last_hash != h->last_hash)
        return false;
    *is_sure = now.inode == h->inode && now.log_size == h->log_size && now.mtime_ns == h->mtime_ns &&
               now.ctime_ns == h->ctime_ns;
    return true;
}

/* ---- writing ---- */

typedef struct writing {
    int fd;
    char *piece;
    size_t used;
    uint64_t offset; /* file offset of the bytes in piece */
    GArray *sections;
    const atomic_bool *stopping;
    bool failed;
} writing;

static void write_piece(writing *w)
{
    section *own = &g_array_index(w->sections, section, w->sections->len - 1);
    own->hash = hash_bytes(own->hash, w->piece, w->used);
    own->size += w->used;
    w->failed = w->failed || *w->stopping;
    for (size_t done = 0; done < w->used && !w->failed;) {
        ssize_t put = pwrite(w->fd, w->piece + done, w->used - done, (off_t)(w->offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        w->failed = put <= 0;
        done += put > 0 ? (size_t)put : 0;
    }
    w->offset += w->used;
    w->used = 0;
}

static void index_put(writing *w, const void *data, size_t size)
{
    const char *from = data;
    while (size > 0) {
        size_t part = MIN(size, PIECE - w->used);
        memcpy(w->piece + w->used, from, part);
        w->used += part;
        from += part;
        size -= part;
        if (w->used == PIECE)
            write_piece(w);
    }
}

static void begin_section(writing *w)
{
    w->offset = (w->offset + ALIGN - 1) / ALIGN * ALIGN;
    section fresh = {w->offset, 0, 0};
    g_array_append_val(w->sections, fresh);
}

static void end_section(writing *w)
{
    if (w->used > 0)
        write_piece(w);
}

static void put_section(writing *w, const void *data, size_t size)
{
    begin_section(w);
    index_put(w, data, size);
    end_section(w);
}

static void put_names(writing *w, const names *n)
{
    begin_section(w);
    for (size_t i = 0; i < names_count(n); i++) {
        const char *text = names_text(n, (uint16_t)i);
        index_put(w, text, strlen(text) + 1);
    }
    end_section(w);
}

/* Writes one column, chunk by chunk. `member` is the offset of the column in struct chunk. */
static void put_column(writing *w, const store *s, size_t member, size_t size)
{
    begin_section(w);
    for (uint32_t i = 0; i * (uint64_t)STORE_CHUNK < s->count; i++) {
        const void *const *column = (const void *const *)(const void *)((const char *)&s->chunks[i] + member);
        index_put(w, *column, MIN(s->count - i * (uint32_t)STORE_CHUNK, STORE_CHUNK) * size);
    }
    end_section(w);
}

static void put_objects(writing *w, const objects *o, size_t member, size_t size)
{
    begin_section(w);
    for (uint32_t i = 0; i * (uint64_t)STORE_CHUNK < o->count; i++) {
        const void *const *column = (const void *const *)(const void *)((const char *)&o->chunks[i] + member);
        index_put(w, *column, STORE_CHUNK * size); /* whole chunks, because the store later adds entries */
    }
    end_section(w);
}

static size_t blocks_of(uint64_t count)
{
    return (size_t)((count + LIST_BLOCK - 1) / LIST_BLOCK);
}

/* Writes an array of `size` bytes, and pads it with zeros to `whole` bytes, the size of a full block. */
static void put_padded(writing *w, const void *data, size_t size, size_t whole)
{
    static const char zeros[LIST_BLOCK * sizeof(uint32_t)];
    index_put(w, data, size);
    index_put(w, zeros, whole - size);
}

static size_t entries_in_block(const list *l, size_t block)
{
    return MIN(l->count - block * LIST_BLOCK, LIST_BLOCK);
}

static void put_nodes(writing *w, const list *l)
{
    begin_section(w);
    for (size_t i = 0; i < blocks_of(l->count); i++) {
        size_t count = (entries_in_block(l, i) + LIST_NODE - 1) / LIST_NODE;
        put_padded(w, l->blocks[i].nodes, count * sizeof(list_node), LIST_NODES * sizeof(list_node));
    }
    end_section(w);
}

static void put_entries(writing *w, const list *l)
{
    size_t blocks = blocks_of(l->count);
    begin_section(w);
    for (size_t i = 0; i < blocks; i++)
        put_padded(w, l->blocks[i].records, entries_in_block(l, i) * sizeof(uint32_t), LIST_BLOCK * sizeof(uint32_t));
    end_section(w);
    begin_section(w);
    for (size_t i = 0; i < blocks && l->has_values; i++)
        put_padded(w, l->blocks[i].values, entries_in_block(l, i) * sizeof(float), LIST_BLOCK * sizeof(float));
    end_section(w);
}

typedef struct list_of {
    list_entry entry;
    const list *list;
} list_of;

static void note_list(GArray *all, list_kind kind, size_t owner, size_t place, const list *l)
{
    list_of one = {{kind, (uint32_t)owner, (uint32_t)place, 0, 0}, l};
    if (l == NULL || l->count == 0)
        return;
    one.entry.has_values = l->has_values;
    one.entry.count = l->count;
    g_array_append_val(all, one);
}

static GArray *all_lists(const store *s)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(list_of));
    for (size_t i = 0; i < s->spec->lifeline_count; i++) {
        const lifeline_lists *l = &s->lifelines[i];
        for (size_t j = 0; j < (size_t)l->rows * l->rows; j++)
            note_list(all, LIST_SEGMENT, i, j, l->segments[j]);
        for (size_t j = 0; l->violations != NULL && j < (size_t)l->rows * l->rows; j++)
            note_list(all, LIST_VIOLATION, i, j, l->violations[j]);
        for (unsigned row = 0; row < l->rows; row++)
            note_list(all, LIST_START, i, row, l->starts[row]);
    }
    for (size_t i = 0; i < s->spec->loadline_count; i++)
        for (size_t j = 0; j < s->loadlines[i].count; j++)
            note_list(all, LIST_LOADLINE, i, s->loadlines[i].hosts[j].host, s->loadlines[i].hosts[j].list);
    for (size_t i = 0; i < s->point_count; i++)
        note_list(all, LIST_POINT, i, 0, &s->points[i]);
    return all;
}

static void put_lists(writing *w, const GArray *all)
{
    begin_section(w);
    for (guint i = 0; i < all->len; i++)
        index_put(w, &g_array_index(all, list_of, i).entry, sizeof(list_entry));
    end_section(w);
    for (guint i = 0; i < all->len; i++) {
        const list *l = g_array_index(all, list_of, i).list;
        put_section(w, l->tops, blocks_of(l->count) * sizeof *l->tops);
        put_section(w, l->first, blocks_of(l->count) * sizeof *l->first);
    }
}

static size_t marks_of(uint64_t count)
{
    return (size_t)((count + STORE_MARK - 1) / STORE_MARK);
}

static void put_columns(writing *w, const store *s, header *h)
{
    put_column(w, s, offsetof(chunk, times), 8);
    put_column(w, s, offsetof(chunk, places), 8);
    put_column(w, s, offsetof(chunk, events), 2);
    put_column(w, s, offsetof(chunk, hosts), 2);
    put_column(w, s, offsetof(chunk, progs), 2);
    for (unsigned layer = 0; layer < s->spec->layers; layer++) {
        put_column(w, s, offsetof(chunk, objects) + layer * sizeof(uint32_t *), 4);
        put_column(w, s, offsetof(chunk, previous) + layer * sizeof(uint32_t *), 4);
        put_objects(w, &s->objects[layer], offsetof(objects_chunk, keys), 8);
        put_objects(w, &s->objects[layer], offsetof(objects_chunk, last), 4);
        put_objects(w, &s->objects[layer], offsetof(objects_chunk, colors), 2);
        h->object_counts[layer] = s->objects[layer].count;
    }
}

typedef struct contents {
    const store *store;
    const drawing *drawing;
    bool inferred;
    const log_file *file;
    uint64_t at;
    const prints *prints;
    const atomic_bool *stopping;
} contents;

static void put_blocks(writing *w, const log_file *file, uint64_t at)
{
    guint count = log_file_find_block(file, at);
    put_section(w, file->blocks->data, count * sizeof(log_block));
}

static void put_all(writing *w, const contents *c, header *h)
{
    const store *s = c->store;
    const prints *p = c->prints;
    char *text = drawing_text(c->drawing);
    GArray *lists = all_lists(s);
    h->list_count = lists->len;
    put_section(w, text, strlen(text) + 1);
    put_names(w, s->names.events);
    put_names(w, s->names.hosts);
    put_names(w, s->names.progs);
    put_names(w, s->names.colors);
    put_section(w, s->visits, (NAMES_NONE + 1) * sizeof *s->visits);
    put_section(w, s->point_hosts, (NAMES_NONE + 1) * sizeof *s->point_hosts);
    put_section(w, s->marks, marks_of(s->count) * sizeof *s->marks);
    put_section(w, p->all, p->count * sizeof *p->all);
    put_blocks(w, c->file, c->at);
    put_lists(w, lists);
    h->at_once_count = w->sections->len;
    h->at_once_size = w->offset;
    for (guint i = 0; i < lists->len; i++)
        put_nodes(w, g_array_index(lists, list_of, i).list);
    put_columns(w, s, h);
    for (guint i = 0; i < lists->len; i++)
        put_entries(w, g_array_index(lists, list_of, i).list);
    g_array_free(lists, TRUE);
    g_free(text);
}

static bool write_to(int fd, const contents *c)
{
    const store *s = c->store;
    header h;
    memset(&h, 0, sizeof h); /* also clear the padding, because the file contains it */
    h.version = INDEX_VERSION;
    h.byte_order = 0x01020304;
    h.inferred = c->inferred;
    if (!identify(c->file, c->at, &h))
        return false;
    memcpy(h.magic, magic, sizeof magic);
    h.seed = s->spec->seed;
    h.layers = s->spec->layers;
    h.count = s->count;
    h.colored = s->colored;
    writing w = {.fd = fd, .piece = g_malloc(PIECE), .offset = sizeof h, .stopping = c->stopping};
    w.sections = g_array_new(FALSE, FALSE, sizeof(section));
    put_all(&w, c, &h);
    h.section_count = w.sections->len;
    h.sections_offset = (w.offset + ALIGN - 1) / ALIGN * ALIGN;
    size_t size = w.sections->len * sizeof(section);
    h.sections_hash = hash_bytes(0, w.sections->data, size);
    h.hash = hash_bytes(0, (const char *)&h, offsetof(header, hash));
    bool good = !w.failed && pwrite(fd, w.sections->data, size, (off_t)h.sections_offset) == (ssize_t)size &&
                pwrite(fd, &h, sizeof h, 0) == sizeof h;
    g_array_free(w.sections, TRUE);
    g_free(w.piece);
    return good;
}

static bool write_at(const char *place, const contents *c)
{
    char *draft = g_strdup_printf("%s.%ld", place, (long)getpid());
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = fd >= 0 && write_to(fd, c);
    if (fd >= 0 && (close(fd) != 0 || !good || rename(draft, place) != 0)) {
        unlink(draft);
        good = false;
    }
    g_free(draft);
    return good;
}

bool index_write(const store *s, const drawing *d, bool inferred, const char *path, const log_file *file, uint64_t at,
                 const prints *p, const atomic_bool *stopping)
{
    contents c = {s, d, inferred, file, at, p, stopping};
    if (s->first > 0 || s->count == 0 || prints_end(p) != at)
        return false;
    char *place = beside(path), *other = in_cache(path);
    bool good = write_at(place, &c);
    if (!good && !*stopping) {
        char *directory = g_path_get_dirname(other);
        if (g_mkdir_with_parents(directory, 0700) == 0)
            good = write_at(other, &c);
        g_free(directory);
    }
    g_free(place);
    g_free(other);
    return good;
}

/* ---- reading ---- */

typedef struct mapping {
    char *data;
    size_t size;
    int fd;
    const header *h;
    const section *sections;
    size_t next; /* the next section */
    bool bad;
} mapping;

static uint64_t hash_of(const char *data, uint64_t size)
{
    uint64_t hash = 0;
    for (uint64_t at = 0; at < size; at += PIECE)
        hash = hash_bytes(hash, data + at, (size_t)MIN(size - at, PIECE));
    return hash;
}

static bool is_sane(mapping *m)
{
    const header *h = (const header *)(const void *)m->data;
    m->h = h;
    if (m->size < sizeof *h || h->at_once_count < SECTIONS_FIXED || h->at_once_count > h->section_count ||
        memcmp(h->magic, magic, sizeof magic) != 0 || h->version != INDEX_VERSION || h->byte_order != 0x01020304 ||
        h->hash != hash_bytes(0, m->data, offsetof(header, hash)) || h->section_count > SECTIONS_MAX ||
        h->layers == 0 || h->layers > SPEC_LAYERS)
        return false;
    size_t size = h->section_count * sizeof(section);
    if (h->sections_offset > m->size || size > m->size - h->sections_offset || h->section_count < SECTIONS_FIXED ||
        hash_bytes(0, m->data + h->sections_offset, size) != h->sections_hash)
        return false;
    m->sections = (const section *)(const void *)(m->data + h->sections_offset);
    madvise(m->data, (size_t)MIN(h->at_once_size, m->size), MADV_WILLNEED);
    for (size_t i = 0; i < h->section_count; i++) {
        const section *own = &m->sections[i];
        if (own->offset > m->size || own->size > m->size - own->offset || own->offset % ALIGN != 0)
            return false;
        if (i < h->at_once_count && hash_of(m->data + own->offset, own->size) != own->hash)
            return false;
    }
    return true;
}

/* Returns the next section. If the section does not have this size, sets m->bad and returns NULL. */
static void *index_take(mapping *m, uint64_t size)
{
    if (m->bad || m->next >= m->h->section_count || m->sections[m->next].size != size) {
        m->bad = true;
        return NULL;
    }
    return m->data + m->sections[m->next++].offset;
}

static void take_names(mapping *m, names *n)
{
    const section *own = &m->sections[m->next++];
    const char *at = m->data + own->offset, *end = at + own->size;
    while (at < end) {
        const char *stop = memchr(at, '\0', (size_t)(end - at));
        if (stop == NULL) {
            m->bad = true;
            return;
        }
        names_put(n, (nl_string){at, (size_t)(stop - at)});
        at = stop + 1;
    }
}

/* Returns a copy of the next section, in memory of at least `capacity` bytes. If the section does not have this size,
 * sets m->bad and returns zeros. */
static void *index_copy(mapping *m, uint64_t size, size_t capacity)
{
    const void *from = index_take(m, size);
    void *own = g_malloc0(MAX(capacity, size) + 1);
    if (from != NULL)
        memcpy(own, from, size);
    return own;
}

static void take_columns(mapping *m, store *s)
{
    uint64_t count = m->h->count;
    int64_t *times = index_take(m, count * 8);
    uint64_t *places = index_take(m, count * 8);
    uint16_t *columns[3];
    for (int i = 0; i < 3; i++)
        columns[i] = index_take(m, count * 2);
    uint32_t *objects[SPEC_LAYERS], *previous[SPEC_LAYERS];
    for (unsigned layer = 0; layer < m->h->layers; layer++) {
        struct objects *o = &s->objects[layer];
        objects[layer] = index_take(m, count * 4);
        previous[layer] = index_take(m, count * 4);
        uint32_t chunks = (uint32_t)(((uint64_t)m->h->object_counts[layer] + STORE_CHUNK - 1) / STORE_CHUNK);
        uint64_t *keys = index_take(m, (uint64_t)chunks * STORE_CHUNK * 8);
        uint32_t *last = index_take(m, (uint64_t)chunks * STORE_CHUNK * 4);
        uint16_t *colors = index_take(m, (uint64_t)chunks * STORE_CHUNK * 2);
        if (m->bad)
            return;
        o->count = m->h->object_counts[layer];
        o->capacity = chunks;
        o->chunks = g_new0(objects_chunk, chunks + 1);
        for (uint32_t i = 0; i < chunks; i++)
            o->chunks[i] = (objects_chunk){keys + (size_t)i * STORE_CHUNK, last + (size_t)i * STORE_CHUNK,
                                           colors + (size_t)i * STORE_CHUNK, true};
    }
    if (m->bad)
        return;
    uint32_t chunks = (uint32_t)((count + STORE_CHUNK - 1) / STORE_CHUNK);
    s->capacity = chunks;
    s->chunks = g_new0(chunk, chunks + 1);
    for (uint32_t i = 0; i < chunks; i++) {
        size_t from = (size_t)i * STORE_CHUNK;
        s->chunks[i] = (chunk){
            times + from, places + from, columns[0] + from, columns[1] + from, columns[2] + from, {NULL}, {NULL}, true};
        for (unsigned layer = 0; layer < m->h->layers; layer++) {
            s->chunks[i].objects[layer] = objects[layer] + from;
            s->chunks[i].previous[layer] = previous[layer] + from;
        }
    }
    s->count = (uint32_t)count;
}

/* Returns the list that an entry describes, and creates it if necessary. Returns NULL if the entry is invalid. */
static list *index_place_of(store *s, const list_entry *e)
{
    if (e->kind == LIST_SEGMENT || e->kind == LIST_VIOLATION || e->kind == LIST_START) {
        if (e->owner >= s->spec->lifeline_count)
            return NULL;
        lifeline_lists *l = &s->lifelines[e->owner];
        uint64_t max = e->kind == LIST_START ? l->rows : (uint64_t)l->rows * l->rows;
        if (e->kind == LIST_VIOLATION && l->violations == NULL)
            l->violations = g_new0(list *, max);
        list **place = e->kind == LIST_SEGMENT ? l->segments : e->kind == LIST_START ? l->starts : l->violations;
        if (e->place >= max || place[e->place] != NULL)
            return NULL;
        return place[e->place] = g_new0(list, 1);
    }
    if (e->kind == LIST_LOADLINE)
        return e->owner < s->spec->loadline_count && e->has_values
                   ? store_loadline_list(s, (uint16_t)e->owner, (uint16_t)e->place)
                   : NULL;
    return e->owner < s->point_count ? &s->points[e->owner] : NULL;
}

static bool take_upper_levels(mapping *m, store *s, const list_entry *e, list **to)
{
    uint64_t blocks = blocks_of(e->count);
    list *l = e->count <= (uint64_t)s->count * EDGES_MAX && e->count > 0 ? index_place_of(s, e) : NULL;
    const list_node *tops = index_take(m, blocks * sizeof *tops);
    const uint32_t *first = index_take(m, blocks * sizeof *first);
    *to = l;
    if (l == NULL || m->bad || l->count > 0)
        return false;
    l->has_values = e->has_values;
    l->count = e->count;
    l->colored = e->count - e->count % LIST_NODE;
    l->capacity = blocks;
    l->tops = g_memdup2(tops, blocks * sizeof *tops);
    l->first = g_memdup2(first, blocks * sizeof *first);
    l->max = -INFINITY;
    l->blocks = g_new0(list_block, blocks);
    for (size_t i = 0; i < blocks; i++) {
        l->max = MAX(l->max, tops[i].max);
        l->blocks[i].borrowed = true;
    }
    return true;
}

static bool take_nodes(mapping *m, list *l)
{
    size_t blocks = blocks_of(l->count);
    list_node *nodes = index_take(m, blocks * LIST_NODES * sizeof *nodes);
    for (size_t i = 0; i < blocks && nodes != NULL; i++)
        l->blocks[i].nodes = nodes + i * LIST_NODES;
    return nodes != NULL;
}

static bool take_entries(mapping *m, list *l)
{
    size_t blocks = blocks_of(l->count);
    uint32_t *records = index_take(m, blocks * LIST_BLOCK * sizeof *records);
    float *values = index_take(m, l->has_values ? blocks * LIST_BLOCK * sizeof *values : 0);
    for (size_t i = 0; i < blocks && values != NULL; i++) {
        l->blocks[i].records = records + i * LIST_BLOCK;
        l->blocks[i].values = l->has_values ? values + i * LIST_BLOCK : NULL;
    }
    return values != NULL;
}

static void take_all(mapping *m, store *s, const list_entry *entries)
{
    uint32_t count = m->h->list_count;
    list **lists = g_new0(list *, count + 1);
    s->count = (uint32_t)m->h->count; /* this count limits the sizes of the lists */
    for (uint32_t i = 0; i < count && !m->bad; i++)
        m->bad = !take_upper_levels(m, s, &entries[i], &lists[i]);
    s->count = 0;
    m->bad = m->bad || m->next != m->h->at_once_count;
    uint64_t from = m->bad || m->next >= m->h->section_count ? 0 : m->sections[m->next].offset;
    for (uint32_t i = 0; i < count && !m->bad; i++)
        m->bad = !take_nodes(m, lists[i]);
    uint64_t to = m->bad || m->next >= m->h->section_count ? 0 : m->sections[m->next].offset;
    if (to > from) /* ask the kernel to read ahead, without waiting */
        madvise(m->data + from / 4096 * 4096, (size_t)(to - from / 4096 * 4096), MADV_WILLNEED);
    if (!m->bad)
        take_columns(m, s);
    for (uint32_t i = 0; i < count && !m->bad; i++)
        m->bad = !take_entries(m, lists[i]);
    g_free(lists);
}

/* Builds a store that owns the mapping. If the index is invalid, unmaps it and returns
 * NULL. */
static store *build(mapping *m, const drawing *d, prints *p, GArray *blocks)
{
    batch_names names = {names_new(), names_new(), names_new(), names_new()};
    take_names(m, names.events);
    take_names(m, names.hosts);
    take_names(m, names.progs);
    take_names(m, names.colors);
    store *s = store_new(spec_new(d, names.events, m->h->seed), names, m->h->inferred);
    s->mapped = m->data;
    s->mapped_size = m->size;
    s->mapped_fd = m->fd;
    m->bad = m->bad || s->spec->layers != m->h->layers;
    g_free(s->visits);
    g_free(s->point_hosts);
    s->visits = index_copy(m, (NAMES_NONE + 1) * sizeof *s->visits, (NAMES_NONE + 1) * sizeof *s->visits);
    s->point_hosts = index_copy(m, NAMES_NONE + 1, NAMES_NONE + 1);
    size_t marks = marks_of(m->h->count) * sizeof *s->marks;
    s->marks = index_copy(m, marks, marks + STORE_CHUNK / STORE_MARK * sizeof *s->marks);
    uint64_t size = m->next < m->h->section_count ? m->sections[m->next].size : 0;
    *p = (prints){index_copy(m, size, 0), size / sizeof(print), size / sizeof(print)};
    size = m->next < m->h->section_count ? m->sections[m->next].size : 0;
    const log_block *first = index_take(m, size);
    if (first != NULL && size % sizeof *first == 0)
        g_array_append_vals(blocks, first, (guint)(size / sizeof *first));
    const list_entry *entries = index_take(m, m->h->list_count * sizeof(list_entry));
    if (!m->bad)
        take_all(m, s, entries);
    if (!m->bad && s->count == m->h->count && prints_end(p) == m->h->log_at) {
        s->colored = m->h->colored;
        store_note_machines(s);
        return s;
    }
    prints_free(p);
    store_free(s); /* also unmaps the index */
    m->data = NULL;
    return NULL;
}

/* Returns whether the drawings `found` and `wanted` are equal. Ignores orders of events that nlv has learned in
 * `found`. */
static bool is_drawing(const drawing *wanted, const drawing *found)
{
    drawing *bare = drawing_copy(found);
    for (guint i = 0; i < bare->lifelines->len && i < wanted->lifelines->len; i++)
        if (((const drawing_lifeline *)g_ptr_array_index(wanted->lifelines, i))->after == NULL)
            drawing_set_order(g_ptr_array_index(bare->lifelines, i), NULL, NULL);
    char *mine = drawing_text(wanted), *text = drawing_text(bare);
    bool is = strcmp(mine, text) == 0;
    g_free(mine);
    g_free(text);
    drawing_free(bare);
    return is;
}

/*
 * Returns whether the index has the drawing `wanted`. If `wanted` is NULL, returns whether the index has an inferred
 * drawing. If the result is true, sets *d to the drawing in the index.
 */
static bool is_wanted(const mapping *m, const drawing *wanted, drawing **d)
{
    const section *own = &m->sections[SECTION_DRAWING];
    const char *text = m->data + own->offset;
    bool good = own->size > 0 && text[own->size - 1] == '\0' && (wanted != NULL || m->h->inferred != 0);
    drawing *found = good ? drawing_parse(text) : NULL;
    good = found != NULL && (wanted == NULL || is_drawing(wanted, found));
    if (good)
        *d = found;
    else
        drawing_free(found);
    return good;
}

/* Compares SAMPLES pieces of the log with their fingerprints. Returns whether all these pieces are unchanged. */
static bool has_samples(const prints *p, const log_file *file)
{
    for (size_t i = 0; i < SAMPLES && p->count > 0; i++)
        if (!prints_is_same(p, (2 * i + 1) * p->count / (2 * SAMPLES), file->fd))
            return false;
    return true;
}

static void close_mapping(mapping *m)
{
    if (m->data == NULL)
        return;
    munmap(m->data, m->size);
    close(m->fd);
    m->data = NULL;
}

static bool map(const char *place, mapping *m)
{
    struct stat status;
    *m = (mapping){.next = SECTION_EVENTS};
    m->fd = open(place, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (m->fd < 0)
        return false;
    void *data = MAP_FAILED;
    if (fstat(m->fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        status.st_size > (off_t)sizeof(header)) {
        m->size = (size_t)status.st_size;
        data = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, m->fd, 0);
    }
    if (data == MAP_FAILED) {
        close(m->fd);
        return false;
    }
    m->data = data;
    return true;
}

static bool read_from(const char *place, const log_file *file, const drawing *wanted, index_found *found)
{
    mapping m;
    *found = (index_found){.is_sure = false};
    if (!map(place, &m))
        return false;
    found->blocks = g_array_new(FALSE, FALSE, sizeof(log_block));
    if (is_sane(&m) && is_of_log(m.h, file, &found->is_sure) && is_wanted(&m, wanted, &found->drawing)) {
        found->at = m.h->log_at;
        found->store = build(&m, found->drawing, &found->prints, found->blocks);
    }
    if (found->store != NULL && (found->is_sure || has_samples(&found->prints, file)))
        return true;
    if (found->store == NULL)
        close_mapping(&m);
    store_free(found->store);
    drawing_free(found->drawing);
    prints_free(&found->prints);
    g_array_free(found->blocks, TRUE);
    return false;
}

bool index_read(const char *path, const log_file *file, const drawing *wanted, index_found *found)
{
    char *places[2] = {beside(path), in_cache(path)};
    bool good = read_from(places[0], file, wanted, found) || read_from(places[1], file, wanted, found);
    g_free(places[0]);
    g_free(places[1]);
    return good;
}

index_state index_check(const store *s, index_position *at, uint64_t bytes)
{
    if (s->mapped == NULL)
        return INDEX_SOUND;
    /* read the file, because the program may have changed pages of the mapping */
    const header *h = (const header *)s->mapped;
    const section *sections = (const section *)(const void *)((const char *)s->mapped + h->sections_offset);
    char *piece = g_malloc(PIECE);
    index_state state = INDEX_MORE;
    while (state == INDEX_MORE && bytes > 0) {
        if (at->section == h->section_count) {
            state = INDEX_SOUND;
            break;
        }
        const section *own = &sections[at->section];
        size_t size = (size_t)MIN(own->size - at->done, PIECE);
        if (size > 0 && log_file_read_at(s->mapped_fd, piece, size, own->offset + at->done) != (ssize_t)size)
            state = INDEX_DAMAGED;
        else if (size > 0)
            at->hash = hash_bytes(at->hash, piece, size);
        at->done += size;
        bytes -= MIN(bytes, size + 1);
        if (at->done < own->size)
            continue;
        if (at->hash != own->hash)
            state = INDEX_DAMAGED;
        *at = (index_position){.section = at->section + 1};
    }
    g_free(piece);
    return state;
}

void index_confirm(const store *s, const char *path, const log_file *file)
{
    char *places[2] = {beside(path), in_cache(path)};
    header known, now;
    if (s->mapped == NULL)
        return;
    memcpy(&known, s->mapped, sizeof known);
    now = known;
    bool good = identify(file, known.log_at, &now);
    now.hash = hash_bytes(0, (const char *)&now, offsetof(header, hash));
    for (int i = 0; i < 2; i++) {
        header there;
        int fd = good ? open(places[i], O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (fd >= 0 && pread(fd, &there, sizeof there, 0) == sizeof there && memcmp(&there, &known, sizeof there) == 0)
            good = pwrite(fd, &now, sizeof now, 0) == sizeof now;
        if (fd >= 0)
            close(fd);
        g_free(places[i]);
    }
}
