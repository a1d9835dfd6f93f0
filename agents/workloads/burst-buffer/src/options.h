/* The options of the command line that are not in the settings. */

#ifndef BURST_OPTIONS_H
#define BURST_OPTIONS_H

#include "node.h"

#include <stdbool.h>

extern const char usage[];
/* The file for the report of `run`; the preload library. Null: not given. */
extern const char *report, *library;
/* Whether `run` uses the buffer that its job already has for the directory. */
extern bool joins;
/* The data node that `run` uses, and the file with the token; null: not given. */
extern const char *node, *token;
/* The folder of the buffer, open. */
extern int buffer;

/* Reads the options, and makes and opens the buffer's folder. Returns the arguments after the options. */
char **take_options(int count, char **given);
/* Sets the directory that is buffered. */
void take_directory(const char *name);
/* Reads the token; `makes`: first makes the file if it does not exist. */
void take_token(struct node *into, bool makes);
/* Finds the library: the given one, or the one next to this program. */
void take_library(void);
/* Prints the usage and ends the process. */
_Noreturn void misused(void);

#endif
