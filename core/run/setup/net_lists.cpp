#include "core/run/setup/net_lists.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/model/file/fields.h"
#include "core/model/file/old_forms.h"
#include "core/model/file/text_format.h"
#include "core/run/setup/setup_data.h"
#include "core/run/setup/setup_solver.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct NetList {
  std::string file, root;
};

struct NetData {
  NetList train, val;
  std::string database;  // that a Data or HDF5Data layer names
};

std::string text_within(const Message& layer, const char* block, const char* name) {
  const Field* found = layer.find(block);
  const Field* field = found != nullptr && found->message ? found->message->find(name) : nullptr;
  return field == nullptr ? "" : field->text;
}

// Of both phases, or only of "TRAIN" or "TEST".
bool is_in_phase(const Message& layer, const char* phase) {
  const std::string named = text_within(layer, "include", "phase");
  return named.empty() || named == phase;
}

NetData data_of(const fs::path& net) {
  NetData data;
  for (const Field& field : current_layers(read_text_format(net))) {
    const Message& layer = *field.message;
    for (const char* block : {"data_param", "hdf5_data_param"}) {
      if (data.database.empty()) data.database = text_within(layer, block, "source");
    }
    const std::string source = text_within(layer, "image_data_param", "source");
    if (source.empty()) continue;
    const NetList list{source, text_within(layer, "image_data_param", "root_folder")};
    if (is_in_phase(layer, "TRAIN") && data.train.file.empty()) data.train = list;
    if (is_in_phase(layer, "TEST") && data.val.file.empty()) data.val = list;
  }
  return data;
}

// As Caffe from the current folder, else from that of the net, where also a list is found whose
// path is of another machine. "" if it is in neither.
std::string found(const std::string& file, const fs::path& net) {
  const fs::path folder = net.parent_path();
  const bool is_whole = fs::path(file).is_absolute() || (file.size() > 2 && file[1] == ':');
  for (const fs::path& path :
       {fs::path(file), folder / file, folder / (is_whole ? last_name(file) : file)}) {
    if (!file.empty() && path_status(path).is_file()) return path.string();
  }
  return "";
}

// Caffe puts root_folder before the paths, which else begin in the current folder. "": the list's
// own folder has the first image, or none of these has it.
std::string root_of(const NetList& list, const std::string& file) {
  if (!list.root.empty()) return list.root;
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  const std::string image = line.substr(0, line.find_last_of(' '));
  const bool is_beside = path_status(fs::path(file).parent_path() / image).is_file();
  return !is_beside && path_status(image).is_file() ? "." : "";
}

}  // namespace

std::string take_lists_of_net(TrainOptions& options) {
  const fs::path net = net_file_of(options);
  const NetData data = net.empty() ? NetData{} : data_of(net);
  const std::string train = found(data.train.file, net), val = found(data.val.file, net);
  if (train.empty() && !data.train.file.empty()) {
    throw error(
        "no data (--data): net '{}' names the list '{}', which is neither here nor beside the net",
        net.string(), data.train.file);
  }
  if (train.empty() && !data.database.empty()) {
    throw error(
        "no data: net '{}' names the database '{}', of a kind that is not read: name a folder of "
        "images or a list of them (--data; docs/guide/caffe.md)",
        net.string(), data.database);
  }
  if (train.empty()) throw error("no data: name a folder of images, or 'synthetic' (--data)");
  const auto& given = options.data_parameters;
  const bool names_val =
      given.contains("val") || given.contains("val_fraction") || given.contains("fold");
  if (val.empty() && !data.val.file.empty() && !names_val) {
    throw error(
        "net '{}' names the list '{}' to validate, which is neither here nor beside the net: name "
        "another one (--data-option val=FILE), or a part of the images that train (--data-option "
        "val_fraction=0.2)",
        net.string(), data.val.file);
  }
  if (!val.empty() && data.val.root != data.train.root) {
    throw error(
        "no data (--data): the lists of net '{}' have two root_folder, '{}' and '{}', and one is "
        "taken: write whole paths into the lists",
        net.string(), data.train.root, data.val.root);
  }
  options.data = train;
  const std::string root = root_of(data.train, train);
  if (!root.empty()) options.data_parameters.try_emplace("root", root);
  if (!val.empty()) options.data_parameters.try_emplace("val", val);
  return fmt::format("data: the lists that net '{}' names: '{}'{}{} (--data)", net.string(), train,
                     val.empty() ? "" : fmt::format(" to train, '{}' to validate", val),
                     root.empty() ? "" : fmt::format(", paths from '{}'", root));
}

}  // namespace tandem
