// In front of a command: with FAILING_FILE=... FAILING_TIMES=... or FULL_FILE=... after it, disk
// operations on that file fail; with STOPPING_FILE=... they stop the process; with NO_LINKS=1 and
// SYNCED_RENAMES=1 files get no second name, and none before they are synced; with
// INTERRUPTED_FSYNC=1 a signal ends every second fsync (preload/failing_disk.c).
#pragma once

#include <string>

namespace tandem::test {

inline const std::string failing_disk =
    "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=" TANDEM_FAILING_DISK;

}  // namespace tandem::test
