#include "core/train/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <chrono>

#include "core/base/crc32.h"

namespace tandem {
namespace {

// The encoding of protocol buffers: a key of field number and wire type, then the value. Field
// numbers are those of TensorFlow's event.proto and summary.proto.
class ProtoWriter {
 public:
  void integer(int field, uint64_t value) {
    key(field, 0);
    varint(value);
  }
  void number(int field, double value) {
    key(field, 1);
    little_endian(std::bit_cast<uint64_t>(value), 8);
  }
  void number(int field, float value) {
    key(field, 5);
    little_endian(std::bit_cast<uint32_t>(value), 4);
  }
  void bytes(int field, const std::string& value) {
    key(field, 2);
    varint(value.size());
    text_ += value;
  }
  void little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xffU);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void key(int field, uint64_t wire_type) { varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7fU) | 0x80U);
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

uint32_t masked_checksum(const std::string& data) {
  const uint32_t sum = crc32c(data.data(), data.size());
  return (sum >> 15 | sum << 17) + 0xa282ead8U;
}

// A record of a TFRecord file: length, its checksum, data, their checksum.
void write_record(OutputFile& file, const std::string& data) {
  ProtoWriter length;
  length.little_endian(data.size(), 8);
  ProtoWriter record;
  record.little_endian(masked_checksum(length.text()), 4);
  std::string whole = length.text() + record.text() + data;
  ProtoWriter end;
  end.little_endian(masked_checksum(data), 4);
  whole += end.text();
  file.write(whole.data(), whole.size());
}

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

EventFile::EventFile(std::filesystem::path folder, int64_t resumed_step)
    : folder_(std::move(folder)), resumed_step_(resumed_step) {}

void EventFile::begin() {
  const double now = seconds_since_1970();
  file_.emplace(folder_ / fmt::format("{}{:010}.{}", event_file_prefix, static_cast<int64_t>(now),
                                      ::getpid()),
                std::filesystem::path{}, OutputMode::append);
  ProtoWriter version;
  version.number(1, now);
  version.bytes(3, "brain.Event:2");
  write_record(*file_, version.text());
  ProtoWriter start;  // SessionLog with status START
  start.integer(1, 1);
  ProtoWriter session;
  session.number(1, now);
  session.integer(2, static_cast<uint64_t>(resumed_step_ > 0 ? resumed_step_ + 1 : 0));
  session.bytes(7, start.text());
  write_record(*file_, session.text());
}

void EventFile::write(int64_t step, const std::vector<std::pair<std::string, double>>& figures) {
  if (!file_) begin();
  ProtoWriter summary;
  for (const auto& [tag, figure] : figures) {
    ProtoWriter value;
    value.bytes(1, tag);
    value.number(2, static_cast<float>(figure));
    summary.bytes(1, value.text());
  }
  ProtoWriter event;
  event.number(1, seconds_since_1970());
  event.integer(2, static_cast<uint64_t>(step));
  event.bytes(5, summary.text());
  write_record(*file_, event.text());
}

}  // namespace tandem
