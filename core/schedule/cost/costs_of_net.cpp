#include "core/schedule/cost/costs_of_net.h"

#include <set>

#include "core/base/error.h"
#include "core/model/models.h"

namespace tandem {
namespace {

// Not all layers are measured: some are fused into others, or have no pass.
bool are_mostly_alike(const NetDefinition& net, const std::set<std::string>& measured) {
  std::set<std::string> names;
  for (const LayerDefinition& layer : net.layers) names.insert(layer.name);
  size_t common = 0;
  for (const std::string& name : measured) common += names.contains(name) ? 1 : 0;
  return 2 * common >= measured.size() && 3 * common >= names.size();
}

}  // namespace

void require_costs_of(const std::string& net, const NetDefinition& definition,
                      const CostTable& costs, const std::string& file) {
  const std::string& measured = costs.net();
  if (measured.empty() || measured == net) return;
  const bool are_models = is_model_name(measured) && is_model_name(net);
  if (!are_models && are_mostly_alike(definition, costs.layers())) return;
  throw error(
      "costs file '{0}' is of net '{1}', not of net '{2}': measure this one with `tandem profile "
      "--net {2} --costs FILE`",
      file, measured, net);
}

}  // namespace tandem
