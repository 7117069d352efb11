// What a data set says of itself when it is opened, checked once at the ABI: what comes later
// takes sizes, shape and the form of its pixels as they are.
#pragma once

#include <string>

#include "core/base/shape.h"
#include "plugins/abi.h"

namespace tandem {

// `expected`: of a sample, 0 for any; `what` begins the message. Error for what cannot be.
void check_info(const tandem_dataset_type& type, const tandem_dataset_info& info,
                const Shape& expected, const std::string& what);

}  // namespace tandem
