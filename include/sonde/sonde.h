// Everything of the C interface.
#ifndef SONDE_SONDE_H
#define SONDE_SONDE_H

#include <sonde/analysis.h>
#include <sonde/base.h>
#include <sonde/capture.h>
#include <sonde/claim.h>
#include <sonde/clock.h>
#include <sonde/columns.h>
#include <sonde/config.h>
#include <sonde/cute.h>
#include <sonde/delivery.h>
#include <sonde/export.h>
#include <sonde/host.h>
#include <sonde/layout.h>
#include <sonde/layout_encoding.h>
#include <sonde/layout_modular.h>
#include <sonde/layout_plan.h>
#include <sonde/layout_search.h>
#include <sonde/layout_shape.h>
#include <sonde/ledger.h>
#include <sonde/merge.h>
#include <sonde/plugin.h>
#include <sonde/plugins.h>
#include <sonde/port.h>
#include <sonde/ranges.h>
#include <sonde/record.h>
#include <sonde/reflect.h>
#include <sonde/report.h>
#include <sonde/result.h>
#include <sonde/run.h>
#include <sonde/schema.h>
#include <sonde/session.h>
#include <sonde/spaces/access.h>
#include <sonde/spaces/access_packed.h>
#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/host.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>
#include <sonde/spaces/session.h>
#include <sonde/status.h>
#include <sonde/store.h>
#include <sonde/value.h>
#include <sonde/version.h>

#endif
