// Exported models run by OpenCV's DNN module, where it was there when the tests were built.
#pragma once

#include <filesystem>
#include <vector>

#include "core/base/numbers/shape.h"

namespace tandem::test {

// Null; or why the module cannot be asked, as the reason for which a test is skipped.
[[nodiscard]] const char* why_no_opencv_dnn();

// What the model in the file makes of shape.n rows of C,H,W floats, of which there may be more. It
// throws an exception for a model that OpenCV cannot run.
[[nodiscard]] std::vector<float> run_by_opencv(const std::filesystem::path& file,
                                               const std::vector<float>& rows, const Shape& shape);

}  // namespace tandem::test
