/*
 * Writes messages to standard error. A daemon serves many clients, so it must not wait for the reader of its own
 * messages: after message_output_never_wait a message that cannot be written at once is dropped and counted, and the
 * next message that can be written is preceded by the count. Any thread may call these functions.
 */
#ifndef PROGRAM_MESSAGE_OUTPUT_H
#define PROGRAM_MESSAGE_OUTPUT_H

/* Writes a line "NAME: MESSAGE". */
void message_output_write(const char *name, const char *message);

/* From now on, drops messages that cannot be written at once. */
void message_output_never_wait(void);

/* Reports the number of dropped messages. Reports nothing when it is 0, or when writing would block. */
void message_output_report_dropped(const char *name);

#endif
