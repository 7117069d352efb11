#include "core/formats/open_arrays.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/foreign_weights.h"
#include "core/formats/json_text.h"
#include "core/formats/safetensors.h"
#include "core/formats/torch_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_ending = ".index.json";

// Several safetensors files and the JSON file that says which has which array.
class ShardReader : public ArrayReader {
 public:
  explicit ShardReader(const fs::path& index) {
    std::map<std::string, std::string> shard_of;
    try {
      const nlohmann::json tree = parse_json(read_text_file(index));
      shard_of = JsonFields(tree).get<std::map<std::string, std::string>>("weight_map");
    } catch (const JsonMistake& mistake) {
      throw error("'{}' is not an index of safetensors: {}", index.string(), mistake.what());
    }
    std::map<std::string, size_t> parts;
    for (const auto& [array, shard] : shard_of) {
      const auto [part, is_new] = parts.emplace(shard, shards_.size());
      if (is_new) shards_.push_back(open(index, shard));
      const ArrayFile& file = shards_[part->second]->contents();
      const auto found = file.arrays.find(array);
      if (found == file.arrays.end()) continue;  // of integers
      contents_.arrays.emplace(array, found->second).first->second.part = part->second;
    }
  }

  [[nodiscard]] std::vector<float> values(const ArrayFile::Array& array) const override {
    return shards_[array.part]->values(array);
  }

 private:
  static std::unique_ptr<SafetensorsReader> open(const fs::path& index, const std::string& shard) {
    if (fs::path(shard).filename() != shard || shard.find('\0') != std::string::npos ||
        shard == "." || shard == "..") {
      throw error("'{}' names the file '{}', which must lie in its own folder", index.string(),
                  shard);
    }
    const fs::path file = index.parent_path() / shard;
    if (!path_status(file).is_file()) {
      throw error("'{}' names the file '{}', which is missing", index.string(), shard);
    }
    return std::make_unique<SafetensorsReader>(file);
  }

  std::vector<std::unique_ptr<SafetensorsReader>> shards_;
};

void remove_prefix(std::string_view prefix, ArrayFile& file) {
  const auto has_it = [prefix](const auto& entry) { return entry.first.starts_with(prefix); };
  if (file.arrays.empty() || !std::all_of(file.arrays.begin(), file.arrays.end(), has_it)) return;
  std::map<std::string, ArrayFile::Array> arrays;
  for (auto& [name, array] : file.arrays) {
    arrays.emplace(name.substr(prefix.size()), std::move(array));
  }
  file.arrays = std::move(arrays);
}

std::unique_ptr<ArrayReader> reader_of(const fs::path& path) {
  if (path.filename().string().ends_with(index_ending)) return std::make_unique<ShardReader>(path);
  // safetensors begins with the length of its JSON header, which begins with a brace.
  std::array<char, 9> head{};
  const InputFile file(path, "weight file");
  if (file.size() == 0) {
    throw error("'{}' cannot be used: it is empty (0 bytes): copy or download it again",
                path.string());
  }
  (void)file.read(0, head.data(), head.size());
  if (head[8] == '{' || path.extension() == ".safetensors") {
    return std::make_unique<SafetensorsReader>(path);
  }
  return open_torch_file(path);
}

}  // namespace

std::unique_ptr<ArrayReader> open_arrays(const fs::path& path) {
  const std::string foreign = foreign_weights(path);
  if (!foreign.empty()) throw error("'{}' cannot be used: {}", path.string(), foreign);
  std::unique_ptr<ArrayReader> reader = reader_of(path);
  if (reader == nullptr) return nullptr;
  for (const std::string_view prefix : {"module.", "_orig_mod.", "module."}) {
    remove_prefix(prefix, reader->contents_);
  }
  return reader;
}

}  // namespace tandem
