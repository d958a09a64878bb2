/*
 * Stands between a program and its machine, for tests on Linux (LD_PRELOAD): clocks that somebody sets,
 * another boot, disks that fail, and a record of what was written, synced and sent, in order.
 *
 * The folder in $SHIM holds `control` (the numbers below, set while the program runs), `boot_id` where
 * the boot is another one, and `trace`, which is written. $PACELINE_STORE says whose files are meant.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

enum { HEALTHY, FULL, UNWRITABLE, BROKEN };

/* tests/support/shim.rs writes these, each 8 bytes. */
struct control {
    volatile int64_t wall;  /* added to the wall clock, in nanoseconds */
    volatile int64_t boot;  /* added to the boot-time clock */
    volatile int64_t disk;  /* FULL: writes fail; UNWRITABLE: syncs too; BROKEN: reads too */
    volatile int64_t haste; /* sleeps last this many times shorter (SQLite counts what it asked for) */
    volatile int64_t trace; /* whether to write the record */
};

static struct control none;
static struct control *control = &none;
static char boot_id[4096];
static const char *store;
static int trace_fd = -1;

__attribute__((constructor)) static void start(void) {
    const char *folder = getenv("SHIM");
    char path[4096];
    store = getenv("PACELINE_STORE");
    if (!folder) return;
    snprintf(boot_id, sizeof boot_id, "%s/boot_id", folder);
    snprintf(path, sizeof path, "%s/trace", folder);
    trace_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "%s/control", folder);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) control = mapped;
    syscall(SYS_close, fd);
}

/* ---- clocks */

int clock_gettime(clockid_t clock, struct timespec *at) {
    if (syscall(SYS_clock_gettime, clock, at) != 0) return -1;
    int64_t by = 0;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) by = control->wall;
    if (clock == CLOCK_BOOTTIME) by = control->boot;
    if (by == 0) return 0;
    int64_t nanos = at->tv_sec * SECOND + at->tv_nsec + by;
    at->tv_sec = nanos / SECOND;
    at->tv_nsec = nanos % SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

int nanosleep(const struct timespec *span, struct timespec *left) {
    struct timespec shorter = *span;
    int64_t haste = control->haste;
    if (haste > 1) {
        int64_t nanos = (span->tv_sec * SECOND + span->tv_nsec) / haste;
        shorter.tv_sec = nanos / SECOND;
        shorter.tv_nsec = nanos % SECOND;
    }
    return (int)syscall(SYS_nanosleep, &shorter, left);
}

/* ---- the boot's name */

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    if (boot_id[0] && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, boot_id, flags, mode);
        if (fd >= 0) return fd;
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE(last)                                   \
    mode_t mode = 0;                                 \
    if (flags & (O_CREAT | __O_TMPFILE)) {           \
        va_list more;                                \
        va_start(more, last);                        \
        mode = (mode_t)va_arg(more, int);            \
        va_end(more);                                \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

/* ---- the store's files */

/* What follows the store's path in the name of an open file (`-wal`, say), `db` for the store itself;
 * NULL: another file. */
static const char *part_of_store(int fd, char *name, size_t size) {
    char link[64];
    if (!store || !store[0]) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, size - 1);
    if (length < 0) return NULL;
    name[length] = 0;
    size_t prefix = strlen(store);
    if (strncmp(name, store, prefix) != 0) return NULL;
    return name[prefix] ? name + prefix : "db";
}

static void record(const char *what, const char *of, int length) {
    char line[256];
    int written = snprintf(line, sizeof line, "%s %.*s\n", what, length, of);
    if (trace_fd >= 0 && written > 0) syscall(SYS_write, trace_fd, line, (size_t)written);
}

/* Whether a disk does it that is better than `fails_from`; if not, errno says why. Keeps the record. */
static int disk_does(const char *what, int fd, int64_t fails_from) {
    char name[4096];
    int64_t disk = control->disk;
    if (disk < fails_from && !control->trace) return 1;
    const char *part = part_of_store(fd, name, sizeof name);
    if (!part) return 1;
    if (disk >= fails_from) {
        errno = disk == FULL ? ENOSPC : EIO;
        return 0;
    }
    if (control->trace && what) record(what, part, 100);
    return 1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    if (!disk_does("write", fd, FULL)) return -1;
    return syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    return pwrite64(fd, bytes, size, at);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    if (!disk_does("write", fd, FULL)) return -1;
    return syscall(SYS_write, fd, bytes, size);
}

int ftruncate64(int fd, off64_t size) {
    if (!disk_does("truncate", fd, UNWRITABLE)) return -1;
    return (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate(int fd, off_t size) {
    return ftruncate64(fd, size);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t at) {
    if (!disk_does(NULL, fd, BROKEN)) return -1;
    return syscall(SYS_pread64, fd, bytes, size, at);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t at) {
    return pread64(fd, bytes, size, at);
}

int fsync(int fd) {
    if (!disk_does("sync", fd, UNWRITABLE)) return -1;
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    if (!disk_does("sync", fd, UNWRITABLE)) return -1;
    return (int)syscall(SYS_fdatasync, fd);
}

int statvfs64(const char *path, struct statvfs64 *told) {
    struct statfs64 system;
    if (syscall(SYS_statfs, path, &system) != 0) return -1;
    memset(told, 0, sizeof *told);
    told->f_bsize = told->f_frsize = (unsigned long)system.f_bsize;
    told->f_blocks = system.f_blocks;
    if (control->disk != FULL) told->f_bfree = told->f_bavail = system.f_bavail;
    return 0;
}

int statvfs(const char *path, struct statvfs *told) {
    return statvfs64(path, (struct statvfs64 *)told);
}

/* ---- calls that leave */

static void record_call(const char *bytes, size_t size) {
    if (!control->trace || size < 5) return;
    if (memcmp(bytes, "GET ", 4) != 0 && memcmp(bytes, "POST ", 5) != 0) return;
    const char *end = memchr(bytes, '\r', size);
    record("call", bytes, end && end - bytes < 100 ? (int)(end - bytes) : 4);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags) {
    record_call(bytes, size);
    return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (count > 0) record_call(parts[0].iov_base, parts[0].iov_len);
    return syscall(SYS_writev, fd, parts, count);
}
