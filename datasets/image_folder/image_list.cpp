#include "datasets/image_folder/image_list.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "datasets/image_folder/list_lookup.h"
#include "datasets/picture/names.h"

namespace tandem::image_folder {

namespace fs = std::filesystem;
using picture::extension_of;

ImageList::ImageList(const tandem_dataset_request& request, const sdk::Attributes& attributes) {
  ListOptions options;
  options.common = listing_options(request, attributes);
  options.root = attributes.text("root");
  options.classes = attributes.text("classes");
  begin(request, attributes, list_listed(options));
}

std::vector<sdk::Parameter> ImageList::parameters() {
  constexpr const char* block = "image_list_param";
  std::vector<sdk::Parameter> parameters = parameters_of(block);
  parameters.push_back(sdk::word(block, "root")
                           .by_default("")
                           .help("folder where relative paths begin; default: the list's own"));
  parameters.push_back(
      sdk::word(block, "classes")
          .by_default("")
          .help("file with a class name on each line, for lists with class numbers"));
  return parameters;
}

bool ImageList::recognizes(const std::string& source) {
  static constexpr std::array known{".txt", ".csv", ".lst", ".list"};
  std::error_code ignored;
  if (fs::is_directory(source, ignored)) {
    return !list_of_split(source, "train").empty() &&
           !fs::is_directory(fs::path(source) / "train", ignored);
  }
  const std::string extension = extension_of(fs::path(source).filename().string());
  return fs::is_regular_file(source, ignored) &&
         std::find(known.begin(), known.end(), extension) != known.end();
}

}  // namespace tandem::image_folder
