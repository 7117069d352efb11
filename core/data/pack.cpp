#include "core/data/pack.h"

#include <algorithm>
#include <thread>

#include "core/base/error.h"
#include "core/plugin/registry.h"

namespace tandem {
namespace {

struct Listener {
  const PackOptions& options;
  PackResult& result;
};

int32_t on_progress(void* user, int64_t done, int64_t all) {
  const PackOptions& options = static_cast<Listener*>(user)->options;
  if (options.progress) options.progress(done, all);
  return options.stop != nullptr && *options.stop ? 1 : 0;
}

void on_left_out(void* user, const char* sample, const char* reason) {
  static_cast<Listener*>(user)->result.left_out.push_back({sample, reason});
}

void check_options(const PackOptions& options) {
  if (options.shorter_side != 0 && (options.shorter_side < 8 || options.shorter_side > 16384)) {
    throw error("--shorter-side {}: from 8 to 16384 pixels, or 0 to leave pictures as they are",
                options.shorter_side);
  }
  if (options.quality < 1 || options.quality > 100) {
    throw error("--quality {}: a JPEG's goes from 1 to 100", options.quality);
  }
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
    for (const char* name : {"mean", "scale", "resize", "color"}) options.parameters.erase(name);
    if (!splits.empty()) options.class_names = splits[0].dataset->class_names();
    return std::make_unique<Dataset>(registry, options);
  };
  splits.push_back({"train", open("train")});
  const auto fraction = parameters.find("val_fraction");
  const bool all_train = splits[0].dataset->split_is_drawn() && fraction != parameters.end() &&
                         std::stod(fraction->second) == 0;
  if (all_train) return splits;
  splits.push_back({"val", open("val")});
  auto test = open("test");
  // Where there is none, data sets serve the validation samples.
  const Dataset& val = *splits[1].dataset;
  const bool same = test->size() == val.size() && test->sample_name(0) == val.sample_name(0) &&
                    test->sample_name(test->size() - 1) == val.sample_name(val.size() - 1);
  if (!same) splits.push_back({"test", std::move(test)});
  return splits;
}

PackResult pack(Registry& registry, const PackOptions& options) {
  check_options(options);
  constexpr int64_t any_side = 8;  // nothing is resized to it
  const std::vector<NamedSplit> splits = open_splits(registry, options.source, options.parameters,
                                                     options.seed, {1, 3, any_side, any_side});
  PackResult result;
  result.type = splits[0].dataset->type_name();
  const tandem_dataset_type& type = registry.dataset(result.type);
  if (type.pack == nullptr) {
    throw error("data '{}': data set '{}' cannot be packed{}", options.source, result.type,
                type.describe == nullptr ? "" : " (it may be small, or packed, already)");
  }
  std::vector<void*> handles;
  std::vector<const char*> names;
  for (const NamedSplit& split : splits) {
    handles.push_back(split.dataset->handle());
    names.push_back(split.name.c_str());
    result.splits.emplace_back(split.name, split.dataset->size());
  }
  Listener listener{options, result};
  tandem_pack_request request{};
  request.struct_size = sizeof(request);
  request.split_count = static_cast<uint32_t>(splits.size());
  request.handles = handles.data();
  request.splits = names.data();
  request.path = options.file.c_str();
  request.shorter_side = options.shorter_side;
  request.quality = options.quality;
  request.threads = options.threads > 0
                        ? options.threads
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  request.seed = options.seed;
  request.progress = &on_progress;
  request.left_out = &on_left_out;
  request.user = &listener;
  check(type.pack(&request), fmt::format("pack of '{}'", options.source));
  return result;
}

}  // namespace tandem
