/* A data node: a daemon that other hosts reach through TCP. The preload library and burst itself connect to it; the
 * daemon receives with the same functions.
 *
 * A connection begins with a `hello`, and the daemon answers with a `welcome`. Requests and answers are then the
 * messages of protocol.h. The data of WRITE and APPEND and the `named_file` of ATTACH follow the request, the data of
 * READ follows the answer. Both hosts have the same byte order, or the hello is refused. */

#ifndef BURST_NODE_H
#define BURST_NODE_H

#include "protocol.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { TOKEN = 64, CONNECT_SECONDS = 10, STALLED_SECONDS = 60 };
#define HELLO_MAGIC 0x3152554254535542 /* "BUSTBUR1": increase the digit when the protocol changes */

struct hello {
    uint64_t magic;
    char token[TOKEN];
};
struct welcome {
    int64_t result;  /* 0 or -errno: EACCES, a wrong token; EMFILE, too many connections */
    uint64_t daemon; /* another number after each start of a daemon */
};
/* A file that a client has opened, by its name below the directory. */
struct named_file {
    uint64_t inode, born; /* 0: the client's file system does not know when the file was made */
    char name[PATH_MAX];
};

struct node {
    struct sockaddr_storage address;
    socklen_t length; /* 0: the address is not known */
    char token[TOKEN];
};

/* Reads ADDRESS:PORT, where an IPv6 address has brackets. With `names` the address may be a name of a host. */
bool read_address(struct node *node, const char *text, bool names);
/* Reads the token from a file that only its owner may use. Returns false and sets errno: EPERM, others may use it;
 * EINVAL, it has no token. */
bool read_token(struct node *node, const char *path);
/* Ends a connection to a host that does not answer any more. */
void set_patience(int socket);
/* Connects to a data node, whose number is written to `daemon`. Returns a socket; -1 and errno if that fails. */
int connect_to_node(const struct node *node, uint64_t *daemon);
/* Whether all of it was sent or received. `more`: other data follows directly. */
bool send_all(int socket, const void *data, size_t bytes, bool more);
bool receive_all(int socket, void *data, size_t bytes);
/* Sends the request in the area and receives the answer into it. Returns 1; 0 if nothing was answered. */
int exchange_with_node(int socket, struct area *area);
/* How many bytes follow a request. */
size_t bytes_after(const struct message *request);

#endif
