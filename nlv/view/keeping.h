/* How many records are kept in memory while a log goes on. */
#ifndef NLV_KEEPING_H
#define NLV_KEEPING_H

#include "view/window_private.h"

/* Asks, saying what memory that takes. */
void keeping_ask(window *w);

#endif
