#include "core/model/adapted/models.h"
#include "core/base/files/files.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/model/adapted/adapted.h"
#include "core/model/file/name_rules.h"
#include "core/model/file/text_format.h"

namespace tandem {

namespace {

namespace fs = std::filesystem;

constexpr const char* solver_ending = "_solver";

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders = listed_folders("TANDEM_MODEL_PATH");
  for (const fs::path& folder : {library_folder(), program_folder()}) {
    if (folder.empty()) continue;
    folders.push_back((folder / "../share/tandem/models").lexically_normal());
    // For a library in a folder of its own level: lib/x86_64-linux-gnu.
    folders.push_back((folder / "../../share/tandem/models").lexically_normal());
  }
  return folders;
}

constexpr const char* of_models = "";
constexpr const char* of_pretrained_nets = "pretrained";
constexpr const char* rules_of_all = "torch";  // torch.names

// The file with that name and ending in that folder of the models' folders, or "".
fs::path find_model(const std::string& name, const char* within = of_models,
                    const char* ending = ".prototxt") {
  if (name.empty() || name.find('/') != std::string::npos) return {};
  for (const fs::path& folder : model_folders()) {
    fs::path file = folder / within / (name + ending);
    if (path_status(file).is_file()) return file;
  }
  return {};
}

std::vector<std::string> names_within(const char* within, const char* ending = ".prototxt") {
  std::set<std::string> names;
  for (const fs::path& folder : model_folders()) {
    for (const fs::path& file : entries_of(folder / within)) {
      const std::string stem = file.stem().string();
      if (file.extension() != ending || stem.ends_with(solver_ending)) continue;
      names.insert(stem);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<std::string> model_names() {
  return names_within(of_models);
}

std::vector<std::string> pretrained_net_names() {
  std::vector<std::string> names = names_within(of_pretrained_nets);
  for (const std::string& name : names_within(of_pretrained_nets, ".names")) {
    if (name != rules_of_all && !find_pretrained_net(name).empty()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

fs::path find_pretrained_net(const std::string& architecture) {
  const fs::path names = find_pretrained_names(architecture);
  const std::string other = names.empty() ? "" : read_name_rules(names).net;
  return find_model(other.empty() ? architecture : other, of_pretrained_nets);
}

std::string no_models() {
  std::vector<std::string> folders;
  for (const fs::path& folder : model_folders()) folders.push_back(folder.string());
  return fmt::format(
      "there are no models in {}: reinstall Tandem, or name the folder that has them by "
      "TANDEM_MODEL_PATH",
      fmt::join(folders, ", "));
}

std::string near_model(const std::string& name, const std::vector<std::string>& known) {
  const auto without_digits = [](std::string text) {
    std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
    return text;
  };
  std::vector<std::string> others = known;
  const std::string letters = without_digits(name);
  std::erase_if(others, [&](const std::string& other) {
    return letters != name && without_digits(other) == letters;
  });
  return did_you_mean(name, others);
}

fs::path find_pretrained_names(const std::string& architecture) {
  return find_model(architecture, of_pretrained_nets, ".names");
}

bool is_model_name(const std::string& name_or_path) {
  return !find_model(name_or_path).empty();
}

std::string model_of_net(const std::string& net_name) {
  if (net_name.empty()) return "";
  for (const std::string& model : model_names()) {
    const Message net = read_text_format(find_model(model));
    const Field* name = net.find("name");
    if (name != nullptr && name->text == net_name) return model;
  }
  return "";
}

fs::path find_net(const std::string& name_or_path) {
  fs::path model = find_model(name_or_path);
  if (!model.empty()) return model;
  if (const fs::path net = find_pretrained_net(name_or_path); !net.empty()) return net;
  if (!name_or_path.empty() && path_status(name_or_path).exists()) return name_or_path;
  std::vector<std::string> known = model_names();
  for (const std::string& name : pretrained_net_names()) {
    if (!is_model_name(name)) known.push_back(name);
  }
  if (known.empty()) {
    throw error("net '{}' is neither a file nor a model's name; {}", name_or_path, no_models());
  }
  if (name_or_path.starts_with("timm/")) {
    throw error(
        "net '{0}' is neither a file nor a model's name: weights of Hugging Face, with "
        "their net, are given by '--weights {0}'",
        name_or_path);
  }
  throw error("net '{}' is neither a file nor a model's name{}; models: {}", name_or_path,
              near_model(name_or_path, known), fmt::join(known, ", "));
}

NetDefinition read_model(const std::string& name_or_path) {
  NetDefinition net = read_net(find_net(name_or_path));
  const fs::path names = is_model_name(name_or_path) ? "" : find_pretrained_names(name_or_path);
  const double eps = names.empty() ? 0 : read_name_rules(names).eps;
  return eps > 0 ? with_batch_norm_eps(net, eps) : net;
}

}  // namespace tandem
