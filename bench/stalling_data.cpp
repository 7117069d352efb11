// A data set for bench_stall: noise in the shape of the net, read at once except one sample, whose
// read takes a given time.
#include <chrono>
#include <thread>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

class Stalling : public DatasetType {
 public:
  Stalling(const tandem_dataset_request& request, const Attributes& attributes)
      : shape_(request.shape),
        size_(attributes.integer("size")),
        stalled_(attributes.integer("stalled")),
        milliseconds_(attributes.integer("milliseconds")) {
    shape_.n = 1;
    if (shape_.c * shape_.h * shape_.w == 0)
      throw invalid("the net does not say its input's shape");
  }
  static const char* name() { return "stalling"; }
  static const char* help() { return "noise; one sample's read takes long"; }
  static std::vector<Parameter> parameters() {
    const char* block = "stalling_param";
    return {integer(block, "size").by_default("100000").range(1, 1e9),
            integer(block, "stalled").by_default("-1"),
            integer(block, "milliseconds").by_default("1000").range(0, 600000)};
  }
  int64_t size() const override { return size_; }
  int64_t class_count() const override { return 2; }
  tandem_shape shape() const override { return shape_; }
  const char* class_name(int64_t index) const override { return index == 0 ? "even" : "odd"; }
  const char* sample_name(int64_t) const override { return "noise"; }
  void get(int64_t index, uint64_t, float* pixels, float* label) const override {
    if (index == stalled_) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_));
    auto bits = static_cast<uint32_t>(index);
    for (int64_t i = 0; i < count(shape_); ++i) {
      bits = bits * 1664525U + 1013904223U;
      pixels[i] = static_cast<float>(bits >> 24) - 127.5F;
    }
    *label = static_cast<float>(index % 2);
  }

 private:
  tandem_shape shape_;
  int64_t size_, stalled_, milliseconds_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  Plugin plugin(host, "stalling", "1.0");
  return plugin.dataset<Stalling>().table();
}
