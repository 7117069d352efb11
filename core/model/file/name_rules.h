// How the arrays of a published weight file are called in a net here, read from a file beside the
// model (torch.names): a rule for names, or a setting of the architecture, in each line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

constexpr int64_t max_image_side = 16384;  // a side, in pixels

// A rule for names: one '*' on each side stands for the same text.
struct NameRule {
  std::string from, to;
};
struct NameRules {
  std::vector<NameRule> rules;
  std::string net;  // of an architecture under another name, by the line "net NAME"
  // How torchvision prepares the images of a file alone, by the lines "resize SIDE" and
  // "interpolation NAME"; 0 and "": as of most architectures.
  int64_t resize = 0;
  std::string interpolation;
  double eps = 0;  // of each BatchNorm, by the line "eps X"; 0: the net's
};

// Throws Error with file and line for a line that is neither.
[[nodiscard]] NameRules read_name_rules(const std::filesystem::path& file);

// The name by the rule; nullopt if it does not fit.
[[nodiscard]] std::optional<std::string> renamed(const std::string& name, const NameRule& rule);

}  // namespace tandem
