/* nlkernel's reading of the kernel's memory: pages of the ring buffer and fields of events, with any content. */
#include "config.h"

#include "convert.h"
#include "elf_functions.h"
#include "kallsyms.h"
#include "record/block_write.h"
#include "page.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const page_layout layout = {8, 8, 16};

enum { PAGE = 4096 };

/* A page that the test fills event by event, in memory of exactly its size. */
typedef struct page {
    char *bytes;
    size_t used;
} page;

static page new_page(uint64_t time_ns)
{
    page p = {calloc(1, PAGE), 0};
    assert_non_null(p.bytes);
    memcpy(p.bytes, &time_ns, sizeof time_ns);
    return p;
}

static void put_word(page *p, uint32_t word)
{
    memcpy(p->bytes + 16 + p->used, &word, sizeof word);
    p->used += sizeof word;
}

static void put_event(page *p, uint32_t delta, const char *data, size_t size)
{
    put_word(p, delta << 5 | (uint32_t)size / 4);
    memcpy(p->bytes + 16 + p->used, data, size);
    p->used += size;
}

static page_walk nlkernel_begin(page *p, uint64_t flags)
{
    page_walk walk;
    uint64_t commit = p->used | flags;
    memcpy(p->bytes + 8, &commit, sizeof commit);
    assert_int_equal(page_begin(&walk, &layout, p->bytes, PAGE), p->used > 0);
    return walk;
}

static void test_times(void **state)
{
    (void)state;
    page p = new_page(1000);
    put_event(&p, 5, "abcdefgh", 8);
    put_word(&p, 3u << 5 | 30); /* the time advances by (3 << 27) + 1 */
    put_word(&p, 1);
    put_event(&p, 7, "ijkl", 4);
    put_word(&p, 10u << 5 | 29); /* a discarded event: 4 bytes, and 10 ns */
    put_word(&p, 4);
    put_event(&p, 1, "mnop", 4);
    put_word(&p, 9u << 5 | 31); /* the time is (2 << 27) + 9 */
    put_word(&p, 2);
    put_event(&p, 0, "qrst", 4);
    page_walk walk = nlkernel_begin(&p, 0);
    page_event event = {0};
    assert_true(page_next(&walk, &event));
    assert_int_equal(event.time_ns, 1005);
    assert_int_equal(event.size, 8);
    assert_memory_equal(event.data, "abcdefgh", 8);
    assert_true(page_next(&walk, &event));
    assert_int_equal(event.time_ns, 1005 + (1 << 27) + 3 + 7);
    assert_true(page_next(&walk, &event));
    assert_int_equal(event.time_ns, 1005 + (1 << 27) + 3 + 7 + 10 + 1);
    assert_memory_equal(event.data, "mnop", 4);
    assert_true(page_next(&walk, &event));
    assert_int_equal(event.time_ns, (2 << 27) + 9);
    assert_false(page_next(&walk, &event));
    free(p.bytes);
}

static void test_large_event(void **state)
{
    (void)state;
    page p = new_page(0);
    put_word(&p, 1u << 5);
    put_word(&p, 4 + 198); /* the size including this word, in whole words */
    memset(p.bytes + 16 + p.used, 'x', 200);
    p.used += 200;
    put_event(&p, 1, "last", 4);
    page_walk walk = nlkernel_begin(&p, 0);
    page_event event = {0};
    assert_true(page_next(&walk, &event));
    assert_int_equal(event.size, 200);
    assert_int_equal(event.data[199], 'x');
    assert_true(page_next(&walk, &event));
    assert_memory_equal(event.data, "last", 4);
    assert_false(page_next(&walk, &event));
    free(p.bytes);
}

static void test_missed(void **state)
{
    (void)state;
    page p = new_page(0);
    put_event(&p, 1, "last", 4);
    uint64_t count = 123456;
    memcpy(p.bytes + 16 + p.used, &count, sizeof count);
    page_walk walk = nlkernel_begin(&p, PAGE_COMMIT_MISSED | PAGE_COMMIT_COUNTED);
    assert_true(walk.missed && walk.counted);
    assert_int_equal(walk.missed_count, 123456);
    walk = nlkernel_begin(&p, PAGE_COMMIT_MISSED);
    assert_true(walk.missed && !walk.counted);
    walk = nlkernel_begin(&p, 0);
    assert_false(walk.missed);
    p.used = PAGE - 16; /* no space for the number, whatever the size says */
    walk = nlkernel_begin(&p, PAGE_COMMIT_MISSED | PAGE_COMMIT_COUNTED);
    assert_true(walk.missed && !walk.counted);
    free(p.bytes);
}

/* For any bytes, the reader reads nothing beyond them, and ends. */
static void test_any_bytes(void **state)
{
    (void)state;
    srandom(1);
    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)random() % 200;
        char *bytes = malloc(size + 1);
        assert_non_null(bytes);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)(random() % 4 == 0 ? random() : 0);
        page_walk walk;
        page_event event = {0};
        unsigned sum = 0, events = 0;
        char *copy = malloc(size);
        assert_true(copy != NULL || size == 0);
        if (size > 0)
            memcpy(copy, bytes, size);
        bool any = page_begin(&walk, &layout, copy, size);
        while (any && page_next(&walk, &event)) {
            events++;
            for (size_t i = 0; i < event.size; i++)
                sum += (unsigned char)event.data[i];
        }
        assert_true(events <= size);
        assert_true(sum <= 255 * size);
        free(copy);
        free(bytes);
    }
}

/* A page's time is read first: a layout without space for it is rejected. */
static void test_layouts(void **state)
{
    (void)state;
    static const char form[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
                               "\tfield: local_t commit;\toffset:%u;\tsize:%u;\tsigned:1;\n"
                               "\tfield: char data;\toffset:%u;\tsize:4080;\tsigned:1;\n";
    static const struct {
        unsigned commit_offset, commit_size, data_offset;
        bool good;
    } layouts[] = {{8, 8, 16, true}, {8, 4, 12, true}, {0, 4, 4, false}, {4, 4, 8, false}, {8, 8, 15, false}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char text[300];
        page_layout read = {0};
        snprintf(text, sizeof text, form, layouts[i].commit_offset, layouts[i].commit_size, layouts[i].data_offset);
        assert_int_equal(page_layout_read(&read, text), layouts[i].good);
        assert_int_equal(read.data_offset, layouts[i].good ? layouts[i].data_offset : 0);
    }
}

/* A string outside its event is ignored. */
static void test_texts_anywhere(void **state)
{
    (void)state;
    char name[] = "TEXT", kernel_name[] = "text", type[] = "__data_loc char[]";
    event_field field = {.name = name, .kernel_name = kernel_name, .type = type, .offset = 8, .size = 4};
    kernel_event event = {.fields = &field, .field_count = 1, .fixed_size = 12};
    const struct {
        uint32_t word;
        bool relative;
        const char *text;
    } cases[] = {{4u << 16 | 12, false, "word"}, {4u << 16 | 0, true, "word"},       {5u << 16 | 12, false, ""},
                 {4u << 16 | 13, false, ""},     {0xffffu << 16 | 0xffff, true, ""}, {0xffffu << 16 | 12, false, ""},
                 {0u << 16 | 0xffff, false, ""}, {3u << 16 | 12, false, "wor"},      {0u << 16 | 16, false, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int bytes = 0; bytes < 2; bytes++) {
            char *data = calloc(1, 16), *out = NULL;
            assert_non_null(data);
            memcpy(data + 8, &cases[i].word, 4);
            memcpy(data + 12, "word", 4);
            field.relative = cases[i].relative;
            field.kind = bytes ? FIELD_DYNAMIC_BYTES : FIELD_DYNAMIC_TEXT;
            nl_record *record = nl_record_new();
            convert_fields(record, &event, data, 16);
            size_t size = strlen(cases[i].text) * (bytes ? 2 : 1);
            assert_int_equal(record->fields[0].string.size, size);
            if (!bytes && size > 0)
                assert_memory_equal(record->fields[0].string.data, cases[i].text, size);
            out = malloc(convert_size_max(&event, 16));
            assert_non_null(out);
            char *end = convert_values(out, out, &(uint64_t){0}, &event, data, 16);
            assert_int_equal(end - out, 1 + size);
            nl_record_free(record);
            free(out);
            free(data);
        }
}

/* ---- functions' names ---- */

static void expect_name(const kallsyms *k, uint64_t address, const char *name)
{
    nl_string found = kallsyms_find(k, address);
    assert_int_equal(found.data != NULL, name != NULL);
    if (name != NULL) {
        assert_int_equal(found.size, strlen(name));
        assert_memory_equal(found.data, name, found.size);
    }
}

static void test_functions(void **state)
{
    (void)state;
    static const char text[] = "0000000000000000 A fixed_percpu_data\n"
                               "ffffffff81000200 t second\n"
                               "ffffffff81000000 T first\n"
                               "ffffffff81000000 t alias\n"
                               "ffffffff81000300 D data\n"
                               "ffffffff81000201 W close.isra.0\n"
                               "not a line\n\nffffffff810003\nffffffff81000400 T \n"
                               "ffffffffc0000000 t far\t[module]\n"
                               "ffffffff81000500 T last"; /* no newline */
    kallsyms *k = kallsyms_parse(text, sizeof text - 1);
    expect_name(k, 0, NULL);
    expect_name(k, UINT64_C(0xffffffff80ffffff), NULL);
    expect_name(k, UINT64_C(0xffffffff81000000), "first");
    expect_name(k, UINT64_C(0xffffffff810001ff), "first");
    expect_name(k, UINT64_C(0xffffffff81000200), "second");
    expect_name(k, UINT64_C(0xffffffff81000201), "close.isra.0");
    expect_name(k, UINT64_C(0xffffffff81000300), "close.isra.0"); /* lines of other kinds are ignored */
    expect_name(k, UINT64_C(0xffffffff81000400), "close.isra.0");
    expect_name(k, UINT64_C(0xffffffff81000510), "last");
    expect_name(k, UINT64_C(0xffffffff91000510), NULL);
    expect_name(k, UINT64_C(0xffffffffc0000004), "far");
    expect_name(k, UINT64_MAX, NULL);
    kallsyms_free(k);
    k = kallsyms_parse("", 0);
    expect_name(k, UINT64_C(0xffffffff81000000), NULL);
    kallsyms_free(k);
}

/* ---- functions of shared libraries ---- */

static const char *const wanted[] = {"gnu_get_libc_version", "no_such_function"};

/* Copies the C library to an unnamed file. Sets *address to the address of wanted[0] in memory. */
static int copy_c_library(const void **address)
{
    Dl_info library;
    *address = dlsym(RTLD_DEFAULT, wanted[0]);
    assert_true(*address != NULL && dladdr(*address, &library) != 0);
    int from = open(library.dli_fname, O_RDONLY | O_CLOEXEC), to = memfd_create("library", MFD_CLOEXEC);
    assert_true(from >= 0 && to >= 0);
    char piece[4096];
    for (ssize_t got; (got = read(from, piece, sizeof piece)) > 0;)
        assert_int_equal(write(to, piece, (size_t)got), got);
    close(from);
    return to;
}

/* The bytes at the found offset are the function's bytes in memory. */
static void test_library_functions(void **state)
{
    (void)state;
    const void *address;
    uint64_t offsets[2];
    char code[16];
    int fd = copy_c_library(&address);
    assert_true(elf_find_functions(fd, wanted, 2, offsets));
    assert_int_equal(offsets[1], 0);
    assert_int_equal(pread(fd, code, sizeof code, (off_t)offsets[0]), sizeof code);
    assert_memory_equal(code, address, sizeof code);
    close(fd);
}

/* Any user can write a library. Whatever its headers and tables contain, the search ends and stays in its memory. */
static void test_invalid_libraries(void **state)
{
    (void)state;
    const void *address;
    uint64_t offsets[2];
    Elf64_Ehdr header, changed;
    int fd = copy_c_library(&address);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    for (size_t at = 0; at < sizeof header; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            changed = header;
            ((unsigned char *)&changed)[at] ^= (unsigned char)(1u << bit);
            assert_int_equal(pwrite(fd, &changed, sizeof changed, 0), sizeof changed);
            const bool valid = elf_find_functions(fd, wanted, 2, offsets);
            assert_true(!valid || at >= EI_VERSION);
        }
    assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
    const size_t size = header.e_shnum * sizeof(Elf64_Shdr);
    char *sections = malloc(size), *other = malloc(size);
    assert_true(sections != NULL && other != NULL);
    assert_int_equal(pread(fd, sections, size, (off_t)header.e_shoff), size);
    srand(1);
    for (int round = 0; round < 1000; round++) {
        memcpy(other, sections, size);
        for (int i = 0; i < 50; i++)
            other[(size_t)rand() % size] = (char)rand();
        assert_int_equal(pwrite(fd, other, size, (off_t)header.e_shoff), size);
        elf_find_functions(fd, wanted, 2, offsets);
    }
    free(sections);
    free(other);
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_false(elf_find_functions(fd, wanted, 2, offsets));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times),
                                       cmocka_unit_test(test_large_event),
                                       cmocka_unit_test(test_missed),
                                       cmocka_unit_test(test_any_bytes),
                                       cmocka_unit_test(test_texts_anywhere),
                                       cmocka_unit_test(test_functions),
                                       cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_library_functions),
                                       cmocka_unit_test(test_invalid_libraries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
