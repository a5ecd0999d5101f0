// The tables of the folder's services, each defined in the file of its name.
#pragma once

#include <sonde/layout.h>
#include <sonde/layout_encoding.h>
#include <sonde/layout_plan.h>
#include <sonde/layout_shape.h>

namespace sonde::layout {

extern const sonde_layout_service_t kLayoutService;
extern const sonde_layout_shape_service_t kShapeService;
extern const sonde_layout_encoding_service_t kEncodingService;
extern const sonde_layout_plan_service_t kPlanService;

}  // namespace sonde::layout
