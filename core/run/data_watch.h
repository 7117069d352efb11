// Notices that the data of a run change while it trains: the folder or file was replaced, or files
// in it were written, replaced or removed. Says so once of each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/data/fingerprint.h"

namespace tandem {

class DataWatch {
 public:
  struct Watched {
    const Dataset* dataset;        // which outlives it
    std::vector<FileState> files;  // file_states() at the start
  };

  // `source`: a path or the name of a data set.
  DataWatch(std::string source, std::vector<Watched> watched);

  // Looks at some of the files, others each time, or at all of them. Returns lines for the user.
  [[nodiscard]] std::vector<std::string> news(bool all);

 private:
  using Identity = std::pair<uint64_t, uint64_t>;  // device and number of a file or folder

  [[nodiscard]] static Identity identity_of(const std::string& path);
  // What holds samples that are no files of their own, as a pack or the files of CIFAR-10: the
  // source, or files in it by which samples are named.
  [[nodiscard]] std::map<std::string, FileState> files_of_samples() const;
  [[nodiscard]] std::string written_files(bool all) const;

  std::string source_;
  Identity identity_;
  std::vector<Watched> watched_;
  std::map<std::string, FileState> shared_files_;  // files_of_samples() at the start
  size_t looks_ = 0;
  bool has_said_written_ = false;
};

}  // namespace tandem
