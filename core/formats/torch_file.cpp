#include "core/formats/torch_file.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/pickle.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

constexpr const char* how_to_save = "torch.save(model.state_dict(), 'weights.pth')";

[[noreturn]] void unusable(const fs::path& path, const std::string& why) {
  throw error("file '{}' is not a usable file of torch.save(): {}", path.string(), why);
}

// In this order: of a checkpoint with averaged weights, those are what was validated.
constexpr std::array<std::string_view, 12> keys_of_weights{
    "state_dict_ema",   "model_ema",   "ema_state_dict", "ema", "state_dict",
    "model_state_dict", "model_state", "model",          "net", "weights",
    "params",           "module"};

bool has_tensors(const PickleTree& tree, const PickleValue& dict) {
  if (dict.kind != Kind::dict) return false;
  for (size_t i = 1; i < dict.items.size(); i += 2) {
    if (tree.at(dict.items[i]).kind == Kind::tensor) return true;
  }
  return false;
}

// The keys of those that hold weights, in the order above; else of any dict with tensors.
std::vector<std::string> keys_with_weights(const PickleTree& tree, const PickleValue& dict) {
  std::vector<std::string> keys;
  for (const std::string_view key : keys_of_weights) {
    const PickleValue* value = tree.find(dict, key);
    if (value == nullptr || value->kind != Kind::dict) continue;
    const auto holds = [&](std::string_view inner) {
      const PickleValue* found = tree.find(*value, inner);
      return found != nullptr && has_tensors(tree, *found);
    };
    if (has_tensors(tree, *value) ||
        std::any_of(keys_of_weights.begin(), keys_of_weights.end(), holds)) {
      keys.emplace_back(key);
    }
  }
  if (!keys.empty() || has_tensors(tree, dict)) return keys;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& key = tree.at(dict.items[i]);
    if (key.kind == Kind::text && has_tensors(tree, tree.at(dict.items[i + 1]))) {
      keys.push_back(key.text);
    }
  }
  return keys;
}

// The dict of tensors in a checkpoint; `note` says which of several it is.
const PickleValue& find_state_dict(const PickleTree& tree, const fs::path& path,
                                   std::string* note) {
  constexpr int max_depth = 4;
  const PickleValue* dict = &tree.at(tree.root);
  for (int depth = 0; depth < max_depth && dict->kind == Kind::dict; ++depth) {
    const std::vector<std::string> keys = keys_with_weights(tree, *dict);
    if (keys.empty()) break;
    const bool is_known = std::find(keys_of_weights.begin(), keys_of_weights.end(), keys.front()) !=
                          keys_of_weights.end();
    if (!is_known && keys.size() > 1) {
      unusable(path, fmt::format("it has several dicts of tensors, '{}' and '{}' among them: save "
                                 "the state dict alone, with {}",
                                 keys[0], keys[1], how_to_save));
    }
    *note += fmt::format("{} '{}'", note->empty() ? "those of" : ", in it", keys.front());
    if (keys.size() > 1) *note += fmt::format(" (not those of '{}')", keys[1]);
    dict = tree.find(*dict, keys.front());
  }
  if (has_tensors(tree, *dict)) return *dict;
  unusable(path, fmt::format("it has no dict of tensors; save one with {}", how_to_save));
}

// Where the bytes of a storage lie, and of what they are.
struct Storage {
  std::optional<ElementType> type;  // none: of integers
  std::string key;
  uint64_t count = 0;
};

std::optional<Storage> storage_of(const PickleTree& tree, const PickleValue& tuple) {
  const auto is = [&](size_t i, Kind kind) {
    return i < tuple.items.size() && tree.at(tuple.items[i]).kind == kind;
  };
  if (!is(0, Kind::text) || tree.at(tuple.items[0]).text != "storage" || !is(1, Kind::global) ||
      !is(2, Kind::text) || !is(4, Kind::integer) || tree.at(tuple.items[4]).integer < 0) {
    return std::nullopt;
  }
  // A part of another storage, as PyTorch wrote before 0.4.
  constexpr size_t view = 5;
  if (tuple.items.size() > view && !is(view, Kind::none)) return std::nullopt;
  Storage storage;
  const std::string& type = tree.at(tuple.items[1]).text;
  if (type == "torch.FloatStorage") storage.type = ElementType::f32;
  if (type == "torch.HalfStorage") storage.type = ElementType::f16;
  if (type == "torch.BFloat16Storage") storage.type = ElementType::bf16;
  if (type == "torch.DoubleStorage") storage.type = ElementType::f64;
  storage.key = tree.at(tuple.items[2]).text;
  storage.count = static_cast<uint64_t>(tree.at(tuple.items[4]).integer);
  return storage;
}

std::optional<std::vector<int64_t>> sizes_of(const PickleTree& tree, uint32_t list) {
  std::vector<int64_t> sizes;
  if (tree.at(list).items.size() > max_array_axes) return std::nullopt;
  for (const uint32_t item : tree.at(list).items) {
    if (tree.at(item).kind != Kind::integer || tree.at(item).integer < 0) return std::nullopt;
    sizes.push_back(tree.at(item).integer);
  }
  return sizes;
}

// One more than the place of the last value after the first; nullopt if it exceeds `limit`.
std::optional<uint64_t> span_of(const ArrayFile::Array& array, uint64_t limit) {
  if (array.count == 0) return 0;
  if (array.strides.empty())
    return array.count <= limit ? std::optional(array.count) : std::nullopt;
  uint64_t last = 0;
  for (size_t i = 0; i < array.shape.size(); ++i) {
    const auto steps = static_cast<uint64_t>(array.shape[i] - 1);
    const auto stride = static_cast<uint64_t>(array.strides[i]);
    if (steps > 0 && stride > (limit - last) / steps) return std::nullopt;
    last += steps * stride;
  }
  return last < limit ? std::optional(last + 1) : std::nullopt;
}

// Sets count, and takes strides away that say nothing. False if there are more than `limit` values.
bool set_count(uint64_t limit, ArrayFile::Array& array) {
  const bool is_empty = std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end();
  uint64_t count = 1;
  bool is_dense = true;
  for (size_t i = array.shape.size(); i-- > 0 && !is_empty;) {
    const auto size = static_cast<uint64_t>(array.shape[i]);
    if (size > 1 && static_cast<uint64_t>(array.strides[i]) != count) is_dense = false;
    if (count > limit / size) return false;
    count *= size;
  }
  array.count = is_empty ? 0 : count;
  if (is_empty || is_dense) array.strides.clear();
  return array.count <= limit;
}

class TorchReader : public ArrayReader {
 public:
  explicit TorchReader(const fs::path& path) : path_(path) {}

  [[nodiscard]] std::vector<float> values(const ArrayFile::Array& array) const override {
    if (array.count == 0) return {};
    const uint64_t span = span_of(array, UINT64_MAX / size_of(array.type)).value_or(0);
    std::vector<float> stored =
        floats_of(read(array.part, array.offset, span * size_of(array.type)), array.type);
    if (array.strides.empty()) return stored;
    std::vector<float> values(array.count);
    std::vector<int64_t> at(array.shape.size());
    int64_t place = 0;
    for (float& value : values) {
      value = stored[static_cast<size_t>(place)];
      for (size_t axis = at.size(); axis-- > 0;) {
        place += array.strides[axis];
        if (++at[axis] < array.shape[axis]) break;
        place -= array.strides[axis] * array.shape[axis];
        at[axis] = 0;
      }
    }
    return values;
  }

 protected:
  // Of that part, from that byte.
  [[nodiscard]] virtual std::vector<char> read(uint64_t part, uint64_t offset,
                                               uint64_t bytes) const = 0;
  // The part of a storage and its first byte there. Error if it has fewer than so many bytes.
  struct Place {
    uint64_t part = 0, offset = 0;
  };
  [[nodiscard]] virtual Place find(const std::string& key, uint64_t bytes) const = 0;

  void take_arrays(const PickleTree& tree) {
    const PickleValue& dict = find_state_dict(tree, path_, &contents_.note);
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleValue &name = tree.at(dict.items[i]), &value = tree.at(dict.items[i + 1]);
      if (name.kind != Kind::text || value.kind != Kind::tensor) continue;
      if (name.text.size() > max_array_name) {
        unusable(path_, fmt::format("a tensor's name has {} bytes; the longest has {}",
                                    name.text.size(), max_array_name));
      }
      take_array(tree, name.text, value);
    }
  }

  fs::path path_;

 private:
  void take_array(const PickleTree& tree, const std::string& name, const PickleValue& tensor) {
    const std::optional<Storage> storage = storage_of(tree, tree.at(tensor.items[0]));
    const auto shape = sizes_of(tree, tensor.items[1]), strides = sizes_of(tree, tensor.items[2]);
    if (!storage || !shape || !strides || shape->size() != strides->size() || tensor.integer < 0) {
      unusable(path_, fmt::format("tensor '{}' is malformed", name));
    }
    if (!storage->type) return;
    ArrayFile::Array array;
    array.name = name;
    array.type = *storage->type;
    array.shape = *shape;
    array.strides = *strides;
    const uint64_t width = size_of(array.type);
    const auto first = static_cast<uint64_t>(tensor.integer);
    const uint64_t limit = first > storage->count ? 0 : storage->count - first;
    if (storage->count > UINT64_MAX / width || !set_count(limit, array) || !span_of(array, limit)) {
      unusable(path_,
               fmt::format("tensor '{}' of shape {} does not lie in its storage of {} values", name,
                           fmt::join(*shape, "x"), storage->count));
    }
    const Place place = find(storage->key, storage->count * width);
    array.part = place.part;
    array.offset = place.offset + first * width;
    contents_.arrays[name] = std::move(array);
  }
};

// A zip archive, whose records PyTorch stores as they are.
class Archive {
 public:
  explicit Archive(const fs::path& path) : path_(path), file_bytes_(InputFile(path).size()) {
    int code = 0;
    zip_ = zip_open(path.c_str(), ZIP_RDONLY, &code);
    if (zip_ != nullptr) return;
    zip_error_t reason;
    zip_error_init_with_code(&reason, code);
    const std::string text = zip_error_strerror(&reason);
    zip_error_fini(&reason);
    unusable(path, fmt::format("its zip archive cannot be read ({})", text));
  }
  ~Archive() { zip_discard(zip_); }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    const zip_int64_t count = zip_get_num_entries(zip_, 0);
    for (zip_int64_t i = 0; i < count; ++i) {
      const char* name = zip_get_name(zip_, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
      names.emplace_back(name == nullptr ? "" : name);
    }
    return names;
  }

  // Its number and size. Error if there is none, or a compressed one, which could claim any size.
  [[nodiscard]] std::pair<uint64_t, uint64_t> find(const std::string& name) const {
    zip_stat_t facts{};
    if (zip_stat(zip_, name.c_str(), ZIP_FL_ENC_RAW, &facts) != 0) {
      unusable(path_, fmt::format("record '{}' is missing", name));
    }
    constexpr zip_uint64_t needed = ZIP_STAT_INDEX | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD;
    if ((facts.valid & needed) != needed || facts.comp_method != ZIP_CM_STORE ||
        facts.size > file_bytes_) {
      unusable(path_, fmt::format("record '{}' is compressed or longer than the file", name));
    }
    return {facts.index, facts.size};
  }

  [[nodiscard]] std::vector<char> read(uint64_t record, uint64_t offset, uint64_t bytes) const {
    zip_file_t* file = zip_fopen_index(zip_, record, 0);
    std::vector<char> result(file == nullptr ? 0 : bytes);
    bool is_whole =
        file != nullptr &&
        (offset == 0 || zip_fseek(file, static_cast<zip_int64_t>(offset), SEEK_SET) == 0);
    for (uint64_t done = 0; is_whole && done < bytes;) {
      const zip_int64_t read = zip_fread(file, result.data() + done, bytes - done);
      is_whole = read > 0;
      done += is_whole ? static_cast<uint64_t>(read) : 0;
    }
    // At the end of a record its checksum is compared.
    char more = 0;
    if (is_whole && zip_fread(file, &more, 1) < 0) is_whole = false;
    if (file != nullptr) zip_fclose(file);
    if (!is_whole) {
      unusable(path_, fmt::format("record {} is damaged or ends too early", record));
    }
    return result;
  }

 private:
  fs::path path_;
  uint64_t file_bytes_;
  zip_t* zip_ = nullptr;
};

class TorchArchive : public TorchReader {
 public:
  explicit TorchArchive(const fs::path& path) : TorchReader(path), archive_(path) {
    constexpr std::string_view pickle_name = "data.pkl";
    bool is_script = false;
    std::optional<std::string> found;
    for (const std::string& name : archive_.names()) {
      const size_t slash = name.find('/');
      const std::string inner = slash == std::string::npos ? name : name.substr(slash + 1);
      if (inner == pickle_name && !found) found = name;
      if (inner == "constants.pkl" || inner.starts_with("code/")) is_script = true;
    }
    if (is_script) {
      unusable(path,
               "it is TorchScript; save its weights with "
               "torch.save(torch.jit.load('model.pt').state_dict(), 'weights.pth')");
    }
    if (!found) unusable(path, "its zip archive has no data.pkl");
    folder_ = found->substr(0, found->size() - pickle_name.size());
    const auto [record, size] = archive_.find(*found);
    if (size > max_pickle_bytes) {
      unusable(path,
               fmt::format("its pickle has {} bytes; at most {} are read", size, max_pickle_bytes));
    }
    require_little_endian();
    const std::vector<char> pickle = archive_.read(record, 0, size);
    take_arrays(read_pickle({pickle.data(), pickle.size()}, path.string()));
  }

 protected:
  [[nodiscard]] std::vector<char> read(uint64_t part, uint64_t offset,
                                       uint64_t bytes) const override {
    return archive_.read(part, offset, bytes);
  }
  [[nodiscard]] Place find(const std::string& key, uint64_t bytes) const override {
    const std::string name = folder_ + "data/" + key;
    const auto [record, size] = archive_.find(name);
    if (size >= bytes) return {record, 0};
    unusable(path_,
             fmt::format("record '{}' has {} bytes, its storage needs {}", name, size, bytes));
  }

 private:
  // Older files do not say it.
  void require_little_endian() const {
    const std::string name = folder_ + "byteorder";
    const std::vector<std::string> names = archive_.names();
    if (std::find(names.begin(), names.end(), name) == names.end()) return;
    const auto [record, size] = archive_.find(name);
    const std::vector<char> order = archive_.read(record, 0, std::min<uint64_t>(size, 16));
    if (std::string_view(order.data(), order.size()) == "little") return;
    unusable(path_, "its numbers are big-endian, which are not read");
  }

  Archive archive_;
  std::string folder_;
};

// The form before PyTorch 1.6: a magic number, a version, facts of the machine, the object and the
// keys of the storages as pickles; then each storage as its number of values and these.
class TorchOldFile : public TorchReader {
 public:
  explicit TorchOldFile(const fs::path& path) : TorchReader(path), input_(path) {
    std::string bytes(std::min(input_.size(), max_pickle_bytes), '\0');
    bytes.resize(input_.read(0, bytes.data(), bytes.size()));
    size_t at = 0;
    const auto next = [&] {
      PickleTree tree = read_pickle(std::string_view(bytes).substr(at), path.string());
      at += tree.bytes;
      return tree;
    };
    (void)next();
    const PickleTree version = next(), facts = next();
    constexpr int64_t known_version = 1001;
    const PickleValue* order = facts.find(facts.at(facts.root), "little_endian");
    if (version.at(version.root).integer != known_version || order == nullptr ||
        order->integer != 1) {
      unusable(path, "it is of another version of the old form, or big-endian");
    }
    const PickleTree object = next(), keys = next();
    find_storages(object, keys, at);
    take_arrays(object);
  }

 protected:
  [[nodiscard]] std::vector<char> read(uint64_t /*part*/, uint64_t offset,
                                       uint64_t bytes) const override {
    std::vector<char> result(bytes);
    if (input_.read(offset, result.data(), bytes) < bytes) unusable(path_, "it ends too early");
    return result;
  }
  [[nodiscard]] Place find(const std::string& key, uint64_t bytes) const override {
    const auto found = storages_.find(key);
    if (found == storages_.end() || found->second.second < bytes) {
      unusable(path_, fmt::format("storage '{}' is missing or shorter than its tensors", key));
    }
    return {0, found->second.first};
  }

 private:
  // The sizes of values are known by the tensors only.
  static std::map<std::string, uint64_t> widths_in(const PickleTree& object) {
    std::map<std::string, uint64_t> widths;
    for (const PickleValue& value : object.values) {
      if (value.kind != Kind::list) continue;
      const std::optional<Storage> storage = storage_of(object, value);
      if (!storage) continue;
      const std::string& type = object.at(value.items[1]).text;
      uint64_t width = 1;
      if (storage->type) width = size_of(*storage->type);
      if (type == "torch.ShortStorage") width = 2;
      if (type == "torch.IntStorage") width = 4;
      if (type == "torch.LongStorage") width = 8;
      widths[storage->key] = width;
    }
    return widths;
  }

  void find_storages(const PickleTree& object, const PickleTree& keys, uint64_t at) {
    const std::map<std::string, uint64_t> widths = widths_in(object);
    for (const uint32_t item : keys.at(keys.root).items) {
      const std::string& key = keys.at(item).text;
      const auto width = widths.find(key);
      if (width == widths.end()) unusable(path_, fmt::format("storage '{}' is of no tensor", key));
      uint64_t count = 0;
      const bool is_whole = input_.read(at, &count, 8) == 8;
      if (!is_whole || count > (input_.size() - at - 8) / width->second) {
        unusable(path_, fmt::format("storage '{}' ends too early", key));
      }
      storages_[key] = {at + 8, count * width->second};
      at += 8 + count * width->second;
    }
  }

  InputFile input_;
  std::map<std::string, std::pair<uint64_t, uint64_t>> storages_;  // first byte, bytes
};

}  // namespace

std::unique_ptr<ArrayReader> open_torch_file(const fs::path& path) {
  constexpr std::string_view zip{"PK\x03\x04", 4};
  // A pickle of the old form's magic number; what is before it depends on the protocol.
  constexpr std::string_view old{"\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13};
  std::string head(32, '\0');
  head.resize(InputFile(path).read(0, head.data(), head.size()));
  if (head.starts_with(zip)) return std::make_unique<TorchArchive>(path);
  if (head.starts_with('\x80') && head.find(old) != std::string::npos) {
    return std::make_unique<TorchOldFile>(path);
  }
  return nullptr;
}

}  // namespace tandem
