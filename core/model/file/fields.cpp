#include "core/model/file/fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/text/decimal_comma.h"
#include "core/base/text/strings.h"
#include "core/model/file/forks.h"

namespace tandem {

Error wrong_value(const Field& field, const std::string& owner, const std::string& right) {
  const std::string found = field.message ? "a block" : fmt::format("'{}'", field.text);
  return error("{}: {} is {}, but must be {}{}", owner, field.name, found, right,
               in_file(field.location));
}

const std::string& text_of(const Field& field, const std::string& owner) {
  if (field.message) throw wrong_value(field, owner, "a single value");
  return field.text;
}

const std::string& word_of(const Field& field, const std::string& owner,
                           const std::vector<std::string>& known) {
  const std::string& text = text_of(field, owner);
  if (is_among(known, text)) return text;
  throw wrong_value(field, owner,
                    fmt::format("one of {}{}", fmt::join(known, ", "), did_you_mean(text, known)));
}

int64_t integer_of(const Field& field, const std::string& owner) {
  int64_t value = 0;
  if (field.message || !parse_integer(field.text, &value)) {
    throw wrong_value(field, owner, "an integer");
  }
  return value;
}

int64_t positive_of(const Field& field, const std::string& owner) {
  const int64_t value = integer_of(field, owner);
  if (value < 1) throw wrong_value(field, owner, "at least 1");
  return value;
}

double number_of(const Field& field, const std::string& owner) {
  double value = 0;
  // In Caffe's formats all of them are floats.
  constexpr double max_float = std::numeric_limits<float>::max();
  if (field.message || !parse_number(field.text, &value) || !(std::abs(value) <= max_float)) {
    throw wrong_value(
        field, owner,
        "a finite number between -3.4e38 and 3.4e38" + decimal_comma_hint(field.text));
  }
  return value;
}

bool boolean_of(const Field& field, const std::string& owner) {
  bool value = false;
  if (!parse_boolean(text_of(field, owner), &value)) {
    throw wrong_value(field, owner, "true or false");
  }
  return value;
}

const Message& block_of(const Field& field, const std::string& owner) {
  if (!field.message)
    throw wrong_value(field, owner, fmt::format("a block: {} {{ ... }}", field.name));
  return *field.message;
}

Message& own_block(Field& field) {
  field.message = std::make_shared<Message>(*field.message);
  return *field.message;
}

int32_t phase_of(const Field& field, const std::string& owner) {
  const std::string& text = text_of(field, owner);
  if (text == "TRAIN" || text == "0") return TANDEM_TRAIN;
  if (text == "TEST" || text == "1") return TANDEM_TEST;
  throw wrong_value(field, owner, "TRAIN or TEST");
}

Shape shape_of(const Field& field, const std::string& owner) {
  std::vector<int64_t> dims;
  for (const Field& dim : block_of(field, owner).fields) {
    if (dim.name != "dim") throw unknown_field(dim, {"dim"}, "field of a shape", owner);
    dims.push_back(positive_of(dim, owner));
  }
  if (dims.empty() || dims.size() > 4) {
    throw error("{}: {} has {} dims, but must have 1 to 4 (N, C, H, W){}", owner, field.name,
                dims.size(), in_file(field.location));
  }
  dims.resize(4, 1);
  return {dims[0], dims[1], dims[2], dims[3]};
}

const std::vector<std::string>& common_layer_fields() {
  static const std::vector<std::string> fields{
      "name",    "type",           "bottom",         "top", "param", "loss_weight", "include",
      "exclude", "propagate_down", "transform_param"};
  return fields;
}

Error unknown_field(const Field& field, const std::vector<std::string>& known,
                    const std::string& what, const std::string& owner) {
  constexpr std::string_view in_block = "field of ";
  const bool is_whole = owner == "net" || owner == "solver";
  const std::string hint = hint_of_field(what.starts_with(in_block) ? what.substr(in_block.size())
                                         : is_whole                 ? owner
                                                                    : "",
                                         field.name);
  if (!hint.empty()) {
    return error("{}: {} '{}' is not supported: {}{}", owner, what, field.name, hint,
                 in_file(field.location));
  }
  return error("{}: unknown {} '{}'{}; known: {}{}", owner, what, field.name,
               did_you_mean(field.name, known), fmt::join(known, ", "), in_file(field.location));
}

void require_known(const Message& message, const std::vector<std::string>& known,
                   const std::string& what, const std::string& owner) {
  for (const Field& field : message.fields) {
    if (!is_among(known, field.name)) throw unknown_field(field, known, what, owner);
  }
}

void require_once(const Message& message, const std::vector<std::string>& names,
                  const std::string& owner) {
  std::map<std::string, const Field*> given;
  for (const Field& field : message.fields) {
    if (!is_among(names, field.name)) continue;
    const auto [first, is_new] = given.emplace(field.name, &field);
    if (is_new) continue;
    throw given_twice(*first->second, field, owner);
  }
}

Error given_twice(const Field& first, const Field& second, const std::string& owner) {
  return error("{}: {} is given twice, in lines {} and {}, but has one value{}", owner, second.name,
               first.location.line, second.location.line, in_file(second.location));
}

void read_fields(const Message& message, const std::string& what, const std::string& owner,
                 const std::vector<FieldReader>& readers) {
  std::vector<std::string> single;
  for (const FieldReader& one : readers) {
    if (!one.repeats) single.emplace_back(one.name);
  }
  require_once(message, single, owner);
  for (const Field& field : message.fields) {
    const auto reader =
        std::find_if(readers.begin(), readers.end(),
                     [&field](const FieldReader& one) { return field.name == one.name; });
    if (reader == readers.end()) {
      std::vector<std::string> known;
      for (const FieldReader& one : readers) known.emplace_back(one.name);
      throw unknown_field(field, known, what, owner);
    }
    reader->read(field);
  }
}

void write_value(Message& to, const char* name, const Shape& shape) {
  Message& block = to.add_block(name);
  for (const int64_t dim : {shape.n, shape.c, shape.h, shape.w}) write_value(block, "dim", dim);
}

Filler read_filler(const Message& message, const std::string& owner) {
  using F = Filler;
  static const MemberFields<F> fields{
      member("type", &F::type, filler_types()),
      member("value", &F::value),
      member("min", &F::min),
      member("max", &F::max),
      member("mean", &F::mean),
      member("std", &F::std, not_negative),
      member("variance_norm", &F::variance_norm, {"FAN_IN", "FAN_OUT", "AVERAGE"}),
      member("sparse", &F::sparse,
             Range{[](double value) { return value >= -1; }, "at least 0, or -1 for all"}),
  };
  Filler filler;
  read_fields(message, "field", owner, fields, filler);
  if (filler.min > filler.max) {
    throw error("{}: min {} is above max {}{}", owner, filler.min, filler.max,
                in_file(message.location));
  }
  return filler;
}

void set_in_block(Message& layer, const std::string& block, const std::string& name,
                  const std::string& value) {
  Message* first = nullptr;
  for (Field& field : layer.fields) {
    if (field.name != block || !field.message) continue;
    Message& message = own_block(field);
    std::erase_if(message.fields, [&](const Field& one) { return one.name == name; });
    if (first == nullptr) first = &message;
  }
  if (first == nullptr) first = &layer.add_block(block);
  first->add(name, value);
}

}  // namespace tandem
