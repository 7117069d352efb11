// Writes a pack: the pictures of several splits, in an order drawn from the seed, each shrunk once
// instead of in every epoch.
#pragma once

#include <vector>

#include "datasets/image_folder/image_set.h"

namespace tandem::image_folder {

// `sets`: of the request's splits. A picture that is small enough and needs no rotation is copied
// byte by byte. Damaged ones are left out and reported. Refusal if none remains, or if the file
// exists or cannot be written; then no file remains.
void write_pack(const tandem_pack_request& request, const std::vector<const ImageSet*>& sets);

// The same for a type's own table, whose handles are of type D.
template <class D>
void write_pack_of(const tandem_pack_request& request) {
  std::vector<const ImageSet*> sets;
  for (uint32_t i = 0; i < request.split_count; ++i) {
    sets.push_back(static_cast<const D*>(request.handles[i]));
  }
  write_pack(request, sets);
}

}  // namespace tandem::image_folder
