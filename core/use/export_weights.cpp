#include "core/use/export_weights.h"

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/caffemodel.h"
#include "core/formats/safetensors.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/folder/run_folder.h"
#include "core/use/export_onnx.h"
#include "include/tandem/predict.h"

namespace tandem {

namespace fs = std::filesystem;

void write_weights(const fs::path& path, const Net& net, const std::vector<float>& values) {
  if (path_status(path).exists()) {
    throw error("'{}' exists already: choose another name for the weights", path.string());
  }
  const std::string ending = path.extension().string();
  if (ending == ".caffemodel") {
    write_caffemodel(path, net, values);
  } else if (ending == ".safetensors") {
    std::vector<NamedArray> arrays;
    for (const WeightArray& weight : net.weights) {
      arrays.push_back({weight.name, file_shape(weight.shape), values.data() + weight.offset});
    }
    write_safetensors(path, arrays, {{"format", "tandem"}, {"net", net.name}});
  } else {
    throw error(
        "'{}': weights are written as .safetensors or .caffemodel, a net with them as .onnx",
        path.string());
  }
}

ExportResult export_run(const ExportOptions& options) {
  if (options.onnx || options.file.extension() == ".onnx") return export_onnx(options);
  if (options.softmax || options.fold_batch_norm || options.picture_height > 0 || !options.check) {
    throw error(
        "'{}' holds weights only: --softmax, --fold-batch-norm, --preprocess and --no-check "
        "are for ONNX files (.onnx)",
        options.file.string());
  }
  if (options.weights != "best" && options.weights != "last") {
    throw error("weights '{}': there are 'best' and 'last'", options.weights);
  }
  const RunFolder folder = RunFolder::open(options.run);
  const RunRecord record = folder.record();
  const Registry registry = Registry::with_defaults();
  NetOptions net_options;
  net_options.phase = TANDEM_TRAIN;  // auxiliary heads have weights, too
  net_options.data = record.data;
  net_options.device_kind = "";
  const Net net = build_net(folder.net(), registry, net_options);
  const std::string name =
      options.weights == "best" && has_checkpoint(options.run, "best") ? "best" : "last";
  if (!has_checkpoint(options.run, name)) {
    throw error("run '{}' has no checkpoint yet", options.run.string());
  }
  const Checkpoint checkpoint = read_checkpoint(options.run, name, net, false);
  write_weights(options.file, net, checkpoint.weights);
  return {name, checkpoint.note, {}};
}

}  // namespace tandem
