/*
 * Writes messages to standard error. A daemon serves many clients, so it must not wait for the reader of its own
 * messages. After message_output_never_wait, the module drops a message if standard error does not accept it
 * immediately. The module counts these messages, and writes the count before the next message. Any thread may call
 * these functions.
 */
#ifndef PROGRAM_MESSAGE_OUTPUT_H
#define PROGRAM_MESSAGE_OUTPUT_H

/* Writes a line "NAME: MESSAGE". */
void message_output_write(const char *name, const char *message);

/* After this call, the module drops messages that standard error does not accept immediately. */
void message_output_never_wait(void);

/* Reports the number of dropped messages. Does nothing if the number is 0, or writing would block. */
void message_output_report_dropped(const char *name);

#endif
