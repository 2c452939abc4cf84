/* All commands in a list with their keys, found by typing a part of their names. */
#ifndef NLV_COMMAND_PALETTE_H
#define NLV_COMMAND_PALETTE_H

#include "view/commands.h"

/* Shows it above a window; act is called with what was chosen. */
void command_palette_show(GtkWidget *window, command_do *act, void *user);

#endif
