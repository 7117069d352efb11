/* Preloaded by tests. The first FAILING_TIMES reads of files whose path ends in FAILING_FILE fail
 * with EIO, as those of a disk that breaks, or with the number in FAILING_ERROR; writes to files
 * whose path ends in FULL_FILE fail with ENOSPC, as those to a full disk. A process that reads or
 * writes a file whose path ends in STOPPING_FILE is stopped by SIGSTOP. With FAILING_DATAGRAMS no
 * socket between processes can be made that sends datagrams. With NO_LINKS no file gets a second
 * name. With SYNCED_RENAMES a file that the process has written to, and not synced since, cannot be
 * renamed (EIO). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
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

/* The files that were synced after they were last written to. */
static struct {
  dev_t device;
  ino_t number;
} synced[1024];
static int synced_count;
static pthread_mutex_t synced_lock = PTHREAD_MUTEX_INITIALIZER;
static struct timespec begin; /* by the clock of file systems */

__attribute__((constructor)) static void note_begin(void) {
  clock_gettime(CLOCK_REALTIME_COARSE, &begin);
}

static int is_older(const struct stat* file) {
  const struct timespec written = file->st_mtim;
  return written.tv_sec < begin.tv_sec ||
         (written.tv_sec == begin.tv_sec && written.tv_nsec < begin.tv_nsec);
}

static int find_synced(const struct stat* file) {
  int i = 0;
  while (i < synced_count &&
         (synced[i].device != file->st_dev || synced[i].number != file->st_ino)) {
    ++i;
  }
  return i;
}

static void note_synced(int descriptor, int is_synced) {
  struct stat file;
  if (getenv("SYNCED_RENAMES") == NULL || fstat(descriptor, &file) != 0) return;
  pthread_mutex_lock(&synced_lock);
  const int at = find_synced(&file);
  if (at < synced_count && !is_synced) synced[at] = synced[--synced_count];
  if (at == synced_count && is_synced) {
    if (synced_count == (int)(sizeof(synced) / sizeof(synced[0]))) abort();
    synced[synced_count].device = file.st_dev;
    synced[synced_count++].number = file.st_ino;
  }
  pthread_mutex_unlock(&synced_lock);
}

static int fails(int descriptor) {
  if (is_named(descriptor, "STOPPING_FILE")) kill(getpid(), SIGSTOP);
  const char* times = getenv("FAILING_TIMES");
  if (times == NULL || !is_named(descriptor, "FAILING_FILE")) return 0;
  if (atomic_fetch_add(&failed, 1) >= atoi(times)) return 0;
  const char* error = getenv("FAILING_ERROR");
  errno = error == NULL ? EIO : atoi(error);
  return 1;
}

ssize_t read(int descriptor, void* target, size_t count) {
  static ssize_t (*_Atomic real)(int, void*, size_t);
  if (real == NULL) real = (ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  return fails(descriptor) ? -1 : real(descriptor, target, count);
}

ssize_t write(int descriptor, const void* source, size_t count) {
  static ssize_t (*_Atomic real)(int, const void*, size_t);
  if (real == NULL) real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  if (is_named(descriptor, "STOPPING_FILE")) kill(getpid(), SIGSTOP);
  note_synced(descriptor, 0);
  if (!is_named(descriptor, "FULL_FILE")) return real(descriptor, source, count);
  errno = ENOSPC;
  return -1;
}

ssize_t pread(int descriptor, void* target, size_t count, off_t offset) {
  static ssize_t (*_Atomic real)(int, void*, size_t, off_t);
  if (real == NULL) real = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  return fails(descriptor) ? -1 : real(descriptor, target, count, offset);
}

ssize_t pread64(int descriptor, void* target, size_t count, off64_t offset) {
  return pread(descriptor, target, count, offset);
}

int fsync(int descriptor) {
  static int (*_Atomic real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  if (getenv("INTERRUPTED_FSYNC") != NULL) {
    static atomic_int calls;
    if (atomic_fetch_add(&calls, 1) % 2 == 0) {
      errno = EINTR;
      return -1;
    }
  }
  note_synced(descriptor, 1);
  return real(descriptor);
}

int rename(const char* from, const char* to) {
  static int (*_Atomic real)(const char*, const char*);
  if (real == NULL) real = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  struct stat file;
  if (getenv("SYNCED_RENAMES") != NULL && stat(from, &file) == 0 && S_ISREG(file.st_mode)) {
    pthread_mutex_lock(&synced_lock);
    const int is_synced = is_older(&file) || find_synced(&file) < synced_count;
    pthread_mutex_unlock(&synced_lock);
    errno = EIO;
    if (!is_synced) return -1;
  }
  return real(from, to);
}

int link(const char* from, const char* to) {
  static int (*_Atomic real)(const char*, const char*);
  if (real == NULL) real = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "link");
  errno = EPERM;
  return getenv("NO_LINKS") == NULL ? real(from, to) : -1;
}

int socket(int domain, int type, int protocol) {
  static int (*_Atomic real)(int, int, int);
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
