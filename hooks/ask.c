/*
 * ask: carries one hook of a coding agent's program to the bridge and back.
 *
 *     ask hook <provider> <event> [--else TEXT]
 *     ask --version
 *
 * Decides one thing only: whether what the bridge sent was written to the host
 * ("printed"), or not one byte of it was ("unprinted"). Promises that the host's turn
 * never breaks: giving up is exit 0 with nothing printed, or with TEXT, or with what
 * the bridge left for that case in its last "wait". Parses no JSON and reads no
 * environment: <state>/bin/ask finds <state>/run/bridge.sock from its own place.
 * Its twin ask.py does the same where there is no C compiler.
 */
#define _GNU_SOURCE /* Linux: struct ucred */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* older macOS; SIGPIPE is ignored anyway */
#endif
#define VERSION "ask AW1 c\n"

enum {
    HEADER_LIMIT = 256,    /* bytes of one header line, its newline counted */
    STDIN_LIMIT = 8 << 20, /* bytes */
    REPLY_LIMIT = 1 << 20, /* bytes of all frames of one dialogue */
    WAIT_LIMIT_S = 600,    /* a longer wait is nonsense */
    SILENCE_MS = 300,      /* of the bridge, before it asked for more */
    QUIET_MS = 100,        /* of the host, after a closing brace */
    STALL_MS = 2000        /* of the host, anywhere else */
};

/* What goes to the host; `wait_s` is -1 in a print and seconds in a wait. */
struct answer {
    long wait_s, exit_code, length;
    int stream;
    const char *text;
};

/* One hook. Nothing is moved or freed, so that answers can point into `reply`. */
static int bridge;
static char request_room[HEADER_LIMIT + STDIN_LIMIT + 1], reply[REPLY_LIMIT], *request;
static size_t request_length, sent, reply_length, taken;
static long long deadline_ms;
static struct answer constant, fallback; /* --else; that, or the last wait's text */

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A host may start us with 0, 1 or 2 closed: a socket would get that number, and we
 * would print into it. What takes the place fails as the closed one would. */
static int fill_standard_streams(void)
{
    for (int number = 0; number <= 2; number++)
        if (fcntl(number, F_GETFD) < 0
            && open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) != number)
            return 0;
    return 1;
}

/* This program's path with its links followed: the folder beside it is wanted. */
static int own_path(const char *called_as, char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length > 0)
        path[length] = '\0';
    return length > 0
        || (strchr(called_as, '/') != NULL && realpath(called_as, path) != NULL);
}

/* Changes into <state>/run, so that its path may be of any length. */
static int enter_run_folder(const char *called_as)
{
    char path[PATH_MAX + sizeof "/../run"];
    struct stat folder;
    int opened;
    if (!own_path(called_as, path) || path[0] != '/')
        return 0;
    strcpy(strrchr(path, '/'), "/../run");
    opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return opened >= 0 && fstat(opened, &folder) == 0 && folder.st_uid == getuid()
        && (folder.st_mode & 077) == 0 && fchdir(opened) == 0;
}

static int peer_is_ours(void)
{
#if defined(__linux__)
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(bridge, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
        && peer.uid == getuid();
#else
    uid_t uid;
    gid_t gid;
    return getpeereid(bridge, &uid, &gid) == 0 && uid == getuid();
#endif
}

/* Never waits: where nobody listens, or too many wait already, there is no bridge. */
static int connect_bridge(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "bridge.sock"};
    bridge = socket(AF_UNIX, SOCK_STREAM, 0);
    return bridge >= 0 && fcntl(bridge, F_SETFL, O_NONBLOCK) == 0
        && connect(bridge, (struct sockaddr *)&address, sizeof address) == 0
        && peer_is_ours();
}

static int ends_with_brace(const char *body, size_t length)
{
    while (length > 0 && memchr(" \t\r\n", body[length - 1], 4) != NULL)
        length--;
    return length > 0 && body[length - 1] == '}';
}

/* Reads stdin to its end. A host may leave it open: 100 ms of quiet after a closing
 * brace end it too. A terminal, a closed stdin and one that says nothing are empty; one
 * that stops in the middle or brings more than the limit makes no request. */
static int read_stdin(char *body, size_t *length)
{
    struct pollfd host = {STDIN_FILENO, POLLIN, 0};
    if (isatty(STDIN_FILENO))
        return 1;
    for (;;) {
        int brace = ends_with_brace(body, *length);
        int ready = poll(&host, 1, brace ? QUIET_MS : STALL_MS);
        ssize_t count = -1;
        if (ready == 0)
            return brace || *length == 0;
        if (ready > 0)
            count = read(STDIN_FILENO, body + *length, STDIN_LIMIT + 1 - *length);
        if (count == 0)
            return 1;
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            return errno == EBADF && *length == 0;
        if (count > 0 && (*length += (size_t)count) > STDIN_LIMIT)
            return 0;
    }
}

/* The header stands right before the body, once the body's length is known. */
static int write_request(const char *provider, const char *event)
{
    char header[HEADER_LIMIT + 1], *body = request_room + HEADER_LIMIT;
    size_t length = 0, size;
    if (!read_stdin(body, &length))
        return 0;
    size = (size_t)snprintf(header, sizeof header, "AW1 hook %s %s %lu\n", provider,
                            event, (unsigned long)length);
    if (size > HEADER_LIMIT)
        return 0;
    request = memcpy(body - size, header, size);
    request_length = size + length;
    deadline_ms = now_ms() + SILENCE_MS;
    return 1;
}

/* These two stop at the header's newline, which is always there. */
static const char *after_word(const char *at, const char *word)
{
    size_t length = strlen(word);
    return at != NULL && strncmp(at, word, length) == 0 ? at + length : NULL;
}

static const char *after_number(const char *at, long limit, long *number)
{
    const char *digit = at;
    for (*number = 0; at != NULL && *digit >= '0' && *digit <= '9'; digit++)
        if ((*number = *number * 10 + (*digit - '0')) > limit)
            return NULL;
    return digit != at ? digit : NULL;
}

/* AW1 print|wait <seconds>, <exit> <stdout|stderr> <length>; the rest is ignored. */
static int read_header(const char *line, struct answer *answer)
{
    const char *at = after_word(line, "AW1 print "), *out;
    answer->wait_s = -1;
    if (at == NULL) {
        at = after_word(line, "AW1 wait ");
        at = after_word(after_number(at, WAIT_LIMIT_S, &answer->wait_s), " ");
    }
    at = after_word(after_number(at, 255, &answer->exit_code), " ");
    out = after_word(at, "stdout ");
    answer->stream = out != NULL ? STDOUT_FILENO : STDERR_FILENO;
    at = out != NULL ? out : after_word(at, "stderr ");
    at = after_number(at, REPLY_LIMIT, &answer->length);
    return at != NULL && (*at == ' ' || *at == '\n');
}

/* 1: a whole frame was taken; 0: it needs more bytes; -1: this is not our bridge. */
static int take_frame(struct answer *answer)
{
    const char *line = reply + taken;
    size_t have = reply_length - taken, size;
    const char *end = memchr(line, '\n', have < HEADER_LIMIT ? have : HEADER_LIMIT);
    if (end == NULL)
        return have < HEADER_LIMIT ? 0 : -1;
    if (!read_header(line, answer))
        return -1;
    answer->text = end + 1;
    size = (size_t)(answer->text - line) + (size_t)answer->length;
    if (size > REPLY_LIMIT - taken)
        return -1;
    if (have < size)
        return 0;
    taken += size;
    return 1;
}

static void obey_wait(const struct answer *wait)
{
    deadline_ms = now_ms() + wait->wait_s * 1000;
    fallback = wait->length > 0 || constant.length == 0 ? *wait : constant;
}

/* A daemon that takes the request is not silent. Errors show in what it sends. */
static void send_some(void)
{
    long long silent_until_ms = now_ms() + SILENCE_MS;
    ssize_t count = send(bridge, request + sent, request_length - sent, MSG_NOSIGNAL);
    if (count > 0)
        sent += (size_t)count;
    if (count > 0 && deadline_ms < silent_until_ms)
        deadline_ms = silent_until_ms;
}

static int receive_some(void)
{
    ssize_t count = recv(bridge, reply + reply_length, REPLY_LIMIT - reply_length, 0);
    if (count < 0)
        return errno == EAGAIN || errno == EINTR;
    reply_length += (size_t)count;
    return count > 0;
}

/* True when a whole print came in time. The request goes out meanwhile. */
static int converse(struct answer *answer)
{
    for (;;) {
        struct pollfd daemon = {bridge, POLLIN, 0};
        int frames;
        while ((frames = take_frame(answer)) == 1 && answer->wait_s >= 0)
            obey_wait(answer);
        long long left_ms = deadline_ms - now_ms();
        if (frames != 0 || left_ms <= 0)
            return frames == 1 && left_ms > 0;
        if (sent < request_length)
            daemon.events |= POLLOUT;
        if (poll(&daemon, 1, (int)left_ms) <= 0)
            continue;
        if (daemon.revents & POLLOUT)
            send_some();
        if ((daemon.revents & ~POLLOUT) && !receive_some())
            return 0;
    }
}

/* How many bytes reached the host. A full pipe is waited for. */
static long write_host(const struct answer *answer)
{
    struct pollfd host = {answer->stream, POLLOUT, 0};
    long done = 0;
    while (done < answer->length) {
        size_t left = (size_t)(answer->length - done);
        ssize_t count = write(answer->stream, answer->text + done, left);
        if (count >= 0)
            done += count;
        else if (errno != EINTR && (errno != EAGAIN || poll(&host, 1, STALL_MS) == 0))
            break;
    }
    return done;
}

/* Not before the request is whole: it would be taken for a part of it. */
static void tell_bridge(const char *outcome)
{
    if (request_length > 0 && sent == request_length)
        (void)send(bridge, outcome, strlen(outcome), MSG_NOSIGNAL);
}

static long give_up(void)
{
    tell_bridge("AW1 unprinted 0\n");
    write_host(&fallback);
    return fallback.exit_code;
}

/* Some bytes written and some not is neither outcome: then the bridge hears none. */
static long deliver(const struct answer *answer)
{
    long done = write_host(answer);
    if (answer->length > 0 && (done == 0 || done == answer->length))
        tell_bridge(done > 0 ? "AW1 printed 0\n" : "AW1 unprinted 0\n");
    return done == answer->length ? answer->exit_code : 0;
}

static int is_word(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-"
                                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ.")] == '\0';
}

int main(int count, char **words)
{
    int is_hook = (count == 4 || (count == 6 && strcmp(words[4], "--else") == 0))
        && strcmp(words[1], "hook") == 0;
    struct answer answer = {-1, 0, sizeof VERSION - 1, STDOUT_FILENO, VERSION};
    signal(SIGPIPE, SIG_IGN);
    if (count == 2 && strcmp(words[1], "--version") == 0)
        return write_host(&answer) != answer.length;
    constant.stream = STDOUT_FILENO;
    constant.text = is_hook && count == 6 ? words[5] : "";
    constant.length = (long)strlen(constant.text);
    fallback = constant;
    if (is_hook && is_word(words[2]) && is_word(words[3]) && fill_standard_streams()
        && enter_run_folder(words[0]) && connect_bridge()
        && write_request(words[2], words[3]) && converse(&answer))
        return (int)deliver(&answer);
    return (int)give_up();
}
