// What a net sees of the images: in one line, of the same parameters that prepare the pixels.
#pragma once

#include <string>

#include "core/model/file/definition.h"
#include "core/plugin/registry.h"
#include "core/run/folder/run_record.h"

namespace tandem {

// "images: 64x64 rgb, resized to 73 (bicubic) and cropped; mean ...; scale ...; in training ...".
// Of a run whose data set has the parameters of pictures.
[[nodiscard]] std::string images_text(const RunRecord& record);
// The same of what is read from `source` ("": the run's own data), if that are pictures; else "".
[[nodiscard]] std::string images_text(Registry& registry, const RunRecord& record,
                                      const std::string& source, const std::string& split);

// The data layer of training counts in both phases: a line if that of testing differs; else "".
[[nodiscard]] std::string other_preparation_text(const NetDefinition& net);

}  // namespace tandem
