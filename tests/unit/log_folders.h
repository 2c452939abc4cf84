/*
 * Counts the directories of logs in the directory that NETLOGGER_SHM names. Each log has one directory until it is
 * closed or recovered.
 */
#ifndef TESTS_UNIT_LOG_FOLDERS_H
#define TESTS_UNIT_LOG_FOLDERS_H

#include <dirent.h>
#include <string.h>

static unsigned count_log_folders(const char *folder)
{
    unsigned count = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        count += strncmp(entry->d_name, "netlogger-", 10) == 0;
    closedir(d);
    return count;
}

#endif
