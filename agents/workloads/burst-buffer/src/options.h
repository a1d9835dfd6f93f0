/* The options of the command line that are not in the settings. */

#ifndef BURST_OPTIONS_H
#define BURST_OPTIONS_H

#include <stdbool.h>

extern const char usage[];
/* The file for the report of `run`; the preload library. Null: not given. */
extern const char *report, *library;
/* Whether `run` uses the buffer that its job already has for the directory. */
extern bool joins;
/* The folder of the buffer, open. */
extern int buffer;

/* Reads the options, and makes and opens the buffer's folder. Returns the arguments after the options. */
char **take_options(int count, char **given);
/* Sets the directory that is buffered. */
void take_directory(const char *name);
/* Finds the library: the given one, or the one next to this program. */
void take_library(void);
/* Prints the usage and ends the process. */
_Noreturn void misused(void);

#endif
