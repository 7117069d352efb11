/* Preloaded by tests. The first FAILING_TIMES reads of files whose path ends in FAILING_FILE fail
 * with EIO, as those of a disk that breaks; writes to files whose path ends in FULL_FILE fail with
 * ENOSPC, as those to a full disk. A process that reads or writes a file whose path ends in
 * STOPPING_FILE is stopped by SIGSTOP. With FAILING_DATAGRAMS no socket between processes can be
 * made that sends datagrams. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_int failed;

static int is_named(int descriptor, const char* variable) {
  const char* name = getenv(variable);
  char link[64], path[4096];
  if (name == NULL) return 0;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof(path));
  const ssize_t wanted = (ssize_t)strlen(name);
  return length >= wanted && memcmp(path + length - wanted, name, (size_t)wanted) == 0;
}

static int fails(int descriptor) {
  if (is_named(descriptor, "STOPPING_FILE")) kill(getpid(), SIGSTOP);
  const char* times = getenv("FAILING_TIMES");
  if (times == NULL || !is_named(descriptor, "FAILING_FILE")) return 0;
  if (atomic_fetch_add(&failed, 1) >= atoi(times)) return 0;
  errno = EIO;
  return 1;
}

ssize_t read(int descriptor, void* target, size_t count) {
  static ssize_t (*real)(int, void*, size_t);
  if (real == NULL) real = (ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  return fails(descriptor) ? -1 : real(descriptor, target, count);
}

ssize_t write(int descriptor, const void* source, size_t count) {
  static ssize_t (*real)(int, const void*, size_t);
  if (real == NULL) real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  if (is_named(descriptor, "STOPPING_FILE")) kill(getpid(), SIGSTOP);
  if (!is_named(descriptor, "FULL_FILE")) return real(descriptor, source, count);
  errno = ENOSPC;
  return -1;
}

ssize_t pread(int descriptor, void* target, size_t count, off_t offset) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  if (real == NULL) real = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  return fails(descriptor) ? -1 : real(descriptor, target, count, offset);
}

ssize_t pread64(int descriptor, void* target, size_t count, off64_t offset) {
  return pread(descriptor, target, count, offset);
}

int socket(int domain, int type, int protocol) {
  static int (*real)(int, int, int);
  if (real == NULL) real = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  if (getenv("FAILING_DATAGRAMS") == NULL || domain != AF_UNIX || (type & 0xf) != SOCK_DGRAM) {
    return real(domain, type, protocol);
  }
  errno = EPERM;
  return -1;
}

/* What _FORTIFY_SOURCE makes of these calls. */
ssize_t __read_chk(int descriptor, void* target, size_t count, size_t size) {
  if (count > size) abort();
  return read(descriptor, target, count);
}

ssize_t __pread_chk(int descriptor, void* target, size_t count, off_t offset, size_t size) {
  if (count > size) abort();
  return pread(descriptor, target, count, offset);
}

ssize_t __pread64_chk(int descriptor, void* target, size_t count, off64_t offset, size_t size) {
  return __pread_chk(descriptor, target, count, offset, size);
}
