#include "core/base/processors.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <array>
#include <limits>

#include "core/base/parallel.h"

namespace tandem {
namespace {

// Containers of one machine have names of their own, but the kernel's boot in common.
std::string machine_name(const std::filesystem::path& root) {
  std::string boot;
  if (std::ifstream(root / "proc/sys/kernel/random/boot_id") >> boot) return boot;
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

double share_of(const std::vector<ProcessorUse>& users, size_t index) {
  const ProcessorUse& own = users[index];
  const auto count_users = [&](const auto& have_it) {
    return static_cast<double>(std::count_if(
        users.begin(), users.end(),
        [&](const ProcessorUse& user) { return user.machine == own.machine && have_it(user); }));
  };
  double share = 0;
  for (const int processor : own.allowed) {
    share += 1 / count_users([&](const ProcessorUse& user) {
               return std::binary_search(user.allowed.begin(), user.allowed.end(), processor);
             });
  }
  for (const ProcessorQuota& quota : own.quotas) {
    const double sharing = count_users([&](const ProcessorUse& user) {
      return std::any_of(user.quotas.begin(), user.quotas.end(),
                         [&](const ProcessorQuota& other) { return other.group == quota.group; });
    });
    share = std::min(share, whole_processors(quota.processors) / sharing);
  }
  return share;
}

}  // namespace

ProcessorUse own_processors(const std::filesystem::path& root) {
  ProcessorUse use{machine_name(root), std::max(1, get_nprocs()), allowed_processors(),
                   processor_quotas(root)};
  for (int i = 0; use.allowed.empty() && i < use.of_machine; ++i) use.allowed.push_back(i);
  return use;
}

int processor_share(const std::vector<ProcessorUse>& users, size_t index) {
  constexpr double rounding = 1e-9;  // of thirds and the like
  return std::max(1, static_cast<int>(share_of(users, index) + rounding));
}

std::string processor_limits(const std::vector<ProcessorUse>& users, size_t index) {
  const ProcessorUse& own = users[index];
  double used = 0;
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i].machine == own.machine) used += share_of(users, i);
  }
  if (used > own.of_machine - 0.5) return "";
  std::string reasons;
  const auto add = [&](const std::string& reason) {
    reasons += (reasons.empty() ? "" : ", ") + reason;
  };
  const auto bound = static_cast<int>(own.allowed.size());
  if (bound < own.of_machine) add(fmt::format("bound to {}", bound));
  double smallest = std::numeric_limits<double>::max();
  for (const ProcessorQuota& quota : own.quotas) smallest = std::min(smallest, quota.processors);
  if (smallest < own.of_machine) add(fmt::format("a quota of {:.3g}", smallest));
  return fmt::format("{} of this machine's {} ({})", processor_share(users, index), own.of_machine,
                     reasons);
}

int processor_count() {
  return processor_share({own_processors()}, 0);
}

}  // namespace tandem
