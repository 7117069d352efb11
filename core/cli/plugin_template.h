// The sources of a new plugin, for `tandem plugin new`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::cli {

// A file of plugins/templates, "layer.cpp". CMake compiles them into the program.
struct PluginTemplate {
  std::string_view name, text;
};
[[nodiscard]] const std::vector<PluginTemplate>& plugin_templates();

// The parts that a plugin may have: "weights, two-inputs, ...".
[[nodiscard]] std::string plugin_template_parts();

// Writes a folder for the layer type or data set `name` ("acme.Swish"), which must not exist, and
// returns its name ("acme_swish"). Throws Error for a name without a prefix, an unknown part, or
// parts that exclude each other.
std::string write_plugin_template(const std::string& name, const std::vector<std::string>& parts);

}  // namespace tandem::cli
