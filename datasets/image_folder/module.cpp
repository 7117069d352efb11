#include <opencv2/core/utility.hpp>
#include <opencv2/core/utils/logger.hpp>

#include "datasets/image_folder/image_folder.h"
#include "datasets/image_folder/image_list.h"
#include "datasets/image_folder/image_pack.h"

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  using namespace tandem;
  // Decoder threads belong to the host, and errors of OpenCV become reasons instead of output.
  cv::setNumThreads(0);
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  sdk::Plugin plugin(host, "image_folder", "1.0");
  return plugin.dataset<image_folder::ImageFolder>()
      .dataset<image_folder::ImageList>()
      .dataset<image_folder::ImagePack>()
      .table();
}
