/** The flight record of a communicator, events for JDK Flight Recorder, and files of the profiler. */
package io.github.nccl4j.internal.diagnostics;
