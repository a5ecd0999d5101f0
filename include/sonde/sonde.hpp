// C++20 over the C interface: header only, exports no symbol, needs include/ alone.
//
// In a program that embeds Sonde an error of the host becomes the exception sonde::Failure. A plugin may throw it too:
// what AnalysisPlugin makes translates exceptions to a status, so none crosses the binary interface.
//
//   sonde::Session session = sonde::Session::open(sonde::Host(sonde_host()));
//   auto subscription = session.subscribe("kernels", {sonde::every(SONDE_SPACE_DEVICE)}, [](const sonde::Batch &batch) {
//     batch.for_each<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL,
//                                           [](const sonde_device_kernel_t &kernel, const sonde::Interval &interval) {});
//   });
#ifndef SONDE_SONDE_HPP
#define SONDE_SONDE_HPP

#include <sonde/sonde.h>

#include <sonde/cpp/analysis.hpp>
#include <sonde/cpp/cute.hpp>
#include <sonde/cpp/encoding.hpp>
#include <sonde/cpp/host.hpp>
#include <sonde/cpp/layout.hpp>
#include <sonde/cpp/plan.hpp>
#include <sonde/cpp/records.hpp>
#include <sonde/cpp/results.hpp>
#include <sonde/cpp/session.hpp>

#endif
