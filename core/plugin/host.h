// The host's side of the plugin ABI: the table that every plugin gets, and the reasons of failed
// calls.
#pragma once

#include <string>

#include "plugins/abi.h"

namespace tandem {

[[nodiscard]] const tandem_host& host_table();

// The reason that the last failed call on this thread gave, or "". Taking it clears it.
[[nodiscard]] std::string take_reason();

// Throws Error("<what>: <reason>") unless status is TANDEM_OK.
void check(tandem_status status, const std::string& what);

}  // namespace tandem
