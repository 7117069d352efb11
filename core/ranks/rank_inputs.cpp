#include "core/ranks/rank_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/crc32.h"
#include "core/base/files/files.h"

namespace tandem {
namespace {

// The options whose value may be a file. Folders are not looked into; data in folders are compared
// when they are open.
constexpr std::string_view file_options[] = {"--class-weights", "--data",    "--net",     "--paced",
                                             "--solver",        "--weights", "--topology"};

// Options of which each rank may have its own.
constexpr const char* own_options[] = {"--watchdog",      "--check-plugins", "--test-delays",
                                       "--test-delay-ms", "--json",          "--display",
                                       "--no-report",     "--ranks"};

std::string option_text(const RankInputs& inputs, const std::string& name) {
  const auto found = inputs.options.find(name);
  if (found == inputs.options.end()) return "without it";
  return found->second.empty() ? "with it" : fmt::format("with '{}'", found->second);
}

std::string difference(const RankInputs& root, const RankInputs& other, int rank) {
  std::set<std::string> names;
  for (const RankInputs* inputs : {&root, &other}) {
    for (const auto& [name, value] : inputs->options) names.insert(name);
  }
  for (const std::string& name : names) {
    const std::string mine = option_text(other, name), of_root = option_text(root, name);
    if (mine == of_root) continue;
    return fmt::format(
        "option {}: rank {} (host {}) was started {}, rank 0 (host {}) {}: start all ranks with "
        "the same options",
        name, rank, other.host, mine, root.host, of_root);
  }
  for (const auto& [path, contents] : other.files) {
    const auto found = root.files.find(path);
    if (found == root.files.end() || found->second == contents) continue;
    return fmt::format(
        "file '{}': it has {} for rank {} (host {}), and {} for rank 0 (host {}), whose files all "
        "ranks take: copy it from there, or remove it here",
        path, contents, rank, other.host, found->second, root.host);
  }
  return "";
}

}  // namespace

std::string text_summary(const std::string& text) {
  return fmt::format("{} bytes, checksum {:08x}", text.size(), crc32c(text.data(), text.size()));
}

std::string file_contents(const std::string& path) {
  std::error_code code;
  if (path.empty() || !path_status(path).is_file()) return "";
  const uintmax_t bytes = std::filesystem::file_size(path, code);
  if (code) return "";
  if (bytes > most_text_bytes) return fmt::format("{} bytes", bytes);
  try {
    return text_summary(read_text_file(path));
  } catch (const Error&) {
    return "";  // rank 0 says why, if it needs the file
  }
}

RankInputs inputs_of(const std::string& host, const GivenOptions& options) {
  RankInputs inputs{host, options, {}};
  for (const char* own : own_options) inputs.options.erase(own);
  for (const auto& [name, value] : options) {
    if (std::find(std::begin(file_options), std::end(file_options), name) ==
        std::end(file_options)) {
      continue;
    }
    const std::string contents = file_contents(value);
    if (!contents.empty()) inputs.files[value] = contents;
  }
  return inputs;
}

std::string different_inputs(const std::vector<RankInputs>& ranks) {
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    const std::string text = difference(ranks[0], ranks[rank], static_cast<int>(rank));
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace tandem
