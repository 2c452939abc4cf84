/* The table of commands with their names, menus and keys, for the menu bar, the list of keys and the keyboard. */
#ifndef NLV_COMMANDS_H
#define NLV_COMMANDS_H

#include <gtk/gtk.h>
#include <stdbool.h>

typedef enum command {
    COMMAND_NONE,
    COMMAND_OPEN,
    COMMAND_CONNECT,
    COMMAND_EXPORT,
    COMMAND_EXPORT_RECORDS,
    COMMAND_PRINT,
    COMMAND_LAST_TIME,
    COMMAND_QUIT,
    COMMAND_UNDO,
    COMMAND_REDO,
    COMMAND_EDIT,
    COMMAND_BOOKMARK,
    COMMAND_BOOKMARKS,
    COMMAND_NEXT_BOOKMARK,
    COMMAND_PREVIOUS_BOOKMARK,
    COMMAND_MEASURE,
    COMMAND_ALL,
    COMMAND_ZOOM_IN,
    COMMAND_ZOOM_OUT,
    COMMAND_LEFT,
    COMMAND_RIGHT,
    COMMAND_BACK,
    COMMAND_FORWARD,
    COMMAND_ZOOM_TO_MARKED,
    COMMAND_CLEAR,
    COMMAND_SIDE,
    COMMAND_DARK,
    COMMAND_SENSORS,
    COMMAND_REAL_TIME,
    COMMAND_CLOCKS,
    COMMAND_PLAY,
    COMMAND_FASTER,
    COMMAND_SLOWER,
    COMMAND_FIND,
    COMMAND_NEXT,
    COMMAND_PREVIOUS,
    COMMAND_FILTER,
    COMMAND_CHOOSE,
    COMMAND_REQUESTS,
    COMMAND_FAILED,
    COMMAND_ONLY_SLOW,
    COMMAND_ONLY_FAILED,
    COMMAND_BRUSH,
    COMMAND_LEGEND,
    COMMAND_EXPAND,
    COMMAND_TRACK,
    COMMAND_SCROLL_UP,
    COMMAND_SCROLL_DOWN,
    COMMAND_THREADS,
    COMMAND_CLOCK,
    COMMAND_COMPARE,
    COMMAND_PALETTE,
    COMMAND_SHORTCUTS,
} command;

typedef void command_do(void *user, command which);

/* Returns the menu bar, whose items show their keys. Calls `act` for the chosen command. */
GtkWidget *commands_menu_bar(command_do *act, void *user);

/* Returns the command that a key invokes, or COMMAND_NONE. If `typing` is true, the focus is in a text field, so keys
 * that edit text invoke no command. */
command commands_of_key(const GdkEventKey *event, bool typing);

/* Returns all commands, their keys and the pointer's actions as Pango markup. The caller frees the markup with
 * g_free. */
char *commands_help(void);

/* Returns command number i, or COMMAND_NONE after the last command. Sets *name to the name of the command, and *key to
 * its key as text. The caller frees both with g_free. */
command commands_at(size_t i, char **name, char **key);

#endif
