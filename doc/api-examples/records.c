/*
 * Records: creating, writing as text, parsing, searching.
 */
#define _GNU_SOURCE /* memmem */
#include <netlogger.h>
#include <stdio.h>
#include <string.h>

/* Creates a record with a field of each type, which the caller frees. */
static nl_record *records_make(void)
{
    nl_record *record = nl_record_new();
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_host(record, "dpss1", 5);
    nl_record_set_prog(record, "example", 7);
    nl_record_set_level(record, NL_USAGE);
    nl_record_set_event(record, "WriteData", 9);
    nl_record_add_string(record, "FILE", "a b", 3);
    nl_record_add_int(record, "OFFSET", -1);
    nl_record_add_uint(record, "SEND.SZ", 49332);
    nl_record_add_double(record, "SECONDS", 0.125);
    nl_record_add_bool(record, "LAST", true);
    nl_field field = nl_field_named("PATH", NL_TYPE_STRING);
    field.string = (nl_string){"/tmp", 4};
    nl_record_add(record, &field);
    return record;
}

/* Prints all fields of a record. */
static void print(const nl_record *record)
{
    char date[NL_TIME_TEXT_SIZE], scratch[NL_FIELD_TEXT_SIZE];
    nl_time_format_ulm(record->time_ns, date);
    printf("%s %s\n", date, nl_level_name(record->level));
    for (size_t i = 0; i < record->field_count; i++) {
        nl_string text = nl_field_text(&record->fields[i], scratch);
        printf("  %.*s is %.*s\n", (int)record->fields[i].name.size, record->fields[i].name.data, (int)text.size,
               text.data);
    }
}

/* Reads numbers from fields. */
static bool sizes(const nl_record *record, int64_t *bytes, double *seconds)
{
    nl_field field;
    return nl_record_find(record, "SEND.SZ", &field) && nl_field_int(&field, bytes) &&
           nl_record_find(record, "SECONDS", &field) && nl_field_double(&field, seconds);
}

/* Writes a record as text and parses it. */
static bool there_and_back(const nl_record *record)
{
    nl_buffer line = {0};
    nl_record *read = nl_record_new();
    nl_record_encode(record, NL_FORMAT_BP, &line);
    printf("BP: %.*s", (int)line.size, line.data);
    bool good = nl_record_decode(read, NL_FORMAT_BP, NL_FRACTION_DECIMAL, line.data, line.size - 1) == NL_OK &&
                read->time_ns / 1000 == record->time_ns / 1000;
    nl_record_free(read);
    nl_buffer_free(&line);
    return good;
}

/* Writes an existing record to a log in memory, and reads it from there. */
static bool logged(const nl_record *record)
{
    nl_log *log = nl_open("example", "memory:records");
    nl_buffer text = {0};
    nl_record *copy = nl_record_new();
    nl_record_copy(copy, record); /* a copy that outlives the original */
    bool good = nl_write_record(log, copy) == NL_OK && nl_close(log) == NL_OK && nl_memory_read("records", &text) &&
                memmem(text.data, text.size, "WriteData", 9) != NULL;
    nl_memory_free("records");
    nl_record_free(copy);
    nl_buffer_free(&text);
    return good;
}

int main(void)
{
    nl_record *record = records_make();
    int64_t bytes = 0, time_ns = 0;
    double seconds = 0;
    print(record);
    bool good = sizes(record, &bytes, &seconds) && bytes == 49332 && there_and_back(record) && logged(record);
    nl_record_free(record);

    /* Parses user input: a time, a level. */
    good = good && nl_time_parse("2026-01-31T12:00:00.5Z", 22, NL_FRACTION_DECIMAL, &time_ns) == NL_OK &&
           nl_level_parse("warning", 7) == NL_WARNING;
    return good ? 0 : 1;
}
