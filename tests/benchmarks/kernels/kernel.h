/* The parts that all kernels share. A line of integers on the standard input is a configuration, and the answer is the
 * CPU time of this process in milliseconds for one run of it, the mean of runs of at least LEAST_MS together. CPU time
 * depends less on other programs than the time of day. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_VALUES 16
#define LEAST_MS 3.0

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* Read the next configuration; return how many values it has, or 0 at the end of the input. */
static int next_configuration(int *values) {
  char line[1024];
  int count = 0;
  if (!fgets(line, sizeof line, stdin)) return 0;
  for (char *word = strtok(line, " \n"); word && count < MOST_VALUES; word = strtok(NULL, " \n"))
    values[count++] = atoi(word);
  return count;
}

static void fail(const char *message) {
  fprintf(stderr, "%s\n", message);
  exit(1);
}
