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
#include "plugins/text.h"

namespace tandem {

namespace fs = std::filesystem;

namespace {

// ".onnx", in lower case.
std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = characters::lower(c);
  return ending;
}

// In the format of the ending.
void write_as(const std::string& ending, const fs::path& path, const Net& net,
              const std::vector<float>& values) {
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

}  // namespace

void require_target(const fs::path& file, bool overwrites) {
  const PathStatus status = path_status(file);
  if (!status.exists()) return;
  if (!overwrites) {
    throw error("'{}' exists already: choose another name, or replace it with --overwrite",
                file.string());
  }
  if (!status.is_file()) {
    throw error("'{}' is no regular file: --overwrite replaces nothing else", file.string());
  }
  const fs::path folder = absolute_path(file).parent_path();
  const std::string ending = ending_of(file);
  if (ending != ".onnx" && ending != ".caffemodel" && RunFolder::holds_run(folder)) {
    throw error(
        "'{}' may be a file of the run in that folder, which --overwrite leaves as it is: choose "
        "another name",
        file.string());
  }
}

void write_weights(const fs::path& path, const Net& net, const std::vector<float>& values) {
  require_target(path, false);
  write_as(ending_of(path), path, net, values);
}

ExportResult export_run(const ExportOptions& options) {
  if (options.onnx || ending_of(options.file) == ".onnx") return export_onnx(options);
  if (options.softmax || options.fold_batch_norm || options.picture_height > 0 ||
      options.dynamic_size || options.opset > 0) {
    throw error(
        "'{}' holds weights only: --softmax, --fold-batch-norm, --preprocess, --dynamic-size and "
        "--opset are for ONNX files (.onnx)",
        options.file.string());
  }
  require_target(options.file, options.overwrite);
  const RunFolder folder = RunFolder::open(options.run);
  const std::string name = checkpoint_name(options.run, options.weights);
  const Registry registry = Registry::with_defaults();
  // Auxiliary heads, which only training has, have weights, too.
  const Net net = build_net(folder.net(), registry,
                            {TANDEM_TRAIN, 1, folder.record().data, /*device_kind=*/""});
  const Checkpoint checkpoint = read_checkpoint(options.run, name, net, false);
  const bool replaces = path_status(options.file).exists();
  const fs::path written = replaces ? pending_file(options.file) : options.file;
  write_as(ending_of(options.file), written, net, checkpoint.weights);
  if (replaces) replace_file(written, options.file);
  return {name, {}};
}

}  // namespace tandem
