#include "core/data/foreign_data.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/foreign_file.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

constexpr const char* to_folders =
    "write its pictures as files into a folder for each class (Python reads it in a few lines), "
    "and "
    "give that folder";
constexpr const char* of_caffe =
    "give the list of pictures that it was made from (--data list.txt --data-option root=FOLDER), "
    "or write its pictures as files into a folder for each class";
constexpr const char* to_list =
    "write a .csv list with a line 'path,label' for each picture, and give that";
constexpr const char* unpack = "unpack it, and give the folder";
constexpr const char* of_shards =
    "unpack the shards, sort the pictures by the .cls file beside each into a folder for each "
    "class, and give that folder";

using Form = ForeignFile;
constexpr std::array forms{
    Form{"a table of a spreadsheet program", ""sv, 0, ".xlsx", "save it as CSV, and give that"},
    Form{"an HDF5 file", "\x89HDF\r\n\x1a\n"sv, 0, "", to_folders},
    Form{"a Parquet file, as Hugging Face has them", "PAR1"sv, 0, "", to_folders},
    Form{"an Arrow file, as Hugging Face has them", "ARROW1"sv, 0, "", to_folders},
    Form{"the file of an LMDB database", "\xde\xc0\xef\xbe"sv, 16, "", of_caffe},
    Form{"a tar archive (webdataset's shards are such)", "ustar"sv, 257, "", of_shards},
    Form{"a zip archive", "PK\x03\x04"sv, 0, "", unpack},
    Form{"a gzip archive", "\x1f\x8b"sv, 0, "", unpack},
    Form{"an xz archive",
         "\xfd"
         "7zXZ"sv,
         0, "", unpack},
    Form{"a bzip2 archive", "BZh"sv, 0, "", unpack},
    Form{"a Zstandard archive", "\x28\xb5\x2f\xfd"sv, 0, "", unpack},
    Form{"a 7-Zip archive", "7z\xbc\xaf"sv, 0, "", unpack},
    Form{"a RAR archive", "Rar!"sv, 0, "", unpack},
    Form{"an SQLite database", "SQLite format 3"sv, 0, "", to_folders},
    Form{"an array of NumPy", "\x93NUMPY"sv, 0, "", to_folders},
    Form{"a file of MATLAB", "MATLAB 5.0"sv, 0, "", to_folders},
    Form{"a TFRecord file", ""sv, 0, ".tfrecord", to_folders},
    Form{"a RecordIO file of MXNet", ""sv, 0, ".rec", to_folders},
    Form{"a file of pickled Python objects", ""sv, 0, ".pkl", to_folders},
    Form{"a file of pickled Python objects", ""sv, 0, ".pickle", to_folders},
    Form{"a .beton file of FFCV", ""sv, 0, ".beton", to_folders},
};
// Of files that are given themselves: any folder may hold some.
constexpr std::array texts{
    Form{"a JSON file", ""sv, 0, ".json", to_list},
    Form{"a JSON Lines file", ""sv, 0, ".jsonl", to_list},
    Form{"an XML file", ""sv, 0, ".xml", to_list},
    Form{"a table of a spreadsheet program", ""sv, 0, ".xls", "save it as CSV, and give that"},
    Form{"a description of data for another program", ""sv, 0, ".yaml",
         "give the folder that it names"},
    Form{"a description of data for Darknet", ""sv, 0, ".data",
         "give the folder of the images, a folder for each class, or a list with classes"},
    Form{"a description of data for another program", ""sv, 0, ".yml",
         "give the folder that it names"},
};

bool ends_with(const std::string& name, const char* ending) {
  const std::string end = ending;
  return !end.empty() && name.size() > end.size() &&
         std::equal(end.rbegin(), end.rend(), name.rbegin(),
                    [](char a, char b) { return a == std::tolower(static_cast<uint8_t>(b)); });
}

// The form of a file; null: none of them.
const Form* form_of(const std::string& path) {
  std::string head(512, '\0');
  try {
    head.resize(InputFile(path).read(0, head.data(), head.size()));
  } catch (const Error&) {
    return nullptr;
  }
  for (const Form& form : forms) {
    if (form.is_begun_by(head) || ends_with(path, form.ending)) return &form;
  }
  return nullptr;
}

std::string of_file(const std::string& path) {
  if (const Form* form = form_of(path)) return form->text();
  for (const Form& form : texts) {
    if (ends_with(path, form.ending)) return form.text();
  }
  return "";
}

struct Contents {
  size_t files = 0, foreign = 0;
  std::string first;  // of the foreign ones, and what it is
};

// Those of the folder, and of folders in it.
void look_into(const fs::path& folder, int levels, Contents& found) {
  constexpr size_t enough = 50;
  std::error_code ignored;
  for (const fs::path& entry : entries_of(folder, ignored)) {
    if (found.files >= enough) return;
    const PathStatus status = path_status(entry);
    if (status.is_folder() && levels > 0) look_into(entry, levels - 1, found);
    if (!status.is_file()) continue;
    ++found.files;
    const Form* form = form_of(entry.string());
    if (form == nullptr) continue;
    ++found.foreign;
    if (found.first.empty()) {
      found.first = fmt::format("its '{}': {}", entry.filename().string(), form->text());
    }
  }
}

std::string of_folder(const fs::path& folder) {
  if (path_status(folder / "CURRENT").is_file()) {
    return fmt::format("it is a LevelDB database, which is not read: {}", of_caffe);
  }
  Contents found;
  look_into(folder, 2, found);
  return 2 * found.foreign >= found.files ? found.first : "";
}

}  // namespace

std::string foreign_data(const std::string& path) {
  return path_status(path).is_folder() ? of_folder(path) : of_file(path);
}

}  // namespace tandem
