#include "config.h"

#include "repair.h"

#include "base/error.h"
#include "program/program.h"
#include "reader/archive.h"

#include <sys/stat.h>
#include <unistd.h>

static nl_status cut(const char *path, uint64_t size, uint64_t kept, const char *reason, repair *what)
{
    if (truncate(path, (off_t)kept) != 0)
        return nl_error_set_errno("cut %s", path);
    *what = (repair){.file = program_copy(path), .cut = size - kept, .kept = kept, .reason = reason};
    return NL_OK;
}

nl_status repair_unacknowledged(const char *path, const journal_mark *mark, repair *what)
{
    struct stat status;
    *what = (repair){0};
    if (mark->ended || stat(path, &status) != 0)
        return NL_OK;
    if (!S_ISREG(status.st_mode) || status.st_ino != mark->inode || (uint64_t)status.st_size <= mark->size)
        return NL_OK;
    return cut(path, (uint64_t)status.st_size, mark->size, "not yet acknowledged when netlogd was killed", what);
}

nl_status repair_end(const char *path, repair *what)
{
    uint64_t size, whole;
    struct stat status;
    *what = (repair){0};
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return NL_OK;
    if (nl_archive_find_end(path, &size, &whole) != NL_OK)
        return NL_FAILED;
    return whole < size ? cut(path, size, whole, "incomplete record at the end", what) : NL_OK;
}
