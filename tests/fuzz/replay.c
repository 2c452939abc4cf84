/*
 * Runs a fuzz target over its corpus without a fuzzer, so that fixed defects stay fixed with every compiler.
 *
 * The program is linked to one target and its name is TARGET.replay. It prints TAP, with one test per target. It
 * prints the name of each file before it processes the file, so the last name is that of a file that crashes the
 * target. Arguments replace the corpus.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>

static int failures;

static void replay(const char *path)
{
    printf("# %s\n", path);
    fflush(stdout);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        printf("# cannot be read: %s\n", strerror(errno));
        failures++;
        return;
    }
    nl_buffer bytes = {0};
    char chunk[4096];
    for (size_t size; (size = fread(chunk, 1, sizeof chunk, file)) > 0;)
        nl_buffer_append(&bytes, chunk, size);
    fclose(file);
    char *input = fuzz_copy(bytes.data, bytes.size);
    LLVMFuzzerTestOneInput((const uint8_t *)input, bytes.size);
    free(input);
    nl_buffer_free(&bytes);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Runs the target with each file of its corpus. Returns the number of files, or -1 if the corpus cannot be read. */
static int replay_corpus(const char *target)
{
    char folder[4096], path[4096 + 256];
    const char *source = getenv("NL_SOURCE_DIR");
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", source != NULL ? source : ".", target);
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        replay(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return count;
}

int main(int argc, char **argv)
{
    puts("1..1");
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    char target[64];
    snprintf(target, sizeof target, "%.*s", (int)strcspn(name, "."), name);
    int count = argc - 1;
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    if (argc == 1)
        count = replay_corpus(target);
    bool passed = failures == 0 && count > 0;
    printf("%s 1 - corpus of %s, %d inputs\n", passed ? "ok" : "not ok", target, count);
    return passed ? 0 : 1;
}
