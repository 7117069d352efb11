// Every type and field of the files of Caffe and of its forks by NVIDIA, SSD, SegNet and Ristretto:
// read, translated, left out and named, or refused with what is written here in its place.
#include "core/model/file/forks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text/strings.h"
#include "core/model/file/attributes_reader.h"
#include "core/model/file/solver_definition.h"
#include "core/plugin/registry.h"
#include "tests/model/net_test.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::message_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Registry& real_registry() {
  static const Registry known = [] {
    Registry scanned;
    scanned.scan(test::plugin_folder());
    return scanned;
  }();
  return known;
}

struct Block {
  const char *type, *name;
  const char* fields;      // with values, separated by semicolons
  const char* needs = "";  // what else the block must have
};
const char* const filler_fields =
    "weight_filler { type: 'xavier' }; bias_filler { type: 'constant' }";
const Block blocks[] = {
    {"Accuracy", "accuracy_param", "top_k: 1; axis: 1; ignore_label: 1"},
    {"ArgMax", "argmax_param", "out_max_val: true; top_k: 1; axis: 1"},
    {"BN", "bn_param",
     "scale_filler { value: 1 }; shift_filler { value: 1 }; bn_mode: LEARN; bn_mode: INFERENCE; "
     "slope_filler { value: 1 }; bias_filler { value: 1 }; momentum: 0.9; eps: 1; frozen: true; "
     "frozen: false; engine: CAFFE"},
    {"BatchNorm", "batch_norm_param",
     "use_global_stats: true; moving_average_fraction: 1; eps: 1; scale_filler { value: 1 }; "
     "bias_filler { value: 1 }; scale_bias: true; engine: CUDNN"},
    {"Bias", "bias_param", "axis: 1; num_axes: 1; filler { value: 1 }"},
    {"Clip", "clip_param", "min: 1; max: 1", "min: 0 max: 2"},
    {"Concat", "concat_param", "axis: 1; concat_dim: 1"},
    {"ContrastiveLoss", "contrastive_loss_param", "margin: 1; legacy_version: true"},
    {"Convolution", "convolution_param",
     "num_output: 1; bias_term: true; pad: 1; kernel_size: 1; stride: 1; dilation: 1; pad_h: 1; "
     "pad_w: 1; kernel_h: 1; kernel_w: 1; stride_h: 1; stride_w: 1; group: 1; weight_filler { "
     "type: 'xavier' }; bias_filler { type: 'constant' }; engine: CUDNN; axis: 1; "
     "force_nd_im2col: true; cudnn_convolution_algo_seeker: FINDEX; conv_algos_override: '0,-1,-1'",
     "num_output: 1"},
    {"Crop", "crop_param", "axis: 1; offset: 1"},
    {"Data", "data_param",
     "source: 'x'; batch_size: 1; rand_skip: 1; backend: LMDB; scale: 1; mean_file: 'x'; "
     "crop_size: 1; mirror: true; force_encoded_color: true; prefetch: 1; threads: 1; "
     "parser_threads: 1; cache: true; shuffle: true; precache: true"},
    {"Dropout", "dropout_param",
     "dropout_ratio: 0.5; engine: CUDNN; random_seed: 1; sample_weights_test: true"},
    {"DummyData", "dummy_data_param",
     "data_filler { value: 1 }; shape { dim: 1 }; num: 1; channels: 1; height: 1; width: 1"},
    {"Eltwise", "eltwise_param", "operation: SUM; coeff: 1; stable_prod_grad: true"},
    {"ELU", "elu_param", "alpha: 1; lambda: 1"},
    {"Embed", "embed_param", "num_output: 1; input_dim: 1; bias_term: true",
     "num_output: 1 input_dim: 1"},
    {"Embed", "embed_param", filler_fields, "num_output: 1 input_dim: 1"},
    {"Exp", "exp_param", "base: 2; scale: 1; shift: 1"},
    {"Flatten", "flatten_param", "axis: 1; end_axis: 1"},
    {"HDF5Data", "hdf5_data_param", "source: 'x'; batch_size: 1; shuffle: true"},
    {"HingeLoss", "hinge_loss_param", "norm: L2"},
    {"ImageData", "image_data_param",
     "source: 'x'; batch_size: 1; rand_skip: 1; shuffle: true; new_height: 1 new_width: 1; "
     "is_color: true; scale: 1; mean_file: 'x'; crop_size: 1; mirror: true; root_folder: 'x'; "
     "short_side: 1; threads: 1; cache: true; precache: true; dataset_share_per_node: true"},
    {"InnerProduct", "inner_product_param", "num_output: 1; bias_term: true; axis: 1",
     "num_output: 1"},
    {"InnerProduct", "inner_product_param", filler_fields, "num_output: 1"},
    {"Input", "input_param", "shape { dim: 1 }"},
    {"Log", "log_param", "base: 2; scale: 1; shift: 1"},
    {"SoftmaxWithLoss", "loss_param",
     "ignore_label: 1; normalization: VALID; normalize: true; label_smoothing: 0.1; "
     "weight_by_label_freqs: true; class_weighting: 1"},
    {"LRN", "lrn_param",
     "local_size: 1; alpha: 1; beta: 1; norm_region: WITHIN_CHANNEL; k: 1; engine: CAFFE"},
    {"MemoryData", "memory_data_param", "batch_size: 1; channels: 1; height: 1; width: 1"},
    {"MVN", "mvn_param", "normalize_variance: true; across_channels: true; eps: 1"},
    {"Permute", "permute_param", "order: 0"},
    {"Pooling", "pooling_param",
     "pool: AVE; pad: 1; pad_h: 1; pad_w: 1; kernel_size: 1; kernel_h: 1; kernel_w: 1; stride: 1; "
     "stride_h: 1; stride_w: 1; engine: CAFFE; global_pooling: true; round_mode: FLOOR; "
     "torch_pooling: true; ceil_mode: false"},
    {"Power", "power_param", "power: 1; scale: 1; shift: 1"},
    {"PReLU", "prelu_param", "filler { value: 1 }; channel_shared: true"},
    {"Reduction", "reduction_param", "operation: SUM; axis: 1; coeff: 1"},
    {"ReLU", "relu_param", "negative_slope: 1; engine: CAFFE"},
    {"Reshape", "reshape_param", "shape { dim: 1 }; axis: 1; num_axes: 1"},
    {"Scale", "scale_param",
     "axis: 1; num_axes: 1; filler { value: 1 }; bias_term: true; bias_filler { value: 1 }"},
    {"Upsample", "upsample_param",
     "scale: 2; scale_h: 2; scale_w: 2; pad_out_h: true; pad_out_w: true; upsample_h: 8; "
     "upsample_w: 8"},
    {"Sigmoid", "sigmoid_param", "engine: CAFFE"},
    {"Slice", "slice_param", "axis: 1; slice_point: 1; slice_dim: 1"},
    {"Softmax", "softmax_param", "engine: CAFFE; axis: 1"},
    {"Swish", "swish_param", "beta: 1"},
    {"TanH", "tanh_param", "engine: CAFFE"},
    {"Threshold", "threshold_param", "threshold: 1"},
    {"Tile", "tile_param", "axis: 1; tiles: 1", "tiles: 1"},
    {"Data", "transform_param",
     "scale: 1; mirror: true; crop_size: 1; mean_file: 'x'; mean_value: 1; force_color: true; "
     "force_gray: true; img_rand_resize_lower: 1; img_rand_resize_upper: 1; "
     "rand_resize_ratio_lower: 1; rand_resize_ratio_upper: 1; vertical_stretch_lower: 1; "
     "vertical_stretch_upper: 1; horizontal_stretch_lower: 1; horizontal_stretch_upper: 1; "
     "interpolation_algo_down: INTER_AREA; interpolation_algo_up: INTER_CUBIC; allow_upscale: "
     "true; forward_packing: NCHW; crop_h: 1; crop_w: 1; use_gpu_transform: true; random_seed: 1; "
     "display: true; num_labels: 1; resize_param { height: 1 width: 1 }; noise_param { }; "
     "distort_param { }; "
     "expand_param { }; emit_constraint { }"},
};

// What is said of a layer, or "" if it is read as it is written.
std::string said_of(const std::string& layer) {
  try {
    const NetDefinition net = test::parse_definition("layer { name: 'x' top: 'y' " + layer + " }");
    const LayerDefinition& read = net.layers[0];
    if (!read.is_data()) (void)read_attributes(read, real_registry().layer_type(read.type));
    return fmt::format("{}", fmt::join(net.notes, "; "));
  } catch (const Error& failure) {
    return failure.what();
  }
}

// Neither unknown nor silent: read, or one of the ways to say that it is not.
void expect_known(const std::string& what, const std::string& said) {
  const bool is_said = said.find(" is not used: ") != std::string::npos ||
                       said.find(" is read as ") != std::string::npos ||
                       said.find(" is not supported: ") != std::string::npos;
  EXPECT_TRUE(said.empty() || is_said) << what << ": " << said;
}

TEST(Forks, EveryFieldOfEveryKnownBlockIsReadOrNamed) {
  for (const Block& block : blocks) {
    for (const std::string& field : split(block.fields, ';')) {
      const size_t begin = field.find_first_not_of(' ');
      const std::string written = field.substr(begin);
      const std::string name = written.substr(0, written.find_first_of(": "));
      // The field itself in place of what else is needed.
      std::string needs = block.needs;
      const size_t same = needs.find(name + ":");
      if (same != std::string::npos)
        needs.erase(same, needs.find_first_of("0123456789", same) - same + 1);
      const std::string text =
          fmt::format("type: '{}' {} {{ {} {} }}", block.type, block.name, needs, written);
      expect_known(text, said_of(text));
    }
    EXPECT_THAT(said_of(fmt::format("type: '{}' {} {{ {} no_such: 1 }}", block.type, block.name,
                                    block.needs)),
                HasSubstr(fmt::format("unknown field of {} 'no_such'", block.name)));
  }
}

TEST(Forks, EveryLayerTypeIsKnownOrHasAHint) {
  const char* types =
      "AbsVal Accuracy AnnotatedData ArgMax Axpy BN BNLL BatchNorm BatchReindex Bias Clip Concat "
      "ContrastiveLoss Convolution ConvolutionRistretto Crop Data Deconvolution "
      "DeconvolutionRistretto DenseImageData DepthwiseConvolution DetectNetTransformation "
      "DetectionEvaluate DetectionOutput Dropout DummyData ELU Eltwise Embed EuclideanLoss Exp "
      "FcRistretto Filter Flatten HDF5Data HDF5Output HingeLoss Im2col ImageData InfogainLoss "
      "InnerProduct Input Interp L1Loss LRN LRNRistretto LSTM LSTMUnit Log MVN MemoryData "
      "MultiBoxLoss MultinomialLogisticLoss Normalize PReLU Parameter Permute Pooling Power "
      "PriorBox Python RNN ReLU ReLU6 Reduction Reshape SPP Scale Sigmoid SigmoidCrossEntropyLoss "
      "Silence Slice SmoothL1Loss Softmax SoftmaxWithLoss Split Swish TRT TanH Threshold Tile "
      "Upsample VideoData WindowData ConvolutionDepthwise ShuffleChannel ROIPooling HSwish "
      "HSigmoid GroupNorm InstanceNorm SELU Mish FocalLoss CenterLoss Unpooling Resize SyncBN";
  for (const std::string& type : split(types, ' ')) {
    const NetDefinition net =
        test::parse_definition(test::data_layer + test::layer("x", type, "data", "y"));
    const std::string said = message_of([&] {
      NetOptions options = test::small_options(TANDEM_TEST);
      (void)build_net(net, real_registry(), options);
    });
    EXPECT_EQ(said.find("unknown layer type"), std::string::npos) << said;
    EXPECT_EQ(said.find("did you mean"), std::string::npos) << said;
    if (said.find("is not supported") == std::string::npos) continue;
    EXPECT_THAT(said, HasSubstr("layer 'x': type '" + type + "' is not supported: "));
  }
  EXPECT_THAT(test::message_of([] {
                (void)build_net(test::parse_definition(test::data_layer +
                                                       test::layer("up", "Interp", "data", "y")),
                                real_registry(), test::small_options(TANDEM_TEST));
              }),
              AllOf(HasSubstr("layer 'up': type 'Interp' is not supported: write Upsample"),
                    HasSubstr("net.prototxt:")));
}

TEST(Forks, FieldsOfLayersAndNetsThatChangeNoResultAreLeftOutAndNamed) {
  const NetDefinition net = test::parse_definition(
      "name: 'n' force_backward: true default_forward_type: FLOAT16 global_grad_scale: 2 "
      "layer { name: 'a' type: 'ReLU' top: 'a' forward_type: FLOAT16 backward_math: FLOAT } "
      "layer { name: 'b' type: 'ReLU' bottom: 'a' top: 'b' forward_type: FLOAT16 }");
  EXPECT_THAT(net.notes,
              ElementsAre(AllOf(HasSubstr("global_grad_scale is not used: --loss-scale"),
                                HasSubstr("net.prototxt:1")),
                          AllOf(HasSubstr("backward_math, default_forward_type, forward_type are "
                                          "not used: --precision chooses it"),
                                HasSubstr("net.prototxt:1"), HasSubstr("and 3 times more")),
                          HasSubstr("force_backward is not used")));
  // What is written of it again has none of them.
  EXPECT_THAT(test::parse_definition(write_net(net)).notes, IsEmpty());
  EXPECT_THAT(said_of("type: 'Convolution' quantization_param { bw_params: 8 }"),
              HasSubstr("block 'quantization_param' is not supported: write it without Ristretto"));
}

// What is left out and named, by block; each is written with any value.
TEST(Forks, FieldsOfWhichOthersDecideAreNamed) {
  for (const auto& [layer, said] : std::vector<std::pair<const char*, const char*>>{
           {"type: 'Data' data_param { source: 'a' backend: LMDB batch_size: 2 }",
            "data_param.backend, data_param.source are not used: --data names the data"},
           {"type: 'Data' data_param { prefetch: 4 }", "data_param.prefetch is not used: --decode"},
           {"type: 'HDF5Data' hdf5_data_param { source: 'a' }", "hdf5_data_param.source is not"},
           {"type: 'Pooling' pooling_param { kernel_size: 2 engine: CAFFE }",
            "pooling_param.engine is not used: the device decides"},
           {"type: 'Convolution' convolution_param { num_output: 1 force_nd_im2col: true }",
            "convolution_param.force_nd_im2col is not used"},
           {"type: 'ReLU' transform_param { scale: 2 }",
            "transform_param of other layers than Data is not used"}}) {
    EXPECT_THAT(said_of(layer), HasSubstr(said)) << layer;
  }
  EXPECT_THAT(
      test::parse_definition("state { phase: TEST } " + test::layer("a", "ReLU", "b", "c")).notes,
      ElementsAre(HasSubstr("state.phase is not used: training and testing have")));
  EXPECT_THAT(said_of("type: 'Data' transform_param { force_color: true force_gray: true }"),
              HasSubstr("force_color and force_gray; give one of them"));
}

TEST(Forks, ANetThatIsFedByAnUnknownLayerIsToldSo) {
  for (const char* type : {"AnnotatedData", "DenseImageData", "VideoData"}) {
    EXPECT_THAT(message_of([&] {
                  (void)build_net(test::parse_definition(fmt::format(
                                      "layer {{ name: 'x' type: '{}' top: 'data' }}", type)),
                                  real_registry(), test::small_options(TANDEM_TEST));
                }),
                HasSubstr(fmt::format("layer 'x': type '{}' is not supported: ", type)));
  }
  EXPECT_THAT(said_of("type: 'ReLU' detectnet_groundtruth_param { stride: 4 }"),
              HasSubstr("block 'detectnet_groundtruth_param' is not supported: it is of nets for"));
}

TEST(Forks, FormsWithTheSameMeaningAreTranslated) {
  const auto written = [](const std::string& layer) {
    return write_net(
        test::parse_definition("name: 'n' layer { name: 'x' bottom: 'a' top: 'y' " + layer + " }"));
  };
  EXPECT_EQ(written("type: 'DepthwiseConvolution' convolution_param { num_output: 8 }"),
            written("type: 'Convolution' convolution_param { num_output: 8 group: 8 }"));
  EXPECT_EQ(written("type: 'ConvolutionDepthwise' convolution_param { num_output: 8 group: 4 }"),
            written("type: 'Convolution' convolution_param { num_output: 8 group: 4 }"));
  EXPECT_EQ(written("type: 'ReLU6'"), written("type: 'Clip' clip_param { min: 0 max: 6 }"));
  EXPECT_EQ(written("type: 'Pooling' pooling_param { pool: MAX ceil_mode: false }"),
            written("type: 'Pooling' pooling_param { pool: MAX round_mode: FLOOR }"));
  EXPECT_EQ(written("type: 'Pooling' pooling_param { pool: MAX ceil_mode: true }"),
            written("type: 'Pooling' pooling_param { pool: MAX round_mode: CEIL }"));
  EXPECT_THAT(said_of("type: 'ReLU6'"), HasSubstr("ReLU6 is read as Clip from 0 to 6"));
}

TEST(Forks, BnIsTheBatchNormAndScaleThatItStandsFor) {
  const auto written = [](const std::string& layer) {
    return write_net(
        test::parse_definition("name: 'n' layer { name: 'x' bottom: 'a' top: 'y' " + layer + " }"));
  };
  const std::string kept = "param { lr_mult: 0 decay_mult: 0 } ";
  const std::string rules = "param { lr_mult: 3 } param { lr_mult: 5 } ";
  EXPECT_EQ(written("type: 'BN' " + rules +
                    "bn_param { scale_filler { value: 2 } shift_filler { value: 4 } }"),
            written("type: 'BatchNormScale' " + kept + kept + kept + rules +
                    "batch_norm_param { scale_filler { value: 2 } bias_filler { value: 4 } eps: "
                    "1e-9 }"));
  EXPECT_EQ(written("type: 'BN' " + rules +
                    "bn_param { bn_mode: INFERENCE shift_filler { value: "
                    "4 } }"),
            written("type: 'Scale' " + rules +
                    "scale_param { bias_filler { value: 4 } bias_term: true }"));
  const std::string four = rules + kept + kept;
  EXPECT_EQ(written("type: 'BN' " + four + "bn_param { slope_filler { value: 2 } frozen: false }"),
            written("type: 'BatchNormScale' " + kept + kept + kept + rules +
                    "batch_norm_param { scale_filler { value: 2 } moving_average_fraction: 0.9 }"));
  EXPECT_EQ(written("type: 'BN' " + four + "bn_param { frozen: true eps: 0.1 momentum: 0.5 }"),
            written("type: 'BatchNormScale' " + kept + kept + kept + kept + kept +
                    "batch_norm_param { use_global_stats: true eps: 0.1 moving_average_fraction: "
                    "0.5 }"));
  EXPECT_THAT(said_of("type: 'BN'"), HasSubstr("BN is read as BatchNormScale"));
  EXPECT_THAT(said_of("type: 'BN' bn_param { bn_mode: INFERENCE }"), HasSubstr("read as Scale"));
  EXPECT_THAT(said_of("type: 'BN' bn_param { bn_mode: OTHER }"),
              HasSubstr("must be one of LEARN, INFERENCE"));
}

TEST(Forks, EveryFieldOfASolverIsReadOrNamed) {
  const char* fields =
      "net: 'x'; train_net: 'x'; test_net: 'x'; test_iter: 1; test_interval: 1; "
      "test_compute_loss: true; test_initialization: true; base_lr: 1; display: 1; average_loss: "
      "1; "
      "max_iter: 1; iter_size: 1; lr_policy: 'fixed'; gamma: 1; power: 1; momentum: 0.5; "
      "weight_decay: 1; regularization_type: 'L1'; stepsize: 1; stepvalue: 1; clip_gradients: 1; "
      "snapshot: 1; snapshot_prefix: 'x'; snapshot_diff: true; snapshot_format: HDF5; solver_mode: "
      "GPU; device_id: 1; random_seed: 1; type: 'Adam'; delta: 1; momentum2: 0.5; rms_decay: 0.5; "
      "debug_info: true; snapshot_after_train: true; solver_type: SGD; layer_wise_reduce: true; "
      "weights: 'x'; eval_type: 'detection'; ap_version: '11point'; show_per_class_result: true; "
      "rampup_interval: 1; rampup_lr: 1; min_lr: 1; momentum_policy: 'poly'; max_momentum: 1; "
      "momentum_power: 1; larc: true; larc_policy: 'scale'; larc_eta: 1; larc_turbo: true; "
      "weight_decay_policy: 'poly'; weight_decay_power: 1; max_weight_decay: 1; plateau_winsize: "
      "1; "
      "solver_data_type: FLOAT; store_blobs_in_old_format: true; test_and_snapshot_last_epochs: 1; "
      "stageiter: 1; stagelr: 1";
  for (const std::string& field : split(fields, ';')) {
    const std::string said = message_of([&] { (void)read_solver_text(field); });
    // A field may need others.
    EXPECT_EQ(said.find("unknown"), std::string::npos) << field << ": " << said;
  }
  EXPECT_THAT(message_of([] { (void)read_solver_text("rampup_interval: 5"); }),
              HasSubstr("'rampup_interval' is not supported: the rate is lr_policy with "
                        "warmup_iter"));
  EXPECT_THAT(message_of([] { (void)read_solver_text("larc: true"); }), HasSubstr("LARS"));
  EXPECT_THAT(read_solver_text("solver_data_type: FLOAT16").notes,
              ElementsAre(HasSubstr("solver_data_type is not used")));
}

}  // namespace
}  // namespace tandem
