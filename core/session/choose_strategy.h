// `--strategy auto`: forecasts every strategy for the session to be made and writes the fastest
// that fits into its options, and a table for the user.
#pragma once

#include <string>

#include "core/session/forecast.h"

namespace tandem {

// Whether the session's strategy is still to be chosen.
[[nodiscard]] bool is_auto(const SessionOptions& options);

// Where none is named: of several devices the fastest by forecast, of one, of very many, whose
// comparison takes long, and with options, which are of the one that was the default before there
// was a choice: two_phase.
[[nodiscard]] std::string default_strategy(int devices, const StrategyOptions& given);

// "strategy mixed: 12.3 ms a step by estimated costs (the best published one, layerwise --reduce
// ring: 13.0 ms); --strategy NAME takes another"
[[nodiscard]] std::string forecast_line(const ForecastList& list);

// With measured costs in `options` (and a link or topology) nothing runs; else a few steps of
// `sequential` are measured first on the session's own devices, and the link from their copies. By
// forecast nothing is measured: unknown costs are those of a roofline. Replaces strategy,
// strategy_options and costs. `own_devices`: those of this process, if the session's are of
// several. Returns the table and the choice, as text; by forecast one line.
enum class ChoiceBy { measurement, forecast };
std::string choose_strategy(Registry& registry, const NetDefinition& definition,
                            SessionOptions& options, const std::string& own_devices = "",
                            ChoiceBy by = ChoiceBy::measurement);

}  // namespace tandem
