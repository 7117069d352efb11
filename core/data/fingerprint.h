// What the samples of a data set look like from outside, found in a moment also for hundreds of
// thousands of files: it tells whether a run goes on with the data that it began with. Where the
// files lie and when they were written does not count, so that a copy of a folder is the same data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

struct Fingerprint {
  uint32_t names = 0;  // a checksum, below the folder that all samples share
  // A checksum of the sizes of all files, and their sum; zeros where samples are no files of their
  // own.
  uint32_t sizes = 0;
  int64_t bytes = 0;
  // Hashes of evenly spaced samples, at most 64; 0: a damaged one. Empty where the data set cannot
  // tell.
  std::vector<uint64_t> contents;
};

// In what the samples differ, "other names; 41 MiB in all, 40 MiB before; 3 of 64 looked at have
// other contents, as 'a/1.jpg'"; "" if in nothing. `now` is that of the data set; `other` says what
// it is compared with.
[[nodiscard]] std::string difference(const Fingerprint& before, const Fingerprint& now,
                                     const Dataset& dataset, const char* other = "before");

// The file of a sample as the system knows it. Two that differ: it was written, replaced or
// removed.
struct FileState {
  int64_t bytes = -1;         // no regular file
  int64_t written_nanos = 0;  // the time of its last change
  bool operator==(const FileState&) const = default;
};
[[nodiscard]] FileState file_state(const std::string& path);

// Of all samples; empty where they are no files of their own, that is where none of them is one.
[[nodiscard]] std::vector<FileState> file_states(const Dataset& dataset);
// Of every `step`-th sample, from `first` on.
[[nodiscard]] std::vector<FileState> file_states(const Dataset& dataset, int64_t first,
                                                 int64_t step);

// `files`: file_states(dataset), which are many questions to a file system.
[[nodiscard]] Fingerprint fingerprint_of(const Dataset& dataset,
                                         const std::vector<FileState>& files);

}  // namespace tandem
