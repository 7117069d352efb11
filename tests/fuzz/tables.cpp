// A plugin's tables: a layer type with one declared parameter, whose numbers and texts are any, and
// a net that uses the type. Pointers are NULL or sound, since a plugin is trusted.
#include <array>
#include <cstring>
#include <limits>

#include "core/base/text/strings.h"
#include "core/model/passes/build_net.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {
namespace {

// Takes numbers from the front.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}
  template <class Number>
  Number take() {
    Number number{};
    const size_t count = std::min(sizeof(number), bytes_.size());
    std::memcpy(&number, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return number;
  }
  [[nodiscard]] std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// All that the registry reads of the plugin; refers to itself.
struct Tables {
  explicit Tables(std::string_view bytes);
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  // A line of the text; an empty one is NULL.
  const char* text(size_t line) {
    return line < lines.size() && !lines[line].empty() ? lines[line].c_str() : nullptr;
  }

  std::vector<std::string> lines;
  std::string net;  // the last line
  tandem_parameter parameter{};
  tandem_input input{};
  std::array<const tandem_parameter*, 2> parameters{};
  const tandem_input* inputs = &input;
  tandem_layer_type type{};
  const tandem_layer_type* types = &type;
  tandem_layers layers{};
  tandem_plugin plugin{};
};

Tables::Tables(std::string_view bytes) {
  Numbers numbers(bytes);
  const auto flags = numbers.take<uint8_t>();
  const auto size = [&](size_t whole) {
    const auto cut = numbers.take<uint8_t>();
    return static_cast<uint32_t>(cut == 0 ? whole : std::min<size_t>(cut, whole));
  };
  parameter.struct_size = size(sizeof(parameter));
  parameter.type = numbers.take<int8_t>();
  parameter.required = numbers.take<uint8_t>();
  parameter.minimum = numbers.take<double>();
  parameter.maximum = numbers.take<double>();
  input.struct_size = size(sizeof(input));
  input.role = numbers.take<int8_t>();
  type.struct_size = size(sizeof(type));
  type.minimum_inputs = numbers.take<int32_t>();
  type.maximum_inputs = numbers.take<int32_t>();
  type.minimum_outputs = numbers.take<int8_t>();
  type.maximum_outputs = numbers.take<int8_t>();
  type.traits = numbers.take<uint16_t>();
  layers.struct_size = size(sizeof(layers));
  layers.major = numbers.take<int8_t>();
  layers.minor = numbers.take<int8_t>();
  plugin.struct_size = size(sizeof(plugin));

  const std::string rest(numbers.rest().substr(0, numbers.rest().find('\0')));
  lines = split(rest, '\n');
  parameter.block = text(0);
  parameter.name = text(1);
  parameter.default_value = text(2);
  parameter.choices = text(3);
  parameter.help = text(4);
  input.name = text(5);
  type.name = text(6);
  type.help = text(7);
  plugin.name = text(8);
  plugin.version = text(9);
  net = lines.size() > 10 ? lines[10] : "";

  parameters = {(flags & 1) != 0 ? nullptr : &parameter, &parameter};
  type.parameters = parameters.data();
  type.parameter_count = (flags & 2) != 0 ? 2 : 1;
  type.inputs = (flags & 4) != 0 ? nullptr : &inputs;
  type.input_count = (flags & 8) != 0 ? 0 : 1;
  if ((flags & 16) == 0) {
    type.shapes = [](const tandem_layer_query* query, tandem_shape* outputs) {
      for (uint32_t i = 0; i < query->output_count; ++i) {
        outputs[i] = query->input_count > 0 ? query->inputs[0] : tandem_shape{1, 1, 1, 1};
      }
      return tandem_status{TANDEM_OK};
    };
  }
  layers.types = &types;
  layers.type_count = 1;
  plugin.abi_major = TANDEM_ABI_MAJOR;
  plugin.abi_minor = TANDEM_ABI_MINOR;
  plugin.layers = &layers;
}

const Tables* current = nullptr;  // what the entry, which has no argument of ours, returns

}  // namespace

void tables(std::string_view bytes) {
  const Tables tables(bytes);
  current = &tables;
  Registry loaded;
  const ModuleReport& report =
      loaded.load([](const tandem_host*) -> const tandem_plugin* { return &current->plugin; });
  if (!report.loaded && report.reason.empty()) fail("a plugin is refused without a reason");
  accepts([&] {
    NetOptions options;
    options.data = {1, 3, 8, 8};
    options.device_kind = "";
    (void)build_net(read_net_text("layer { name: 'data' type: 'Data' top: 'data' }\n" + tables.net),
                    loaded, options);
  });
}

}  // namespace tandem::fuzz
