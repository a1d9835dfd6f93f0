/* A CGI program: it prints a page with the number of bytes in its query string, real numbers on one line. They look
 * random, but are the same each time, so that every answer can be checked. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST (1 << 20)

static char page[LARGEST];

int main(void)
{
    const char *query = getenv("QUERY_STRING");
    char *end;
    long bytes = query ? strtol(query, &end, 10) : 0;
    if (bytes < 1 || bytes > LARGEST || *end) {
        fputs("Status: 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nhow many bytes?\n", stdout);
        return 0;
    }
    /* Knuth's linear congruential generator (MMIX); each number is 0.dddddddd and a space */
    uint64_t state = 1;
    for (long at = 0; at < bytes; at++) {
        int place = (int)(at % 11);
        if (place == 0)
            state = state * 6364136223846793005u + 1442695040888963407u;
        if (place < 2)
            page[at] = "0."[place];
        else if (place == 10)
            page[at] = ' ';
        else
            page[at] = (char)('0' + (state >> (4 * place)) % 10);
    }
    page[bytes - 1] = '\n';
    printf("Content-Type: text/plain\r\nContent-Length: %ld\r\n\r\n", bytes);
    return fwrite(page, 1, (size_t)bytes, stdout) == (size_t)bytes && fflush(stdout) == 0 ? 0 : 1;
}
