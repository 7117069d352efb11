// The cost of one layer over some rows is that of the shapes of the whole net.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/model/adapted/models.h"
#include "core/model/net/layer_calls.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

std::vector<double> numbers(const tandem_layer_cost& cost) {
  return {cost.forward_flops,       cost.forward_bytes,          cost.backward_data_flops,
          cost.backward_data_bytes, cost.backward_weights_flops, cost.backward_weights_bytes};
}

void expect_costs_of_shapes(const Net& net, int64_t rows) {
  const std::vector<Shape> shapes = net.shapes(rows);
  for (size_t i = 0; i < net.layers.size(); ++i) {
    std::vector<Shape> inputs;
    for (const int input : net.layers[i].inputs) {
      inputs.push_back(shapes[static_cast<size_t>(input)]);
    }
    EXPECT_EQ(numbers(net.cost(static_cast<int>(i), rows)),
              numbers(layer_cost(net.layers[i], net.phase, inputs)))
        << net.name << " " << net.layers[i].name << " of " << rows << " rows";
  }
}

TEST(LayerCost, OfSomeRowsIsThatOfTheNetsShapes) {
  Registry registry;
  registry.scan(test::plugin_folder());
  for (const auto& [name, data] :
       {std::pair<std::string, Shape>{"lenet", {1, 1, 28, 28}}, {"googlenet", {1, 3, 224, 224}}}) {
    NetOptions options;
    options.batch = 8;
    options.data = data;
    const Net net = build_net(read_net(find_net(name)), registry, options);
    for (const int64_t rows : {int64_t{1}, int64_t{3}, net.batch})
      expect_costs_of_shapes(net, rows);
  }
}

}  // namespace
}  // namespace tandem
