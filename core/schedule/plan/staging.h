// Messages of devices whose memory the host cannot address go through pinned memory of the host, or
// from device to device by links, which take one piece of memory at a time.
#pragma once

#include "core/schedule/plan/plan.h"

namespace tandem {

// Gives each stream with messages that need it one buffer, as large as the largest of them: of the
// host, and of the stream's device for those by links. A message is over before the next one of its
// stream begins. Before the dependencies of a rank's part are derived.
void stage_messages(Plan& part);

}  // namespace tandem
