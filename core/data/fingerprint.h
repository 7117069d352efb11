// Whether data are still what they were: from run to run and from rank to rank by a fingerprint,
// which is found in a moment also for hundreds of thousands of files, and while a run goes on by
// the states of files. Where files lie and when they were written does not count for a fingerprint,
// so that a copy of a folder is the same data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

// "120 bytes, checksum 0badcafe"
[[nodiscard]] std::string text_summary(const std::string& text);
// The same of a file; without a checksum for more than 64 MiB, as of weights; "" if it is no
// regular file, or cannot be read.
[[nodiscard]] std::string file_contents(const std::string& path);

// What the samples of a data set look like from outside.
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

// Whether one of the samples that were looked at is the same in both; without contents, whether all
// names are.
[[nodiscard]] bool share_samples(const Fingerprint& one, const Fingerprint& other);

// Whether the samples are the same, as far as they were looked at; names alone may differ.
[[nodiscard]] bool same_samples(const Fingerprint& one, const Fingerprint& other);

// The file of a sample as the system knows it. Two that differ: it was written, replaced or
// removed.
struct FileState {
  int64_t bytes = -1;         // no regular file
  int64_t written_nanos = 0;  // the time of its last change
  bool operator==(const FileState&) const = default;
};
// Of all samples; empty where they are no files of their own, that is where none of them is one.
[[nodiscard]] std::vector<FileState> file_states(const Dataset& dataset);

// `files`: file_states(dataset), which are many questions to a file system.
[[nodiscard]] Fingerprint fingerprint_of(const Dataset& dataset,
                                         const std::vector<FileState>& files);

// Notices that the data of a run change while it trains: the folder or file was replaced, or files
// in it were written, replaced or removed. Says so once of each.
class DataWatch {
 public:
  struct Watched {
    const Dataset* dataset;        // which outlives it; null: none
    std::vector<FileState> files;  // file_states() at the start
  };

  // `source`: a path or the name of a data set.
  DataWatch(std::string source, std::vector<Watched> watched);

  // Looks at some of the files, others each time, or at all of them. Returns lines for the user.
  [[nodiscard]] std::vector<std::string> news(bool all);

 private:
  struct Files {
    std::function<std::string(int64_t)> name;  // of a file, by its number
    std::vector<FileState> before;
    bool are_shared = false;  // each has many samples
  };
  using Identity = std::pair<uint64_t, uint64_t>;  // device and number of a file or folder

  [[nodiscard]] static Identity identity_of(const std::string& path);
  // What holds samples that are no files of their own, as a pack or the files of CIFAR-10: the
  // source, or files in it by which samples are named.
  [[nodiscard]] Files files_with(const std::vector<std::string>& samples) const;
  [[nodiscard]] std::string written_files(bool all) const;

  std::string source_;
  Identity identity_;
  std::vector<Files> files_;
  size_t looks_ = 0;
  bool has_said_written_ = false;
};

}  // namespace tandem
