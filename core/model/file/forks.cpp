#include "core/model/file/forks.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/model/file/fields.h"

namespace tandem {
namespace {

struct TypeHint {
  const char *types, *hint;
};
constexpr const char* detection =
    "it is of nets for detection, and there are only classifiers and regression here";
constexpr const char* sequences = "there are no recurrent layers";
constexpr const char* quantized =
    "write it without Ristretto and quantization_param; --precision chooses bfloat16 or float16";
constexpr std::array type_hints{
    TypeHint{"AnnotatedData DetectNetTransformation DetectionEvaluate DetectionOutput MultiBoxLoss "
             "PriorBox PSROIPooling Proposal ROIPooling",
             detection},
    TypeHint{"Axpy", "write a Scale with two bottoms and axis: 0, and an Eltwise sum"},
    TypeHint{"BatchReindex",
             "the batch is divided over devices, so that rows cannot change places"},
    TypeHint{"CuDNNBatchNorm", "write BatchNorm; the device decides how it is computed"},
    TypeHint{"CenterLoss", "there is no such loss; ContrastiveLoss is the nearest"},
    TypeHint{"DeconvolutionRistretto ConvolutionRistretto FcRistretto LRNRistretto", quantized},
    TypeHint{"DenseImageData", "labels for each pixel are not read; give a data set of a plugin"},
    TypeHint{"Filter", "rows cannot be left out; give the samples a weight, or another data set"},
    TypeHint{"FocalLoss", "write SoftmaxWithLoss, with --class-weights balanced or --balance"},
    TypeHint{"GroupNorm", "write BatchNorm, LayerNorm, or MVN (each channel by itself)"},
    TypeHint{"HDF5Output", "'tandem predict --json' and 'tandem export' write what a net computes"},
    TypeHint{"HSigmoid", "write HardSigmoid"},
    TypeHint{"HSwish", "write HardSwish"},
    TypeHint{"Im2col", "write Convolution"},
    TypeHint{"InfogainLoss WeightedSoftmaxWithLoss",
             "write SoftmaxWithLoss; --class-weights weighs classes"},
    TypeHint{"InstanceNorm", "write MVN, with a Scale after it for factors and biases"},
    TypeHint{"Interp", "write Upsample with upsample_param { mode: BILINEAR align_corners: true }"},
    TypeHint{"LSTM LSTMUnit RNN Recurrent", sequences},
    TypeHint{"L1Loss", "write HuberLoss with a small delta"},
    TypeHint{"SmoothL1Loss", "write HuberLoss"},
    TypeHint{"Mish", "write Swish"},
    TypeHint{"Normalize",
             "write LayerNorm or MVN; the norm alone is Reduction (SUMSQ), Power and Scale"},
    TypeHint{"Parameter", "weights belong to layers; Bias and Scale have some without an input"},
    TypeHint{"Resize", "write Upsample, or resize the data"},
    TypeHint{"SELU", "write ELU with alpha: 1.6733, and Power with scale: 1.0507 after it"},
    TypeHint{"SPP", "write Pooling layers of several sizes, Flatten, and Concat"},
    TypeHint{"ShuffleChannel", "write Reshape, Permute and Reshape"},
    TypeHint{"SyncBN", "write BatchNorm, whose statistics are always of the whole batch"},
    TypeHint{"TRT", "'tandem export' writes ONNX, which TensorRT reads"},
    TypeHint{"Unpooling", "write Upsample"},
    TypeHint{"VideoData", "write the pictures to a folder and give that as --data"},
};

struct FieldOfFork {
  const char *blocks, *names;
  const char* text;
  bool is_unused = false;  // changes no result
};
constexpr const char* by_device = "the device decides how it computes";
constexpr const char* by_precision = "--precision chooses it for the run";
constexpr const char* by_schedule = "the rate is lr_policy with warmup_iter and warmup_start_lr";
constexpr const char* by_loader = "--decode-threads and the data set decide how data are read";
constexpr const char* by_scale_bias = "write scale_bias: true, with scale_filler and bias_filler";
constexpr const char* by_relu = "write a ReLU layer after it; kernels are joined where they can be";
constexpr const char* by_data = "--data names the data";
constexpr const char* by_momentum = "momentum is the same in every step";
constexpr const char* by_decay = "weight_decay is the same in every step";
constexpr const char* by_lars = "write type: \"LARS\" with trust_coefficient";
constexpr const char* by_scales =
    "write scale_h and scale_w; the places of a maximum are not kept by Pooling";
constexpr const char* in_transform = "write it in transform_param { ... }";
constexpr const char* by_augmentation =
    "the data set augments: --augment, or --data-option crop_area, jitter, randaugment, ...";
// The names of several blocks and fields are separated by spaces.
constexpr std::array fields{
    FieldOfFork{"", "forward_type backward_type forward_math backward_math", by_precision, true},
    FieldOfFork{"", "debug", "there is no such output"},
    FieldOfFork{"", "cudnn_math_override", by_device, true},
    FieldOfFork{"", "quantization_param", quantized},
    FieldOfFork{"", "detectnet_groundtruth_param detectnet_augmentation_param", detection},
    FieldOfFork{
        "net",
        "default_forward_type default_backward_type default_forward_math default_backward_math",
        by_precision, true},
    FieldOfFork{"net", "default_conv_algos_override default_cudnn_math_override", by_device, true},
    FieldOfFork{"net", "eltwise_mem_sharing", "memory is always shared where it can be", true},
    FieldOfFork{"net", "reduce_buckets", "the strategy decides it (--bucket-bytes)", true},
    FieldOfFork{"net", "global_grad_scale global_grad_scale_adaptive",
                "--loss-scale chooses it for float16", true},
    FieldOfFork{"net", "force_backward", "gradients that no weight needs are not computed", true},
    FieldOfFork{"net", "debug_info", "there is no such output", true},
    FieldOfFork{
        "convolution_param",
        "cudnn_convolution_algo_seeker conv_algos_override engine force_nd_im2col conv_algorithm",
        by_device, true},
    FieldOfFork{
        "batch_norm_param concat_param eltwise_param inner_product_param bn_param dropout_param "
        "lrn_param pooling_param sigmoid_param softmax_param spp_param tanh_param",
        "engine", by_device, true},
    FieldOfFork{"batch_norm_param", "use_weight_bias bias_term filler", by_scale_bias},
    FieldOfFork{"batch_norm_param", "relu", by_relu},
    FieldOfFork{"inner_product_param convolution_param", "relu negative_slope", by_relu},
    FieldOfFork{"relu_param", "fuse engine", by_device, true},
    FieldOfFork{"loss_param", "pre_fixed_normalizer",
                "write normalization: NONE, and loss_weight: 1 / NORMALIZER"},
    FieldOfFork{"pooling_param", "avg_include_pad", "write count_padding"},
    FieldOfFork{"transform_param", "bgr2rgb", "it is --data-option color=rgb"},
    FieldOfFork{"transform_param", "pad", "it is --data-option pad=N"},
    FieldOfFork{"data_param", "side", detection},
    FieldOfFork{"state", "phase", "training and testing have their own phases", true},
    FieldOfFork{"data_param", "source backend", by_data, true},
    FieldOfFork{"data_param", "prefetch threads parser_threads cache precache", by_loader, true},
    FieldOfFork{"data_param", "force_encoded_color", "the net's channels decide", true},
    FieldOfFork{"hdf5_data_param", "source", by_data, true},
    FieldOfFork{"dropout_param transform_param", "random_seed", "the run's --seed decides", true},
    FieldOfFork{"dropout_param", "sample_weights_test", "elements are dropped in training only"},
    FieldOfFork{"elu_param", "lambda", "write Power with power_param { scale: LAMBDA } after it"},
    FieldOfFork{"loss_param", "label_smoothing", "it is --label-smoothing"},
    FieldOfFork{"loss_param", "weight_by_label_freqs", "it is --class-weights balanced"},
    FieldOfFork{"loss_param", "class_weighting", "it is --class-weights W,W,..."},
    FieldOfFork{"pooling_param", "torch_pooling", "write round_mode: FLOOR"},
    FieldOfFork{"upsample_param", "scale upsample_h upsample_w", by_scales},
    FieldOfFork{"upsample_param", "pad_out_h pad_out_w", "write Crop after it"},
    FieldOfFork{"data_param image_data_param", "scale mean_file crop_size mirror", in_transform},
    FieldOfFork{"data_param image_data_param", "rand_skip", "no picture is skipped", true},
    FieldOfFork{"data_param image_data_param hdf5_data_param", "shuffle",
                "each epoch has an order of its own", true},
    FieldOfFork{"image_data_param", "threads cache precache dataset_share_per_node", by_loader,
                true},
    FieldOfFork{"transform_param", "use_gpu_transform forward_packing", by_loader, true},
    FieldOfFork{"transform_param", "display", "there is no such output", true},
    FieldOfFork{"transform_param", "num_labels", "the data set has the classes"},
    FieldOfFork{
        "transform_param",
        "img_rand_resize_lower img_rand_resize_upper rand_resize_ratio_lower "
        "rand_resize_ratio_upper vertical_stretch_lower vertical_stretch_upper "
        "horizontal_stretch_lower horizontal_stretch_upper interpolation_algo_down "
        "interpolation_algo_up allow_upscale random_resize_param random_aspect_ratio_param "
        "contrast_brightness_adjustment smooth_filtering jpeg_compression max_rotation_angle "
        "min_side max_side multi_scale noise_param distort_param expand_param",
        by_augmentation},
    FieldOfFork{"transform_param", "emit_constraint", detection},
    FieldOfFork{"solver", "rampup_interval rampup_lr min_lr", by_schedule},
    FieldOfFork{"solver", "momentum_policy max_momentum momentum_power", by_momentum},
    FieldOfFork{"solver", "larc larc_policy larc_eta larc_turbo", by_lars},
    FieldOfFork{"solver", "weight_decay_policy weight_decay_power max_weight_decay", by_decay},
    FieldOfFork{"solver", "plateau_winsize", "write lr_policy: \"multistep\" with stepvalue"},
    FieldOfFork{"solver", "stageiter stagelr",
                "write lr_policy: \"multistep\" with stepvalue and gamma"},
    FieldOfFork{"solver", "eval_type ap_version", detection},
};

const FieldOfFork* find_field(const std::string& block, const std::string& name) {
  static const auto known = [] {
    std::map<std::pair<std::string, std::string>, const FieldOfFork*> all;
    for (const FieldOfFork& one : fields) {
      for (const std::string& in : split(one.blocks, ' ')) {
        for (const std::string& field : split(one.names, ' ')) all[{in, field}] = &one;
      }
    }
    return all;
  }();
  const auto found = known.find({block, name});
  return found == known.end() ? nullptr : found->second;
}

// ---- forms with the same meaning

void rename_type(Message& layer, const char* type) {
  for (Field& field : layer.fields) {
    if (field.name == "type") field.text = type;
  }
}

// The scalar in one of the blocks of that name; null: there is none.
const Field* find_in(const Message& layer, const char* block, const char* name) {
  for (const Field* outer : layer.all(block)) {
    const Field* found = outer->message ? outer->message->find(name) : nullptr;
    if (found != nullptr) return found;
  }
  return nullptr;
}

// A convolution with a group for each channel, which some files do not write.
std::string translate_depthwise(Message& layer) {
  const std::string note =
      layer.find("type")->text + " is read as Convolution with a group for each output";
  rename_type(layer, "Convolution");
  const Field* outputs = find_in(layer, "convolution_param", "num_output");
  if (outputs == nullptr || find_in(layer, "convolution_param", "group") != nullptr) return note;
  const std::string count = outputs->text;
  set_in_block(layer, "convolution_param", "group", count);
  return note;
}

std::string translate_relu6(Message& layer) {
  rename_type(layer, "Clip");
  std::erase_if(layer.fields, [](const Field& field) { return field.name == "relu_param"; });
  set_in_block(layer, "clip_param", "min", "0");
  set_in_block(layer, "clip_param", "max", "6");
  return "ReLU6 is read as Clip from 0 to 6";
}

// `ceil_mode` of several forks is round_mode.
std::string translate_ceil_mode(Message& layer) {
  const Field* written = find_in(layer, "pooling_param", "ceil_mode");
  if (written == nullptr) return "";
  const bool is_up = boolean_of(*written, "Pooling");
  for (Field& field : layer.fields) {
    if (field.name != "pooling_param" || !field.message) continue;
    std::erase_if(own_block(field).fields,
                  [](const Field& one) { return one.name == "ceil_mode"; });
  }
  set_in_block(layer, "pooling_param", "round_mode", is_up ? "CEIL" : "FLOOR");
  return "pooling_param.ceil_mode is read as round_mode";
}

// Takes the fields of that name out of the layer.
std::vector<Field> take(Message& layer, const char* name) {
  std::vector<Field> taken;
  for (Field& field : layer.fields) {
    if (field.name == name) taken.push_back(std::exchange(field, {}));
  }
  std::erase_if(layer.fields, [](const Field& field) { return field.name.empty(); });
  return taken;
}

// Where a field of bn_param is written here: in BatchNormScale, in Scale ("": nowhere).
struct FieldOfBn {
  const char *name, *in_norm, *in_scale;
};
constexpr std::array fields_of_bn{
    FieldOfBn{"scale_filler", "scale_filler", "filler"},
    FieldOfBn{"slope_filler", "scale_filler", "filler"},
    FieldOfBn{"shift_filler", "bias_filler", "bias_filler"},
    FieldOfBn{"bias_filler", "bias_filler", "bias_filler"},
    FieldOfBn{"momentum", "moving_average_fraction", ""},
    FieldOfBn{"eps", "eps", ""},
    FieldOfBn{"frozen", "use_global_stats", ""},
    FieldOfBn{"engine", "engine", ""},
    FieldOfBn{"bn_mode", "", ""},
};

// A BatchNorm and its Scale. That of SegNet has the factors and biases only, into which its
// bn_mode INFERENCE puts the statistics, too; the one of nets for video has running statistics.
std::string translate_bn(Message& layer) {
  const Field* name = layer.find("name");
  const std::string owner = fmt::format("layer '{}' (BN)", name == nullptr ? "" : name->text);
  std::vector<Field> given;
  for (Field& block : take(layer, "bn_param")) {
    const Message& message = block_of(block, owner);
    for (const Field& field : message.fields) given.push_back(field);
  }
  const auto find = [&](std::string_view wanted) -> const Field* {
    const auto at = std::find_if(given.rbegin(), given.rend(),
                                 [&](const Field& field) { return field.name == wanted; });
    return at == given.rend() ? nullptr : &*at;
  };
  const bool is_segnets = find("scale_filler") || find("shift_filler") || find("bn_mode");
  const Field* mode = find("bn_mode");
  const bool is_scale = mode && word_of(*mode, owner, {"LEARN", "INFERENCE"}) == "INFERENCE";
  const bool is_frozen = find("frozen") && boolean_of(*find("frozen"), owner);
  std::vector<Field> rules = take(layer, "param");
  Message& to = layer.add_block(is_scale ? "scale_param" : "batch_norm_param");
  for (Field& field : given) {
    const auto known = std::find_if(fields_of_bn.begin(), fields_of_bn.end(),
                                    [&](const FieldOfBn& one) { return field.name == one.name; });
    if (known == fields_of_bn.end()) {
      std::vector<std::string> names;
      for (const FieldOfBn& one : fields_of_bn) names.emplace_back(one.name);
      throw unknown_field(field, names, "field of bn_param", owner);
    }
    // use_global_stats: false would be of testing, too.
    if (field.name == "frozen" && !is_frozen) continue;
    field.name = is_scale ? known->in_scale : known->in_norm;
    if (!field.name.empty()) to.fields.push_back(std::move(field));
  }
  if (is_scale) {
    to.add("bias_term", "true");
  } else if (is_segnets) {
    to.add("eps", "1e-9");
  } else if (to.find("moving_average_fraction") == nullptr) {
    to.add("moving_average_fraction", "0.9");
  }
  // The rules of the factors and the biases. Those of running statistics are first here.
  constexpr size_t trained = 2, kept = 3;
  rules.resize(is_frozen ? 0 : std::min(rules.size(), trained));
  for (size_t i = 0; i < (is_frozen ? kept + trained : kept) && !is_scale; ++i) {
    Message& rule = layer.add_block("param");
    rule.add("lr_mult", "0");
    rule.add("decay_mult", "0");
  }
  for (Field& rule : rules) layer.fields.push_back(std::move(rule));
  rename_type(layer, is_scale ? "Scale" : "BatchNormScale");
  return is_scale ? "BN with bn_mode: INFERENCE is read as Scale"
                  : "BN is read as BatchNormScale, a BatchNorm with the Scale after it";
}

struct Translation {
  const char* type;
  std::string (*translate)(Message& layer);  // what it says; "": it changed nothing
};
constexpr std::array translations{
    Translation{"DepthwiseConvolution", translate_depthwise},
    Translation{"ConvolutionDepthwise", translate_depthwise},
    Translation{"ReLU6", translate_relu6},
    Translation{"Pooling", translate_ceil_mode},
    Translation{"BN", translate_bn},
};

}  // namespace

std::string hint_of_type(const std::string& type) {
  const auto found = std::find_if(type_hints.begin(), type_hints.end(), [&](const TypeHint& one) {
    return is_among(split(one.types, ' '), type);
  });
  return found == type_hints.end() ? "" : found->hint;
}

std::string hint_of_field(const std::string& block, const std::string& field) {
  const FieldOfFork* found = find_field(block, field);
  return found == nullptr ? "" : found->text;
}

void ReadOtherwise::add(const std::string& what, const Location& location) {
  const auto [at, is_new] = uses_.try_emplace(what, Uses{location, {}});
  if (!is_new) ++at->second.more;
}

void ReadOtherwise::leave_out(const std::string& field, const std::string& why,
                              const Location& location) {
  add(why, location);
  uses_.at(why).fields.insert(field);
}

std::vector<std::string> ReadOtherwise::notes() const {
  std::vector<std::string> notes;
  for (const auto& [what, uses] : uses_) {
    const std::string more = uses.more == 0   ? ""
                             : uses.more == 1 ? ", and once more"
                                              : fmt::format(", and {} times more", uses.more);
    const std::string left_out = uses.fields.empty()
                                     ? ""
                                     : fmt::format("{} {} not used: ", fmt::join(uses.fields, ", "),
                                                   uses.fields.size() == 1 ? "is" : "are");
    notes.push_back(left_out + what + in_file(uses.first) + more);
  }
  return notes;
}

void leave_out_unused(Message& message, const std::string& block, ReadOtherwise& read) {
  const std::string path = block.empty() || block == "net" ? "" : block + ".";
  std::erase_if(message.fields, [&](const Field& field) {
    const FieldOfFork* found = find_field(block, field.name);
    if (found == nullptr || !found->is_unused) return false;
    read.leave_out(path + field.name, found->text, field.location);
    return true;
  });
}

void translate_forks(Message& layer, ReadOtherwise& read) {
  const Field* type = layer.find("type");
  if (type == nullptr) return;
  const std::string name = type->text;
  const Location location = type->location;
  for (const Translation& one : translations) {
    const std::string note = name == one.type ? one.translate(layer) : "";
    if (!note.empty()) read.add(note, location);
  }
  leave_out_unused(layer, "", read);
  if (!name.ends_with("Data") && name != "Input") {
    for (const Field& block : take(layer, "transform_param")) {
      read.leave_out("transform_param of other layers than Data", "they have no pictures",
                     block.location);
    }
  }
  for (Field& field : layer.fields) {
    const auto is_unused = [&](const Field& inner) {
      const FieldOfFork* known = find_field(field.name, inner.name);
      return known != nullptr && known->is_unused;
    };
    const bool has_some = field.message && std::any_of(field.message->fields.begin(),
                                                       field.message->fields.end(), is_unused);
    if (has_some) leave_out_unused(own_block(field), field.name, read);
  }
}

}  // namespace tandem
