#include "core/model/file/attributes_reader.h"

#include <algorithm>
#include <set>

#include "core/base/text/strings.h"
#include "core/model/file/fields.h"

namespace tandem {

namespace {

class AttributesReader {
 public:
  AttributesReader(const LayerDefinition& layer, const tandem_layer_type& type)
      : layer_(layer), type_(type), owner_(layer.title()) {}

  std::shared_ptr<const Attributes> read() {
    check_layer_fields();
    for (const std::string& block : blocks()) check_block_fields(block);
    auto attributes = std::make_shared<Attributes>();
    for (uint32_t i = 0; i < type_.parameter_count; ++i) {
      const tandem_parameter& parameter = *type_.parameters[i];
      attributes->set(parameter.name, read_parameter(parameter));
    }
    return attributes;
  }

 private:
  [[nodiscard]] std::set<std::string> blocks() const {
    std::set<std::string> names;
    for (uint32_t i = 0; i < type_.parameter_count; ++i) {
      if (type_.parameters[i]->block == nullptr) continue;
      const std::string path = type_.parameters[i]->block;
      for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
        names.insert(path.substr(0, dot));
      }
      names.insert(path);
    }
    return names;
  }

  // The messages of a block; "reshape_param.shape" is inside reshape_param.
  [[nodiscard]] std::vector<const Message*> messages_of(const std::string& block) const {
    std::vector<const Message*> messages{&layer_.body};
    for (size_t begin = 0; begin <= block.size();) {
      const size_t end = std::min(block.find('.', begin), block.size());
      std::vector<const Message*> inner;
      for (const Message* message : messages) {
        for (const Field* field : message->all(block.substr(begin, end - begin))) {
          inner.push_back(&block_of(*field, owner_));
        }
      }
      messages = inner;
      begin = end + 1;
    }
    return messages;
  }

  // The parameters of a block and the blocks inside it; "": those of the layer itself.
  [[nodiscard]] std::vector<std::string> parameters_of(const std::string& block) const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < type_.parameter_count; ++i) {
      const tandem_parameter& parameter = *type_.parameters[i];
      if (block == (parameter.block == nullptr ? "" : parameter.block)) {
        names.emplace_back(parameter.name);
      }
    }
    for (const std::string& other : blocks()) {
      const size_t dot = other.rfind('.');
      if (dot != std::string::npos && other.substr(0, dot) == block) {
        names.push_back(other.substr(dot + 1));
      }
    }
    return names;
  }

  void check_layer_fields() const {
    const std::set<std::string> own_blocks = blocks();
    const std::vector<std::string> own_fields = parameters_of("");
    std::vector<std::string> known = common_layer_fields();
    known.insert(known.end(), own_fields.begin(), own_fields.end());
    for (const Field& field : layer_.body.fields) {
      if (own_blocks.count(field.name) > 0) continue;
      if (std::find(known.begin(), known.end(), field.name) != known.end()) continue;
      if (field.message) throw unknown_block(field, own_blocks);
      known.insert(known.end(), own_blocks.begin(), own_blocks.end());
      throw unknown_field(field, known, "field", owner_);
    }
  }

  [[nodiscard]] Error unknown_block(const Field& field, const std::set<std::string>& known) const {
    const std::vector<std::string> names(known.begin(), known.end());
    const std::string reads =
        names.empty() ? "has no parameters" : fmt::format("reads {}", fmt::join(names, ", "));
    return error("{}: unknown block '{}'{}; {} {}{}", owner_, field.name,
                 did_you_mean(field.name, names), type_.name, reads, in_file(field.location));
  }

  void check_block_fields(const std::string& block) const {
    for (const Message* message : messages_of(block)) {
      require_known(*message, parameters_of(block), "field of " + block, owner_);
    }
  }

  // The fields with the values of the parameter; several blocks of one name count as one.
  [[nodiscard]] std::vector<const Field*> fields_of(const tandem_parameter& parameter) const {
    if (parameter.block == nullptr) return layer_.body.all(parameter.name);
    std::vector<const Field*> fields;
    for (const Message* block : messages_of(parameter.block)) {
      for (const Field* field : block->all(parameter.name)) fields.push_back(field);
    }
    return fields;
  }

  [[nodiscard]] Attribute read_parameter(const tandem_parameter& parameter) const {
    const std::vector<const Field*> fields = fields_of(parameter);
    if (fields.empty()) {
      if (parameter.required != 0) throw missing(parameter);
      return default_attribute(parameter, owner_);
    }
    if (parameter.type == TANDEM_PARAMETER_FILLER) {
      const Field& field = *fields.front();
      if (fields.size() > 1) throw given_twice(field, *fields[1], owner_);
      Attribute attribute;
      attribute.value =
          read_filler(block_of(field, owner_), fmt::format("{}: {}", owner_, parameter.name));
      attribute.is_set = true;
      attribute.location = field.location;
      return attribute;
    }
    std::vector<std::string> raw;
    for (const Field* field : fields) raw.push_back(text_of(*field, owner_));
    return parse_attribute(parameter, raw, owner_, fields.front()->location);
  }

  [[nodiscard]] Error missing(const tandem_parameter& parameter) const {
    const std::string name = parameter.block == nullptr
                                 ? std::string(parameter.name)
                                 : fmt::format("{}.{}", parameter.block, parameter.name);
    const std::string help = *parameter.help == '\0' ? "" : fmt::format(": {}", parameter.help);
    return error("{}: {} is required{}{}", owner_, name, help, in_file(layer_.location));
  }

  const LayerDefinition& layer_;
  const tandem_layer_type& type_;
  const std::string owner_;
};

}  // namespace

std::shared_ptr<const Attributes> read_attributes(const LayerDefinition& layer,
                                                  const tandem_layer_type& type) {
  return AttributesReader(layer, type).read();
}

}  // namespace tandem
