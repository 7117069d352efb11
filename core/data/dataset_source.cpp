#include "core/data/dataset_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/plugin/registry.h"

namespace tandem {
namespace {

// Not one whose module does not load: who asks for it by its name gets the reason.
bool recognizes(Registry& registry, const std::string& name, const std::string& source) {
  try {
    const tandem_dataset_type& type = registry.dataset(name);
    return type.recognizes != nullptr && type.recognizes(source.c_str()) != 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool is_dataset(const Registry& registry, const std::string& name) {
  const std::vector<std::string> names = registry.datasets();
  return std::count(names.begin(), names.end(), name) > 0;
}

std::string dataset_of(Registry& registry, const std::string& source, const std::string& split) {
  if (split == "predict") return folder_dataset;
  if (source != folder_dataset && is_dataset(registry, source)) return source;
  const std::vector<std::string> names = registry.datasets();
  std::error_code ignored;
  if (!path_status(source).exists()) {
    if (source == folder_dataset) {
      throw error("data '{}': that data set reads a folder; give the folder itself", source);
    }
    if (std::filesystem::is_symlink(source, ignored)) {
      throw error("data '{}': it is a link to '{}', which is missing", source,
                  std::filesystem::read_symlink(source, ignored).string());
    }
    if (source.find("://") != std::string::npos) {
      throw error("data '{}': is an address: download it, unpack it, and give the folder", source);
    }
    throw error(
        "data '{}': there is no such folder or file, nor a data set of that name; data sets: {}{}",
        source, fmt::join(names, ", "), did_you_mean(source, names));
  }
  std::vector<std::string> found;
  // Once a module is loaded, the list has all of its data sets.
  for (const std::string& name : names) static_cast<void>(recognizes(registry, name, source));
  for (const std::string& name : registry.datasets()) {
    if (recognizes(registry, name, source)) found.push_back(name);
  }
  if (found.size() > 1) {
    throw error("data '{}': {} would each read it", source, fmt::join(found, " and "));
  }
  return found.empty() ? folder_dataset : found[0];
}

DeclaredParameters declared_parameters(Registry& registry, const std::string& source,
                                       const std::string& split) {
  const tandem_dataset_type& type = registry.dataset(dataset_of(registry, source, split));
  DeclaredParameters declared;
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    declared.emplace(type.parameters[i]->name, type.parameters[i]);
  }
  return declared;
}

Attributes read_parameters(const tandem_dataset_type& type,
                           const std::map<std::string, std::string>& written, bool known_only) {
  const std::string owner = fmt::format("data set '{}'", type.name);
  Attributes attributes;
  std::vector<std::string> known;
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    const tandem_parameter& parameter = *type.parameters[i];
    known.emplace_back(parameter.name);
    const auto found = written.find(parameter.name);
    if (found != written.end()) {
      attributes.set(parameter.name, parse_attribute(parameter, found->second, owner));
    } else if (parameter.required != 0) {
      throw error("{}: parameter '{}' is required: {}", owner, parameter.name, parameter.help);
    } else {
      attributes.set(parameter.name, default_attribute(parameter, owner));
    }
  }
  for (const auto& [name, value] : written) {
    if (known_only || std::count(known.begin(), known.end(), name) > 0) continue;
    throw error("{}: unknown parameter '{}'{}; it takes: {}", owner, name,
                did_you_mean(name, known),
                known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  }
  return attributes;
}

}  // namespace tandem
