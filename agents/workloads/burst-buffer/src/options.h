/* What the command line said, besides the settings. */

#ifndef BURST_OPTIONS_H
#define BURST_OPTIONS_H

#include <stdbool.h>

extern const char usage[];
/* Where run writes its report; the preload library. Null: not given. */
extern const char *report, *library;
/* Whether run uses the buffer that its job has for the directory already. */
extern bool joins;
/* The folder of the buffer, open. */
extern int buffer;

/* Reads the options, and makes and opens the buffer's folder; what comes behind them. */
char **take_options(int count, char **given);
/* Sets the directory that is buffered. */
void take_directory(const char *name);
/* Finds the library, beside this program where none was given. */
void take_library(void);
/* Says how it is used, and ends. */
_Noreturn void misused(void);

#endif
