#include "core/run/folder/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/formats/safetensors.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

fs::path state_file(const fs::path& folder, const std::string& name) {
  return folder / (name + ".state.safetensors");
}

void rename_pair(const fs::path& folder, const std::string& name) {
  for (const fs::path& file : {state_file(folder, name), weights_file(folder, name)}) {
    replace_file(pending_file(file), file);
  }
}

// An array of the net, of its weights (part 0) or of one of the optimizer's arrays.
struct Part {
  std::string name;  // in the file
  const WeightArray* weight;
  int64_t offset;  // of its first value, among those of all parts
};

// In the weights' file `suffix` is "".
std::vector<Part> parts_of(const Net& net, const std::string& suffix, size_t parts) {
  std::vector<Part> result;
  for (size_t part = 0; part < parts; ++part) {
    for (const WeightArray& weight : net.weights) {
      result.push_back(
          {suffix.empty() ? weight.name : fmt::format("{}{}{}", weight.name, suffix, part), &weight,
           static_cast<int64_t>(part) * net.weight_floats + weight.offset});
    }
  }
  return result;
}

// The number of arrays of weight_floats values in the solver's state.
size_t part_count(const Net& net, const std::vector<float>& values) {
  return net.weight_floats > 0 ? values.size() / size_t(net.weight_floats) : 0;
}

std::vector<NamedArray> arrays_of(const Net& net, const std::vector<float>& values,
                                  const std::string& suffix) {
  std::vector<NamedArray> arrays;
  for (const auto& [name, weight, offset] : parts_of(net, suffix, part_count(net, values))) {
    arrays.push_back({name, file_shape(weight->shape), values.data() + offset});
  }
  return arrays;
}

std::string text_of(const std::vector<int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

int64_t step_of(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find("step");
  int64_t step = -1;
  if (found != metadata.end() && !parse_integer(found->second, &step)) step = -1;
  return step;
}

void complete_pair(const fs::path& folder, const std::string& name) {
  const fs::path weights = weights_file(folder, name), state = state_file(folder, name);
  if (!path_status(state).exists() || !path_status(pending_file(weights)).exists()) return;
  try {
    // Not the step alone: a run that was resumed may have come to the same step by another way.
    const auto wanted = read_safetensors_metadata(state);
    if (step_of(wanted) < 0 || read_safetensors_metadata(pending_file(weights)) != wanted) return;
    if (path_status(weights).exists() && read_safetensors_metadata(weights) == wanted) return;
    replace_file(pending_file(weights), weights);
  } catch (const Error&) {
    // A leftover that cannot be read does not prevent reading the checkpoint, whose own errors its
    // reader reports.
  }
}

// False of a file that is not there or cannot be read.
bool is_of_step(const fs::path& file, int64_t step) {
  try {
    return step_of(read_safetensors_metadata(file)) == step;
  } catch (const Error&) {
    return false;
  }
}

void link_or_copy(const fs::path& source, const fs::path& target) {
  if (!link_file(source, pending_file(target))) write_copy(source, pending_file(target));
}

void require_arrays(const ArrayFile& file, const fs::path& path, const Net& net,
                    const std::vector<Part>& parts) {
  std::unordered_set<std::string_view> known;
  for (const auto& [name, weight, offset] : parts) {
    known.insert(name);
    const auto found = file.arrays.find(name);
    if (found == file.arrays.end()) {
      throw error("checkpoint '{}' is of another net: it has no array '{}' (net '{}')",
                  path.string(), name, net.name);
    }
    const std::vector<int64_t> wanted = file_shape(weight->shape);
    if (found->second.shape != wanted) {
      throw error("checkpoint '{}' is of another net: array '{}' has shape {}, net '{}' needs {}",
                  path.string(), name, text_of(found->second.shape), net.name, text_of(wanted));
    }
  }
  for (const auto& [name, array] : file.arrays) {
    if (known.contains(name)) continue;
    throw error("checkpoint '{}' is of another net: net '{}' has no array '{}'", path.string(),
                net.name, name);
  }
}

// Takes memory only after all arrays were found to be the net's.
void unpack(const SafetensorsReader& reader, const fs::path& path, const Net& net,
            const std::string& suffix, size_t parts, std::vector<float>* values) {
  const std::vector<Part> wanted = parts_of(net, suffix, parts);
  require_arrays(reader.contents(), path, net, wanted);
  values->assign(size_t(net.weight_floats) * parts, 0.0F);
  for (const auto& [name, weight, offset] : wanted) {
    const std::vector<float> read = reader.values(reader.contents().arrays.at(name));
    // The state of a solver may overflow without harm.
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (suffix.empty() && !std::all_of(read.begin(), read.end(), is_finite)) {
      throw error("checkpoint '{}': array '{}' holds values that are not finite numbers",
                  path.string(), name);
    }
    std::copy(read.begin(), read.end(), values->begin() + offset);
  }
}

}  // namespace

fs::path weights_file(const fs::path& folder, const std::string& name) {
  return folder / (name + ".safetensors");
}

std::vector<int64_t> file_shape(const Shape& shape) {
  std::vector<int64_t> sizes{shape.n, shape.c, shape.h, shape.w};
  while (sizes.size() > 1 && sizes.back() == 1) sizes.pop_back();
  return sizes;
}

void write_checkpoint(const fs::path& folder, const std::string& name, const Net& net,
                      const Checkpoint& checkpoint, const std::vector<std::string>& others) {
  const fs::path weights = weights_file(folder, name), state = state_file(folder, name);
  std::map<std::string, std::string> metadata = checkpoint.metadata;
  metadata["format"] = "tandem";
  metadata["net"] = net.name;
  metadata["step"] = fmt::format("{}", checkpoint.step);
  metadata["state_arrays"] = fmt::format("{}", part_count(net, checkpoint.state));
  try {
    write_safetensors_plain(pending_file(weights), arrays_of(net, checkpoint.weights, ""),
                            metadata);
    write_safetensors_plain(pending_file(state), arrays_of(net, checkpoint.state, ".state"),
                            metadata);
  } catch (const Error&) {
    std::error_code code;
    fs::remove(pending_file(weights), code);
    throw;
  }
  // First those that a resumed run does not write again: a kill in between costs nothing.
  std::vector<std::string> copies;
  for (const std::string& other : others) {
    if (link_file(pending_file(state), pending_file(state_file(folder, other))) &&
        link_file(pending_file(weights), pending_file(weights_file(folder, other)))) {
      rename_pair(folder, other);
    } else {
      copies.push_back(other);
    }
  }
  rename_pair(folder, name);
  for (const std::string& copy : copies) write_checkpoint(folder, copy, net, checkpoint);
}

void complete_pairs(const fs::path& folder) {
  const std::string ending = pending_file(weights_file("", "")).string();
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string file = entry.filename().string();
    if (file.ends_with(ending)) names.push_back(file.substr(0, file.size() - ending.size()));
  }
  for (const std::string& name : names) complete_pair(folder, name);
}

void complete_names(const fs::path& folder, const std::string& name,
                    const std::vector<std::string>& others) {
  const fs::path weights = weights_file(folder, name), state = state_file(folder, name);
  const int64_t step = step_of(read_safetensors_metadata(weights));
  for (const std::string& other : others) {
    if (is_checkpoint_of(folder, other, step)) continue;
    link_or_copy(state, state_file(folder, other));
    link_or_copy(weights, weights_file(folder, other));
    rename_pair(folder, other);
  }
}

Checkpoint read_checkpoint(const fs::path& folder, const std::string& name, const Net& net,
                           bool with_state) {
  const fs::path weights = weights_file(folder, name), state = state_file(folder, name);
  Checkpoint checkpoint;
  const SafetensorsReader reader(weights);
  const ArrayFile& file = reader.contents();
  if (file.metadata.count("state_arrays") == 0) {
    throw error("file '{}' is not a checkpoint of Tandem's: its metadata name no step and no state",
                weights.string());
  }
  checkpoint.step = step_of(file.metadata);
  checkpoint.metadata = file.metadata;
  unpack(reader, weights, net, "", 1, &checkpoint.weights);
  if (!with_state) return checkpoint;

  const SafetensorsReader state_reader(state);
  const ArrayFile& rest = state_reader.contents();
  if (step_of(rest.metadata) != checkpoint.step) {
    throw error(
        "checkpoint '{}' is of step {}, but '{}' is of step {}: they do not belong together",
        weights.string(), checkpoint.step, state.string(), step_of(rest.metadata));
  }
  // No solver keeps more than three arrays; of a damaged file, far more would be read.
  constexpr int64_t max_parts = 16;
  int64_t parts = 0;
  const auto found = rest.metadata.find("state_arrays");
  if (found == rest.metadata.end() || !parse_integer(found->second, &parts) || parts < 0 ||
      parts > max_parts) {
    throw error("file '{}' is not a state file: it does not say how many solver arrays it holds",
                state.string());
  }
  checkpoint.metadata = rest.metadata;
  unpack(state_reader, state, net, ".state", size_t(parts), &checkpoint.state);
  return checkpoint;
}

int64_t checkpoint_step(const fs::path& folder, const std::string& name) {
  return step_of(read_safetensors_metadata(weights_file(folder, name)));
}

bool is_checkpoint_of(const fs::path& folder, const std::string& name, int64_t step) {
  return is_of_step(weights_file(folder, name), step) && is_of_step(state_file(folder, name), step);
}

bool has_checkpoint(const fs::path& folder, const std::string& name) {
  return path_status(weights_file(folder, name)).exists();
}

fs::path weights_without_last(const fs::path& folder) {
  if (has_checkpoint(folder, "best")) return weights_file(folder, "best");
  fs::path found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool are_weights =
        name.ends_with(".safetensors") && !name.ends_with(".state.safetensors");
    if (are_weights && name > found.filename().string()) found = entry.path();
  }
  return found;
}

std::string checkpoint_name(const fs::path& folder, const std::string& which) {
  if (which != "best" && which != "last") {
    throw error("weights '{}': there are 'best' and 'last'", which);
  }
  if (which == "best" && has_checkpoint(folder, "best")) return which;
  if (has_checkpoint(folder, "last")) return "last";
  throw error("run '{}' has no checkpoint yet ('{}')", folder.string(),
              weights_file(folder, "last").string());
}

}  // namespace tandem
