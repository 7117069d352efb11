#include "datasets/cifar10_binary/cifar10_binary.h"
#include "datasets/picture/data_file.h"

#include <filesystem>
#include <sstream>

#include "datasets/picture/names.h"

namespace tandem::cifar10_binary {
namespace {

namespace fs = std::filesystem;

constexpr int side = 32;
constexpr int64_t record_bytes = 1 + 3 * side * side;

bool is_file(const fs::path& path) {
  return picture::path_status(path).is_file();
}

std::vector<std::string> class_names_beside(const fs::path& folder) {
  std::vector<std::string> names;
  const fs::path meta = folder / "batches.meta.txt";
  std::istringstream file(is_file(meta) ? picture::text_of_file(meta.string()) : "");
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) names.push_back(picture::as_utf8(line));
  }
  if (names.size() == 10) return names;
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

std::vector<std::string> training_files(const fs::path& folder) {
  std::vector<std::string> files;
  for (int i = 1; is_file(folder / sdk::text("data_batch_", i, ".bin")); ++i) {
    files.push_back((folder / sdk::text("data_batch_", i, ".bin")).string());
  }
  return files;
}

}  // namespace

Cifar10Binary::Cifar10Binary(const tandem_dataset_request& request,
                             const sdk::Attributes& attributes) {
  const fs::path source(request.source);
  const std::string split = request.split;
  const bool is_folder = picture::path_status(source).is_folder();
  const fs::path test = source / "test_batch.bin";
  const bool has_test = is_folder && split == "test" && is_file(test);
  std::vector<std::string> files{source.string()};
  if (is_folder) files = has_test ? std::vector{test.string()} : training_files(source);
  if (files.empty()) throw sdk::invalid("has no data_batch_1.bin");
  const std::vector<std::string> names =
      class_names_beside(is_folder ? source : source.parent_path());
  for (const std::string& file : files) read_file(file, names.size());
  const bool drawn = is_folder ? !has_test : is_drawn_from(source.string(), split);
  begin(request, attributes, {"CIFAR-10 binary", 3, side, side, true}, names, drawn);
}

// Checks every class before anything is trained on.
void Cifar10Binary::read_file(const std::string& path, size_t class_count) {
  files_.emplace_back(path);
  const picture::DataFile& file = files_.back();
  if (file.size() == 0) throw sdk::invalid(path, ": is empty");
  if (file.size() % record_bytes != 0) {
    const int64_t whole = file.size() / record_bytes;
    throw sdk::invalid(path, ": byte ", whole * record_bytes, ": record ", whole,
                       " is cut: the file has ", file.size(), " bytes, records have ",
                       record_bytes);
  }
  file.require_stored();
  for (int64_t i = 0; i < file.size() / record_bytes; ++i) {
    unsigned char label = 0;
    if (!file.read(i * record_bytes, &label, 1)) {
      throw sdk::invalid(path, ": byte ", i * record_bytes, ": cannot be read");
    }
    if (label >= class_count) {
      throw sdk::invalid(path, ": byte ", i * record_bytes, ": record ", i, " has class ",
                         static_cast<int>(label), ", but there are classes 0 to ", class_count - 1);
    }
    samples_.push_back({files_.size() - 1, i, i * record_bytes + 1, label});
  }
}

bool Cifar10Binary::recognizes(const std::string& source) {
  const fs::path path(source);
  if (is_file(path / "data_batch_1.bin")) return true;
  if (!is_file(path) || picture::extension_of(path.filename().string()) != ".bin") return false;
  std::error_code failure;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, failure));
  // One that is cut is still one: its message says where.
  const bool named = path.filename().string().starts_with("data_batch") ||
                     path.filename().string().starts_with("test_batch");
  return !failure && (named || (bytes > 0 && bytes % record_bytes == 0));
}

}  // namespace tandem::cifar10_binary

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  tandem::sdk::Plugin plugin(host, "cifar10_binary", "1.0");
  return plugin.dataset<tandem::cifar10_binary::Cifar10Binary>().table();
}
