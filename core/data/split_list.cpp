#include "core/data/split_list.h"

#include <filesystem>

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& name) {
  std::error_code ignored;
  return fs::is_regular_file(name, ignored);
}

std::string field(const std::string& text) {
  const bool plain = text.find_first_of(",\"") == std::string::npos && !text.empty() &&
                     text.front() != ' ' && text.back() != ' ';
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void add(const Dataset& dataset, const char* split, std::string& text) {
  const std::vector<std::string> classes = dataset.class_names();
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const std::optional<int64_t> label = dataset.label(i);
    const std::string path = fs::absolute(dataset.sample_name(i)).string();
    if (!label || path.find_first_of("\n\r") != std::string::npos) continue;
    text += field(path) + "," + field(classes[static_cast<size_t>(*label)]) + "," + split + "\n";
  }
}

}  // namespace

std::string split_list(const Dataset& training, const Dataset& validation) {
  if (!is_file(training.sample_name(0)) || !is_file(validation.sample_name(0))) return "";
  std::string text = "path,label,split\n";
  add(training, "train", text);
  add(validation, "val", text);
  return text;
}

}  // namespace tandem
