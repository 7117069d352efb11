// Messages of devices whose memory the host cannot address go through pinned memory of the host.
#pragma once

#include "core/schedule/plan/plan.h"

namespace tandem {

// Gives each stream with such messages one buffer of the host, as large as the largest of them: a
// message is over before the next one of its stream begins. Before the dependencies of a rank's
// part are derived.
void stage_messages(Plan& part);

}  // namespace tandem
