#include "datasets/mnist_idx/mnist_idx.h"
#include "datasets/picture/data_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "datasets/picture/bytes.h"
#include "datasets/picture/names.h"

namespace tandem::mnist_idx {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t pictures_mark = 0x803, labels_mark = 0x801;  // bytes, of 3 and of 1 dimensions
constexpr int64_t pictures_header = 16, labels_header = 8;
constexpr uint64_t max_side = 16384;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// "...images...idx3..." of the split: training or testing.
std::string find_pictures(const fs::path& folder, bool training) {
  std::vector<std::string> found;
  std::error_code failure;
  for (fs::directory_iterator i(folder, failure), end; !failure && i != end; i.increment(failure)) {
    const std::string name = picture::lower_case(i->path().filename().string());
    if (!contains(name, "images") || !contains(name, "idx3") || name.starts_with('.')) continue;
    const bool is_training = contains(name, "train");
    const bool is_testing = contains(name, "t10k") || contains(name, "test");
    if (training ? is_training : is_testing) found.push_back(i->path().string());
  }
  if (RegularFile::is_failure(failure.value())) {
    throw sdk::failed("folder '", folder.string(), "' cannot be read: ", failure.message());
  }
  std::sort(found.begin(), found.end());  // the plain file before its .gz
  return found.empty() ? "" : found[0];
}

std::string labels_of(const std::string& pictures) {
  const fs::path path(pictures);
  std::string name = path.filename().string();
  const auto replace = [&](const char* from, const char* to) {
    const size_t at = name.find(from);
    if (at == std::string::npos) return false;
    name.replace(at, std::string(from).size(), to);
    return true;
  };
  if (!replace("images", "labels")) replace("IMAGES", "LABELS");
  if (!replace("idx3", "idx1")) replace("IDX3", "IDX1");
  return (path.parent_path() / name).string();
}

void require_unpacked(const std::string& path) {
  if (picture::extension_of(path) != ".gz") return;
  throw sdk::invalid(path, ": is compressed; unpack it first: gunzip -k '", path, "'");
}

template <size_t count>
std::array<uint64_t, count> read_header(const picture::DataFile& file, uint64_t mark) {
  std::array<unsigned char, 4 * count> bytes{};
  if (!file.read(0, bytes.data(), bytes.size())) {
    throw sdk::invalid(file.path(), ": byte ", file.size(), ": ends within its header of ",
                       bytes.size(), " bytes");
  }
  std::array<uint64_t, count> numbers{};
  for (size_t i = 0; i < count; ++i) numbers[i] = picture::big_endian(bytes, 4 * i, 4);
  if (numbers[0] != mark) {
    throw sdk::invalid(file.path(), ": byte 0: begins with ", numbers[0], ", but an IDX file of ",
                       mark == pictures_mark ? "pictures" : "labels", " begins with ", mark);
  }
  return numbers;
}

// `wanted` cannot overflow: the numbers it is made of were checked.
void require_size(const picture::DataFile& file, int64_t wanted) {
  if (file.size() == wanted) return;
  throw sdk::invalid(file.path(), ": byte ", std::min(file.size(), wanted), ": the file has ",
                     file.size(), " bytes, but its header asks for ", wanted);
}

}  // namespace

MnistIdx::MnistIdx(const tandem_dataset_request& request, const sdk::Attributes& attributes) {
  const fs::path source(request.source);
  const bool is_folder = picture::path_status(source).is_folder();
  std::string pictures = source.string();
  bool drawn = true;
  if (is_folder) {
    const std::string test = find_pictures(source, false);
    drawn = std::string(request.split) != "test" || test.empty();
    pictures = drawn ? find_pictures(source, true) : test;
    if (pictures.empty()) throw sdk::invalid("has no train-images-idx3-ubyte");
  } else {
    drawn = is_drawn_from(pictures, request.split);
  }
  const Pictures form = read_pictures(pictures);
  read_samples(form, labels_of(pictures));
  int64_t largest = 1;
  for (const Sample& sample : samples_) largest = std::max(largest, sample.label);
  std::vector<std::string> names;
  for (int64_t i = 0; i <= largest; ++i) names.push_back(std::to_string(i));
  begin(request, attributes, {"IDX", 1, form.height, form.width, false}, names, drawn);
}

MnistIdx::Pictures MnistIdx::read_pictures(const std::string& path) {
  require_unpacked(path);
  files_.emplace_back(path);
  const auto [mark, count, height, width] = read_header<4>(files_.back(), pictures_mark);
  if (height < 1 || width < 1 || height > max_side || width > max_side) {
    throw sdk::invalid(path, ": byte 8: pictures of ", width, "x", height, "; sides go from 1 to ",
                       max_side);
  }
  if (count < 1) throw sdk::invalid(path, ": byte 4: holds no picture");
  const auto bytes = static_cast<int64_t>(height * width);
  require_size(files_.back(), pictures_header + static_cast<int64_t>(count) * bytes);
  files_.back().require_stored();
  return {static_cast<int64_t>(count), static_cast<int>(height), static_cast<int>(width)};
}

// Only now, when both files were found to be as long as they say, memory is taken.
void MnistIdx::read_samples(const Pictures& pictures, const std::string& labels) {
  require_unpacked(labels);
  const picture::DataFile file(labels);
  const auto [mark, count] = read_header<2>(file, labels_mark);
  if (static_cast<int64_t>(count) != pictures.count) {
    throw sdk::invalid(labels, ": byte 4: ", count, " labels for the ", pictures.count,
                       " pictures of '", files_[0].path(), "'");
  }
  require_size(file, labels_header + pictures.count);
  file.require_stored();
  constexpr int64_t piece_bytes = 1 << 20;
  const int64_t bytes = int64_t{pictures.height} * pictures.width;
  std::vector<unsigned char> piece;
  for (int64_t i = 0; i < pictures.count; ++i) {
    const int64_t at = i % piece_bytes;
    if (at == 0) {
      piece.resize(static_cast<size_t>(std::min(piece_bytes, pictures.count - i)));
      if (!file.read(labels_header + i, piece.data(), piece.size())) {
        throw sdk::invalid(labels, ": byte ", labels_header + i, ": cannot be read");
      }
    }
    samples_.push_back({0, i, pictures_header + i * bytes, piece[static_cast<size_t>(at)]});
  }
}

bool MnistIdx::recognizes(const std::string& source) {
  if (picture::path_status(source).is_folder()) return !find_pictures(source, true).empty();
  const std::string name = picture::lower_case(fs::path(source).filename().string());
  return picture::path_status(source).is_file() && contains(name, "images") &&
         contains(name, "idx3");
}

}  // namespace tandem::mnist_idx

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  tandem::sdk::Plugin plugin(host, "mnist_idx", "1.0");
  return plugin.dataset<tandem::mnist_idx::MnistIdx>().table();
}
