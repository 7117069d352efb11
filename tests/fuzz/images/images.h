// Targets of the data set image_folder, compiled with its sources.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void image(std::string_view bytes);
void list(std::string_view bytes);
void pack(std::string_view bytes);

[[nodiscard]] const std::map<std::string, Target>& image_targets();

}  // namespace tandem::fuzz
