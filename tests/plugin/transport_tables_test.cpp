// Tables of transports between devices that are too small, lack a function or are of another
// version: the module is refused with one line, as for the tables of layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>

#include "core/plugin/registry.h"
#include "plugins/abi.h"

extern "C" {
#include "tests/bad_plugins/minimal.h"
}

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

tandem_device_transport whole_table() {
  tandem_device_transport table{};
  table.struct_size = sizeof table;
  table.device_kind = "acme";
  table.help = "Acme 1.2";
  table.make_key = [](void*) { return tandem_status{TANDEM_OK}; };
  table.open = [](const tandem_call*, const void*, int32_t, double, tandem_device_link**) {
    return tandem_status{TANDEM_OK};
  };
  table.transfer = [](tandem_device_link*, const tandem_call*, void*, int64_t) {
    return tandem_status{TANDEM_OK};
  };
  table.check = [](tandem_device_link*) { return tandem_status{TANDEM_OK}; };
  table.abort = [](tandem_device_link*) {};
  table.close = [](tandem_device_link*, double) {};
  return table;
}

// A module that offers one transport between devices.
struct Module {
  tandem_device_transport table = whole_table();
  const tandem_device_transport* tables[1] = {&table};
  tandem_transports part{sizeof(tandem_transports),
                         TANDEM_TRANSPORTS_MAJOR,
                         TANDEM_TRANSPORTS_MINOR,
                         0,
                         nullptr,
                         1,
                         tables};
  tandem_plugin plugin = test_plugin("links");

  ModuleReport load(Registry& registry) {
    plugin.transports = &part;
    current() = &plugin;
    return registry.load([](const tandem_host*) { return current(); });
  }
  // "" if it loads.
  std::string refusal() {
    Registry registry;
    const ModuleReport report = load(registry);
    EXPECT_EQ(report.loaded, report.reason.empty());
    EXPECT_EQ(report.reason.find('\n'), std::string::npos) << report.reason;
    EXPECT_EQ(registry.device_transports().size(), report.loaded ? 1 : 0);
    return report.reason;
  }

 private:
  static const tandem_plugin*& current() {
    static const tandem_plugin* plugin = nullptr;
    return plugin;
  }
};

TEST(DeviceTransportTables, ThatAreWholeAreOffered) {
  Module module;
  Registry registry;
  const ModuleReport report = module.load(registry);
  ASSERT_TRUE(report.loaded) << report.reason;
  EXPECT_THAT(report.offers, ElementsAre("messages acme"));
  EXPECT_STREQ(registry.device_transport("acme").help, "Acme 1.2");
}

TEST(DeviceTransportTables, SmallerThanVersion2MadeThemAreRefused) {
  const std::string end = ": set it to the sizeof of the struct, and rebuild the plugin";
  for (const uint32_t size : {uint32_t{0}, uint32_t{offsetof(tandem_device_transport, close)},
                              uint32_t{sizeof(tandem_device_transport) - 1}}) {
    Module module;
    module.table.struct_size = size;
    EXPECT_EQ(module.refusal(),
              fmt::format("one of its transports between devices has a struct_size of {}, but it "
                          "is at least {}{}",
                          size, sizeof(tandem_device_transport), end));
  }
  Module part;
  part.part.struct_size = 8;
  EXPECT_THAT(part.refusal(), HasSubstr("the table of its transports has a struct_size of 8"));
}

TEST(DeviceTransportTables, WithoutAFunctionAreRefusedWithItsName) {
  using Table = tandem_device_transport;
  const std::vector<std::pair<const char*, std::function<void(Table&)>>> cases{
      {"help", [](Table& t) { t.help = nullptr; }},
      {"make_key", [](Table& t) { t.make_key = nullptr; }},
      {"open", [](Table& t) { t.open = nullptr; }},
      {"transfer", [](Table& t) { t.transfer = nullptr; }},
      {"check", [](Table& t) { t.check = nullptr; }},
      {"abort", [](Table& t) { t.abort = nullptr; }},
      {"close", [](Table& t) { t.close = nullptr; }}};
  for (const auto& [field, remove] : cases) {
    Module module;
    remove(module.table);
    EXPECT_EQ(module.refusal(),
              fmt::format("transport between devices 'acme' has no '{}', which plugin ABI 2 "
                          "requires: set it, and rebuild the plugin",
                          field));
  }
}

TEST(DeviceTransportTables, WithoutAKindOrAListOfThemAreRefused) {
  Module unnamed, senseless, missing, list;
  unnamed.table.device_kind = nullptr;
  EXPECT_EQ(unnamed.refusal(), "it offers a transport between devices without a name");
  senseless.table.device_kind = "a b";
  EXPECT_THAT(senseless.refusal(),
              HasSubstr("it offers a transport between devices with the name"));
  missing.tables[0] = nullptr;
  EXPECT_EQ(missing.refusal(), "one of its transports between devices is NULL");
  list.part.device_transports = nullptr;
  EXPECT_EQ(list.refusal(), "its transports between devices: 1 of them, but the list is NULL");
}

// Nothing of the table is read.
TEST(DeviceTransportTables, OfAnotherMajorVersionAreRefused) {
  Module module;
  module.part.major = 3;
  module.part.device_transports = reinterpret_cast<const tandem_device_transport* const*>(0xdead);
  EXPECT_EQ(module.refusal(),
            "its transports were built for version 3.0 of plugins/abi.h, and this Tandem has 2.0 "
            "of them: rebuild it with the plugins/abi.h of this Tandem");
}

}  // namespace
}  // namespace tandem
