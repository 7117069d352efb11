#include "core/data/splits.h"
#include "core/base/files/files.h"

#include <filesystem>

#include "core/base/text/strings.h"
#include "plugins/cells.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& name) {
  return path_status(name).is_file();
}

// A field of a CSV line, quoted unless no reader could take it for anything else than its text.
std::string field(const std::string& name) {
  const std::string text = safe_cell(name);
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

bool holds(const Dataset& dataset, const std::string& name) {
  for (int64_t i = 0; i < dataset.size(); ++i) {
    if (dataset.sample_name(i) == name) return true;
  }
  return false;
}

// False if a path has a line break.
bool add(const Dataset& dataset, const char* split, std::string& text) {
  const std::vector<std::string> classes = dataset.class_names();
  const bool has_classes = dataset.task() == TANDEM_TASK_CLASSES;
  std::vector<float> values(classes.size());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const std::optional<int64_t> label = dataset.label(i);
    const std::string path = absolute_path(dataset.sample_name(i)).string();
    if (path.find_first_of("\n\r") != std::string::npos) return false;
    if (!label) continue;
    if (has_classes) {
      text += field(path) + "," + field(classes[size_t(*label)]) + "," + split + "\n";
      continue;
    }
    dataset.values(i, values.data());
    text += fmt::format("{},{},{}\n", field(path), split, fmt::join(values, ","));
  }
  return true;
}

}  // namespace

std::vector<NamedSplit> open_splits(Registry& registry, const std::string& source,
                                    const std::map<std::string, std::string>& parameters,
                                    uint64_t seed, const Shape& shape) {
  std::vector<NamedSplit> splits;
  const auto open = [&](const std::string& split) {
    DatasetOptions options;
    options.source = source;
    options.split = split;
    options.phase = TANDEM_TEST;
    options.seed = seed;
    options.shape = shape;
    options.parameters = parameters;
    for (const char* name : {"mean", "mean_image", "scale", "resize", "resize_width", "color"}) {
      options.parameters.erase(name);
    }
    if (!splits.empty()) {
      options.class_names = splits[0].dataset->class_names();
      options.parameters.merge(splits[0].dataset->chosen_parameters());
    }
    return std::make_unique<Dataset>(registry, options);
  };
  splits.push_back({"train", open("train")});
  if (splits[0].dataset->split_is_drawn() && holds_out_nothing(parameters)) return splits;
  splits.push_back({"val", open("val")});
  auto test = open("test");
  // A data set without a test split has its validation samples there.
  const Dataset& val = *splits[1].dataset;
  const bool same = test->size() == val.size() && test->sample_name(0) == val.sample_name(0) &&
                    test->sample_name(test->size() - 1) == val.sample_name(val.size() - 1);
  // All of a test file is its test split, also where the others are drawn from it.
  const Dataset& train = *splits[0].dataset;
  const bool is_both = train.split_is_drawn() && test->size() == train.size() + val.size() &&
                       holds(*test, train.sample_name(0));
  if (!same && !is_both) splits.push_back({"test", std::move(test)});
  return splits;
}

bool holds_out_nothing(const std::map<std::string, std::string>& parameters) {
  const auto found = parameters.find("val_fraction");
  double fraction = 0;
  return found != parameters.end() && parse_number(found->second, &fraction) && fraction == 0;
}

std::string split_list(const Dataset& training, const Dataset& validation) {
  if (!is_file(training.sample_name(0)) || !is_file(validation.sample_name(0))) return "";
  std::string text = "path,class_name,split\n";
  if (training.task() != TANDEM_TASK_CLASSES) {
    text = "path,split";
    for (const std::string& name : training.class_names()) text += "," + field(name);
    text += "\n";
  }
  const bool is_whole = add(training, "train", text) && add(validation, "val", text);
  return is_whole ? text : "";
}

}  // namespace tandem
