#include "core/check/cases/generator.h"

#include <algorithm>

#include "core/check/cases/variants.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

uint32_t min_outputs(const tandem_layer_type& type) {
  return uint32_t(std::max(type.minimum_outputs, type.maximum_outputs < 0 ? 2 : 0));
}

namespace {

// Inputs of a type: as many as it needs, of one shape, or with a label.
std::vector<std::vector<Shape>> input_sets(const tandem_layer_type& type, const Shape& first,
                                           int count) {
  const std::vector<Shape> same(size_t(count), first);
  std::vector<std::vector<Shape>> result;
  // A label for each row, or for each pixel.
  for (const Shape& label : {Shape{first.n, 1, 1, 1}, Shape{first.n, 1, first.h, first.w}}) {
    std::vector<Shape> labelled = same;
    bool has_label = false;
    for (size_t i = 0; i < labelled.size(); ++i) {
      if (!is_label(type, i)) continue;
      labelled[i] = label;
      has_label = true;
    }
    if (has_label) result.push_back(std::move(labelled));
  }
  result.push_back(same);
  return result;
}

// The same with further inputs that have one value for each channel, pixel or row of the first.
std::vector<std::vector<Shape>> narrower_sets(const tandem_layer_type& type, const Shape& first,
                                              int count) {
  std::vector<std::vector<Shape>> result;
  for (const Shape& narrow : {Shape{first.n, first.c, 1, 1}, Shape{first.n, 1, first.h, first.w},
                              Shape{first.n, 1, 1, 1}, Shape{1, first.c, 1, 1}}) {
    std::vector<Shape> shapes(size_t(count), narrow);
    shapes[0] = first;
    for (size_t i = 1; i < shapes.size(); ++i) {
      if (is_label(type, i)) shapes[i] = {first.n, 1, 1, 1};
    }
    if (count > 1) result.push_back(std::move(shapes));
  }
  return result;
}

const std::vector<Shape> usual_shapes{{3, 4, 3, 5},   {1, 1, 3, 3},   {2, 16, 3, 2},
                                      {4, 5, 1, 1},   {1, 1, 1, 1},   {2, 3, 1, 11},
                                      {2, 300, 1, 1}, {300, 2, 1, 1}, {3, 16, 33, 35}};

class Generator {
 public:
  Generator(const Maker& maker, const tandem_layer_type& type) : maker_(maker), type_(type) {}

  std::vector<Case> all() {
    bool is_known = false;
    for (const Known& known : known_types()) {
      if (known.type != type_.name) continue;
      is_known = true;
      const uint32_t outputs = known.outputs > 0 ? known.outputs : min_outputs(type_);
      if (known.inputs.empty()) {
        generate(known.parameters);
      } else if (type_.minimum_inputs == 1 && type_.maximum_inputs == 1) {
        for (const Shape& shape : known.inputs) {
          add(known.parameters, {shape}, outputs, known.values);
        }
      } else {
        add(known.parameters, known.inputs, outputs, known.values);
      }
    }
    if (!is_known) generate(required());
    if (cases_.empty()) {
      throw error("no generated case is accepted ({}): give one with --set and --input", reason_);
    }
    return std::move(cases_);
  }

 private:
  // A list may be shorter than the number of inputs.
  [[nodiscard]] bool has_list(const Parameters& parameters) const {
    return std::any_of(parameters.begin(), parameters.end(), [&](const auto& one) {
      return std::any_of(type_.parameters, type_.parameters + type_.parameter_count,
                         [&](const tandem_parameter* p) {
                           return p->name == one.first && (p->type == TANDEM_PARAMETER_INTEGERS ||
                                                           p->type == TANDEM_PARAMETER_NUMBERS);
                         });
    });
  }
  [[nodiscard]] Parameters required() const {
    Parameters result;
    for (uint32_t i = 0; i < type_.parameter_count; ++i) {
      const tandem_parameter& p = *type_.parameters[i];
      if (p.required == 0) continue;
      const std::string value = guess(p);
      if (!value.empty()) result.emplace_back(p.name, value);
    }
    return result;
  }
  // False if the type or its kernel refuses the case.
  bool add(const Parameters& parameters, const std::vector<Shape>& shapes, uint32_t outputs,
           const std::vector<Values>& values = {}) {
    try {
      cases_.push_back(maker_.make(parameters, shapes, outputs, values));
      return true;
    } catch (const Error& refusal) {
      if (reason_.empty()) reason_ = refusal.what();
      return false;
    }
  }
  void generate(const Parameters& parameters) {
    const int max_inputs =
        type_.maximum_inputs < 0 ? type_.minimum_inputs + 2 : type_.maximum_inputs;
    std::vector<int> counts{std::max(1, type_.minimum_inputs)};
    if (max_inputs > counts[0]) counts.push_back(counts[0] + 1);
    for (const int count : counts) {
      for (const Shape& shape : usual_shapes) {
        for (const auto& shapes : input_sets(type_, shape, count)) {
          if (add(parameters, shapes, min_outputs(type_))) break;
        }
      }
    }
    if (cases_.empty()) {
      for (const Shape& shape : usual_shapes) {
        for (const auto& shapes : narrower_sets(type_, shape, counts[0])) {
          if (add(parameters, shapes, min_outputs(type_))) break;
        }
      }
    }
    const bool is_scalar = (type_.traits & (TANDEM_LOSS | TANDEM_METRIC)) != 0;
    if (!is_scalar && type_.maximum_outputs > int32_t(min_outputs(type_))) {
      add(parameters, std::vector<Shape>(size_t(counts[0]), usual_shapes[0]),
          uint32_t(type_.maximum_outputs));
    }
    if (max_inputs > counts.back()) {
      const std::vector<Shape> same(size_t(counts.back() + 1), usual_shapes[0]);
      add(parameters, same, min_outputs(type_));
    }
    for (const Parameters& variant : variants(type_, parameters)) {
      if (max_inputs > counts.back() && has_list(variant)) {
        add(variant, std::vector<Shape>(size_t(counts.back() + 1), usual_shapes[0]),
            min_outputs(type_));
      }
      bool is_taken = false;
      for (const auto& shapes : input_sets(type_, usual_shapes[0], counts[0])) {
        is_taken = add(variant, shapes, min_outputs(type_)) || is_taken;
      }
      if (is_taken) continue;
      for (const auto& shapes : narrower_sets(type_, usual_shapes[0], counts[0])) {
        if (add(variant, shapes, min_outputs(type_))) break;
      }
    }
  }

  const Maker& maker_;
  const tandem_layer_type& type_;
  std::vector<Case> cases_;
  std::string reason_;
};

}  // namespace

std::vector<Case> generated_cases(const Maker& maker, const tandem_layer_type& type) {
  return Generator(maker, type).all();
}

}  // namespace tandem::checker
