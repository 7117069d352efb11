// Layer types for tests of core/model, with kernels that only report layouts (device kind "fake"):
// so the passes are tested without arithmetic, and with types that no real layer has.
#include "tests/model/plugins/fake_kernels.h"

namespace {

using namespace tandem::sdk;
using namespace fake;

struct Convolution : LayerType {
  const char* name() const override { return "Convolution"; }
  const char* help() const override { return "a window over the image"; }
  std::vector<Parameter> parameters() const override {
    const char* block = "convolution_param";
    return {integer(block, "num_output").required().range(1, 1e6).help("output channels"),
            integers(block, "kernel_size").range(1, 1000),
            integers(block, "stride").range(1, 1000).by_default("1"),
            integers(block, "pad").range(0, 1000).by_default("0"),
            integer(block, "group").by_default("1").range(1, 1e6),
            boolean(block, "bias_term").by_default("true"),
            filler(block, "weight_filler"),
            filler(block, "bias_filler"),
            word(block, "engine").by_default("DEFAULT").one_of("DEFAULT|CAFFE|CUDNN")};
  }
  std::vector<Shape> shapes(const Query& query) const override {
    const Shape in = query.input(0);
    const int64_t kernel = query.attributes.integers("kernel_size").at(0);
    const int64_t pad = query.attributes.integers("pad").at(0);
    const int64_t stride = query.attributes.integers("stride").at(0);
    if (kernel > in.h + 2 * pad || kernel > in.w + 2 * pad) {
      throw invalid("kernel ", kernel, " exceeds the padded input ", in.h + 2 * pad, "x",
                    in.w + 2 * pad);
    }
    return {{in.n, query.attributes.integer("num_output"), (in.h + 2 * pad - kernel) / stride + 1,
             (in.w + 2 * pad - kernel) / stride + 1}};
  }
  std::vector<Weight> weights(const Query& query) const override {
    const int64_t out = query.attributes.integer("num_output");
    const int64_t in = query.input(0).c / query.attributes.integer("group");
    const int64_t kernel = query.attributes.integers("kernel_size").at(0);
    const int64_t area = kernel * kernel;
    std::vector<Weight> result{
        {"weight", {out, in, kernel, kernel}, "weight_filler", 0, in * area, out * area}};
    if (query.attributes.boolean("bias_term")) {
      result.push_back({"bias", {out, 1, 1, 1}, "bias_filler", 0, 1, out});
    }
    return result;
  }
};

struct InnerProduct : LayerType {
  const char* name() const override { return "InnerProduct"; }
  const char* help() const override { return "fully connected"; }
  std::vector<Parameter> parameters() const override {
    const char* block = "inner_product_param";
    return {integer(block, "num_output").required().range(1, 1e6).help("outputs"),
            filler(block, "weight_filler"), filler(block, "bias_filler")};
  }
  std::vector<Shape> shapes(const Query& query) const override {
    return {{query.input(0).n, query.attributes.integer("num_output"), 1, 1}};
  }
  std::vector<Weight> weights(const Query& query) const override {
    const Shape in = query.input(0);
    const int64_t count = in.c * in.h * in.w;
    const int64_t out = query.attributes.integer("num_output");
    return {{"weight", {out, count, 1, 1}, "weight_filler", 0, count, out},
            {"bias", {out, 1, 1, 1}, "bias_filler", 0, 1, out}};
  }
};

struct Pooling : LayerType {
  const char* name() const override { return "Pooling"; }
  const char* help() const override { return "the largest or the mean of a window"; }
  std::vector<Parameter> parameters() const override {
    const char* block = "pooling_param";
    return {word(block, "pool").by_default("MAX").one_of("MAX|AVE"),
            integer(block, "kernel_size").by_default("2").range(1, 100),
            integer(block, "stride").by_default("1").range(1, 100),
            integer(block, "pad").by_default("0")};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }
  std::vector<Shape> shapes(const Query& query) const override {
    const Shape in = query.input(0);
    const int64_t kernel = query.attributes.integer("kernel_size");
    const int64_t stride = query.attributes.integer("stride");
    return {{in.n, in.c, (in.h - kernel + stride - 1) / stride + 1,
             (in.w - kernel + stride - 1) / stride + 1}};
  }
};

struct Lrn : LayerType {
  const char* name() const override { return "LRN"; }
  const char* help() const override { return "normalization across channels"; }
  std::vector<Parameter> parameters() const override {
    const char* block = "lrn_param";
    return {integer(block, "local_size").by_default("5"), number(block, "alpha").by_default("1"),
            number(block, "beta").by_default("0.75"),
            word(block, "norm_region").by_default("ACROSS_CHANNELS")};
  }
};

struct ReLU : LayerType {
  const char* name() const override { return "ReLU"; }
  const char* help() const override { return "max(0, x)"; }
  std::vector<Parameter> parameters() const override {
    return {number("relu_param", "negative_slope").by_default("0")};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_OUTPUTS |
           TANDEM_SAVES_NOTHING;
  }
  int32_t activation(const Query& query) const override {
    return query.attributes.number("negative_slope") == 0 ? TANDEM_ACTIVATION_RELU
                                                          : TANDEM_ACTIVATION_NONE;
  }
};

struct Dropout : LayerType {
  const char* name() const override { return "Dropout"; }
  const char* help() const override { return "zeroes at random"; }
  std::vector<Parameter> parameters() const override {
    return {number("dropout_param", "dropout_ratio").by_default("0.5").range(0, 0.99)};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_RANDOM; }
};

// Runs in place, but its backward pass reads the input that it overwrites.
struct Square : LayerType {
  const char* name() const override { return "test.Square"; }
  const char* help() const override { return "x * x"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_INPUTS;
  }
};

struct Add : LayerType {
  const char* name() const override { return "test.Add"; }
  const char* help() const override { return "the sum of its inputs"; }
  Inputs inputs() const override { return {Input("a"), Input("b").repeated()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }
};

// As large as its second input.
struct Like : LayerType {
  const char* name() const override { return "test.Like"; }
  const char* help() const override { return "cuts input 0 to the extents of input 1"; }
  Inputs inputs() const override { return {Input("data"), Input("size").shape_only()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }
};

// An index for each pixel, without a gradient.
struct Index : LayerType {
  const char* name() const override { return "test.Index"; }
  const char* help() const override { return "which value is the largest"; }
  Inputs inputs() const override { return {Input("data").non_differentiable()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }
};

struct Nested : LayerType {
  const char* name() const override { return "test.Nested"; }
  const char* help() const override { return "has a block inside its block"; }
  std::vector<Parameter> parameters() const override {
    return {integer("nested_param", "axis").by_default("0"),
            integers("nested_param.shape", "dim").range(-1, 100)};
  }
};

// A field of the layer itself instead of a block, eleven weights, a persistent state.
struct Strange : LayerType {
  const char* name() const override { return "test.Strange"; }
  const char* help() const override { return "declares what others do not"; }
  std::vector<Parameter> parameters() const override {
    return {integer(nullptr, "flavour").by_default("3"),
            filler("strange_param", "filler").by_default("xavier")};
  }
  std::vector<Weight> weights(const Query&) const override {
    static const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    std::vector<Weight> result;
    for (const char* name : names) result.push_back({name, {3, 1, 1, 1}, "filler", 0, 12, 3});
    result.push_back({"mean", {5, 1, 1, 1}, nullptr, 0.25, 1, 1, TANDEM_STATE});
    return result;
  }
};

struct Fickle : LayerType {
  const char* name() const override { return "test.Fickle"; }
  const char* help() const override { return "has other weights in testing"; }
  std::vector<Weight> weights(const Query& query) const override {
    return {{"w", {query.training() ? 1 : 2, 1, 1, 1}}};
  }
};

struct Softmax : LayerType {
  const char* name() const override { return "Softmax"; }
  const char* help() const override { return "probabilities"; }
};

struct SoftmaxWithLoss : LayerType {
  const char* name() const override { return "SoftmaxWithLoss"; }
  const char* help() const override { return "cross entropy"; }
  Inputs inputs() const override { return {Input("scores"), Input("label").targets()}; }
  Arity outputs() const override { return {1, 2}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_LOSS; }
  std::vector<Shape> shapes(const Query& query) const override {
    std::vector<Shape> result{{1, 1, 1, 1}};
    if (query.output_count() > 1) result.push_back(query.input(0));
    return result;
  }
};

struct HingeLoss : SoftmaxWithLoss {
  const char* name() const override { return "HingeLoss"; }
  Inputs inputs() const override { return {Input("scores"), Input("label").label()}; }
};

struct Accuracy : LayerType {
  const char* name() const override { return "Accuracy"; }
  const char* help() const override { return "share of right answers"; }
  std::vector<Parameter> parameters() const override {
    return {integer("accuracy_param", "top_k").by_default("1")};
  }
  Inputs inputs() const override { return {Input("scores"), Input("label").label()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_METRIC; }
  std::vector<Shape> shapes(const Query&) const override { return {{1, 1, 1, 1}}; }
};

struct Split : LayerType {
  const char* name() const override { return "Split"; }
  const char* help() const override { return "copies"; }
  Arity outputs() const override { return {1, -1}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }
};

struct Reorder : LayerType {
  const char* name() const override { return "Reorder"; }
  const char* help() const override { return "another layout"; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }
};

// Never called: a Reorder is inserted after the layouts are chosen.
struct NeedsBlocked : LayerType {
  const char* name() const override { return "test.NeedsBlocked"; }
  const char* help() const override { return "offers a blocked layout only"; }
};

struct NamesNoLayout : LayerType {
  const char* name() const override { return "test.NamesNoLayout"; }
  const char* help() const override { return "its kernel offers an empty list of layouts"; }
};

struct RefusesToName : LayerType {
  const char* name() const override { return "test.RefusesToName"; }
  const char* help() const override { return "its kernel fails to tell its layouts"; }
};

struct NoKernel : LayerType {
  const char* name() const override { return "test.NoKernel"; }
  const char* help() const override { return "runs nowhere"; }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  Plugin plugin(host, "fake-layers", "1");
  plugin.layer<Convolution>().kernel<Convolution, Rectifying<Half<Blocked>>>("fake");
  plugin.layer<InnerProduct>().kernel<InnerProduct, Plain>("fake");
  plugin.layer<Pooling>().kernel<Pooling, Blocked>("fake");
  plugin.layer<Lrn>().kernel<Lrn, Blocked>("fake");
  plugin.layer<ReLU>().kernel<ReLU, Half<Any>>("fake");
  plugin.layer<Dropout>().kernel<Dropout, Any>("fake");
  plugin.layer<Square>().kernel<Square, Half<Any>>("fake");
  plugin.layer<Add>().kernel<Add, Rectifying<Any>>("fake");
  plugin.layer<Like>().kernel<Like, Any>("fake");
  plugin.layer<Index>().kernel<Index, Any>("fake");
  plugin.layer<Nested>().kernel<Nested, Plain>("fake");
  plugin.layer<Strange>().kernel<Strange, Plain>("fake");
  plugin.layer<Fickle>().kernel<Fickle, Plain>("fake");
  plugin.layer<Softmax>().kernel<Softmax, Plain>("fake");
  plugin.layer<SoftmaxWithLoss>().kernel<SoftmaxWithLoss, Plain>("fake");
  plugin.layer<HingeLoss>().kernel<HingeLoss, Plain>("fake");
  plugin.layer<Accuracy>().kernel<Accuracy, Plain>("fake");
  plugin.layer<Split>().kernel<Split, Half<Any>>("fake");
  plugin.layer<Reorder>().kernel<Reorder, Half<Any>>("fake");
  plugin.layer<NeedsBlocked>().kernel<NeedsBlocked, OnlyBlocked>("fake");
  plugin.layer<NamesNoLayout>().kernel<NamesNoLayout, NoLayouts>("fake");
  plugin.layer<RefusesToName>().kernel<RefusesToName, RefusesLayouts>("fake");
  plugin.layer<NoKernel>();
  return plugin.table();
}
