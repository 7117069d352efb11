// The seconds of each task of a plan: from a table that `tandem profile --costs` measured, or from
// a roofline for a task that was never measured. is_measured() tells which, so that a prediction
// can name its sources.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/model/net/net.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

struct MeasuredCost {
  double seconds = 0;
  // Of the measured task. A layer's pass scales with the rows of its batch, other tasks with bytes.
  // A mean, and of a task that divides a layer only its share of the rows.
  double rows = 0;
  int64_t bytes = 0;
};

struct Roofline {
  double flops = 1e11;      // per second
  double bandwidth = 1e10;  // bytes per second
};

// What the layers of a net compute and move, as their types say. A type is asked once for each
// number of rows: a plan has many tasks of the same layer.
class LayerWorks {
 public:
  explicit LayerWorks(const Net& net) : net_(net) {}  // which outlives it
  [[nodiscard]] const Net& net() const { return net_; }
  const tandem_layer_cost& of(int layer, int64_t rows);

 private:
  const Net& net_;
  std::unordered_map<int64_t, tandem_layer_cost> known_;  // by rows and layer
};

class CostTable {
 public:
  CostTable() = default;
  explicit CostTable(const Roofline& roofline) : roofline_(roofline) {}

  // The key is one of cost_key(): "<layer> forward", "<layer> backward_data", ...; "<layer>
  // forward+relu" with a fused activation, "<layer> forward+sum" with a fused sum, "<layer>
  // forward+sum+relu" with both; followed by the outputs' dtype if it is not float32, or
  // by "tf32" if a layer with weights may use it. Or it is "add", "merge", "norms", "update",
  // "check", "input", "convert", "rearrange".
  void set(const std::string& key, const MeasuredCost& cost) { measured_[key] = cost; }
  [[nodiscard]] const MeasuredCost* find(const std::string& key) const;
  // Of a pass with this activation fused into it. A kernel takes about as long with an activation
  // as without, so if only the other was measured, that one is returned: slices fuse nothing, and
  // kernels of other kinds of devices may fuse less.
  [[nodiscard]] const MeasuredCost* find_pass(const Net& net, int layer, LayerPass pass,
                                              int32_t activation) const;
  [[nodiscard]] bool empty() const { return measured_.empty(); }
  // The net that the comments of a file name: what --net was when it was written; "": none.
  [[nodiscard]] const std::string& net() const { return net_; }
  // The layers of which a pass was measured.
  [[nodiscard]] std::set<std::string> layers() const;
  // What was measured under the name of a layer: its extents_of(). nullptr: a file that does not
  // say, as those of older versions.
  void set_extents(const std::string& layer, const std::string& extents) {
    extents_[layer] = extents;
  }
  [[nodiscard]] const std::string* extents(const std::string& layer) const;
  // Removes the costs of a layer.
  void forget(const std::string& layer);

  // Seconds of a task (a copy between devices: 0; links time it).
  [[nodiscard]] double seconds(const Net& net, const Plan& plan, const Task& task) const;
  // The same, for many tasks.
  [[nodiscard]] double seconds(LayerWorks& layers, const Plan& plan, const Task& task) const;
  // False if seconds() uses the roofline for it.
  [[nodiscard]] bool is_measured(const Net& net, const Plan& plan, const Task& task) const;
  // What seconds() is made of: the pass of a layer over `rows` rows, and work that moves bytes
  // ("add", "norms", "update", "check", "input", "results"; see cost_bytes()). The forward pass
  // includes the activation that is fused into it; that of a fused layer is 0.
  [[nodiscard]] double pass_seconds(const Net& net, int layer, LayerPass pass, int64_t rows) const;
  // Of a statistics pass; 0 for a layer without.
  [[nodiscard]] double statistics_seconds(const Net& net, int layer, LayerPass pass,
                                          int64_t rows) const;
  [[nodiscard]] double moving_seconds(const std::string& key, int64_t bytes) const;

  // As read() and write() have it in a file; `source` is named in errors.
  [[nodiscard]] std::string text(const std::vector<std::string>& comments = {}) const;
  [[nodiscard]] static CostTable parse(const std::string& text, const std::string& source,
                                       const Roofline& roofline, const std::string& precision = "");
  // CSV with the header line key,seconds,rows,bytes and comment lines "# ..." for net, devices,
  // machine, precision and the extents of layers. Errors name file and line. write() replaces an
  // existing cost table atomically, and refuses to replace any other file. read() refuses a table
  // whose comments name another precision than this one ("": any).
  void write(const std::filesystem::path& path, const std::vector<std::string>& comments) const;
  [[nodiscard]] static CostTable read(const std::filesystem::path& path, const Roofline& roofline,
                                      const std::string& precision = "");

  [[nodiscard]] const Roofline& roofline() const { return roofline_; }

 private:
  [[nodiscard]] double use_seconds(LayerWorks& layers, int layer, LayerPass pass, int64_t rows,
                                   int32_t activation) const;
  [[nodiscard]] double pass_seconds(LayerWorks& layers, int layer, LayerPass pass,
                                    int64_t rows) const;

  Roofline roofline_;
  std::string net_;
  std::map<std::string, MeasuredCost> measured_;
  std::map<std::string, std::string> extents_;  // by layer
};

// Operations and memory traffic of a layer's pass over `rows` rows, in bytes of the layer's dtype.
struct PassWork {
  double flops = 0, bytes = 0;
};
[[nodiscard]] PassWork work_of(LayerWorks& layers, int layer, LayerPass pass, int64_t rows);

// Whether a copy moves several segments within one device, to put them in another order.
[[nodiscard]] bool rearranges(const Plan& plan, const CopyWork& copy);
// Of a layer's pass with this activation fused into it (TANDEM_ACTIVATION_NONE: none).
[[nodiscard]] std::string pass_key(const Net& net, int layer, LayerPass pass, int32_t activation);
// "" for a copy between devices, for a message, and for a copy of one segment within a device.
[[nodiscard]] std::string cost_key(const Net& net, const Plan& plan, const Task& task);
// The memory traffic of a task, with which measured costs scale: the bytes that it reads, and those
// that it writes (twice if it reads them first); of a copy the bytes copied. 0 for a layer's pass.
[[nodiscard]] int64_t cost_bytes(const Plan& plan, const Task& task);

}  // namespace tandem
