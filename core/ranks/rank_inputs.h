// What a rank was started with. Rank 0's options and files count for the whole job, so a rank that
// was started with others would train something else than its user meant: it is refused.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tandem {

// Options as they were given, by name: {"--batch", "64"}.
using GivenOptions = std::map<std::string, std::string>;

struct RankInputs {
  std::string host;
  GivenOptions options;
  std::map<std::string, std::string> files;  // of options that name one here: what is in it
};

// Without options of which each rank may have its own, and with the files that the others name.
[[nodiscard]] RankInputs inputs_of(const std::string& host, const GivenOptions& options);

// "120 bytes, checksum 0badcafe"
[[nodiscard]] std::string text_summary(const std::string& text);

// The same of a file; without a checksum for more than 64 MiB, as of weights; "" if it is no
// regular file, or cannot be read.
[[nodiscard]] std::string file_contents(const std::string& path);

// What the first rank that was started with other options or files than rank 0 has, and rank 0; ""
// if there is none. `ranks`: by rank. A file that a rank does not have is no difference.
[[nodiscard]] std::string different_inputs(const std::vector<RankInputs>& ranks);

}  // namespace tandem
