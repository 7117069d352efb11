#include "core/formats/caffemodel.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <limits>
#include <string_view>

#include <caffemodel.pb.h>
#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/model/file/batch_norm.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
namespace format = caffemodel;

Error damaged(const fs::path& path, const std::string& why) {
  return error("file '{}' cannot be used: {}", path.string(), why);
}

std::vector<int64_t> shape_of(const format::Blob& blob) {
  if (blob.has_shape()) return {blob.shape().dim().begin(), blob.shape().dim().end()};
  return {blob.num(), blob.channels(), blob.height(), blob.width()};
}

CaffeBlob take(const format::Blob& blob, const fs::path& path, const std::string& layer) {
  constexpr int max_axes = 32;  // as Caffe itself has it
  if (blob.shape().dim_size() > max_axes) {
    throw damaged(path, fmt::format("layer '{}' has an array with {} axes; there are at most {}",
                                    layer, blob.shape().dim_size(), max_axes));
  }
  CaffeBlob taken;
  taken.shape = shape_of(blob);
  int64_t count = 1;
  for (const int64_t size : taken.shape) {
    if (size < 0 || (size > 0 && count > std::numeric_limits<int32_t>::max() / size)) {
      throw damaged(path, fmt::format("layer '{}' has an array of size {}", layer,
                                      fmt::join(taken.shape, "x")));
    }
    count *= size;
  }
  if (blob.data_size() > 0) {
    taken.values.assign(blob.data().begin(), blob.data().end());
  } else {
    taken.values.assign(blob.double_data().begin(), blob.double_data().end());
  }
  if (static_cast<int64_t>(taken.values.size()) != count) {
    throw damaged(path, fmt::format("layer '{}' has {} values for an array of {} ({})", layer,
                                    taken.values.size(), fmt::join(taken.shape, "x"), count));
  }
  return taken;
}

template <class Blobs>
void collect(const std::string& name, const Blobs& blobs, const fs::path& path,
             std::vector<CaffeLayer>& layers) {
  if (blobs.empty()) return;
  constexpr size_t max_name = 1000;  // messages contain it
  if (name.size() > max_name) {
    throw damaged(path,
                  fmt::format("the name of a layer, '{}...', has {} bytes; the longest has {}",
                              name.substr(0, 20), name.size(), max_name));
  }
  CaffeLayer layer{name, {}};
  for (const format::Blob& blob : blobs) layer.blobs.push_back(take(blob, path, name));
  layers.push_back(std::move(layer));
}

// Files may be larger than what memory holds twice.
class FileBytes : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileBytes(const fs::path& path) : file_(path, "file") { file_.require_stored(); }
  int Read(void* buffer, int size) override {
    const size_t done = file_.read(offset_, buffer, size_t(size));
    offset_ += done;
    return static_cast<int>(done);
  }

 private:
  InputFile file_;
  uint64_t offset_ = 0;
};

}  // namespace

std::vector<CaffeLayer> read_caffemodel(const fs::path& path) {
  FileBytes bytes(path);
  google::protobuf::io::CopyingInputStreamAdaptor stream(&bytes);
  google::protobuf::io::CodedInputStream coded(&stream);
  format::Net net;
  if (!net.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    throw damaged(path, "it is truncated, damaged, or no .caffemodel");
  }
  std::vector<CaffeLayer> layers;
  for (const format::LayerV1& layer : net.layers()) {
    if (layer.has_layer()) {
      collect(layer.layer().name(), layer.layer().blobs(), path, layers);
    } else {
      collect(layer.name(), layer.blobs(), path, layers);
    }
  }
  for (int i = 0; i < net.layer_size(); ++i) {
    const format::Layer& layer = net.layer(i);
    if (layer.blobs().empty()) continue;
    collect(layer.name(), layer.blobs(), path, layers);
    layers.back().position = i;
    layers.back().type = layer.type();
    if (layer.bottom_size() > 0) layers.back().bottom = layer.bottom(0);
    if (layer.top_size() > 0) layers.back().top = layer.top(0);
  }
  if (layers.empty()) throw damaged(path, "no layer in it has weights; is it a .caffemodel?");
  return layers;
}

CaffeBlob read_caffe_blob(const fs::path& path) {
  FileBytes bytes(path);
  google::protobuf::io::CopyingInputStreamAdaptor stream(&bytes);
  google::protobuf::io::CodedInputStream coded(&stream);
  format::Blob blob;
  if (!blob.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    throw damaged(path, "it is truncated, damaged, or no .binaryproto");
  }
  return take(blob, path, "mean");
}

// Caffe itself refuses a file whose arrays have another rank than its layers'.
std::vector<int64_t> caffe_shape(const Net& net, const Layer& layer, size_t index) {
  const Shape& shape = net.weight(layer.weights[index]).shape;
  const std::string type = layer.type->name;
  if (index == 0 && (type == "InnerProduct" || type == "Embed")) {
    return {shape.n, shape.c * shape.h * shape.w};
  }
  std::vector<int64_t> sizes{shape.n, shape.c, shape.h, shape.w};
  if (index == 0 && (type == "Convolution" || type == "Deconvolution")) return sizes;
  while (sizes.size() > 1 && sizes.back() == 1) sizes.pop_back();
  return sizes;
}

namespace {

// As the net's author called it: a Reorder is not theirs.
const std::string& name_of(const Net& net, int tensor) {
  const int producer = net.tensors[size_t(tensor)].producer;
  const bool is_reordered = producer >= 0 && net.layer(producer).is("Reorder");
  return is_reordered ? name_of(net, net.layer(producer).inputs.at(0))
                      : net.tensors[size_t(tensor)].name;
}

// The name of the Scale of a BatchNormScale: that of the BatchNorm with "scale" in place of "bn",
// as in the published nets (bn_conv1, scale_conv1), or with "_scale" after it; a name that no layer
// of the net has.
std::string caffe_scale_name(const Net& net, const std::string& batch_norm) {
  constexpr std::string_view prefix = "bn";
  std::string name = batch_norm.starts_with(prefix) ? "scale" + batch_norm.substr(prefix.size())
                                                    : batch_norm + "_scale";
  while (net.find_layer(name) >= 0) name += "_scale";
  return name;
}

class Writer {
 public:
  Writer(const Net& net, const std::vector<float>& values) : net_(net), values_(values) {
    message_.set_name(net.name);
    for (const Layer& layer : net.layers) {
      if (layer.is("Split") || layer.is("Reorder")) continue;
      if (is_batch_norm_scale(layer.type->name)) {
        add_norm_and_scale(layer);
      } else {
        format::Layer& entry = add(layer, layer.name, layer.type->name);
        add_arrays(layer, 0, layer.weights.size(), entry);
      }
    }
  }
  [[nodiscard]] const format::Net& message() const { return message_; }

 private:
  format::Layer& add(const Layer& layer, const std::string& name, const char* type) {
    format::Layer& entry = *message_.add_layer();
    entry.set_name(name);
    entry.set_type(type);
    for (const int tensor : layer.inputs) entry.add_bottom(name_of(net_, tensor));
    for (const int tensor : layer.outputs) entry.add_top(name_of(net_, tensor));
    return entry;
  }

  void add_arrays(const Layer& layer, size_t begin, size_t end, format::Layer& entry) {
    for (size_t i = begin; i < end; ++i) {
      const WeightArray& weight = net_.weight(layer.weights[i]);
      format::Blob& blob = *entry.add_blobs();
      for (const int64_t size : caffe_shape(net_, layer, i)) blob.mutable_shape()->add_dim(size);
      const float* first = values_.data() + weight.offset;
      blob.mutable_data()->Add(first, first + weight.count);
    }
  }

  // Caffe has a layer for each.
  void add_norm_and_scale(const Layer& layer) {
    constexpr size_t statistics = 3;
    add_arrays(layer, 0, statistics, add(layer, layer.name, "BatchNorm"));
    format::Layer& scale = add(layer, caffe_scale_name(net_, layer.name), "Scale");
    *scale.mutable_bottom() = scale.top();
    add_arrays(layer, statistics, layer.weights.size(), scale);
  }

  const Net& net_;
  const std::vector<float>& values_;
  format::Net message_;
};

}  // namespace

void write_caffemodel(const fs::path& path, const Net& net, const std::vector<float>& values) {
  const Writer writer(net, values);
  const format::Net& message = writer.message();
  constexpr size_t max_bytes = std::numeric_limits<int32_t>::max();
  if (message.ByteSizeLong() > max_bytes) {
    throw error("'{}' would have {} bytes: a .caffemodel holds at most {}; write .safetensors",
                path.string(), message.ByteSizeLong(), max_bytes);
  }
  const std::string bytes = message.SerializeAsString();
  OutputFile file(pending_file(path), path);
  file.write(bytes.data(), bytes.size());
  file.finish_as(path);
}

}  // namespace tandem
