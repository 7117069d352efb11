// Text as it stands in XML and HTML, in content or between double quotes.
#pragma once

#include <string>

namespace tandem {

[[nodiscard]] std::string escape_xml(const std::string& text);

}  // namespace tandem
