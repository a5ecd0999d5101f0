// The tables of the folder's services, each defined in the file of its name.
#pragma once

#include <sonde/cute.h>
#include <sonde/layout.h>
#include <sonde/layout_encoding.h>
#include <sonde/layout_modular.h>
#include <sonde/layout_plan.h>
#include <sonde/layout_search.h>
#include <sonde/layout_shape.h>

namespace sonde::layout {

extern const sonde_layout_service_t kLayoutService;
extern const sonde_layout_shape_service_t kShapeService;
extern const sonde_layout_encoding_service_t kEncodingService;
extern const sonde_layout_plan_service_t kPlanService;
extern const sonde_layout_modular_service_t kModularService;
extern const sonde_layout_search_service_t kSearchService;
extern const sonde_cute_service_t kCuteService;

}  // namespace sonde::layout
