#include "include/tandem/data.h"
#include "core/data/dataset.h"
#include "core/plugin/registry.h"

namespace tandem {

DataInfo read_data_info(const std::string& source,
                        const std::map<std::string, std::string>& parameters) {
  constexpr int64_t any_side = 8;  // no pixel is read
  Registry registry = Registry::with_defaults();
  DatasetOptions options;
  options.source = source;
  options.shape = {1, 3, any_side, any_side};
  options.parameters = parameters;
  const Dataset dataset(registry, options);
  return {dataset.class_names(), dataset.size()};
}

}  // namespace tandem
