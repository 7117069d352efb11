#include "core/formats/onnx_reader/patterns.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace tandem {
namespace {

struct Form {
  const char* name;
  // Operators begin with a capital, variables are one small letter and the same value wherever they
  // stand, numbers are constants. Add and Mul have their operands in any order. x and y are
  // computed, other variables constant, n one number; y and z are no inputs of what the form
  // becomes. A product of matrices that something else reads as well is no part of a form.
  const char* expression;
};

constexpr Form known_forms[] = {
    {"SiLU", "Mul(x, Sigmoid(x))"},
    {"Swish", "Mul(x, Sigmoid(Mul(x, n)))"},
    {"HardSwish", "Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)"},
    {"HardSwish", "Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))"},
    {"HardSwish", "Mul(x, Mul(Clip(Add(x, 3), 0, 6), 0.1666667))"},
    {"HardSwish", "Mul(Mul(x, Clip(Add(x, 3), 0, 6)), 0.1666667)"},
    {"HardSigmoid", "Div(Clip(Add(x, 3), 0, 6), 6)"},
    {"HardSigmoid", "Mul(Clip(Add(x, 3), 0, 6), 0.1666667)"},
    {"GELU", "Mul(Mul(x, Add(Erf(Div(x, 1.4142135)), 1)), 0.5)"},
    {"GELU", "Mul(Mul(x, Add(Erf(Mul(x, 0.70710678)), 1)), 0.5)"},
    {"GELU", "Mul(x, Mul(Add(Erf(Div(x, 1.4142135)), 1), 0.5))"},
    {"GELU", "Mul(x, Mul(Add(Erf(Mul(x, 0.70710678)), 1), 0.5))"},
    {"GELU", "Mul(Mul(x, 0.5), Add(Erf(Div(x, 1.4142135)), 1))"},
    {"GELU", "Mul(Mul(x, 0.5), Add(Erf(Mul(x, 0.70710678)), 1))"},
    {"GELUTanh",
     "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978846)), 1))"},
    {"GELUTanh",
     "Mul(x, Mul(Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978846)), 1), 0.5))"},
    {"GELUTanh",
     "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(Mul(x, Mul(x, x)), 0.044715)), 0.7978846)), 1))"},
    {"GELUTanh",
     "Mul(Mul(x, Add(Tanh(Mul(Mul(Add(Mul(Mul(x, x), 0.044715), 1), x), 0.7978846)), 1)), 0.5)"},
    {"StochasticDepth", "Mul(x, Div(Cast(Less(RandomUniformLike(y), k)), s))"},
    {"StochasticDepth", "Mul(x, Div(Cast(Less(RandomUniformLike(z), k)), s))"},
    {"LayerNorm",
     "Add(Mul(Div(Sub(x, ReduceMean(x, a)), "
     "Sqrt(Add(ReduceMean(Pow(Sub(x, ReduceMean(x, a)), 2), a), e))), w), b)"},
    {"LayerNorm",
     "Add(Mul(Div(Sub(x, ReduceMean(x, a)), "
     "Sqrt(Add(ReduceMean(Mul(Sub(x, ReduceMean(x, a)), Sub(x, ReduceMean(x, a))), a), e))), w), "
     "b)"},
    {"Linear", "Add(MatMul(x, w), b)"},
};

struct Expression {
  std::string operation;  // "" for a leaf
  char variable = 0;      // 0 for a number
  double number = 0;
  std::vector<Expression> operands;
};

Expression parse(std::string_view& text) {
  Expression result;
  const auto skip = [&](std::string_view any) {
    while (!text.empty() && any.find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  };
  skip(", ");
  if (std::isupper(static_cast<unsigned char>(text.front())) != 0) {
    const size_t end = text.find('(');
    result.operation = text.substr(0, end);
    text.remove_prefix(end + 1);
    while (text.front() != ')') {
      result.operands.push_back(parse(text));
      skip(", ");
    }
    text.remove_prefix(1);
  } else if (std::islower(static_cast<unsigned char>(text.front())) != 0) {
    result.variable = text.front();
    text.remove_prefix(1);
  } else {
    const std::string digits(text.substr(0, text.find_first_of(",)")));
    result.number = std::strtod(digits.c_str(), nullptr);
    text.remove_prefix(digits.size());
  }
  return result;
}

struct ParsedForm {
  std::string name;
  Expression expression;
};

const std::vector<ParsedForm>& parsed_forms() {
  static const std::vector<ParsedForm> parsed = [] {
    std::vector<ParsedForm> result;
    for (const Form& form : known_forms) {
      std::string_view text = form.expression;
      result.push_back({form.name, parse(text)});
    }
    return result;
  }();
  return parsed;
}

class Matcher {
 public:
  explicit Matcher(const OnnxFile& file) : file_(file) {
    for (const OnnxNode& node : file.nodes) {
      if (node.outputs.size() == 1) maker_[node.outputs[0]] = &node;
      for (const std::string& input : node.inputs) ++readers_[input];
    }
  }

  using Variables = std::vector<std::pair<char, std::string>>;

  [[nodiscard]] bool matches(const Expression& form, const OnnxNode& node,
                             Variables& variables) const {
    if (!node.domain.empty() || node.operation != form.operation) return false;
    if (node.inputs.size() != form.operands.size()) return false;
    if (node.integer("keepdims", 1) == 0) return false;
    const Variables before = variables;
    if (fits(form, node, false, variables)) return true;
    variables = before;
    const bool is_commutative = form.operation == "Add" || form.operation == "Mul";
    if (is_commutative && fits(form, node, true, variables)) return true;
    variables = before;
    return false;
  }

 private:
  [[nodiscard]] bool fits(const Expression& form, const OnnxNode& node, bool is_swapped,
                          Variables& variables) const {
    const size_t count = form.operands.size();
    for (size_t i = 0; i < count; ++i) {
      const std::string& value = node.inputs[is_swapped ? count - 1 - i : i];
      if (!fits(form.operands[i], value, variables)) return false;
    }
    return true;
  }

  [[nodiscard]] bool fits(const Expression& form, const std::string& value,
                          Variables& variables) const {
    if (!form.operation.empty()) {
      const auto made = maker_.find(value);
      if (form.operation == "MatMul" && readers_.at(value) > 1) return false;
      return made != maker_.end() && matches(form, *made->second, variables);
    }
    const auto constant = file_.constants.find(value);
    const bool is_constant = constant != file_.constants.end();
    const bool is_number =
        is_constant && constant->second->count() == 1 && !constant->second->is_trained_number();
    if (form.variable == 0) {
      constexpr double half_precision = 1.0 / 2048;  // how much float16 rounds
      return is_number && std::abs(constant->second->at(0) - form.number) <=
                              half_precision * std::abs(form.number);
    }
    if (is_constant == (form.variable == 'x' || form.variable == 'y')) return false;
    if (form.variable == 'n' && !is_number) return false;
    for (const auto& [variable, known] : variables) {
      if (variable == form.variable) return known == value || same_constant(known, value);
    }
    variables.emplace_back(form.variable, value);
    return true;
  }

  // Exporters write equal axes as several constants.
  [[nodiscard]] bool same_constant(const std::string& one, const std::string& other) const {
    const auto a = file_.constants.find(one), b = file_.constants.find(other);
    const auto end = file_.constants.end();
    return a != end && b != end && a->second->shape == b->second->shape &&
           a->second->integers == b->second->integers && a->second->floats == b->second->floats;
  }

  const OnnxFile& file_;
  std::unordered_map<std::string, const OnnxNode*> maker_;
  std::unordered_map<std::string, int> readers_;
};

}  // namespace

void recognize_patterns(OnnxFile& file) {
  const OnnxFile before = file;
  const Matcher matcher(before);
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    for (const ParsedForm& form : parsed_forms()) {
      Matcher::Variables variables;
      if (!matcher.matches(form.expression, before.nodes[i], variables)) continue;
      OnnxNode& node = file.nodes[i];
      node.domain = "tandem";
      node.operation = form.name;
      node.inputs.clear();
      std::sort(variables.begin(), variables.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first != 'x', a.first) < std::pair(b.first != 'x', b.first);
      });
      for (const auto& [variable, value] : variables) {
        if (variable != 'y' && variable != 'z') node.inputs.push_back(value);
      }
      break;
    }
  }
}

}  // namespace tandem
