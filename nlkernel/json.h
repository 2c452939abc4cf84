/* JSON (RFC 8259) as nlkernel prints it. One thread. */
#ifndef NLKERNEL_JSON_H
#define NLKERNEL_JSON_H

#include <stdio.h>

/* Prints text as a JSON string, quotes included; what is no UTF-8 in it, each byte, becomes U+FFFD. */
void json_print_string(const char *text);

/* The same to a file. */
void json_write_string(FILE *to, const char *text);

#endif
