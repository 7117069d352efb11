#include "core/model/file/attributes_reader.h"

#include <algorithm>
#include <set>
#include <span>

#include "core/base/text/strings.h"
#include "core/model/file/fields.h"
#include "core/model/file/forks.h"

namespace tandem {

namespace {

// A parameter's block is "" for the layer itself, or a path: "reshape_param.shape" is inside
// "reshape_param".
std::string outer_block(const std::string& block) {
  const size_t dot = block.rfind('.');
  return dot == std::string::npos ? "" : block.substr(0, dot);
}
std::string block_path(const tandem_parameter& parameter) {
  return parameter.block == nullptr ? "" : parameter.block;
}

class AttributesReader {
 public:
  AttributesReader(const LayerDefinition& layer, const tandem_layer_type& type)
      : layer_(layer), type_(type), owner_(layer.title()) {
    for (const tandem_parameter* parameter : parameters()) {
      for (std::string path = block_path(*parameter); !path.empty(); path = outer_block(path)) {
        blocks_.insert(path);
      }
    }
  }

  std::shared_ptr<const Attributes> read() {
    check_layer_fields();
    for (const std::string& block : blocks_) check_block_fields(block);
    auto attributes = std::make_shared<Attributes>();
    for (const tandem_parameter* parameter : parameters()) {
      attributes->set(parameter->name, read_parameter(*parameter));
    }
    return attributes;
  }

 private:
  [[nodiscard]] std::span<const tandem_parameter* const> parameters() const {
    return {type_.parameters, type_.parameter_count};
  }

  // Several blocks of one name count as one.
  [[nodiscard]] std::vector<const Message*> messages_of(const std::string& block) const {
    if (block.empty()) return {&layer_.body};
    std::vector<const Message*> messages;
    for (const Message* outer : messages_of(outer_block(block))) {
      for (const Field* field : outer->all(block.substr(block.rfind('.') + 1))) {
        messages.push_back(&block_of(*field, owner_));
      }
    }
    return messages;
  }

  // The parameters of a block and the blocks inside it; "": the parameters of the layer itself.
  [[nodiscard]] std::vector<std::string> fields_of(const std::string& block) const {
    std::vector<std::string> names;
    for (const tandem_parameter* parameter : parameters()) {
      if (block_path(*parameter) == block) names.emplace_back(parameter->name);
    }
    for (const std::string& other : blocks_) {
      if (block.empty() || outer_block(other) != block) continue;
      names.push_back(other.substr(block.size() + 1));
    }
    return names;
  }

  void check_layer_fields() const {
    const std::vector<std::string> own_fields = fields_of("");
    std::vector<std::string> known = common_layer_fields();
    known.insert(known.end(), own_fields.begin(), own_fields.end());
    for (const Field& field : layer_.body.fields) {
      if (blocks_.contains(field.name)) continue;
      if (is_among(known, field.name)) continue;
      if (field.message) throw unknown_block(field);
      known.insert(known.end(), blocks_.begin(), blocks_.end());
      throw unknown_field(field, known, "field", owner_);
    }
  }

  [[nodiscard]] Error unknown_block(const Field& field) const {
    if (!hint_of_field("", field.name).empty()) return unknown_field(field, {}, "block", owner_);
    const std::vector<std::string> names(blocks_.begin(), blocks_.end());
    const std::string reads =
        names.empty() ? "has no parameters" : fmt::format("reads {}", fmt::join(names, ", "));
    return error("{}: unknown block '{}'{}; {} {}{}", owner_, field.name,
                 did_you_mean(field.name, names), type_.name, reads, in_file(field.location));
  }

  void check_block_fields(const std::string& block) const {
    for (const Message* message : messages_of(block)) {
      require_known(*message, fields_of(block), "field of " + block, owner_);
    }
  }

  [[nodiscard]] Attribute read_parameter(const tandem_parameter& parameter) const {
    std::vector<const Field*> fields;
    for (const Message* block : messages_of(block_path(parameter))) {
      for (const Field* field : block->all(parameter.name)) fields.push_back(field);
    }
    if (fields.empty()) {
      if (parameter.required != 0) throw missing(parameter);
      return default_attribute(parameter, owner_);
    }
    if (parameter.type == TANDEM_PARAMETER_FILLER) {
      const Field& field = *fields.front();
      if (fields.size() > 1) throw given_twice(field, *fields[1], owner_);
      const std::string filler_owner = fmt::format("{}: {}", owner_, parameter.name);
      return {read_filler(block_of(field, owner_), filler_owner), true, field.location};
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
  std::set<std::string> blocks_;
};

}  // namespace

std::shared_ptr<const Attributes> read_attributes(const LayerDefinition& layer,
                                                  const tandem_layer_type& type) {
  return AttributesReader(layer, type).read();
}

}  // namespace tandem
