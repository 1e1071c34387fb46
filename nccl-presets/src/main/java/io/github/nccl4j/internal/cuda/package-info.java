/** Calls of CUDA and its loading; devices, their streams, events, graphs and memory; waits for work in streams. */
package io.github.nccl4j.internal.cuda;
