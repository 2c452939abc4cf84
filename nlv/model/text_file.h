/*
 * The text that records lie in: a log of text itself, or, for all else (the binary format, compressed files, pipes,
 * collectors), a temporary file without a name into which the records are written as lines. Either is read again where
 * more of a record is asked than the store keeps.
 */
#ifndef NLV_TEXT_FILE_H
#define NLV_TEXT_FILE_H

#include <netlogger.h>

#include <sys/types.h>

typedef struct text_file {
    int fd;
    nl_format format; /* ULM or BP */
    nl_fraction fraction;
    bool is_spill;
    uint64_t size;      /* of a spill: written so far, */
    uint64_t forgotten; /* and no longer there before this */
} text_file;

/* Opens a log of text at path; false when it is none, or nothing is in it yet. */
bool text_file_open(text_file *t, const char *path, nl_fraction fraction);

/* Reads up to size bytes of a descriptor at offset; fewer at its end, or where it cannot be read. */
ssize_t text_read_at(int fd, char *to, size_t size, uint64_t offset);

/* A temporary file for records. False with the reason in nl_error_message(). */
bool text_file_spill(text_file *t);
void text_file_close(text_file *t);

/* Appends records' lines to a spill. False with the reason in errno. */
bool text_file_write(text_file *t, const nl_buffer *lines);

/* Lets a spill's bytes before offset go. */
void text_file_forget(text_file *t, uint64_t offset);

/* Its size now; 0 when it can't be told. */
uint64_t text_file_size(const text_file *t);

/*
 * Calls take with the record at offset, for the time of the call. False when there is none any more (the log was cut
 * short or overwritten).
 */
bool text_file_record(const text_file *t, uint64_t offset, void (*take)(void *user, const nl_record *record),
                      void *user);

/*
 * Calls take for the records that begin before to, in their order, until go_on, which is asked now and then with how
 * far it is, says no. A line that is longer than any record may be is passed over.
 */
void text_file_each(const text_file *t, uint64_t to, void (*take)(void *user, const nl_record *record),
                    bool (*go_on)(void *user, uint64_t at), void *user);

/* Reads some whole lines from about offset on (the first whole one from there) and calls take for their records. */
void text_file_sample(const text_file *t, uint64_t offset, size_t size,
                      void (*take)(void *user, const nl_record *record), void *user);

#endif
