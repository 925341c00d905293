/* What became of the loops of C. */
#ifndef STC_REPORT_LOOPS_H
#define STC_REPORT_LOOPS_H
#include "report/report.h"

void loops_text(const struct report *report, struct text *out);
void loops_json(const struct report *report, struct text *out);

#endif
