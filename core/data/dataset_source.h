// From what a user gives as data to the data set that reads it, and its declared parameters.
#pragma once

#include <map>
#include <string>

#include "core/plugin/attributes.h"
#include "plugins/abi.h"

namespace tandem {

class Registry;

// The data set that reads folders and lists of files.
inline constexpr const char* folder_dataset = "image_folder";

// Whether there is a data set of that name.
[[nodiscard]] bool is_dataset(const Registry& registry, const std::string& name);

using DeclaredParameters = std::map<std::string, const tandem_parameter*>;  // by name
// Of the data set for a source. Errors: as for opening it.
[[nodiscard]] DeclaredParameters declared_parameters(Registry& registry, const std::string& source,
                                                     const std::string& split = "train");

// The name of the data set for a source: the one of that name, the one that recognizes the file or
// folder, or the reader of folders. The source of the split "predict" is a list of paths. Error for
// an unknown source, and for one that two data sets recognize.
[[nodiscard]] std::string dataset_of(Registry& registry, const std::string& source,
                                     const std::string& split);

// All declared parameters of the type: as they are written, or their defaults. `known_only`:
// parameters that the type does not declare are ignored, which are errors otherwise.
[[nodiscard]] Attributes read_parameters(const tandem_dataset_type& type,
                                         const std::map<std::string, std::string>& written,
                                         bool known_only);

}  // namespace tandem
