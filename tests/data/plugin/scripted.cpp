// A data set for the loader's tests: sample i has pixels (i, the seed's lowest bits, 7, 7), and
// the named ones are damaged, slow, failing, of a class that does not exist, or not read before the
// file `gate` exists.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

class Scripted : public DatasetType {
 public:
  Scripted(const tandem_dataset_request& request, const Attributes& attributes)
      : size_(attributes.integer("size")),
        classes_(attributes.integer("classes")),
        delay_(attributes.integer("delay_ms")),
        bad_(attributes.integers("bad")),
        slow_(attributes.integers("slow")),
        failing_(attributes.integers("failing")),
        alien_(attributes.integers("alien")),
        gated_(attributes.integers("gated")),
        gate_(attributes.text("gate")),
        channels_(attributes.integer("channels")),
        inputs_(request.inputs, request.inputs + request.input_count) {
    if (size_ == 13) throw invalid("13 samples bring bad luck");
  }
  static const char* name() { return "scripted"; }
  static const char* help() { return "does as given"; }
  static std::vector<Parameter> parameters() {
    const char* b = "scripted_param";
    return {integer(b, "size").by_default("10").range(0, 1000000),
            integer(b, "classes").by_default("2"),
            integer(b, "channels").by_default("1"),
            integer(b, "delay_ms").by_default("0"),
            integers(b, "bad"),
            integers(b, "slow"),
            integers(b, "failing"),
            integers(b, "alien"),
            integers(b, "gated"),
            word(b, "gate").by_default("")};
  }
  int64_t size() const override { return size_; }
  int64_t class_count() const override { return classes_; }
  tandem_shape shape() const override { return {1, channels_, 2, 2}; }
  const char* class_name(int64_t index) const override { return index == 0 ? "even" : "odd"; }
  const char* sample_name(int64_t index) const override {
    thread_local std::string name;
    name = "sample-" + std::to_string(index);
    return name.c_str();
  }
  const char* notes() const override { return "as given"; }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override {
    if (has(slow_, index)) std::this_thread::sleep_for(std::chrono::milliseconds(delay_));
    while (has(gated_, index) && !std::filesystem::exists(gate_)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::fill_n(pixels, channels_ * 4, 7.0F);
    if (has(bad_, index)) throw skip("is listed as damaged");
    if (has(failing_, index)) throw failed("the disk is gone");
    pixels[0] = static_cast<float>(index);
    pixels[1] = static_cast<float>(seed & 0xfffffU);
    *label = has(alien_, index) ? 99 : static_cast<float>(index % 2);
  }
  // Input k of sample i is filled with 100 k + i.
  void get_inputs(int64_t index, uint64_t, float* const* inputs) const override {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const int64_t values = inputs_[k].c == 0 ? channels_ * 4 : count(inputs_[k]);
      std::fill_n(inputs[k], values, static_cast<float>(100 * k) + static_cast<float>(index));
    }
  }

 private:
  static bool has(const std::vector<int64_t>& list, int64_t index) {
    return std::find(list.begin(), list.end(), index) != list.end();
  }
  int64_t size_, classes_, delay_;
  std::vector<int64_t> bad_, slow_, failing_, alien_, gated_;
  std::string gate_;
  int64_t channels_;
  std::vector<tandem_shape> inputs_;
};

// Has an image and a label for each sample, and nothing else.
class PlainOnly : public DatasetType {
 public:
  PlainOnly(const tandem_dataset_request&, const Attributes&) {}
  static const char* name() { return "plain"; }
  static const char* help() { return "one sample"; }
  static std::vector<Parameter> parameters() { return {}; }
  int64_t size() const override { return 1; }
  int64_t class_count() const override { return 1; }
  tandem_shape shape() const override { return {1, 1, 1, 1}; }
  const char* class_name(int64_t) const override { return "all"; }
  const char* sample_name(int64_t) const override { return "sample"; }
  void get(int64_t, uint64_t, float* pixels, float* label) const override { *pixels = *label = 0; }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  Plugin plugin(host, "scripted", "1.0");
  return plugin.dataset<Scripted>().dataset<PlainOnly>().table();
}
