// Which images of one class are held out for validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::picture {

// For each of `count` images of the class, in their order, whether it is held out: the rounded
// share `fraction` of them, but at least one of two and never all (unless fraction is 1). A
// function of the arguments only.
[[nodiscard]] std::vector<bool> choose_held_out(const std::string& class_name, size_t count,
                                                double fraction, uint64_t seed);

}  // namespace tandem::picture
