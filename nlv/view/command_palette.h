/* A dialog in which the user finds a command by a part of its name. */
#ifndef NLV_COMMAND_PALETTE_H
#define NLV_COMMAND_PALETTE_H

#include "view/commands.h"

/* Shows the dialog above a window. Calls `act` with the chosen command. */
void command_palette_show(GtkWidget *window, command_do *act, void *user);

#endif
