// A visitor of several functions for std::visit: without a generic one among them, a variant that
// gets another alternative does not compile until every visitor handles it.
#pragma once

#include <concepts>
#include <type_traits>

namespace tandem {

template <class... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

// For a function that does the same for some of the alternatives, which it names.
template <class Type, class... Types>
concept OneOf = (std::same_as<std::remove_const_t<Type>, Types> || ...);

}  // namespace tandem
