// The passes of the strategy `fc_parallel` over its chain of fully connected layers: device j has
// the neurons share(neurons, devices, j) of every layer, for the whole batch. Forward is half
// stop-and-wait: a product is taken of each piece of the input as it arrives, and the whole output
// goes out. Backward is fixed stop-and-wait: in rounds of so many error pieces, whose errors are
// sent together behind the last round, or (eager) each behind its own.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/common/fc_chain.h"

namespace tandem {

class FcSlices {
 public:
  FcSlices(PlanBuilder& builder, const FcChain& chain);

  // The whole batch, where the chain begins at the data.
  void emit_inputs();
  // One layer of the chain on all devices, and what it needs from the others.
  void emit_forward(int layer);
  // The chain's output, to the devices' own rows of it; the errors of those, back to the slices.
  void emit_gather();
  void emit_scatter();
  // From the errors of what the layers behind it made to those of this fully connected layer's
  // input, which are sent; and the gradient of its weights.
  void emit_backward(int layer);
  // Neurons of the layer on the device.
  [[nodiscard]] Interval neurons(int layer, int device) const;

 private:
  struct Round {
    int number = 0;
    Interval rows;            // of the batch
    int sent_in = 0;          // the round of the layer behind that sent the pieces; 0 if not eager
    std::vector<int> pieces;  // whose errors are added up; none: rows of what was gathered
    [[nodiscard]] std::string name() const { return "round " + std::to_string(number); }
  };

  [[nodiscard]] int devices() const { return builder_.devices(); }
  [[nodiscard]] const Layer& at(int layer) const { return net_.layers[size_t(layer)]; }
  [[nodiscard]] int root_of(int tensor) const;
  [[nodiscard]] const std::string& name_of(int tensor) const;
  [[nodiscard]] Interval slice(int tensor, int device) const;
  // [rows of the batch x neurons of `owner`] on a device.
  [[nodiscard]] Region buffer(int device, int tensor, int owner, const std::string& what);
  [[nodiscard]] Region rows_of(const Region& all, Interval rows) const;
  // The slice of `owner`; the gradient of the device's own slice.
  [[nodiscard]] Region output(int device, int tensor, int owner);
  [[nodiscard]] Region gradient(int device, int tensor);
  // Errors of slices of a layer's input, as one of its rounds gave them: of the device's slice as
  // `sender` computed them; of the slice of `target`, on their way there.
  [[nodiscard]] Region error(int device, int tensor, int sender, const Round& round);
  [[nodiscard]] Region outgoing(int device, int tensor, int target, const Round& round);
  [[nodiscard]] Region gradients_below(int device, const Round& round);
  [[nodiscard]] Region errors(int device, int tensor, int owner, const std::string& what,
                              const Round& round);

  [[nodiscard]] PlanBinding whole_use(int device, int layer);
  [[nodiscard]] PlanBinding neurons_use(int device, int layer, Interval rows);
  [[nodiscard]] PlanBinding use_of_piece(int device, int layer, int owner);
  [[nodiscard]] bool begins_at_data() const;
  void emit_first_forward(int layer);
  void emit_next_forward(int layer);
  void emit_neurons_forward(int layer);
  // Rows that layers behind the first round of the last layer work on at once: all, or (eager)
  // those of each of its rounds.
  [[nodiscard]] std::vector<Interval> row_ranges() const;
  [[nodiscard]] Interval rows_of_round(int layer, int number) const;
  [[nodiscard]] Round round_of(int layer, int device, int number) const;
  void emit_round(int layer, int device, const Round& round);
  [[nodiscard]] Region emit_neurons_backward(int layer, int device, const Round& round);
  void emit_first_backward(int layer, int device, const Round& round, const Region& error);
  void emit_next_backward(int layer, int device, const Round& round, const Region& error);
  void emit_data_pass(int layer, int device, const Round& round, PlanBinding use,
                      const std::string& suffix);
  void emit_weights_pass(int layer, int device, const Round& round, const PlanBinding& use,
                         const std::string& suffix);
  void send_activation_gradients(int layer, const Round& round);
  void send_rows_of_errors(int layer, const Round& round);
  void send_rows_to(int layer, int device, const Round& round);
  [[nodiscard]] std::string label(LayerPass pass, int layer, int device,
                                  const std::string& suffix) const;

  PlanBuilder& builder_;
  const Net& net_;
  const FcChain& chain_;
  std::vector<int> places_;  // each device's, of the whole batch
};

}  // namespace tandem
