#include "core/schedule/cost/cost_table.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/numbers/shape.h"
#include "core/base/overloaded.h"
#include "core/base/text/strings.h"

namespace tandem {

namespace {

// By a layer's type, for tensors in float32.
PassWork work_of(const tandem_layer_cost& cost, LayerPass pass) {
  switch (pass) {
    case LayerPass::forward:
      return {cost.forward_flops, cost.forward_bytes};
    case LayerPass::backward_data:
      return {cost.backward_data_flops, cost.backward_data_bytes};
    // These read what the pass reads, which is half of its traffic, or two thirds of it with the
    // output's gradient.
    case LayerPass::forward_statistics:
      return {cost.forward_flops / 2, cost.forward_bytes / 2};
    case LayerPass::backward_statistics:
      return {cost.backward_data_flops / 2, cost.backward_data_bytes * 2 / 3};
    default:
      return {cost.backward_weights_flops, cost.backward_weights_bytes};
  }
}

// Of a copy, by its first segment: between a device and the host, or its extended memory.
std::string copy_key(const Plan& plan, const CopyWork& copy) {
  if (copy.segments.empty()) return "input";
  const Buffer& source = plan.buffers[size_t(copy.segments.front().source.buffer)];
  const Buffer& target = plan.buffers[size_t(copy.segments.front().target.buffer)];
  if (source.is_extended || target.is_extended) return "extended";
  if (rearranges(plan, copy)) return "rearrange";
  return source.device == TANDEM_HOST ? "input" : target.device == TANDEM_HOST ? "results" : "";
}

// What is fused into the pass of a binding.
int32_t activation_of(const PlanBinding& use, LayerPass pass) {
  return pass == LayerPass::forward ? use.activation : TANDEM_ACTIVATION_NONE;
}

constexpr const char* title = "# costs of tasks, measured";
constexpr const char* header = "key,seconds,rows,bytes";
constexpr const char* example = "conv1 forward,0.061,128,0";

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"#") == std::string::npos) return field;
  std::string result = "\"";
  for (const char c : field) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

// The fields of a line. A field may be quoted, with quotes inside it doubled. False: an open quote.
bool split_fields(std::string_view line, std::vector<std::string>& fields) {
  fields.assign(1, "");
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool is_quote = line[i] == '"';
    if (is_quote && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (is_quote) {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return !is_quoted;
}

MeasuredCost parse_cost(const std::vector<std::string>& fields, const Location& where) {
  MeasuredCost cost;
  if (!parse_number(fields[1], &cost.seconds) || !std::isfinite(cost.seconds) || cost.seconds < 0) {
    throw error("{}: '{}' is not a number of seconds (0 or more); a line is as in \"{}\"",
                to_string(where), fields[1], example);
  }
  const auto parse_count = [&](const std::string& text, const char* what, int64_t* value) {
    if (parse_integer(text, value) && *value >= 0) return;
    throw error("{}: '{}' is not a number of {} (0 or more); a line is as in \"{}\"",
                to_string(where), text, what, example);
  };
  parse_count(fields[2], "rows", &cost.rows);
  parse_count(fields[3], "bytes", &cost.bytes);
  return cost;
}

// "# net lenet ... precision bfloat16" -> "bfloat16"; "" if the comment ends otherwise.
std::string precision_of(const std::string& comment) try {
  constexpr std::string_view key = " precision ";
  const size_t at = comment.rfind(key);
  if (at == std::string::npos) return "";
  return dtype_name(parse_precision(comment.substr(at + key.size())));
} catch (const Error&) {
  return "";
}

// "# net lenet batch 64 ..." -> "lenet"; "" of another comment.
std::string net_of(const std::string& comment) {
  constexpr std::string_view key = "# net ";
  const size_t end = comment.find(" batch ");
  if (!comment.starts_with(key) || end == std::string::npos || end < key.size()) return "";
  return comment.substr(key.size(), end - key.size());
}

constexpr std::string_view layer_comment = "# layer ";

// "# layer conv1: Convolution ..." -> "conv1", "Convolution ..."; the text after the name has no
// colon followed by a space.
std::pair<std::string, std::string> extents_in(const std::string& comment) {
  const size_t end = comment.rfind(": ");
  if (!comment.starts_with(layer_comment) || end == std::string::npos ||
      end < layer_comment.size()) {
    return {};
  }
  return {comment.substr(layer_comment.size(), end - layer_comment.size()),
          comment.substr(end + 2)};
}

// The layer whose pass a key names; "": other work.
std::string layer_of(const std::string& key) {
  // All passes are named so (to_string(LayerPass)).
  const size_t end = std::min(key.rfind(" forward"), key.rfind(" backward"));
  return end == std::string::npos ? "" : key.substr(0, end);
}

void require_precision(const std::string& comment, const std::string& wanted,
                       const Location& where) {
  const std::string found = precision_of(comment);
  if (wanted.empty() || found.empty() || found == wanted) return;
  throw error(
      "{}: these costs were measured in {}, not in {}: use --precision {}, or measure them "
      "again",
      to_string(where), found, wanted, found);
}

// No file, or a cost table, which a user may have edited.
bool may_replace(const std::filesystem::path& path) {
  if (!path_status(path).is_file()) return true;
  std::istringstream file(read_text_file(path, "costs file"));
  std::string line;
  if (!std::getline(file, line)) return true;
  return line == title || line == header;
}

}  // namespace

PassWork work_of(LayerWorks& layers, int layer, LayerPass pass, int64_t rows) {
  const Layer& l = layers.net().layers[size_t(layer)];
  PassWork work;
  if (pass == LayerPass::backward) {
    if (l.wants_backward_data) work = work_of(layers, layer, LayerPass::backward_data, rows);
    if (!l.wants_backward_weights) return work;
    const PassWork more = work_of(layers, layer, LayerPass::backward_weights, rows);
    return {work.flops + more.flops, work.bytes + more.bytes};
  }
  work = work_of(layers.of(layer, rows), pass);
  if (pass == LayerPass::forward && l.addend >= 0) {
    Shape read = layers.net().tensor(l.addend).shape;
    read.n = rows;
    work.bytes += static_cast<double>(element_count(read) * dtype_bytes(TANDEM_FLOAT32));
  }
  work.bytes *=
      static_cast<double>(dtype_bytes(l.dtype)) / static_cast<double>(dtype_bytes(TANDEM_FLOAT32));
  return work;
}

// A cost measured in one precision is not used for another.
std::string pass_key(const Net& net, int index, LayerPass pass, int32_t activation) {
  const Layer& layer = net.layers[size_t(index)];
  std::string key = layer.name + " " + to_string(pass);
  if (pass == LayerPass::forward && layer.addend >= 0) key += "+sum";
  if (activation != TANDEM_ACTIVATION_NONE) key += fmt::format("+{}", activation_name(activation));
  const std::vector<int>& tensors = layer.outputs.empty() ? layer.inputs : layer.outputs;
  const int32_t dtype =
      tensors.empty() ? TANDEM_FLOAT32 : net.tensors[size_t(tensors.front())].dtype;
  if (dtype != TANDEM_FLOAT32) return key + " " + dtype_name(dtype);
  return layer.allows_tf32 ? key + " " + dtype_name(tf32_precision) : key;
}

bool rearranges(const Plan& plan, const CopyWork& copy) {
  const auto device = [&](const Region& region) {
    const Buffer& buffer = plan.buffers[size_t(region.buffer)];
    return buffer.is_extended ? TANDEM_HOST : buffer.device;
  };
  return copy.segments.size() > 1 &&
         std::all_of(copy.segments.begin(), copy.segments.end(), [&](const CopySegment& segment) {
           return device(segment.source) >= 0 && device(segment.source) == device(segment.target);
         });
}

std::string cost_key(const Net& net, const Plan& plan, const Task& task) {
  return std::visit(overloaded{
                        [&](const LayerWork& work) {
                          const PlanBinding& use = plan.bindings[size_t(work.binding)];
                          return pass_key(net, use.layer, work.pass, activation_of(use, work.pass));
                        },
                        [&](const CopyWork& work) { return copy_key(plan, work); },
                        [](const AddWork&) { return std::string("add"); },
                        [](const MergeWork&) { return std::string("merge"); },
                        [](const NormWork&) { return std::string("norms"); },
                        [](const UpdateWork&) { return std::string("update"); },
                        [](const CheckWork&) { return std::string("check"); },
                        [](const ConvertWork&) { return std::string("convert"); },
                        [](const RankMessage&) { return std::string(); },
                    },
                    task.work);
}

int64_t cost_bytes(const Plan& plan, const Task& task) {
  const int64_t written = plan.bytes(task.writes);
  return std::visit(
      overloaded{
          [](const LayerWork&) { return int64_t{0}; },
          [&](const CopyWork& work) { return rearranges(plan, work) ? 2 * written : written; },
          // What these change is read before it is written.
          [&](const OneOf<AddWork, MergeWork, NormWork, UpdateWork, CheckWork> auto&) {
            return plan.bytes(task.reads) + 2 * written;
          },
          [&](const OneOf<ConvertWork, SendWork, ReceiveWork> auto&) {
            return plan.bytes(task.reads) + written;
          },
      },
      task.work);
}

const MeasuredCost* CostTable::find_pass(const Net& net, int layer, LayerPass pass,
                                         int32_t activation) const {
  if (measured_.empty()) return nullptr;  // without the keys of a plan's many tasks
  const MeasuredCost* cost = find(pass_key(net, layer, pass, activation));
  if (cost != nullptr || pass != LayerPass::forward) return cost;
  const int32_t other = activation == TANDEM_ACTIVATION_NONE ? int32_t{TANDEM_ACTIVATION_RELU}
                                                             : int32_t{TANDEM_ACTIVATION_NONE};
  return find(pass_key(net, layer, pass, other));
}

const MeasuredCost* CostTable::find(const std::string& key) const {
  const auto found = measured_.find(key);
  return found == measured_.end() ? nullptr : &found->second;
}

std::set<std::string> CostTable::layers() const {
  std::set<std::string> names;
  for (const auto& [key, cost] : measured_) names.insert(layer_of(key));
  names.erase("");
  return names;
}

const std::string* CostTable::extents(const std::string& layer) const {
  const auto found = extents_.find(layer);
  return found == extents_.end() ? nullptr : &found->second;
}

void CostTable::forget(const std::string& layer) {
  std::erase_if(measured_, [&](const auto& one) { return layer_of(one.first) == layer; });
  extents_.erase(layer);
}

const tandem_layer_cost& LayerWorks::of(int layer, int64_t rows) {
  const auto key = rows * static_cast<int64_t>(net_.layers.size()) + layer;
  const auto found = known_.find(key);
  return found != known_.end() ? found->second
                               : known_.emplace(key, net_.cost(layer, rows)).first->second;
}

double CostTable::pass_seconds(const Net& net, int layer, LayerPass pass, int64_t rows) const {
  LayerWorks layers(net);
  return pass_seconds(layers, layer, pass, rows);
}

double CostTable::pass_seconds(LayerWorks& layers, int layer, LayerPass pass, int64_t rows) const {
  const Layer& l = layers.net().layers[size_t(layer)];
  const bool is_forward = pass == LayerPass::forward;
  if (is_forward ? l.fused_into >= 0 : l.gradient_fused_into >= 0) return 0;
  if (!is_forward && layers.net().makes_gradient_views(layer)) return 0;
  return use_seconds(layers, layer, pass, rows,
                     is_forward ? l.activation : int32_t{TANDEM_ACTIVATION_NONE});
}

double CostTable::use_seconds(LayerWorks& layers, int layer, LayerPass pass, int64_t rows,
                              int32_t activation) const {
  const Net& net = layers.net();
  if (const MeasuredCost* cost = find_pass(net, layer, pass, activation)) {
    if (cost->rows <= 0) return cost->seconds;
    return cost->seconds * static_cast<double>(rows) / static_cast<double>(cost->rows);
  }
  const Layer& l = net.layers[size_t(layer)];
  if (pass == LayerPass::backward) {
    const auto half = [&](bool is_wanted, LayerPass of) {
      return is_wanted ? pass_seconds(layers, layer, of, rows) : 0;
    };
    return half(l.wants_backward_data, LayerPass::backward_data) +
           half(l.wants_backward_weights, LayerPass::backward_weights);
  }
  const PassWork work = work_of(layers, layer, pass, rows);
  return std::max(work.flops / roofline_.flops, work.bytes / roofline_.bandwidth);
}

double CostTable::statistics_seconds(const Net& net, int layer, LayerPass pass,
                                     int64_t rows) const {
  const Layer& l = net.layers[size_t(layer)];
  if (!l.has(TANDEM_BATCH_STATISTICS)) return 0;
  const tandem_layer_statistics floats = net.statistics(layer);
  const bool is_forward = pass == LayerPass::forward_statistics;
  if ((is_forward ? floats.forward : floats.backward) == 0) return 0;
  return is_forward || l.has_backward() ? pass_seconds(net, layer, pass, rows) : 0;
}

double CostTable::moving_seconds(const std::string& key, int64_t bytes) const {
  const MeasuredCost* cost = find(key);
  if (cost == nullptr) return static_cast<double>(bytes) / roofline_.bandwidth;
  if (cost->bytes <= 0) return cost->seconds;
  return cost->seconds * static_cast<double>(bytes) / static_cast<double>(cost->bytes);
}

double CostTable::seconds(const Net& net, const Plan& plan, const Task& task) const {
  LayerWorks layers(net);
  return seconds(layers, plan, task);
}

double CostTable::seconds(LayerWorks& layers, const Plan& plan, const Task& task) const {
  if (const auto* work = std::get_if<LayerWork>(&task.work)) {
    const PlanBinding& use = plan.bindings[size_t(work->binding)];
    return slice_fraction(layers.net(), use) * use_seconds(layers, use.layer, work->pass,
                                                           use.rows.count(),
                                                           activation_of(use, work->pass));
  }
  const std::string key = cost_key(layers.net(), plan, task);
  return key.empty() ? 0 : moving_seconds(key, cost_bytes(plan, task));
}

bool CostTable::is_measured(const Net& net, const Plan& plan, const Task& task) const {
  const std::string key = cost_key(net, plan, task);
  if (key.empty() || find(key) != nullptr) return true;
  const auto* work = std::get_if<LayerWork>(&task.work);
  if (work == nullptr) return false;
  const PlanBinding& use = plan.bindings[size_t(work->binding)];
  const int layer = use.layer;
  if (work->pass != LayerPass::backward) {
    return find_pass(net, layer, work->pass, activation_of(use, work->pass)) != nullptr;
  }
  const Layer& l = net.layers[size_t(layer)];
  const auto has = [&](LayerPass half) {
    return find(pass_key(net, layer, half, TANDEM_ACTIVATION_NONE)) != nullptr;
  };
  return (!l.wants_backward_data || has(LayerPass::backward_data)) &&
         (!l.wants_backward_weights || has(LayerPass::backward_weights));
}

std::string CostTable::text(const std::vector<std::string>& comments) const {
  std::string text = fmt::format("{}\n", title);
  for (const std::string& comment : comments) text += fmt::format("# {}\n", comment);
  for (const auto& [layer, extents] : extents_) {
    text += fmt::format("{}{}: {}\n", layer_comment, layer, extents);
  }
  text += fmt::format("{}\n", header);
  for (const auto& [key, cost] : measured_) {
    text += fmt::format("{},{},{},{}\n", quoted(key), cost.seconds, cost.rows, cost.bytes);
  }
  return text;
}

void CostTable::write(const std::filesystem::path& path,
                      const std::vector<std::string>& comments) const {
  if (!may_replace(path)) {
    throw error("costs file '{}' exists and is another kind of file: choose another name",
                path.string());
  }
  write_text_file(path, text(comments));
}

CostTable CostTable::read(const std::filesystem::path& path, const Roofline& roofline,
                          const std::string& precision) {
  std::string text;
  try {
    text = read_text_file(path, "costs file");
  } catch (const Error& failure) {
    throw error("{}; `tandem profile --costs FILE` writes one", failure.what());
  }
  return parse(text, path.string(), roofline, precision);
}

CostTable CostTable::parse(const std::string& text, const std::string& source,
                           const Roofline& roofline, const std::string& precision) {
  std::istringstream file(text);
  CostTable table(roofline);
  Location where{source, 0, 0};
  bool has_header = false;
  std::vector<std::string> fields;
  for (std::string line; std::getline(file, line);) {
    ++where.line;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.starts_with('#')) {
      require_precision(line, precision, where);
      if (table.net_.empty()) table.net_ = net_of(line);
      if (const auto [layer, extents] = extents_in(line); !layer.empty()) {
        table.set_extents(layer, extents);
      }
    }
    if (line.empty() || line.front() == '#') continue;
    if (!has_header) {
      if (line != header) {
        throw error("{}: expected the header \"{}\", found \"{}\"", to_string(where), header, line);
      }
      has_header = true;
      continue;
    }
    if (!split_fields(line, fields) || fields.size() != 4 || fields[0].empty()) {
      throw error("{}: expected the 4 fields \"{}\", as in \"{}\", found \"{}\"", to_string(where),
                  header, example, line);
    }
    const MeasuredCost cost = parse_cost(fields, where);
    if (table.find(fields[0]) != nullptr) {
      throw error("{}: '{}' occurs twice; each key has one line", to_string(where), fields[0]);
    }
    table.set(fields[0], cost);
  }
  if (!has_header) {
    throw error("{}: no header line \"{}\"; is it a costs file?", source, header);
  }
  return table;
}

}  // namespace tandem
