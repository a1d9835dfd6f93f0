/* A closed loop of clients that check every byte of every answer.
 *
 * Each client keeps one connection, and sends the next request when it has the whole answer. Plain answers are compared
 * with the page's file piece by piece, while a piece is in the processor's cache. A compressed answer must decompress to
 * the page; a body that has been checked once is kept, and equal ones need no second check. The check should cost
 * little, because the clients have as many processors as the server. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { WRONG = 1, USAGE = 2, MACHINE = 3, MOST_CLIENTS = 1000, LONGEST_HEAD = 1024, PIECE = 256 << 10 };

static const char usage[] =
    "usage: load --pages FOLDER --port N [--clients 10] [--seconds 3] [--warm-up 1] [--law uniform|geometric|zipf]\n"
    "            [--skew 1.5] [--gzip-share 0.5] [--seed 1]\n"
    "\n"
    "It prints requests per second and percentiles of the latency as JSON, ends with status 1 after a wrong answer.\n"
    "Page 0 is the most popular one. geometric: P(page k) ~ skew^-k; zipf: P(page k) ~ (k + 1)^-skew.\n"
    "A line {\"measuring\": true} says that the warm-up is over. It measures at least one answer.\n"
    "\n"
    "example: load --pages pages --port 8080 --clients 20 --law geometric --skew 1.5\n";

static struct page {
    unsigned char *raw;
    size_t size;
    unsigned char *checked; /* the latest compressed body that was right */
    size_t checked_size;
} *pages;
static int page_count;
static size_t room; /* for the largest answer */

static struct client {
    int socket, page;
    bool gzip;
    char head[LONGEST_HEAD + 1];
    size_t head_size, body_size, received;
    bool in_body;
    unsigned char *body; /* of a compressed answer */
    double begun;
} *clients;

static int client_count = 10, port;
static double seconds = 3, warm_up = 1, skew = 1.5, gzip_share = 0.5;
static const char *law = "uniform", *folder;
static double *below; /* the probability of this page and the ones before it */
static uint64_t state = 1;

static float *latencies;
static size_t measured, latency_room;

static void die(const char *what)
{
    fprintf(stderr, "load: cannot %s: %s\n", what, strerror(errno));
    exit(MACHINE);
}

static void wrong(const struct client *client, const char *what)
{
    fprintf(stderr, "load: wrong answer: page %d as %s: %s\n", client->page, client->gzip ? "gzip" : "plain text", what);
    exit(WRONG);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns a number in [0, 1): xorshift64* (Vigna 2016). */
static double draw(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)((state * 0x2545F4914F6CDD1DULL) >> 11) * 0x1p-53;
}

/* --- pages */

static void open_pages(void)
{
    for (;; page_count++) {
        char path[4096];
        struct stat status;
        snprintf(path, sizeof path, "%s/%d.html", folder, page_count);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 && errno == ENOENT && page_count)
            break;
        if (file < 0 || fstat(file, &status) < 0)
            die("open the pages");
        pages = realloc(pages, ((size_t)page_count + 1) * sizeof *pages);
        if (!pages)
            die("allocate the table of pages");
        struct page *page = &pages[page_count];
        *page = (struct page){.size = (size_t)status.st_size};
        page->raw = mmap(NULL, page->size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
        if (page->raw == MAP_FAILED)
            die("map a page");
        close(file);
        if (page->size + 4096 > room)
            room = page->size + 4096;
    }
    below = calloc((size_t)page_count, sizeof *below);
    if (!below)
        die("allocate the law");
    double sum = 0;
    for (int page = 0; page < page_count; page++) {
        if (strcmp(law, "geometric") == 0)
            sum += pow(skew, -page);
        else
            sum += strcmp(law, "zipf") == 0 ? pow(page + 1, -skew) : 1;
        below[page] = sum;
    }
    for (int page = 0; page < page_count; page++)
        below[page] /= sum;
}

static int draw_page(void)
{
    double drawn = draw();
    int page = 0;
    while (page < page_count - 1 && drawn >= below[page])
        page++;
    return page;
}

static void check_gzip(const struct client *client)
{
    struct page *page = &pages[client->page];
    if (client->body_size == page->checked_size && memcmp(client->body, page->checked, page->checked_size) == 0)
        return;
    unsigned char *plain = malloc(page->size + 1);
    z_stream stream = {.next_in = client->body,
                       .avail_in = (uInt)client->body_size,
                       .next_out = plain,
                       .avail_out = (uInt)page->size + 1};
    if (!plain || inflateInit2(&stream, 15 + 16) != Z_OK)
        die("decompress an answer");
    int status = inflate(&stream, Z_FINISH);
    if (status != Z_STREAM_END || stream.total_out != page->size || stream.avail_in)
        wrong(client, "the body is no gzip file with the page's size");
    if (memcmp(plain, page->raw, page->size) != 0)
        wrong(client, "the decompressed body is not the page");
    inflateEnd(&stream);
    free(plain);
    page->checked = realloc(page->checked, client->body_size);
    if (!page->checked)
        die("allocate a checked body");
    memcpy(page->checked, client->body, client->body_size);
    page->checked_size = client->body_size;
}

static void check_piece(const struct client *client, const void *piece, size_t size)
{
    if (memcmp(piece, pages[client->page].raw + client->received, size) != 0)
        wrong(client, "the body is not the page");
}

/* --- clients */

static void ask(struct client *client)
{
    char text[160];
    client->page = draw_page();
    client->gzip = draw() < gzip_share;
    client->head_size = client->received = 0;
    client->in_body = false;
    int length = snprintf(text, sizeof text, "GET /%d.html HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n", client->page, port,
                          client->gzip ? "Accept-Encoding: gzip\r\n" : "");
    client->begun = now();
    if (send(client->socket, text, (size_t)length, MSG_NOSIGNAL) != length)
        die("send a request");
}

static void read_head(struct client *client)
{
    if (strncmp(client->head, "HTTP/1.1 200 ", 13) != 0)
        wrong(client, "the status is not 200");
    const char *length = strcasestr(client->head, "\r\nContent-Length:");
    if (!length)
        wrong(client, "there is no Content-Length");
    client->body_size = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    if (client->body_size > room)
        wrong(client, "the body is longer than any page");
    if ((strcasestr(client->head, "\r\nContent-Encoding: gzip\r\n") != NULL) != client->gzip)
        wrong(client, client->gzip ? "the answer is not compressed" : "the answer is compressed");
    if (!client->gzip && client->body_size != pages[client->page].size)
        wrong(client, "the body is not the page");
    client->in_body = true;
}

/* Receives a piece of the body, and checks it if it is plain text. */
static ssize_t receive_body(struct client *client)
{
    static unsigned char piece[PIECE];
    size_t rest = client->body_size - client->received;
    if (client->gzip)
        return recv(client->socket, client->body + client->received, rest, MSG_DONTWAIT);
    ssize_t got = recv(client->socket, piece, rest < PIECE ? rest : PIECE, MSG_DONTWAIT);
    if (got > 0)
        check_piece(client, piece, (size_t)got);
    return got;
}

/* Reads what has come. Returns true when the answer is complete. */
static bool receive(struct client *client)
{
    for (;;) {
        ssize_t got;
        if (client->in_body)
            got = receive_body(client);
        else
            got = recv(client->socket, client->head + client->head_size, LONGEST_HEAD - client->head_size, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            return false;
        if (got <= 0)
            die("receive an answer: the connection has ended");
        if (client->in_body) {
            client->received += (size_t)got;
        } else {
            client->head_size += (size_t)got;
            client->head[client->head_size] = '\0';
            char *blank = strstr(client->head, "\r\n\r\n");
            if (!blank && client->head_size == LONGEST_HEAD)
                wrong(client, "the head is too long");
            if (!blank)
                continue;
            size_t rest = (size_t)(client->head + client->head_size - (blank + 4));
            blank[2] = '\0';
            read_head(client);
            if (rest > client->body_size)
                wrong(client, "more was sent than announced");
            if (client->gzip)
                memcpy(client->body, blank + 4, rest);
            else
                check_piece(client, blank + 4, rest);
            client->received = rest;
        }
        if (client->in_body && client->received == client->body_size)
            return true;
    }
}

static void connect_client(struct client *client, int poll)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    client->body = malloc(room);
    client->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!client->body || client->socket < 0 || connect(client->socket, (struct sockaddr *)&address, sizeof address) < 0)
        die("connect to the proxy");
    setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, client->socket, &event) < 0)
        die("watch a connection");
}

static void note(double latency)
{
    if (measured == latency_room) {
        latency_room = latency_room ? 2 * latency_room : 1 << 16;
        latencies = realloc(latencies, latency_room * sizeof *latencies);
        if (!latencies)
            die("allocate the latencies");
    }
    latencies[measured++] = (float)latency;
}

static int by_size(const void *one, const void *other)
{
    float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

static double percentile_ms(double share)
{
    return measured ? 1000.0 * (double)latencies[(size_t)(share * (double)(measured - 1))] : 0;
}

static void run(void)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);
    clients = calloc((size_t)client_count, sizeof *clients);
    if (poll < 0 || !clients)
        die("start the clients");
    for (int number = 0; number < client_count; number++)
        connect_client(&clients[number], poll);
    double begun = now(), from = begun + warm_up;
    bool measuring = false;
    for (int number = 0; number < client_count; number++)
        ask(&clients[number]);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, 100);
        double time = now();
        if (!measuring && time >= from) {
            measuring = true;
            from = time;
            printf("{\"measuring\": true}\n");
            fflush(stdout);
        }
        if (measuring && measured && time >= from + seconds)
            break;
        for (int number = 0; number < ready; number++) {
            struct client *client = events[number].data.ptr;
            if (!receive(client))
                continue;
            if (measuring)
                note(now() - client->begun);
            if (client->gzip)
                check_gzip(client);
            ask(client);
        }
    }
    double took = now() - from;
    qsort(latencies, measured, sizeof *latencies, by_size);
    printf("{\"requests\": %zu, \"seconds\": %.6f, \"requests_per_second\": %.3f, \"p50_ms\": %.4f, \"p99_ms\": %.4f}\n",
           measured, took, (double)measured / took, percentile_ms(0.5), percentile_ms(0.99));
}

/* --- the command line */

static double number(const char *option, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most)) {
        fprintf(stderr, "load: %s: '%.60s' is not allowed. Use a number from %g to %g.\n", option, text, least, most);
        exit(USAGE);
    }
    return value;
}

int main(int count, char **arguments)
{
    for (int place = 1; place < count; place++) {
        const char *option = arguments[place];
        if (strcmp(option, "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        char *value = strchr(arguments[place], '=');
        if (value)
            *value++ = '\0';
        else if (!(value = arguments[++place])) {
            fprintf(stderr, "load: %s has no value. See --help.\n", option);
            return USAGE;
        }
        if (strcmp(option, "--pages") == 0)
            folder = value;
        else if (strcmp(option, "--port") == 0)
            port = (int)number(option, value, 1, 65535);
        else if (strcmp(option, "--clients") == 0)
            client_count = (int)number(option, value, 1, MOST_CLIENTS);
        else if (strcmp(option, "--seconds") == 0)
            seconds = number(option, value, 0.05, 3600);
        else if (strcmp(option, "--warm-up") == 0)
            warm_up = number(option, value, 0, 3600);
        else if (strcmp(option, "--skew") == 0)
            skew = number(option, value, 0, 10);
        else if (strcmp(option, "--gzip-share") == 0)
            gzip_share = number(option, value, 0, 1);
        else if (strcmp(option, "--seed") == 0)
            state = (uint64_t)number(option, value, 1, 1e15);
        else if (strcmp(option, "--law") == 0)
            law = value;
        else {
            fprintf(stderr, "load: there is no option '%s'. See --help.\n", option);
            return USAGE;
        }
    }
    if (!folder || !port || (strcmp(law, "uniform") && strcmp(law, "geometric") && strcmp(law, "zipf"))) {
        fputs("load: give --pages and --port; --law is uniform, geometric or zipf. See --help.\n", stderr);
        return USAGE;
    }
    open_pages();
    run();
}
