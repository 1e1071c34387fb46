// graph.h: graphs, which are captured once and launched often.
#pragma once

#include "schedule/launch.h"

namespace host {

/**
 * Records operations, and takes them out of the queue, if their streams are being captured; not registrations, which have no
 * stream. Throws if it is not one graph that captures all the streams.
 *
 * @param joined sets of streams that wait for the operations in all streams of their set
 */
void captureOperations(Queue& queue, const std::vector<std::vector<StreamRef>>& joined);

}  // namespace host
