/** Passes calls of NCCL to interceptors, and writes files of the profiler. */
package io.github.nccl4j.internal.diagnostics;
