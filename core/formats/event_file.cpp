#include "core/formats/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "core/base/files/crc32.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"

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

constexpr size_t number_digits = 10;

// The largest number in the names of the folder's event files; 0 if there is none.
int64_t newest_number(const std::filesystem::path& folder) {
  int64_t newest = 0;
  for (const std::filesystem::path& entry : entries_of(folder)) {
    std::string name = entry.filename().string();
    if (!name.starts_with(event_file_prefix)) continue;
    name.erase(0, std::string(event_file_prefix).size());
    const std::string digits = name.substr(0, name.find('.'));
    int64_t number = 0;
    if (digits.size() > number_digits || !parse_integer(digits, &number)) continue;
    newest = std::max(newest, number);
  }
  return newest;
}

}  // namespace

EventFile::EventFile(std::filesystem::path folder, int64_t resumed_step)
    : folder_(std::move(folder)), resumed_step_(resumed_step) {}

void EventFile::begin() {
  begun_at_ = seconds_since_1970();
  begin_ = Clock::now();
  // The clock may have been set back since the run was interrupted.
  const int64_t number = std::max(static_cast<int64_t>(begun_at_), newest_number(folder_) + 1);
  file_.emplace(
      folder_ / fmt::format("{}{:0{}}.{}", event_file_prefix, number, number_digits, ::getpid()),
      std::filesystem::path{}, OutputMode::append);
  ProtoWriter version;
  version.number(1, begun_at_);
  version.bytes(3, "brain.Event:2");
  write_record(*file_, version.text());
  ProtoWriter start;  // SessionLog with status START
  start.integer(1, 1);
  ProtoWriter session;
  session.number(1, begun_at_);
  session.integer(2, static_cast<uint64_t>(resumed_step_ > 0 ? resumed_step_ + 1 : 0));
  session.bytes(7, start.text());
  write_record(*file_, session.text());
}

double EventFile::seconds() const {
  return begun_at_ + std::chrono::duration<double>(Clock::now() - begin_).count();
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
  event.number(1, seconds());
  event.integer(2, static_cast<uint64_t>(step));
  event.bytes(5, summary.text());
  write_record(*file_, event.text());
}

}  // namespace tandem
