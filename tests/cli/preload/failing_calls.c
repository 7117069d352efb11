/* Preloaded by tests. The FAIL_AT-th call of the kind FAIL_KIND fails, and each one after it if
 * FAIL_ALL is set:
 *   memory   malloc, calloc, realloc, aligned_alloc, posix_memalign (ENOMEM)
 *   map      anonymous mmap (ENOMEM)
 *   thread   pthread_create (EAGAIN)
 *   io       open, read, write, fsync, rename, link, ftruncate, close and mmap of files (EIO)
 *   lookup   stat, fstatat, access, opendir and readdir (EIO)
 * With FAIL_SLOWLY a write to standard error takes a while, in which other threads fail, too.
 * Writes to standard streams do not count. If FAIL_COUNT names a file, the number of calls is
 * written to it when the program exits.
 *
 * With FAIL_FORKED and the kind memory every allocation of less than 4 MiB fails, each in a child
 * of the process that is made for it: it has to end at once, by exit code 1 and one line. (Those
 * that are larger are left to the program, which goes on; a child has no other threads for that.)
 * The file of FAIL_COUNT then also has a line "forked N" with the number of children, "left N" for
 * each call that had none, and "finding N STATUS TEXT" for each child that ended otherwise. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { unknown, none, memory, map, thread, io, lookup };
static atomic_int kind;
static atomic_long calls;
static long fail_at, fail_all, is_slow, is_forked;
extern char** environ;

/* The environment is there before any constructor runs, and this may be called before them. */
static int wanted_kind(void) {
  const int known = kind;
  if (known != unknown || environ == NULL) return known;
  const char* name = getenv("FAIL_KIND");
  const char* at = getenv("FAIL_AT");
  fail_at = at == NULL ? 0 : atol(at);
  fail_all = getenv("FAIL_ALL") != NULL;
  is_slow = getenv("FAIL_SLOWLY") != NULL;
  is_forked = getenv("FAIL_FORKED") != NULL;
  int result = none;
  if (name != NULL) {
    result = strcmp(name, "memory") == 0   ? memory
             : strcmp(name, "map") == 0    ? map
             : strcmp(name, "thread") == 0 ? thread
             : strcmp(name, "io") == 0     ? io
             : strcmp(name, "lookup") == 0 ? lookup
                                           : none;
  }
  kind = result;
  return result;
}

static int fails(int of_kind, int error) {
  if (wanted_kind() != of_kind) return 0;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  if (fail_at == 0 || (fail_all ? number < fail_at : number != fail_at)) return 0;
  errno = error;
  return 1;
}

/* What children found, in the order in which they ended; written without an allocation. */
enum { max_notes = 4096, max_text = 200 };
struct note {
  long call;
  int status; /* -1: it had no child */
  char text[max_text];
};
static struct note notes[max_notes];
static atomic_long note_count, children;

static void add_note(long call, int status, const char* text) {
  const long index = atomic_fetch_add(&note_count, 1);
  if (index >= max_notes) return;
  notes[index].call = call;
  notes[index].status = status;
  strncpy(notes[index].text, text, max_text - 1);
}

static int is_one_line(const char* text) {
  const char* end = strchr(text, '\n');
  return strncmp(text, "tandem: ", 8) == 0 && end != NULL && end[1] == '\0';
}

/* Returns 1 in a child, whose call fails, and 0 in the process that made it. */
static int is_child_of(long call) {
  enum { hang_seconds = 20 };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    add_note(call, -1, "");
    return 0;
  }
  const pid_t child = _Fork(); /* calls no handler of a library, and takes no lock */
  if (child == 0) {
    kind = none;
    dup2(ends[1], STDERR_FILENO);
    alarm(hang_seconds);
    return 1;
  }
  close(ends[1]);
  char text[max_text] = "";
  size_t length = 0;
  ssize_t count = 0;
  while (child > 0 && length < sizeof(text) - 1 &&
         (count = read(ends[0], text + length, sizeof(text) - 1 - length)) != 0) {
    if (count > 0) length += (size_t)count;
    if (count < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  children += child > 0;
  const int is_well_ended = WIFEXITED(status) && WEXITSTATUS(status) == 1 && is_one_line(text);
  if (!is_well_ended) add_note(call, status, text);
  return 0;
}

static int fails_memory(size_t bytes) {
  const size_t large = (size_t)4 << 20; /* as in core/cli/shortage.cpp */
  if (wanted_kind() != memory || !is_forked) return fails(memory, ENOMEM);
  const int error = errno;
  const long call = atomic_fetch_add(&calls, 1) + 1;
  int is_child = 0;
  if (bytes == 0 || bytes >= large) {
    add_note(call, -1, "");
  } else {
    is_child = is_child_of(call);
  }
  errno = is_child ? ENOMEM : error;
  return is_child;
}

__attribute__((destructor)) static void write_count(void) {
  const char* path = getenv("FAIL_COUNT");
  const long count = calls;
  kind = none;
  if (path == NULL) return;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", count);
  if (is_forked) fprintf(file, "forked %ld\n", (long)children);
  for (long i = 0; i < note_count && i < max_notes; ++i) {
    const struct note* note = &notes[i];
    if (note->status == -1) {
      fprintf(file, "left %ld\n", note->call);
    } else {
      fprintf(file, "finding %ld %d %.*s\n", note->call, note->status,
              (int)strcspn(note->text, "\n"), note->text);
    }
  }
  if (note_count > max_notes) fprintf(file, "finding 0 0 more than can be noted\n");
  fclose(file);
}

#define REAL(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (real == NULL) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* All of these are found at the first call of one of them: dlerror() allocates, and a dlsym()
 * inside it frees the message that it makes. */
static struct {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  /* A child that is made while a library is loaded waits for ever for the lock of dlsym(). */
  ssize_t (*write)(int, const void*, size_t);
} allocator;

static void find_allocator(void) {
  if (allocator.malloc != NULL) return;
  allocator.write = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  allocator.calloc = (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
  allocator.realloc = (void* (*)(void*, size_t))dlsym(RTLD_NEXT, "realloc");
  allocator.aligned_alloc = (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
  allocator.posix_memalign = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
  allocator.malloc = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
}

void* malloc(size_t bytes) {
  find_allocator();
  return fails_memory(bytes) ? NULL : allocator.malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  find_allocator();
  return fails_memory(count * bytes) ? NULL : allocator.calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) {
  find_allocator();
  return bytes != 0 && fails_memory(bytes) ? NULL : allocator.realloc(old, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  find_allocator();
  return fails_memory(bytes) ? NULL : allocator.aligned_alloc(alignment, bytes);
}

int posix_memalign(void** target, size_t alignment, size_t bytes) {
  find_allocator();
  return fails_memory(bytes) ? ENOMEM : allocator.posix_memalign(target, alignment, bytes);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  REAL(void*, "mmap", void*, size_t, int, int, int, off_t);
  if (fails(file < 0 ? map : io, ENOMEM)) return MAP_FAILED;
  return real(address, bytes, protection, flags, file, offset);
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset) {
  return mmap(address, bytes, protection, flags, file, offset);
}

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  REAL(int, "pthread_create", pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return fails(thread, EAGAIN) ? EAGAIN : real(id, attributes, run, argument);
}

static int mode_of(int flags, va_list arguments) {
  const int has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, int) : 0;
}

int openat(int folder, const char* path, int flags, ...) {
  REAL(int, "openat", int, const char*, int, ...);
  va_list arguments;
  va_start(arguments, flags);
  const int mode = mode_of(flags, arguments);
  va_end(arguments);
  return fails(io, EIO) ? -1 : real(folder, path, flags, mode);
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = mode_of(flags, arguments);
  va_end(arguments);
  return openat(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = mode_of(flags, arguments);
  va_end(arguments);
  return openat(AT_FDCWD, path, flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = mode_of(flags, arguments);
  va_end(arguments);
  return openat(folder, path, flags, mode);
}

/* What _FORTIFY_SOURCE makes of these calls. */
int __open_2(const char* path, int flags) {
  return openat(AT_FDCWD, path, flags);
}
int __open64_2(const char* path, int flags) {
  return openat(AT_FDCWD, path, flags);
}
int __openat_2(int folder, const char* path, int flags) {
  return openat(folder, path, flags);
}
int __openat64_2(int folder, const char* path, int flags) {
  return openat(folder, path, flags);
}

FILE* fopen(const char* path, const char* mode) {
  REAL(FILE*, "fopen", const char*, const char*);
  return fails(io, EIO) ? NULL : real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}

ssize_t read(int file, void* target, size_t count) {
  REAL(ssize_t, "read", int, void*, size_t);
  return fails(io, EIO) ? -1 : real(file, target, count);
}

ssize_t __read_chk(int file, void* target, size_t count, size_t size) {
  if (count > size) abort();
  return read(file, target, count);
}

ssize_t pread(int file, void* target, size_t count, off_t offset) {
  REAL(ssize_t, "pread", int, void*, size_t, off_t);
  return fails(io, EIO) ? -1 : real(file, target, count, offset);
}

ssize_t pread64(int file, void* target, size_t count, off64_t offset) {
  return pread(file, target, count, offset);
}

ssize_t __pread_chk(int file, void* target, size_t count, off_t offset, size_t size) {
  if (count > size) abort();
  return pread(file, target, count, offset);
}

ssize_t __pread64_chk(int file, void* target, size_t count, off64_t offset, size_t size) {
  return __pread_chk(file, target, count, offset, size);
}

ssize_t write(int file, const void* source, size_t count) {
  find_allocator();
  if (file == STDERR_FILENO && is_slow) usleep(200000);
  return file > STDERR_FILENO && fails(io, EIO) ? -1 : allocator.write(file, source, count);
}

ssize_t pwrite(int file, const void* source, size_t count, off_t offset) {
  REAL(ssize_t, "pwrite", int, const void*, size_t, off_t);
  return fails(io, EIO) ? -1 : real(file, source, count, offset);
}

ssize_t pwrite64(int file, const void* source, size_t count, off64_t offset) {
  return pwrite(file, source, count, offset);
}

int fsync(int file) {
  REAL(int, "fsync", int);
  return fails(io, EIO) ? -1 : real(file);
}

int fdatasync(int file) {
  REAL(int, "fdatasync", int);
  return fails(io, EIO) ? -1 : real(file);
}

int ftruncate(int file, off_t bytes) {
  REAL(int, "ftruncate", int, off_t);
  return fails(io, EIO) ? -1 : real(file, bytes);
}

int ftruncate64(int file, off64_t bytes) {
  return ftruncate(file, bytes);
}

int rename(const char* from, const char* to) {
  REAL(int, "rename", const char*, const char*);
  return fails(io, EIO) ? -1 : real(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned int flags) {
  REAL(int, "renameat2", int, const char*, int, const char*, unsigned int);
  return fails(io, EIO) ? -1 : real(from_folder, from, to_folder, to, flags);
}

int link(const char* from, const char* to) {
  REAL(int, "link", const char*, const char*);
  return fails(io, EIO) ? -1 : real(from, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  REAL(int, "linkat", int, const char*, int, const char*, int);
  return fails(io, EIO) ? -1 : real(from_folder, from, to_folder, to, flags);
}

/* The file is closed all the same, as Linux does. */
int close(int file) {
  REAL(int, "close", int);
  if (!fails(io, EIO)) return real(file);
  real(file);
  errno = EIO;
  return -1;
}

int stat(const char* path, struct stat* status) {
  REAL(int, "stat", const char*, struct stat*);
  return fails(lookup, EIO) ? -1 : real(path, status);
}

int stat64(const char* path, struct stat64* status) {
  REAL(int, "stat64", const char*, struct stat64*);
  return fails(lookup, EIO) ? -1 : real(path, status);
}

int lstat(const char* path, struct stat* status) {
  REAL(int, "lstat", const char*, struct stat*);
  return fails(lookup, EIO) ? -1 : real(path, status);
}

int lstat64(const char* path, struct stat64* status) {
  REAL(int, "lstat64", const char*, struct stat64*);
  return fails(lookup, EIO) ? -1 : real(path, status);
}

int fstatat(int folder, const char* path, struct stat* status, int flags) {
  REAL(int, "fstatat", int, const char*, struct stat*, int);
  return fails(lookup, EIO) ? -1 : real(folder, path, status, flags);
}

int fstatat64(int folder, const char* path, struct stat64* status, int flags) {
  REAL(int, "fstatat64", int, const char*, struct stat64*, int);
  return fails(lookup, EIO) ? -1 : real(folder, path, status, flags);
}

int access(const char* path, int mode) {
  REAL(int, "access", const char*, int);
  return fails(lookup, EIO) ? -1 : real(path, mode);
}

DIR* opendir(const char* path) {
  REAL(DIR*, "opendir", const char*);
  return fails(lookup, EIO) ? NULL : real(path);
}

struct dirent* readdir(DIR* folder) {
  REAL(struct dirent*, "readdir", DIR*);
  return fails(lookup, EIO) ? NULL : real(folder);
}

struct dirent64* readdir64(DIR* folder) {
  REAL(struct dirent64*, "readdir64", DIR*);
  return fails(lookup, EIO) ? NULL : real(folder);
}
