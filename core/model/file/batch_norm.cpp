#include "core/model/file/batch_norm.h"

#include <algorithm>
#include <vector>

#include "core/base/text/strings.h"
#include "core/model/file/fields.h"

namespace tandem {

namespace {

// Several blocks of one name count as one.
std::vector<const Field*> batch_norm_fields(const Message& layer, const std::string& name) {
  std::vector<const Field*> fields;
  for (const Field* block : layer.all("batch_norm_param")) {
    if (!block->message) continue;  // refused with the other parameters
    for (const Field* field : block->message->all(name)) fields.push_back(field);
  }
  return fields;
}

const Field* first_filler(const Message& layer) {
  for (const char* name : {"scale_filler", "bias_filler"}) {
    const std::vector<const Field*> fields = batch_norm_fields(layer, name);
    if (!fields.empty()) return fields.front();
  }
  return nullptr;
}

// Whether the layer has factors and biases.
bool has_scale_bias(const Message& layer, const std::string& type, const std::string& owner) {
  const std::vector<const Field*> fields = batch_norm_fields(layer, "scale_bias");
  const Field* filler = first_filler(layer);
  if (fields.empty()) return is_batch_norm_scale(type) || filler != nullptr;
  if (fields.size() > 1) {
    Field all = *fields.front();
    for (size_t i = 1; i < fields.size(); ++i) all.text += ", " + fields[i]->text;
    throw wrong_value(all, owner, "true or false, written once");
  }
  if (boolean_of(*fields.front(), owner)) return true;
  if (is_batch_norm_scale(type)) {
    throw wrong_value(*fields.front(), owner,
                      "true: this layer type has factors and biases; BatchNorm has none");
  }
  if (filler == nullptr) return false;
  throw error(
      "{}: {} is given, but scale_bias is '{}': a BatchNorm without scale_bias has no such "
      "weights{}",
      owner, filler->name, fields.front()->text, in_file(filler->location));
}

constexpr size_t running_sums = 3;  // mean, variance and scale_factor

// The first three param blocks are those of the running sums. A file that has only the two of a
// Scale would give them to the sums.
void require_rules_of_scale(const Message& layer, const std::string& owner) {
  const std::vector<const Field*> rules = layer.all("param");
  if (rules.size() > running_sums) return;
  for (const Field* rule : rules) {
    if (!rule->message) continue;
    for (const char* name : {"lr_mult", "decay_mult"}) {
      const Field* factor = rule->message->find(name);
      if (factor == nullptr || number_of(*factor, owner) == 0) continue;
      throw wrong_value(*factor, owner,
                        "0: the first three param blocks are those of mean, variance and "
                        "scale_factor, which are not trained, the fourth and fifth those of weight "
                        "and bias");
    }
  }
}

}  // namespace

void read_scale_bias(Message& layer) {
  const Field* type = layer.find("type");
  if (type == nullptr || !is_batch_norm(type->text)) return;
  const Field* name = layer.find("name");
  const std::string owner =
      fmt::format("layer '{}' ({})", name == nullptr ? "" : name->text, type->text);
  const bool has_scale = has_scale_bias(layer, type->text, owner);
  if (has_scale) require_rules_of_scale(layer, owner);
  for (Field& field : layer.fields) {
    if (has_scale && field.name == "type") field.text = "BatchNormScale";
    if (field.name != "batch_norm_param" || !field.message) continue;
    std::erase_if(own_block(field).fields,
                  [](const Field& one) { return one.name == "scale_bias"; });
  }
}

}  // namespace tandem
