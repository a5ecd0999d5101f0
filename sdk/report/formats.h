// The four shapes of a report. Each streams to `output` and needs memory for the rows of one terminal table at most.
#pragma once

#include "report/output.h"
#include "report/report_input.h"

namespace sonde::report {

void write_text(const ReportInput &input, Output &output);
void write_json(const ReportInput &input, Output &output);
// SARIF 2.1.0 (OASIS): findings; the losses are notifications of the invocation.
void write_sarif(const ReportInput &input, Output &output);
// RFC 4180; each table after a line "# origin.name", then "# findings" and "# losses".
void write_csv(const ReportInput &input, Output &output);

}  // namespace sonde::report
