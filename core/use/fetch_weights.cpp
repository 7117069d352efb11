#include "core/run/weights/hub.h"
#include "include/tandem/predict.h"

namespace tandem {

std::string fetch_weights(const FetchOptions& options) {
  return fetch_repository(options.repository, options.note);
}

}  // namespace tandem
