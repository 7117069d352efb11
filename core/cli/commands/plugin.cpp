#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/text/strings.h"
#include "core/check/check.h"
#include "core/cli/commands.h"
#include "core/cli/plugin_template.h"

namespace tandem::cli {
namespace {

using checker::CheckOptions;
using checker::Finding;
using checker::Outcome;

struct PluginArguments {
  std::string what;
  std::vector<std::string> names, set, inputs, data_options;
  CheckOptions check;
  std::string with;
  int64_t outputs = 0;
  bool as_json = false;
};

// "2x8x3x3"
Shape parse_shape(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const std::string& part : split(text, 'x')) {
    int64_t size = 0;
    if (!parse_integer(part, &size) || size < 1) {
      throw error("--input {}: a shape is written as 2x8x3x3: rows, channels, height, width", text);
    }
    sizes.push_back(size);
  }
  if (sizes.size() != 4) {
    throw error("--input {}: {} sizes are given, but a shape has 4, as 2x8x3x3", text,
                sizes.size());
  }
  return {sizes[0], sizes[1], sizes[2], sizes[3]};
}

const char* word(Outcome::Verdict verdict) {
  return verdict == Outcome::Verdict::kept       ? "kept"
         : verdict == Outcome::Verdict::broken   ? "broken"
         : verdict == Outcome::Verdict::note     ? "note"
         : verdict == Outcome::Verdict::left_out ? "left out"
                                                 : "not applicable";
}

class Printer {
 public:
  explicit Printer(bool as_json) : as_json_(as_json) {}

  void operator()(const Finding& finding) {
    const Outcome::Verdict verdict = finding.outcome.verdict;
    ++counts_[verdict];
    if (as_json_) return add_to_tree(finding);
    if (verdict == Outcome::Verdict::not_applicable) return;
    if (finding.outcome.detail == checker::left_out_by_user) return;  // the first line says it
    if (finding.layer != layer_) {
      say_repeated();
      say("{}\n", finding.layer);
    }
    layer_ = finding.layer;
    if (verdict == Outcome::Verdict::broken && !details_.insert(finding.outcome.detail).second) {
      repeated_.push_back(finding.promise);
      return;
    }
    const bool is_note = verdict == Outcome::Verdict::note,
               is_left_out = verdict == Outcome::Verdict::left_out;
    say("  {:<6} {:<17} {}{}\n", is_left_out ? "note" : word(verdict), finding.promise,
        is_left_out ? "left out: " : "",
        is_note || is_left_out ? finding.outcome.detail : finding.text);
    if (verdict == Outcome::Verdict::broken) {
      say("         {}\n         {}\n", finding.outcome.detail, finding.command);
    }
    std::fflush(stdout);
  }

  // Returns the exit code. Throws Error if there was nothing to check.
  int finish() {
    const int64_t kept = counts_[Outcome::Verdict::kept];
    const int64_t broken = counts_[Outcome::Verdict::broken];
    if (as_json_) {
      print_json(tree_);
    } else {
      say_repeated();
      say("{} promises kept, {} broken\n", kept, broken);
    }
    if (kept + broken + counts_[Outcome::Verdict::note] == 0) throw Error("nothing was checked");
    return broken == 0 ? 0 : 1;
  }

 private:
  // One cause may break most promises of a layer.
  void say_repeated() {
    if (!repeated_.empty()) {
      say("  broken {} more promise{}, each with a reason that is above: {}\n", repeated_.size(),
          repeated_.size() == 1 ? "" : "s", fmt::join(repeated_, ", "));
    }
    repeated_.clear();
    details_.clear();
  }
  void add_to_tree(const Finding& finding) {
    tree_.push_back({{"layer", finding.layer},
                     {"promise", finding.promise},
                     {"meaning", finding.text},
                     {"verdict", word(finding.outcome.verdict)},
                     {"detail", finding.outcome.detail},
                     {"command", finding.command}});
    if (!finding.outcome.figures.empty()) tree_.back()["figures"] = finding.outcome.figures;
  }

  bool as_json_;
  json tree_ = json::array();
  std::string layer_;
  std::set<std::string> details_;      // of its broken promises
  std::vector<std::string> repeated_;  // promises with one of these
  std::map<Outcome::Verdict, int64_t> counts_;
};

int check_plugin(PluginArguments& a) {
  CheckOptions& options = a.check;
  options.targets = a.names;
  for (const auto& text : a.set) {
    const size_t at = text.find('=');
    if (at == std::string::npos) throw error("--set {}: write it as kernel_size=3", text);
    options.cases.parameters.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  for (const std::string& text : a.inputs) options.cases.inputs.push_back(parse_shape(text));
  if (!options.net.empty() && !options.cases.inputs.empty()) {
    throw Error("--net and --input each say which shapes to check: give one of them");
  }
  if (options.cases.inputs.empty() && !options.cases.parameters.empty()) {
    throw Error("--set needs --input: a case has parameters and the shape of each input");
  }
  options.data_parameters = read_pairs(a.data_options, "--data-option", "side=32");
  options.cases.outputs = uint32_t(a.outputs);
  Printer printer(a.as_json);
  checker::require_promises(options.without);
  if (!options.without.empty() && !a.as_json) {
    say("left out by --without: {}\n", fmt::join(options.without, ", "));
  }
  static_cast<void>(
      checker::check_plugins(options, [&](const Finding& finding) { printer(finding); }));
  return printer.finish();
}

int new_plugin(const PluginArguments& a) {
  if (a.names.size() != 1) {
    throw Error("'tandem plugin new' needs one name with a prefix of your own, as acme.Swish");
  }
  const std::string folder = write_plugin_template(
      a.names[0], a.with.empty() ? std::vector<std::string>{} : split(a.with, ','));
  say("{0} is written. To build and check it:\n"
      "  cmake -S {0} -B {0}/build && cmake --build {0}/build\n"
      "  ctest --test-dir {0}/build --output-on-failure\n",
      folder);
  return 0;
}

int run_plugin(PluginArguments& a) {
  if (a.what == "check") return check_plugin(a);
  if (a.what == "new") return new_plugin(a);
  throw error("tandem plugin {}: unknown; there are: check, new", a.what);
}

}  // namespace

void add_plugin(CommandLine& line) {
  Command& command = line.add(
      "plugin", "Check the layers and data sets of a plugin, or write the sources of a new one");
  PluginArguments& a = command.runs(run_plugin);
  command.add({
      {"action check|new", &a.what, "check: try to break what layers promise; new: write a folder",
       required},
      {"names PATH", &a.names,
       "check: module files, layer types and data sets (none: all layer types); new: a name"},
      {"--layer NAME", &a.check.layer,
       "check: only this type of a module; with --net a layer of the net"},
      {"--net FILE", &a.check.net,
       "check: the layers of this net, with the parameters and shapes that they have there"},
      {"--promise NAME", &a.check.promise, "check: only this promise"},
      {"--without NAMES", &a.check.without, "check: not these promises, as phases,growth",
       separated_by(',')},
      {"--input SHAPE", &a.inputs,
       "check: the shape of an input, as 2x8x3x3, once for each input; without it cases are "
       "generated"},
      {"--set NAME=VALUE", &a.set, "check: a parameter of the layer, with --input"},
      {"--outputs N", &a.outputs, "check: number of outputs, with --input", in_range(1, 64)},
      {"--data SOURCE", &a.check.data, "check: what a data set reads (default: its name)"},
      {"--data-option NAME=VALUE", &a.data_options, "check: a parameter of a data set"},
      {"--device KIND", &a.check.device, "check: kind of device", show_default},
      {"--patience SECONDS", &a.check.patience,
       "check: a case that takes longer hangs; more for slow machines and under valgrind",
       in_range(1, 86400), show_default},
      {"--with PARTS", &a.with,
       "new: what the layer has, as weights,two-inputs: " + plugin_template_parts()},
      json_option(a.as_json),
  });
}

}  // namespace tandem::cli
