#include "include/tandem/net.h"

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/model/file/text_format.h"

namespace tandem {

NetWriter::NetWriter(const std::string& name) : text_(fmt::format("name: {}\n", quote(name))) {}

NetWriter& NetWriter::data(int64_t size) {
  const std::string crop =
      size > 0 ? fmt::format(" transform_param {{ crop_size: {} }}", size) : "";
  text_ += fmt::format("layer {{ name: \"data\" type: \"Data\" top: \"data\" top: \"label\"{} }}\n",
                       crop);
  last_ = "data";
  return *this;
}

NetWriter& NetWriter::layer(const std::string& name, const std::string& type,
                            const std::string& fields) {
  return layer(name, type, {last_}, {name}, fields);
}

NetWriter& NetWriter::layer(const std::string& name, const std::string& type,
                            const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, const std::string& fields) {
  (void)parse_text_format(fields, fmt::format("fields of layer '{}'", name));
  text_ += fmt::format("layer {{ name: {} type: {}", quote(name), quote(type));
  for (const std::string& input : inputs) text_ += " bottom: " + quote(input);
  for (const std::string& output : outputs) text_ += " top: " + quote(output);
  text_ += " " + fields + " }\n";
  if (!outputs.empty()) last_ = outputs[0];
  return *this;
}

NetWriter& NetWriter::loss() {
  const std::string scores = last_;
  layer("accuracy", "Accuracy", {scores, "label"}, {"accuracy"}, "include { phase: TEST }");
  return layer("loss", "SoftmaxWithLoss", {scores, "label"}, {"loss"});
}

}  // namespace tandem
