// Whether an ONNX file gives the scores of a net here, on the same rows: read as a net again, or in
// ONNX Runtime, where Python has it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/model/file/definition.h"
#include "core/plugin/registry.h"

namespace tandem {

struct ScoredRows {
  Shape input;  // of all rows: N, C, H, W
  std::vector<float> rows, scores;
};

// Values from -1 to 1 that look like nothing, the same ones each time, for a net of this input.
[[nodiscard]] std::vector<float> seeded_rows(const Shape& input);
// The scores of a net with these weights, in the order of its net without a kind of device.
[[nodiscard]] std::vector<float> scores_of(Registry& registry, const NetDefinition& net,
                                           const std::vector<float>& weights, const Shape& input,
                                           const std::vector<float>& rows);

// One line on the largest difference, or on why the file cannot be read as a net. Error where the
// scores differ.
std::string compare_as_net(Registry& registry, const std::filesystem::path& file,
                           const ScoredRows& expected);
// The same in ONNX Runtime of the Python that TANDEM_PYTHON names, else python3. Error where it
// cannot run the file. `with`: the program to compare with, "onnxruntime"; Error for another one.
std::string compare_with(const std::string& with, const std::filesystem::path& file,
                         const ScoredRows& expected);

}  // namespace tandem
