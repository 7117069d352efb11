// A data set with every mistake that `tandem plugin check` is to find, each as a data set of its
// own: "bad_data_<Name>". "bad_data_None" has none. Pictures of 8x8 whose row of the class is
// bright, each with some noise.
#include <fcntl.h>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

enum class Slip {
  None,
  Races,
  DrawsFromRand,
  CountsCalls,
  WritesPastPixels,
  LeavesLastRow,
  OtherLabel,
  ValidatesOnTraining,
  KeepsFilesOpen,
  LeavesLabel,
  WrongBytes,
  ThrowsInThread,
  LabelBySeed,
  ReadsBefore,
  NanInSome,
  FailsOnLast,
  NameIsNoText,
  NanInValidation,
};
constexpr const char* slip_names[] = {
    "bad_data_None",
    "bad_data_Races",
    "bad_data_DrawsFromRand",
    "bad_data_CountsCalls",
    "bad_data_WritesPastPixels",
    "bad_data_LeavesLastRow",
    "bad_data_OtherLabel",
    "bad_data_ValidatesOnTraining",
    "bad_data_KeepsFilesOpen",
    "bad_data_LeavesLabel",
    "bad_data_WrongBytes",
    "bad_data_ThrowsInThread",
    "bad_data_LabelBySeed",
    "bad_data_ReadsBefore",
    "bad_data_NanInSome",
    "bad_data_FailsOnLast",
    "bad_data_NameIsNoText",
    "bad_data_NanInValidation",
};

constexpr int64_t side = 8, elements = 3 * side * side;
float shared_row[elements];

template <Slip s>
class Pictures : public DatasetType {
 public:
  static const char* name() { return slip_names[static_cast<int>(s)]; }
  static const char* help() { return "a mistake to be found"; }
  Pictures(const tandem_dataset_request& request, const Attributes&)
      : split_(request.split[0] == 't' && request.split[1] == 'r' ? 0 : 1) {
    if (s == Slip::ValidatesOnTraining) split_ = 0;
    if (s == Slip::KeepsFilesOpen) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
  int64_t size() const override { return 80; }
  int64_t class_count() const override { return side; }
  Shape shape() const override { return {1, 3, side, side}; }
  const char* class_name(int64_t index) const override {
    static const std::vector<std::string> names{"0", "1", "2", "3", "4", "5", "6", "7"};
    if (s == Slip::NameIsNoText && index == 5) return "\xff\xfe";
    return names[static_cast<size_t>(index)].c_str();
  }
  const char* sample_name(int64_t) const override { return "made up"; }
  int64_t label(int64_t index) const override {
    return s == Slip::OtherLabel ? (index + 1) % side : index % side;
  }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override {
    if (s != Slip::LeavesLabel || index % 4 != 3) *label = static_cast<float>(index % side);
    if (s == Slip::LabelBySeed && split_ == 0 && seed % 16 == 3) {
      *label = static_cast<float>((index + 1) % side);
    }
    if (s == Slip::FailsOnLast && index == size() - 1) throw std::out_of_range("no such element");
    float* to = s == Slip::Races ? shared_row : pixels;
    static std::atomic<uint32_t> calls{0};
    const uint32_t number = s == Slip::CountsCalls ? calls++ : 0;
    const int64_t rows = s == Slip::LeavesLastRow ? elements - side : elements;
    for (int64_t i = 0; i < rows; ++i) {
      const tandem_random4 noise = tandem_random_block(
          seed + split_, number, 0, static_cast<uint64_t>(index), static_cast<uint32_t>(i));
      const bool is_bright = i / side % side == index % side;
      float value = tandem_uniform(noise.value[0]) + (is_bright ? 1.0F : 0.0F);
      if (s == Slip::DrawsFromRand) value += static_cast<float>(std::rand() % 2);
      to[i] = value;
    }
    if (s == Slip::Races) {
      std::this_thread::yield();
      std::copy_n(shared_row, elements, pixels);
    }
    static std::atomic<int64_t> before{0};
    if (s == Slip::ReadsBefore && before.exchange(index) == index - 1) pixels[0] = 5;
    if (s == Slip::NanInSome && index == 77) pixels[3] = NAN;
    if (s == Slip::NanInValidation && split_ == 1 && index == 77) pixels[3] = NAN;
    if (s == Slip::WritesPastPixels) pixels[elements] = 1;
    if (s == Slip::ThrowsInThread) std::thread([] { throw std::runtime_error("no luck"); }).join();
  }
  void get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label) const override {
    float values[elements + 1];
    get(index, seed, values, label);
    for (int64_t i = 0; i < elements; ++i) {
      pixels[i] = static_cast<uint8_t>((s == Slip::WrongBytes ? 50 : 100) * values[i]);
    }
  }
  void describe_bytes(tandem_dataset_info& info) const override {
    info.has_bytes = 1;
    info.byte_scale = 0.01F;
  }

 private:
  uint64_t split_;
};

template <int i>
void add_slip(Plugin& plugin) {
  plugin.dataset<Pictures<static_cast<Slip>(i)>>();
  if constexpr (i + 1 < static_cast<int>(std::size(slip_names))) add_slip<i + 1>(plugin);
}

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  Plugin plugin(host, "mistakes_of_data", "1.0");
  add_slip<0>(plugin);
  return plugin.table();
}
