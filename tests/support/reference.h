// Reads the float64 vectors of tests/reference (see its README.md for the format).
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbers/shape.h"
#include "core/check/layer/tensor.h"
#include "tests/support/folders.h"

namespace tandem::test {

using namespace checker;

struct ReferenceTensor {
  Shape shape{0, 0, 0, 0};
  std::vector<double> values;
};

struct ReferenceCase {
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;  // without the name of their block
  double normaliser = 1;
  std::map<std::string, ReferenceTensor> tensors;

  [[nodiscard]] bool has(const std::string& tensor) const { return tensors.count(tensor) > 0; }
  // As the layer gets it.
  [[nodiscard]] PlainTensor plain(const std::string& tensor) const {
    const ReferenceTensor& found = tensors.at(tensor);
    return {found.shape, {found.values.begin(), found.values.end()}};
  }
  // PREFIX0, PREFIX1, ... as many as there are.
  [[nodiscard]] std::vector<PlainTensor> all(const std::string& prefix) const {
    std::vector<PlainTensor> result;
    while (has(prefix + std::to_string(result.size()))) {
      result.push_back(plain(prefix + std::to_string(result.size())));
    }
    return result;
  }
};

inline ReferenceTensor read_reference_tensor(std::istream& file) {
  ReferenceTensor tensor;
  file >> tensor.shape.n >> tensor.shape.c >> tensor.shape.h >> tensor.shape.w;
  tensor.values.resize(static_cast<size_t>(element_count(tensor.shape)));
  for (double& value : tensor.values) file >> value;
  return tensor;
}

// In the sources; if the tests were copied to another machine, beside the program's folder.
inline std::filesystem::path reference_folder() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto carried = program.parent_path().parent_path() / "tests" / "reference";
  return std::filesystem::exists(carried) ? carried : test::source_folder() / "tests" / "reference";
}

// Throws Error if the file is missing or damaged.
inline std::vector<ReferenceCase> read_reference(const std::string& layer) {
  const std::string path = reference_folder() / (layer + ".txt");
  std::ifstream file(path);
  std::vector<ReferenceCase> cases;
  bool inside = false;
  for (std::string word; file >> word;) {
    if (word == "case" && !inside) {
      inside = true;
      file >> cases.emplace_back().name;
    } else if (word == "param" && inside) {
      std::string name, value;
      file >> name >> value;
      if (name == "normaliser") {
        cases.back().normaliser = std::stod(value);
      } else {
        cases.back().parameters.emplace_back(name.substr(name.find('.') + 1), value);
      }
    } else if (word == "tensor" && inside) {
      std::string name;
      file >> name;
      cases.back().tensors[name] = read_reference_tensor(file);
    } else if (word == "end" && inside) {
      inside = false;
    } else {
      throw error("{}: '{}' is out of place", path, word);
    }
  }
  if (cases.empty() || inside || !file.eof()) throw error("{}: missing or damaged", path);
  return cases;
}

}  // namespace tandem::test
