#include "core/cli/plugin_template.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/strings.h"
#include "core/device/parse.h"
#include "plugins/abi.h"

namespace tandem::cli {

namespace {

const std::vector<std::string> known_parts{"weights", "two-inputs", "random",
                                           "loss",    "dataset",    "c"};

struct Names {
  std::string type;    // acme.Swish
  std::string module;  // acme_swish
  std::string word;    // Swish
};

Names names_of(const std::string& type) {
  const size_t dot = type.find('.');
  const bool is_valid =
      dot != std::string::npos && dot > 0 && dot + 1 < type.size() &&
      type.find('.', dot + 1) == std::string::npos &&
      std::all_of(type.begin(), type.end(),
                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; }) &&
      std::isdigit(static_cast<unsigned char>(type[0])) == 0 &&
      std::isdigit(static_cast<unsigned char>(type[dot + 1])) == 0;
  if (!is_valid) {
    throw error(
        "'{}' is no name for a layer type: write a prefix of your own, a dot and a word of "
        "letters, as acme.Swish",
        type);
  }
  Names names{type, type, type.substr(dot + 1)};
  for (char& c : names.module) {
    c = c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return names;
}

using Parts = std::set<std::string>;

// The names, and the texts {%part: text%} of the given parts, {%!part: text%} of those that are not
// given.
std::string filled(std::string text, const Names& names, const Parts& parts) {
  for (size_t end = text.find("%}"); end != std::string::npos; end = text.find("%}")) {
    const size_t begin = text.rfind("{%", end), colon = text.find(':', begin);
    std::string part = text.substr(begin + 2, colon - begin - 2);
    const bool is_without = part.front() == '!';
    if (is_without) part.erase(0, 1);
    const bool is_kept = parts.contains(part) != is_without;
    text.replace(begin, end + 2 - begin,
                 is_kept ? text.substr(colon + 1, end - colon - 1) : std::string());
  }
  for (const auto& [mark, value] :
       {std::pair<std::string, std::string>{"@TYPE@", names.type},
        {"@MODULE@", names.module},
        {"@WORD@", names.word},
        {"@ABI@", fmt::format("{}.{}", TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR)},
        {"@DEVICE@", default_kind}}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

constexpr const char* cmake = R"(cmake_minimum_required(VERSION 3.25)
project(@MODULE@ LANGUAGES C CXX)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(Tandem 0.1 REQUIRED)  # if it is not found: -DCMAKE_PREFIX_PATH=<where Tandem is installed>
tandem_add_plugin({%dataset:tandem_dataset_%}@MODULE@ @MODULE@.{%c:c%}{%!c:cpp%} ABI @ABI@)

# The tests run the program of the same installation, or that of PATH.
enable_testing()
find_program(TANDEM_PROGRAM tandem HINTS ${Tandem_DIR}/../../../bin)
if(NOT TANDEM_PROGRAM)
  message(WARNING "the program 'tandem' was not found, so there are no tests: set TANDEM_PROGRAM")
else()
{%!dataset:  add_test(NAME check COMMAND ${TANDEM_PROGRAM} plugin check $<TARGET_FILE:@MODULE@>)
%}  add_test(NAME train COMMAND ${TANDEM_PROGRAM} train --net ${CMAKE_SOURCE_DIR}/@MODULE@.prototxt
    --data {%dataset:@MODULE@%}{%!dataset:synthetic%} --devices cpu:2 --steps 10 --out ${CMAKE_BINARY_DIR}/run)
  add_test(NAME remove_run COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/run)
  set_tests_properties(remove_run PROPERTIES FIXTURES_SETUP run)
  set_tests_properties(train PROPERTIES FIXTURES_REQUIRED run
    ENVIRONMENT TANDEM_PLUGIN_PATH=$<TARGET_FILE_DIR:{%dataset:tandem_dataset_%}@MODULE@>)
endif()
)";

constexpr const char* readme = R"(# @TYPE@

A plugin for Tandem: {%dataset:a data set%}{%!dataset:a layer type%}, one source file.

    cmake -S . -B build && cmake --build build
    ctest --test-dir build --output-on-failure

{%!dataset:The test `check` runs `tandem plugin check`, which tries to break every promise that a layer makes to Tandem.
%}The test `train` trains the net `@MODULE@.prototxt` for a few steps. By hand:

    export TANDEM_PLUGIN_PATH=$PWD/build
    tandem plugins
    tandem train --net @MODULE@.prototxt --data {%dataset:@MODULE@%}{%!dataset:synthetic%} --steps 100 --out run
)";

constexpr const char* net = R"(name: "@MODULE@"
layer {
  name: "data"
  type: "Data"
  top: "data"
  top: "label"
  transform_param { crop_size: 16{%!dataset: scale: 0.004%} }
  data_param { batch_size: 16 }
}
{%!dataset:layer {
  name: "conv1"
  type: "Convolution"
  bottom: "data"
  top: "conv1"
  convolution_param { num_output: 8 kernel_size: 3 stride: 2 weight_filler { type: "xavier" } }
}
%}{%two-inputs:layer {
  name: "conv2"
  type: "Convolution"
  bottom: "data"
  top: "conv2"
  convolution_param { num_output: 8 kernel_size: 3 stride: 2 weight_filler { type: "xavier" } }
}
%}{%!dataset:{%!loss:layer {
  name: "own"
  type: "@TYPE@"
  bottom: "conv1"
  {%two-inputs:bottom: "conv2"
  %}top: "own"
}
%}%}layer {
  name: "score"
  type: "InnerProduct"
  bottom: "{%dataset:data%}{%!dataset:{%loss:conv1%}{%!loss:own%}%}"
  top: "score"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer {
  name: "loss"
  type: "{%loss:@TYPE@%}{%!loss:SoftmaxWithLoss%}"
  bottom: "score"
  bottom: "label"
  top: "loss"
}
)";

constexpr const char* layer =
    R"(// @TYPE@: y = {%random:f * %}{%weights:w[channel] * %}a * sigmoid(a){%two-inputs: + b%}{%random:, where f is 1.5 or 0.5 for each row%}.
#include <cmath>

#include <tandem/plugins/sdk.h>

namespace {

using namespace tandem::sdk;

// What the layer is.
struct @WORD@ : LayerType {
  const char* name() const override { return "@TYPE@"; }
  const char* help() const override { return "a * sigmoid(a){%weights: times a trained factor%}{%two-inputs:, plus b%}"; }
{%two-inputs:  Inputs inputs() const override { return {Input("a"), Input("b")}; }
%}{%random:  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_RANDOM;
  }
%}{%weights:  std::vector<Weight> weights(const Query& query) const override {
    return {{.name = "factor", .shape = {query.input(0).c, 1, 1, 1}, .initial = 1}};
  }
%}};

// How it runs on a CPU, for one use of the layer. Tensors are plain N,C,H,W.
class @WORD@Cpu{%random: : public Needs%} {
 public:
  @WORD@Cpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape){%random:,
        training_(binding.training()),
        layer_(binding.raw.layer_index),
        first_row_(binding.raw.batch_begin)%} {
    {%two-inputs:if (!equal(binding.input(1).shape, shape_)) {
      throw invalid("its inputs have the shapes ", text_of(shape_), " and ",
                    text_of(binding.input(1).shape), ", but must have the same");
    }
    %}{%random:saved_bytes = 4 * shape_.n;  // the factor of each row
  %}}

  void forward(const Call&, const Pass& pass) const {
    const float* a = pass.input(0);
    float* y = pass.output(0);
{%random:    for (int64_t row = 0; row < shape_.n; ++row) pass.saved()[row] = draw(pass, row);
%}    each([&](int64_t i, {%weights:int64_t c%}{%!weights:int64_t%}, {%random:int64_t row%}{%!random:int64_t%}) {
      y[i] = {%random:pass.saved()[row] * (%}{%weights:pass.weight(0)[c] * %}a[i] * sigmoid(a[i]){%two-inputs: + pass.input(1)[i]%}{%random:)%};
    });
  }

  // Overwrites. A gradient that is not wanted is null.
  void backward_data(const Call&, const Pass& pass) const {
    const float *a = pass.input(0), *dy = pass.output_gradient(0);
    each([&](int64_t i, {%weights:int64_t c%}{%!weights:int64_t%}, {%random:int64_t row%}{%!random:int64_t%}) {
      const float s = sigmoid(a[i]), slope = s * (1 + a[i] * (1 - s));
      const float gradient = {%random:pass.saved()[row] * %}dy[i];
      if (pass.input_gradient(0) != nullptr) {
        pass.input_gradient(0)[i] = gradient * {%weights:pass.weight(0)[c] * %}slope;
      }
{%two-inputs:      if (pass.input_gradient(1) != nullptr) pass.input_gradient(1)[i] = gradient;
%}    });
  }
{%weights:
  // Overwrites, or adds if pass.accumulate().
  void backward_weights(const Call&, const Pass& pass) const {
    const float *a = pass.input(0), *dy = pass.output_gradient(0);
    float* gradient = pass.weight_gradient(0);
    for (int64_t c = 0; c < shape_.c && !pass.accumulate(); ++c) gradient[c] = 0;
    each([&](int64_t i, int64_t c, {%random:int64_t row%}{%!random:int64_t%}) {
      gradient[c] += {%random:pass.saved()[row] * %}dy[i] * a[i] * sigmoid(a[i]);
    });
  }
%}
 private:
  // body(element, its channel, its row) for every element.
  template <class Body>
  void each(const Body& body) const {
    const int64_t area = shape_.h * shape_.w;
    for (int64_t i = 0; i < count(shape_); ++i) body(i, i / area % shape_.c, i / area / shape_.c);
  }
{%random:  // By the position in the whole batch, so that it is the same on any number of devices.
  float draw(const Pass& pass, int64_t row) const {
    if (!training_) return 1;
    const auto position = static_cast<uint64_t>(first_row_ + pass.step().first_row + row);
    const tandem_random4 numbers =
        tandem_random_block(pass.step().seed, pass.step().step, layer_, position, 0);
    return 0.5F + tandem_uniform(numbers.value[0]);
  }
%}  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

  Shape shape_;
{%random:  bool training_;
  uint32_t layer_;
  int64_t first_row_;
%}};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "@MODULE@", "1.0").layer<@WORD@>().kernel<@WORD@, @WORD@Cpu>("@DEVICE@").table();
}
)";

constexpr const char* loss =
    R"(// @TYPE@: a loss, half the squared distance of the scores from 1 for the label's class and 0 for the
// others.
#include <algorithm>

#include <tandem/plugins/sdk.h>

namespace {

using namespace tandem::sdk;

struct @WORD@ : LayerType {
  const char* name() const override { return "@TYPE@"; }
  const char* help() const override { return "half the squared distance from the label's class"; }
  Inputs inputs() const override { return {Input("scores"), Input("label").label()}; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
  std::vector<Shape> shapes(const Query& query) const override {
    const Shape &scores = query.input(0), &labels = query.input(1);
    if (count(labels) != scores.n) {
      throw invalid("it needs one label for each of the ", scores.n, " rows, but gets ",
                    text_of(labels));
    }
    return {{1, 1, 1, 1}};
  }
};

class @WORD@Cpu {
 public:
  @WORD@Cpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n), size_(count(binding.input(0).shape) / rows_) {}

  // The sum of the rows that hold a sample, divided by the samples of the whole batch.
  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t c = 0; c < size_ && holds(pass, row); ++c) {
        const auto distance = static_cast<double>(distance_of(pass, row, c));
        sum += distance * distance / 2;
      }
    }
    pass.output(0)[0] = static_cast<float>(sum / divisor(pass));
  }

  // Times the loss weight. A row that holds no sample has zeros.
  void backward_data(const Call&, const Pass& pass) const {
    const auto factor = static_cast<float>(pass.output_gradient(0)[0] / divisor(pass));
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t c = 0; c < size_; ++c) {
        pass.input_gradient(0)[row * size_ + c] =
            holds(pass, row) ? factor * distance_of(pass, row, c) : 0;
      }
    }
  }

 private:
  static bool holds(const Pass& pass, int64_t row) {
    return pass.holds_sample(row) && !(pass.input(1)[row] < 0);
  }
  static double divisor(const Pass& pass) {
    return std::max(1.0, static_cast<double>(pass.normaliser()));
  }
  float distance_of(const Pass& pass, int64_t row, int64_t c) const {
    return pass.input(0)[row * size_ + c] - (static_cast<int64_t>(pass.input(1)[row]) == c ? 1.0F : 0.0F);
  }
  int64_t rows_, size_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "@MODULE@", "1.0").layer<@WORD@>().kernel<@WORD@, @WORD@Cpu>("@DEVICE@").table();
}
)";

constexpr const char* dataset =
    R"(// @MODULE@: a data set of made-up pictures: of class k, row k of the picture is bright.
#include <string>
#include <vector>

#include <tandem/plugins/sdk.h>

namespace {

using namespace tandem::sdk;

class @WORD@ : public DatasetType {
 public:
  static const char* name() { return "@MODULE@"; }
  static const char* help() { return "pictures of one bright row; --data @MODULE@"; }
  static std::vector<Parameter> parameters() {
    return {integer("", "pictures").by_default("1000").range(1, 1e9).help("number of pictures")};
  }

  // Once for each split. request.source is what the user wrote after --data. What it throws is the
  // user's message.
  @WORD@(const tandem_dataset_request& request, const Attributes& attributes)
      : size_(attributes.integer("pictures")),
        shape_{1, request.shape.c > 0 ? request.shape.c : 3, request.shape.h > 0 ? request.shape.h : 16,
               request.shape.w > 0 ? request.shape.w : 16} {}

  int64_t size() const override { return size_; }
  int64_t class_count() const override { return 10; }
  Shape shape() const override { return shape_; }
  const char* class_name(int64_t index) const override {
    static const std::vector<std::string> names{"row 0", "row 1", "row 2", "row 3", "row 4",
                                                "row 5", "row 6", "row 7", "row 8", "row 9"};
    return names[static_cast<size_t>(index)].c_str();
  }
  const char* sample_name(int64_t) const override { return "made up"; }

  // Called by several threads: a function of index and seed alone. `seed` is for augmentation.
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override {
    const int64_t row = index % class_count();
    *label = static_cast<float>(row);
    const int64_t area = shape_.h * shape_.w;
    for (int64_t i = 0; i < shape_.c * area; ++i) {
      const tandem_random4 noise = tandem_random_block(seed, 0, 0, static_cast<uint64_t>(index),
                                                       static_cast<uint32_t>(i));
      pixels[i] = 0.1F * tandem_uniform(noise.value[0]) + (i % area / shape_.w == row ? 1.0F : 0.0F);
    }
  }

 private:
  int64_t size_;
  Shape shape_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "@MODULE@", "1.0").dataset<@WORD@>().table();
}
)";

constexpr const char* plain_c = R"(/* @TYPE@ in plain C11: y = x < 0 ? slope * x : x. */
#include <stdlib.h>

#include <tandem/plugins/abi.h>

static const tandem_host* host;

/* One use of the layer. */
typedef struct leaky {
  int64_t count;
  float slope;
} leaky;

static tandem_status shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  outputs[0] = query->inputs[0];
  return TANDEM_OK;
}

static tandem_status prepare(const tandem_binding* binding, const tandem_call* call, void** handle,
                             tandem_kernel_report* report) {
  (void)call, (void)report;
  double slope = 0;
  tandem_status status = host->get_number(binding->attributes, "slope", &slope);
  if (status != TANDEM_OK) return status;
  leaky* self = malloc(sizeof *self);
  if (self == NULL) {
    host->explain("out of memory");
    return TANDEM_OUT_OF_MEMORY;
  }
  const tandem_shape s = binding->inputs[0].shape;
  self->count = s.n * s.c * s.h * s.w;
  self->slope = (float)slope;
  *handle = self;
  return TANDEM_OK;
}
static void release(void* handle) {
  free(handle);
}
static tandem_status forward(void* handle, const tandem_call* call, const tandem_pass* pass) {
  (void)call;
  const leaky* self = handle;
  const float* x = pass->inputs[0];
  float* y = pass->outputs[0];
  for (int64_t i = 0; i < self->count; ++i) y[i] = x[i] < 0 ? self->slope * x[i] : x[i];
  return TANDEM_OK;
}
static tandem_status backward_data(void* handle, const tandem_call* call, const tandem_pass* pass) {
  (void)call;
  const leaky* self = handle;
  const float *x = pass->inputs[0], *dy = pass->output_gradients[0];
  float* dx = pass->input_gradients[0];
  for (int64_t i = 0; i < self->count; ++i) dx[i] = x[i] < 0 ? self->slope * dy[i] : dy[i];
  return TANDEM_OK;
}

__attribute__((visibility("default"))) const tandem_plugin* tandem_plugin_entry(
    const tandem_host* host_table) {
  host = host_table;
  static const tandem_parameter slope = {.struct_size = sizeof slope,
                                         .type = TANDEM_PARAMETER_NUMBER,
                                         .block = "@MODULE@_param",
                                         .name = "slope",
                                         .default_value = "0.1",
                                         .minimum = 0,
                                         .maximum = 1,
                                         .help = "slope below zero"};
  static const tandem_parameter* const parameters[] = {&slope};
  static const tandem_layer_type type = {.struct_size = sizeof type,
                                         .name = "@TYPE@",
                                         .help = "x, or slope * x below zero",
                                         .parameters = parameters,
                                         .parameter_count = 1,
                                         .minimum_inputs = 1,
                                         .maximum_inputs = 1,
                                         .minimum_outputs = 1,
                                         .maximum_outputs = 1,
                                         .traits = TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING |
                                                   TANDEM_BACKWARD_READS_INPUTS,
                                         .shapes = shapes};
  static const tandem_kernel kernel = {.struct_size = sizeof kernel,
                                       .layer_type = "@TYPE@",
                                       .device_kind = "@DEVICE@",
                                       .prepare = prepare,
                                       .release = release,
                                       .forward = forward,
                                       .backward_data = backward_data};
  static const tandem_layer_type* const types[] = {&type};
  static const tandem_kernel* const kernels[] = {&kernel};
  static const tandem_layers layers = {.struct_size = sizeof layers,
                                       .major = TANDEM_LAYERS_MAJOR,
                                       .minor = TANDEM_LAYERS_MINOR,
                                       .types = types,
                                       .type_count = 1,
                                       .kernels = kernels,
                                       .kernel_count = 1};
  static const tandem_plugin plugin = {.abi_major = TANDEM_ABI_MAJOR,
                                       .abi_minor = TANDEM_ABI_MINOR,
                                       .struct_size = sizeof plugin,
                                       .name = "@MODULE@",
                                       .version = "1.0",
                                       .layers = &layers};
  return &plugin;
}
)";

void require_known(const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (std::count(known_parts.begin(), known_parts.end(), part) == 0) {
      throw error("--with {}: unknown{}; there are: {}", part, did_you_mean(part, known_parts),
                  plugin_template_parts());
    }
    const bool is_alone = part == "loss" || part == "dataset" || part == "c";
    if (is_alone && parts.size() > 1) {
      throw error("--with {}: '{}' goes with no other part", fmt::join(parts, ","), part);
    }
  }
}

}  // namespace

std::string plugin_template_parts() {
  return fmt::format("{}", fmt::join(known_parts, ", "));
}

std::string write_plugin_template(const std::string& name, const std::vector<std::string>& parts) {
  const Names names = names_of(name);
  require_known(parts);
  const Parts chosen(parts.begin(), parts.end());
  const std::filesystem::path folder = names.module;
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored)) {
    throw error("{} exists already: give another name, or remove it", folder.string());
  }
  if (!std::filesystem::create_directory(folder, ignored)) {
    throw error("the folder {} cannot be made: {}", folder.string(), ignored.message());
  }
  const char* source = chosen.contains("loss")      ? loss
                       : chosen.contains("dataset") ? dataset
                       : chosen.contains("c")       ? plain_c
                                                    : layer;
  const std::string extension = chosen.contains("c") ? ".c" : ".cpp";
  for (const auto& [file, text] :
       {std::pair<std::string, const char*>{names.module + extension, source},
        {names.module + ".prototxt", net},
        {"CMakeLists.txt", cmake},
        {"README.md", readme}}) {
    write_text_file(folder / file, filled(text, names, chosen));
  }
  return folder.string();
}

}  // namespace tandem::cli
