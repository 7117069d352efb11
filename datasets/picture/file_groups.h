// Samples of which several are of one file, as the lines of a list that has a line for each
// annotator or each box: all samples of a file are held out for validation, or none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/picture/classes.h"

namespace tandem::picture {

// As part_of() of the files, where a file is of the class of its first sample. Its samples follow
// each other. The same as part_of() of the samples if no two are of one file. `files`: of each
// sample, the same text for the same file.
[[nodiscard]] std::vector<size_t> part_of_files(const std::vector<std::string>& files,
                                                const std::vector<int64_t>& labels,
                                                const std::vector<std::string>& class_names,
                                                const HeldOut& share, uint64_t seed, bool held_out);

// How many different files there are.
[[nodiscard]] size_t count_files(const std::vector<std::string>& files);

}  // namespace tandem::picture
