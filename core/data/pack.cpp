#include "core/data/pack.h"

#include <set>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/data/splits.h"
#include "core/plugin/host.h"
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

// The samples of each split that are in the pack.
std::vector<std::pair<std::string, int64_t>> packed_sizes(const std::vector<NamedSplit>& splits,
                                                          const std::vector<BadSample>& left_out) {
  std::set<std::string> missing;
  for (const BadSample& sample : left_out) missing.insert(sample.name);
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const NamedSplit& split : splits) {
    int64_t size = split.dataset->size();
    for (int64_t i = split.dataset->size() - 1; i >= 0 && !missing.empty(); --i) {
      if (missing.contains(split.dataset->sample_name(i))) --size;
    }
    sizes.emplace_back(split.name, size);
  }
  return sizes;
}

}  // namespace

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
  request.threads = options.threads > 0 ? options.threads : processor_count();
  request.seed = options.seed;
  request.progress = &on_progress;
  request.left_out = &on_left_out;
  request.user = &listener;
  check(type.pack(&request), fmt::format("pack of '{}'", options.source));
  result.splits = packed_sizes(splits, result.left_out);
  return result;
}

}  // namespace tandem
