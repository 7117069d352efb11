#include "core/formats/safetensors.h"

#include "core/base/error.h"
#include "core/base/files/crc32.h"
#include "core/base/files/files.h"
#include "core/formats/json_text.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr uint64_t max_header = 100'000'000;

// NOLINTNEXTLINE(bugprone-exception-escape): moving a json calls functions of its own that may
// throw
struct Header {
  json tree;
  uint64_t data_begin = 0, file_bytes = 0;
};

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& why) {
  throw error("file '{}' is not a usable safetensors file: {}", path.string(), why);
}

Header read_header(const InputFile& file, const std::filesystem::path& path) {
  Header header;
  header.file_bytes = file.size();
  uint64_t length = 0;
  if (header.file_bytes < 8 || file.read(0, &length, 8) < 8) {
    damaged(path, fmt::format("it has {} bytes, its header alone needs 8", header.file_bytes));
  }
  if (length > max_header || length > header.file_bytes - 8) {
    damaged(
        path,
        fmt::format(
            "its header would have {} bytes, the file has {}; it is truncated or of another format",
            length, header.file_bytes));
  }
  std::string text(length, '\0');
  (void)file.read(8, text.data(), length);
  try {
    header.tree = parse_json(text);
  } catch (const JsonMistake& mistake) {
    damaged(path, fmt::format("its header is not JSON: {}", mistake.what()));
  }
  if (!header.tree.is_object()) damaged(path, "its header is not a JSON object");
  header.data_begin = 8 + length;
  return header;
}

using Metadata = std::map<std::string, std::string>;

const std::string checksum_key = "crc32";

std::string checksum_key_of(const std::string& array) {
  return checksum_key + " " + array;
}

std::string checksum_of(const void* data, uint64_t bytes) {
  return fmt::format("{:08x}", crc32(data, bytes));
}

std::string checksum_of(const Metadata& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    if (key != checksum_key) text += fmt::format("{}={}\n", key, value);
  }
  return checksum_of(text.data(), text.size());
}

// With the checksums.
Metadata whole_metadata(const Header& header, const std::filesystem::path& path) {
  Metadata metadata;
  const auto found = header.tree.find("__metadata__");
  if (found == header.tree.end()) return metadata;
  if (!found->is_object()) damaged(path, "its metadata are not an object");
  for (const auto& [key, value] : found->items()) {
    if (value.is_string()) metadata[key] = value.get<std::string>();
  }
  const auto sum = metadata.find(checksum_key);
  const auto one = metadata.lower_bound(checksum_key_of(""));
  const bool sums_arrays = one != metadata.end() && one->first.starts_with(checksum_key_of(""));
  const auto format = metadata.find("format");
  const bool is_ours = format != metadata.end() && format->second == "tandem";
  if (sum == metadata.end() && is_ours) damaged(path, "it has no checksum");
  if (sum == metadata.end() ? sums_arrays : sum->second != checksum_of(metadata)) {
    damaged(path, "its metadata do not have the checksum that it says");
  }
  return metadata;
}

Metadata without_checksums(Metadata metadata) {
  std::erase_if(metadata, [](const auto& entry) {
    return entry.first == checksum_key || entry.first.starts_with(checksum_key_of(""));
  });
  return metadata;
}

// `metadata`: with the checksums.
void require_checksum(const Metadata& metadata, const std::string& name,
                      const std::vector<char>& bytes, const std::filesystem::path& path) {
  const auto found = metadata.find(checksum_key_of(name));
  if (found == metadata.end()) damaged(path, fmt::format("array '{}' has no checksum", name));
  const std::string sum = checksum_of(bytes.data(), bytes.size());
  if (sum == found->second) return;
  damaged(path, fmt::format("array '{}' is damaged: its checksum is {}, written was {}", name, sum,
                            found->second));
}

const std::map<std::string, ElementType> float_types{{"F32", ElementType::f32},
                                                     {"F16", ElementType::f16},
                                                     {"BF16", ElementType::bf16},
                                                     {"F64", ElementType::f64}};

ArrayFile::Array parse_entry(const Header& header, const std::string& name, const json& entry,
                             const std::filesystem::path& path) {
  ArrayFile::Array array;
  array.name = name;
  std::vector<uint64_t> offsets;
  try {
    const JsonFields fields(entry);
    const auto type = fields.get<std::string>("dtype");
    const auto known = float_types.find(type);
    if (known == float_types.end()) {
      constexpr size_t shown = 20;
      damaged(path, fmt::format("array '{}' has type {}, known are F32, F16, BF16 and F64", name,
                                json(type.substr(0, shown)).dump()));
    }
    array.type = known->second;
    array.shape = fields.get<std::vector<int64_t>>("shape");
    offsets = fields.get<std::vector<uint64_t>>("data_offsets");
  } catch (const JsonMistake&) {
    offsets.clear();
  }
  if (offsets.size() != 2) {
    damaged(path, fmt::format("the entry of array '{}' is malformed", name));
  }
  const uint64_t begin = offsets[0], end = offsets[1];
  const uint64_t data_bytes = header.file_bytes - header.data_begin;
  if (begin > end || end > data_bytes) {
    damaged(path, fmt::format("array '{}' ends at byte {} of {}; the file is truncated", name, end,
                              data_bytes));
  }
  if (array.shape.size() > max_array_axes) {
    damaged(path, fmt::format("array '{}' has {} axes; there are at most {}", name,
                              array.shape.size(), max_array_axes));
  }
  uint64_t count = 1;
  for (const int64_t size : array.shape) {
    if (size < 0 || (size > 0 && count > data_bytes / static_cast<uint64_t>(size))) {
      damaged(path, fmt::format("array '{}' has an impossible shape", name));
    }
    count *= static_cast<uint64_t>(size);
  }
  const uint64_t bytes = count * size_of(array.type);
  if (bytes != end - begin) {
    damaged(path,
            fmt::format("array '{}' has {} bytes, its shape needs {}", name, end - begin, bytes));
  }
  array.offset = header.data_begin + begin;
  array.count = count;
  return array;
}

bool holds_integers(const json& entry) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) return false;
  const auto& dtype = found->get_ref<const std::string&>();
  return dtype.starts_with('I') || dtype.starts_with('U') || dtype == "BOOL";
}

void write_all(OutputFile& file, const std::vector<NamedArray>& arrays, const Metadata& metadata) {
  json tree = json::object();
  Metadata all = metadata;
  uint64_t offset = 0;
  std::vector<uint64_t> bytes;
  for (const NamedArray& array : arrays) {
    uint64_t count = 1;
    for (const int64_t size : array.shape) count *= static_cast<uint64_t>(size);
    bytes.push_back(count * sizeof(float));
    tree[array.name] = {{"dtype", "F32"},
                        {"shape", array.shape},
                        {"data_offsets", {offset, offset + bytes.back()}}};
    offset += bytes.back();
    all[checksum_key_of(array.name)] = checksum_of(array.values, bytes.back());
  }
  all[checksum_key] = checksum_of(all);
  tree["__metadata__"] = all;
  std::string header = tree.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  file.write(&length, 8);
  file.write(header.data(), header.size());
  for (size_t i = 0; i < arrays.size(); ++i) file.write(arrays[i].values, bytes[i]);
}

}  // namespace

void write_safetensors_plain(const std::filesystem::path& path,
                             const std::vector<NamedArray>& arrays,
                             const std::map<std::string, std::string>& metadata) {
  OutputFile file(path);
  write_all(file, arrays, metadata);
  file.finish();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                       const std::map<std::string, std::string>& metadata) {
  OutputFile file(pending_file(path), path);
  write_all(file, arrays, metadata);
  file.finish_as(path);
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : path_(path), input_(path) {
  const Header header = read_header(input_, path);
  all_metadata_ = whole_metadata(header, path);
  contents_.metadata = without_checksums(all_metadata_);
  // Many entries of the same bytes would need more memory than the file has bytes.
  uint64_t left = header.file_bytes - header.data_begin;
  for (const auto& [name, entry] : header.tree.items()) {
    if (name == "__metadata__") continue;
    if (name.size() > max_array_name) {
      damaged(path, fmt::format("the name of an array, '{}...', has {} bytes; the longest has {}",
                                name.substr(0, 20), name.size(), max_array_name));
    }
    if (holds_integers(entry)) continue;
    const auto& array = contents_.arrays[name] = parse_entry(header, name, entry, path);
    const uint64_t bytes = array.count * size_of(array.type);
    if (bytes > left) damaged(path, fmt::format("array '{}' overlaps others", name));
    left -= bytes;
  }
}

std::vector<float> SafetensorsReader::values(const ArrayFile::Array& array) const {
  std::vector<char> bytes(array.count * size_of(array.type));
  if (input_.read(array.offset, bytes.data(), bytes.size()) < bytes.size()) {
    damaged(path_, fmt::format("array '{}' ends too early", array.name));
  }
  if (all_metadata_.contains(checksum_key)) {
    require_checksum(all_metadata_, array.name, bytes, path_);
  }
  return floats_of(bytes, array.type);
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path) {
  return without_checksums(whole_metadata(read_header(InputFile(path), path), path));
}

}  // namespace tandem
