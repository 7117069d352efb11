// What each task of a plan takes: a table measured by `tandem profile --costs`, and a roofline for
// what was never measured. Prices come with their source, so that a prediction can say where it
// comes from.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/model/net.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

struct MeasuredCost {
  double seconds = 0;
  int64_t rows = 0;  // of the batch, when measured; layer passes scale with rows, others with bytes
  int64_t bytes = 0;
};

struct Roofline {
  double flops = 1e11;      // per second
  double bandwidth = 1e10;  // bytes per second
};

class CostTable {
 public:
  CostTable() = default;
  explicit CostTable(const Roofline& roofline) : roofline_(roofline) {}

  // key: "<layer> forward", "<layer> backward_data", ..., behind them the outputs' dtype if it is
  // not float32, or "tf32" where a layer with weights may use it; "<layer> forward+relu" where its
  // kernel does an activation along;
  // "add", "merge", "norms", "update", "check", "input", "convert", "rearrange" (see cost_key()).
  void set(const std::string& key, const MeasuredCost& cost) { measured_[key] = cost; }
  [[nodiscard]] const MeasuredCost* find(const std::string& key) const;
  // Of a pass that does this activation along. A kernel takes about as long with one as without, so
  // where only the other was measured it stands in: slices do nothing along, and nets for other
  // kinds of devices have other kernels.
  [[nodiscard]] const MeasuredCost* find_pass(const Net& net, int layer, LayerPass pass,
                                              int32_t activation) const;
  [[nodiscard]] bool empty() const { return measured_.empty(); }

  // Seconds of a task (a copy between devices: 0; links price it).
  [[nodiscard]] double seconds(const Net& net, const Plan& plan, const Task& task) const;
  // False if the roofline has to stand in for what was never measured.
  [[nodiscard]] bool is_measured(const Net& net, const Plan& plan, const Task& task) const;
  // What seconds() is made of: a pass of a layer over `rows` rows; work that moves bytes ("add",
  // "norms", "update", "check", "input", "results"; see cost_bytes()). Forward is as the net has
  // it: with what the kernel does along, 0 where another layer's does it.
  [[nodiscard]] double pass_seconds(const Net& net, int layer, LayerPass pass, int64_t rows) const;
  // Of a statistics pass; 0 for a layer without.
  [[nodiscard]] double statistics_seconds(const Net& net, int layer, LayerPass pass,
                                          int64_t rows) const;
  [[nodiscard]] double moving_seconds(const std::string& key, int64_t bytes) const;

  // CSV with a header line: key,seconds,rows,bytes and comment lines "# ..." that say net, devices,
  // machine, precision. Errors name file and line. Writing replaces a file of that kind at once or
  // not at all, and no other kind of file. Reading refuses a table whose comments end on another
  // precision than this one ("": any is read).
  void write(const std::filesystem::path& path, const std::vector<std::string>& comments) const;
  [[nodiscard]] static CostTable read(const std::filesystem::path& path, const Roofline& roofline,
                                      const std::string& precision = "");

  Roofline roofline_;

 private:
  [[nodiscard]] double use_seconds(const Net& net, int layer, LayerPass pass, int64_t rows,
                                   int32_t activation) const;

  std::map<std::string, MeasuredCost> measured_;
};

// Whether a copy puts many pieces in another order within a device.
[[nodiscard]] bool rearranges(const Plan& plan, const CopyWork& copy);
// Of a pass of a layer that does this activation along (TANDEM_ACTIVATION_NONE: none).
[[nodiscard]] std::string pass_key(const Net& net, int layer, LayerPass pass, int32_t activation);
// "" for a copy between devices, and for one piece within a device.
[[nodiscard]] std::string cost_key(const Net& net, const Plan& plan, const Task& task);
// The memory traffic of a task, by which measured costs scale: what it reads, and what it writes
// (twice where it is read first); of a copy the bytes copied. 0 for layer passes.
[[nodiscard]] int64_t cost_bytes(const Plan& plan, const Task& task);

}  // namespace tandem
