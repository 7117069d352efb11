// A visitor of several functions for std::visit: without a generic one among them, a variant that
// gets another alternative does not compile until every visitor handles it.
#pragma once

namespace tandem {

template <class... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

}  // namespace tandem
